//! Every refusal: its code, and that it says what to change.

use weir_policy_sdk::MAX_MESSAGE;

use super::*;

fn code(paths: &[&str]) -> (String, String) {
    let refusal = refused(&input(paths), "");
    (refusal.code, refusal.message)
}

#[test]
fn without_a_plugin() {
    for paths in [vec![], vec!["a.lua"], vec!["README.md"], vec!["p/Handler.lua", "p/Schema.lua"], vec!["spec/handler.lua"]] {
        let (code, message) = code(&paths);
        assert_eq!(code, "NoPlugin", "{paths:?}");
        assert!(message.ends_with("Put handler.lua and schema.lua into its root or into one folder per plugin"), "{message}");
    }
    assert!(code(&["a.lua", "b/c.lua"]).1.contains("it has 2 files: a.lua, b/c.lua"));
}

#[test]
fn without_a_required_file() {
    let (refused, message) = code(&["a/handler.lua", "a/x.lua", "b/schema.lua", "c/schema.lua", "c/handler.lua"]);
    assert_eq!(refused, "MissingFiles");
    let expected = "a plugin needs handler.lua and schema.lua in one folder; add what is missing: \
                    folder a has no schema.lua but handler.lua, x.lua; folder b has no handler.lua but schema.lua";
    assert_eq!(message, expected);
    assert!(code(&["schema.lua", "p/handler.lua", "p/schema.lua"]).1.contains("the artifact has no handler.lua but p/handler.lua"));
}

#[test]
fn with_an_unexpected_file() {
    let (refused, message) = code(&["p/handler.lua", "p/schema.lua", "p/lib/native.so", "p/run.sh"]);
    assert_eq!(refused, "UnexpectedFile");
    assert!(message.starts_with("folder p has 2 files that a plugin may not have: lib/native.so, run.sh. Leave them out"), "{message}");
    assert!(message.contains("Allowed are handler.lua, schema.lua, **/*.lua, **/*.json") && message.ends_with("**/*.pem"), "{message}");
}

#[test]
fn with_too_many_plugins() {
    let paths: Vec<String> = (0..33).flat_map(|n| [format!("p{n}/handler.lua"), format!("p{n}/schema.lua")]).collect();
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    assert_eq!(code(&paths).0, "TooManyPlugins");
    assert_eq!(defaults(&input(&paths[..64])).plugins.len(), 32);
}

#[test]
fn over_the_budget() {
    let mut it = input(&["p/handler.lua", "p/schema.lua", "x.lua"]);
    it.files[0].size = 1024 * 1024;
    it.files[1].size = 0;
    // What is left out does not count.
    it.files[2].size = u64::MAX;
    defaults(&it);
    it.files[1].size = 1;
    let refusal = refused(&it, "");
    assert_eq!(refusal.code, "TooBig");
    assert!(refusal.message.contains("2 files have 1048577 bytes, at most 1048576 are allowed"), "{}", refusal.message);
    assert!(refusal.message.ends_with("The largest: p/handler.lua (1048576), p/schema.lua (1)"), "{}", refusal.message);
    it.files[1].size = u64::MAX;
    assert_eq!(refused(&it, r#"{"maxBytes": 3000000}"#).code, "TooBig");
}

#[test]
fn with_a_name_that_kong_cannot_have() {
    let root = input(&["handler.lua", "schema.lua"]);
    for name in ["", "my.plugin", "-a", "_a", "a b", "a,b", "a/b", "\u{e9}", "bundled", "off", "a".repeat(121).as_str()] {
        let refusal = refused(&named(root.clone(), name), "");
        assert_eq!(refusal.code, "InvalidName", "{name}");
        assert!(refusal.message.contains("from annotation weir.dev/plugin-name of the installation,"), "{}", refusal.message);
        assert!(refusal.message.ends_with("change the annotation to choose another name"), "{}", refusal.message);
    }
    let mut dotted = root;
    dotted.context.object.name = "my.plugin".into();
    let expected = "plugin name \"my.plugin\", from the installation's name, is not 1 to 120 letters, digits, `_` and `-`, a letter or digit \
                    first; set annotation weir.dev/plugin-name on the installation to choose another name";
    assert_eq!(refused(&dotted, "").message, expected);
    let (refused, message) = code(&["a.b/handler.lua", "a.b/schema.lua", "c/handler.lua", "c/schema.lua"]);
    assert_eq!(refused, "InvalidName");
    assert!(message.ends_with("rename the folder to choose another name"), "an annotation cannot name two plugins: {message}");
}

#[test]
fn with_one_name_for_several_plugins() {
    let mut it = input(&["a/handler.lua", "a/schema.lua", "b/handler.lua", "b/schema.lua"]);
    let refusal = refused(&named(it.clone(), "x"), "");
    assert_eq!(refusal.code, "AmbiguousName");
    assert!(refusal.message.contains("the installation says x, but the artifact has 2 plugins: a, b. Remove"), "{}", refusal.message);
    it.annotations.push((NAME_ANNOTATION.into(), "x".into()));
    assert_eq!(refused(&it, "").code, "AmbiguousName");
}

#[test]
fn with_two_plugins_of_one_name() {
    let (code, message) = code(&["x/p/handler.lua", "x/p/schema.lua", "y/p/handler.lua", "y/p/schema.lua"]);
    assert_eq!((code.as_str(), message.as_str()), ("DuplicatePlugin", "folders x/p and y/p are both plugin p: rename one of them"));
}

#[test]
fn with_a_name_that_the_settings_do_not_allow() {
    let it = |name: &str| named(input(&["handler.lua", "schema.lua"]), name);
    let rules = r#"{"namePrefix": {"require": ["acme-", "test_"], "forbid": ["acme-old"]}}"#;
    evaluate(&it("acme-x"), &with(rules)).unwrap();
    evaluate(&it("test_x"), &with(rules)).unwrap();
    let refusal = refused(&it("other"), rules);
    assert_eq!(refusal.code, "NameNotAllowed");
    assert!(refusal.message.contains("does not begin with acme-, test_, as the settings"), "{}", refusal.message);
    let refusal = refused(&it("acme-old-x"), rules);
    assert_eq!(refusal.code, "NameNotAllowed");
    assert!(refusal.message.contains("begins with acme-old, which the settings"), "{}", refusal.message);
    assert_eq!(refused(&it("acl"), r#"{"allowBundledNames": false}"#).code, "BundledName");
}

#[test]
fn messages_stay_within_the_hosts_limits_and_keep_their_cures() {
    let long = "\u{e9}".repeat(250);
    let at = |target: &str| (0..9).map(|n| format!("{n}{long}/{target}")).collect::<Vec<_>>();
    let all = |targets: &[&str]| {
        let paths: Vec<String> = targets.iter().flat_map(|target| at(target)).collect();
        input(&paths.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let patterns: Vec<String> = (0..60).map(|_| "a".repeat(128)).collect();
    let document = serde_json::json!({ "allowedFiles": patterns }).to_string();
    let incomplete = refused(&all(&["handler.lua"]), "");
    let nameless = refused(&all(&["handler.lua", "schema.lua"]), "");
    let unexpected = refused(&all(&["handler.lua", "schema.lua", "x.so"]), &document);
    let none = refused(&all(&["x.so"]), "");
    let ambiguous = refused(&named(all(&["handler.lua", "schema.lua"]), &long), "");
    for (refusal, cure) in [
        (incomplete, "add what is missing"),
        (nameless, "rename the folder"),
        (unexpected, "Leave them out"),
        (none, "Put handler.lua"),
        (ambiguous, "Remove the annotation"),
    ] {
        assert!(refusal.message.len() <= MAX_MESSAGE && refusal.message.contains(cure), "{refusal:?}");
    }
}
