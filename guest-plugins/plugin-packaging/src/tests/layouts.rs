//! Where plugins lie in artifacts, what they are called, and what is said about the rest.

use super::*;

const BOTH: [&str; 2] = ["handler.lua", "schema.lua"];

#[test]
fn plugins_are_found_wherever_they_lie() {
    let nested =
        vec!["api.lua", "daos.lua", "handler.lua", "lib/deep/x.lua", "migrations/000_base.lua", "migrations/init.lua", "schema.lua"];
    let beneath = |folder: &str| nested.iter().rev().map(|target| format!("{folder}{target}")).collect::<Vec<_>>();
    for (folder, name) in [
        ("", "plugin"),
        ("myheader/", "myheader"),
        ("my_header/", "my_header"),
        ("kong/plugins/my-header/", "my-header"),
        ("usr/local/share/lua/5.1/kong/plugins/myheader/", "myheader"),
    ] {
        let paths = beneath(folder);
        let answer = defaults(&input(&paths.iter().map(String::as_str).collect::<Vec<_>>()));
        assert_eq!(shape(&answer), [(name, nested.clone())], "{folder}");
        assert!(answer.plugins[0].placements.iter().all(|p| p.source == format!("{folder}{}", p.target)));
        assert_eq!((answer.lua_package_path, answer.env.len(), answer.findings.len()), (None, 0, 0));
    }
}

#[test]
fn several_plugins_come_by_name() {
    let paths =
        ["z/a/schema.lua", "z/a/handler.lua", "b/schema.lua", "b/handler.lua", "kong/plugins/c/handler.lua", "kong/plugins/c/schema.lua"];
    let answer = defaults(&input(&paths));
    assert_eq!(shape(&answer), ["a", "b", "c"].map(|name| (name, BOTH.to_vec())));
}

#[test]
fn a_folder_inside_a_plugin_is_a_part_of_it() {
    let answer = defaults(&input(&["p/handler.lua", "p/schema.lua", "p/inner/handler.lua", "p/inner/schema.lua"]));
    assert_eq!(shape(&answer), [("p", vec!["handler.lua", "inner/handler.lua", "inner/schema.lua", "schema.lua"])]);
    let answer = defaults(&input(&["handler.lua", "schema.lua", "other/handler.lua"]));
    assert_eq!(shape(&answer), [("plugin", vec!["handler.lua", "other/handler.lua", "schema.lua"])]);
}

#[test]
fn the_order_of_the_artifact_does_not_matter() {
    let mut it = input(&["a/handler.lua", "b/schema.lua", "a/schema.lua", "b/handler.lua", "x.lua", "README.md", "LICENSE", "y.lua"]);
    let answer = defaults(&it);
    it.files.reverse();
    assert_eq!(defaults(&it), answer);
}

#[test]
fn the_installations_annotation_names_a_plugin_before_the_artifacts_and_the_folder() {
    let name = |input: &Input| defaults(input).plugins[0].name.clone();
    for paths in [["handler.lua", "schema.lua"], ["folder/handler.lua", "folder/schema.lua"]] {
        let mut it = input(&paths);
        it.annotations.push((NAME_ANNOTATION.into(), "from_artifact".into()));
        assert_eq!(name(&it), "from_artifact");
        assert_eq!(name(&named(it, "from_installation")), "from_installation");
    }
}

#[test]
fn an_object_whose_name_is_none_for_kong_only_needs_another_one() {
    let mut it = input(&["folder/handler.lua", "folder/schema.lua"]);
    it.context.object.name = "my.plugin".into();
    assert_eq!(shape(&defaults(&it)), [("folder", BOTH.to_vec())]);
}

#[test]
fn version_and_priority_are_read() {
    let plugin = &defaults(&input(&BOTH)).plugins[0];
    assert_eq!((plugin.version.as_deref(), plugin.priority), (Some("1.2.3"), Some(1000)));
}

#[test]
fn what_cannot_be_read_is_said() {
    let mut it = input(&["a/handler.lua", "a/schema.lua", "b/handler.lua", "b/schema.lua", "c/handler.lua", "c/schema.lua"]);
    it.files[0].text = None;
    it.files[2].text = Some("return { VERSION = meta.version, PRIORITY = 1 }".into());
    let answer = defaults(&it);
    let facts: Vec<_> = answer.plugins.iter().map(|p| (p.version.as_deref(), p.priority)).collect();
    assert_eq!(facts, [(None, None), (None, Some(1)), (Some("1.2.3"), Some(1000))]);
    assert_eq!(codes(&answer), [(Severity::Info, "HandlerUnread"), (Severity::Info, "NotStated")]);
    assert!(answer.findings[0].message.contains(" a:") && answer.findings[1].message.contains("of b "), "{:?}", answer.findings);
}

#[test]
fn documents_tests_and_hidden_files_are_left_out() {
    let rest =
        ["README.md", "LICENSE", "p-1.0-0.rockspec", "spec/p/01_spec.lua", "spec/handler.lua", ".luacheckrc", ".github/w.yaml", "p/README"];
    let paths: Vec<&str> = ["p/handler.lua", "p/schema.lua"].into_iter().chain(rest).collect();
    let answer = defaults(&input(&paths));
    assert_eq!(shape(&answer), [("p", BOTH.to_vec())]);
    assert_eq!(codes(&answer), [(Severity::Info, "Ignored")]);
    let expected = "8 files left out, as ignoredFiles in the settings of this policy says: \
                    .github/w.yaml, .luacheckrc, LICENSE, README.md, p-1.0-0.rockspec and 3 more";
    assert_eq!(answer.findings[0].message, expected);
}

#[test]
fn files_outside_of_plugins_are_left_out_with_a_warning() {
    let answer = defaults(&input(&["kong/plugins/p/handler.lua", "kong/plugins/p/schema.lua", "kong/shared.lua", "usr/lib/x.so"]));
    assert_eq!(shape(&answer), [("p", BOTH.to_vec())]);
    assert_eq!(codes(&answer), [(Severity::Warning, "StrayFile")]);
    assert!(answer.findings[0].message.contains(": kong/shared.lua, usr/lib/x.so. Move"), "{}", answer.findings[0].message);
}

#[test]
fn a_bundled_name_is_a_warning() {
    let answer = defaults(&named(input(&BOTH), "acl"));
    assert_eq!(codes(&answer), [(Severity::Warning, "ShadowsBundledPlugin")]);
    assert_eq!(answer.findings[0].path, "plugins.acl");
}
