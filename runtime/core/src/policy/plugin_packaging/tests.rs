//! What an answer may not say, one rule at a time.

use super::*;

fn file(path: &str) -> File {
    File { path: path.into(), size: 1, digest: format!("sha256:{}", "0".repeat(64)), text: None }
}

fn input() -> Input {
    let files = ["p/handler.lua", "p/schema.lua", "p/a.lua", "p/b/c.lua"].map(file).into();
    Input {
        context: Context::default(),
        reference: "example.org/p:1".into(),
        digest: "sha256:0".into(),
        annotations: Pairs::new(),
        signers: Vec::new(),
        files,
        bundled: vec!["acl".into()],
    }
}

fn place(source: &str, target: &str) -> Placement {
    Placement { source: source.into(), target: target.into() }
}

fn plugin() -> Plugin {
    let placements = vec![
        place("p/handler.lua", "handler.lua"),
        place("p/schema.lua", "schema.lua"),
        place("p/a.lua", "a.lua"),
        place("p/b/c.lua", "b/c.lua"),
    ];
    Plugin { name: "my_plugin".into(), version: Some("1.2.3".into()), priority: Some(1000), placements }
}

fn check(plugins: Vec<Plugin>) -> Result<(), String> {
    checked(Answer { plugins, lua_package_path: None, env: Vec::new(), findings: Vec::new() })
}

fn checked(answer: Answer) -> Result<(), String> {
    PluginPackaging::check(&input(), &answer)
}

/// The error about one plugin in which something was changed.
fn error(change: impl FnOnce(&mut Plugin)) -> String {
    let mut plugin = plugin();
    change(&mut plugin);
    check(vec![plugin]).unwrap_err()
}

#[test]
fn a_plain_plugin_is_fine() {
    check(vec![plugin()]).unwrap();
    check(vec![Plugin { version: None, priority: None, ..plugin() }]).unwrap();
    check(vec![Plugin { priority: Some(i32::MIN.into()), ..plugin() }]).unwrap();
}

#[test]
fn names_are_what_kong_can_load() {
    let longest = "a".repeat(MAX_NAME);
    for name in ["a", "My-Plugin_2", "9lives", "offline", longest.as_str()] {
        assert!(is_name(name), "{name}");
    }
    let too_long = "a".repeat(MAX_NAME + 1);
    for name in ["", "-a", "_a", "a.b", "a,b", "a/b", "a b", "\u{e9}", "bundled", "off", too_long.as_str()] {
        assert!(!is_name(name), "{name}");
    }
    assert!(error(|p| p.name = "a.b".into()).contains("letters, digits"));
}

#[test]
fn there_is_a_plugin_and_every_name_is_given_once() {
    assert!(check(Vec::new()).unwrap_err().contains("has to be refused"));
    let two = || plugin().placements.into_iter().take(2).collect();
    let twice = vec![Plugin { placements: two(), ..plugin() }, Plugin { placements: two(), ..plugin() }];
    assert_eq!(check(twice).unwrap_err(), "plugin \"my_plugin\" occurs twice");
}

#[test]
fn placements_are_bounded_by_the_artifact() {
    let two = vec![plugin(), Plugin { name: "other".into(), ..plugin() }];
    assert_eq!(check(two).unwrap_err(), "8 placements, at most 4 are allowed");
    assert!(error(|p| p.placements.clear()).contains("no placement"));
}

#[test]
fn sources_exist() {
    assert!(error(|p| p.placements[2].source = "p/x.lua".into()).contains("which the artifact does not have"));
}

#[test]
fn both_files_of_a_plugin_are_placed() {
    for (at, missing) in REQUIRED.into_iter().enumerate() {
        let message = error(|p| p.placements[at].target = "x.lua".into());
        assert!(message.contains(&format!("nothing is placed at {missing}")), "{message}");
    }
}

#[test]
fn targets_stay_below_the_plugin() {
    let too_long = "a".repeat(MAX_TARGET + 1);
    for target in ["", "/a", "a/", "a//b", "./a", "a/../b", "..", "..data/a", "a\nb", too_long.as_str()] {
        assert!(error(|p| p.placements[2].target = target.into()).contains("is not a relative path"), "{target}");
    }
}

#[test]
fn no_target_is_used_twice_or_is_a_folder_of_another() {
    assert!(error(|p| p.placements[2].target = "b/c.lua".into()).contains("occurs twice"));
    for (folder, file) in [("b", "b/c.lua"), ("handler.lua", "handler.lua/x"), ("b/c", "b/c/d/e.lua")] {
        let message = error(|p| {
            p.placements[2].target = if folder == "handler.lua" { "a.lua".into() } else { folder.into() };
            p.placements[3].target = file.into();
        });
        assert!(message.contains(&format!("{folder:?} is a file and a folder")), "{message}");
    }
    check(vec![{
        let mut plugin = plugin();
        plugin.placements[2].target = "b.lua".into();
        plugin
    }])
    .unwrap();
}

#[test]
fn versions_and_priorities_are_bounded() {
    for version in [String::new(), "1\n".into(), "1".repeat(MAX_VERSION + 1)] {
        assert!(error(|p| p.version = Some(version)).contains("version"));
    }
    for priority in [MAX_PRIORITY + 1, MIN_PRIORITY - 1, i64::MAX] {
        assert!(error(|p| p.priority = Some(priority)).contains("32 bits"));
    }
}

#[test]
fn the_lua_package_path_is_one_bounded_line() {
    let with = |template: &str| {
        checked(Answer { plugins: vec![plugin()], lua_package_path: Some(template.into()), env: Vec::new(), findings: Vec::new() })
    };
    with("/opt/?.lua;;").unwrap();
    for template in ["", "/opt/?.lua\n", "/opt\0", &"a".repeat(MAX_LUA_PACKAGE_PATH + 1)] {
        assert!(with(template).unwrap_err().contains("Lua package path"));
    }
}
