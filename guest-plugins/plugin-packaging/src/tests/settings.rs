//! What settings change, and which are wrong.

use super::*;

#[test]
fn an_empty_document_means_the_defaults() {
    assert_eq!(with(""), Settings::default());
    assert_eq!(with("{}"), Settings::default());
    assert!(Settings::default().validate().is_empty());
}

#[test]
fn schema_is_json_and_says_the_defaults() {
    let schema: serde_json::Value = serde_json::from_str(DefaultPolicy::schema()).unwrap();
    let properties = schema["properties"].as_object().unwrap();
    let names: Vec<&String> = properties.keys().collect();
    assert_eq!(names, ["allowBundledNames", "allowedFiles", "ignoredFiles", "maxBytes", "namePrefix"]);
    let defaults: serde_json::Map<_, _> = properties.iter().map(|(name, property)| (name.clone(), property["default"].clone())).collect();
    assert_eq!(with(&serde_json::Value::from(defaults).to_string()), Settings::default());
}

#[test]
fn allowed_files_are_patterns_below_the_plugin() {
    let it = input(&["p/handler.lua", "p/schema.lua", "p/lib/x.lua", "p/data.bin"]);
    let settings = with(r#"{"allowedFiles": ["lib/*.lua", "*.bin"]}"#);
    assert_eq!(evaluate(&it, &settings).unwrap().plugins[0].placements.len(), 4);
    assert_eq!(refused(&it, r#"{"allowedFiles": ["p/**"]}"#).code, "UnexpectedFile");
}

#[test]
fn the_required_files_need_no_pattern() {
    let it = input(&["handler.lua", "schema.lua"]);
    assert_eq!(evaluate(&it, &with(r#"{"allowedFiles": []}"#)).unwrap().plugins.len(), 1);
}

#[test]
fn ignored_files_are_patterns_in_the_artifact_and_count_first() {
    let it = input(&["p/handler.lua", "p/schema.lua", "p/spec/x.lua", "q/handler.lua"]);
    let answer = evaluate(&it, &with(r#"{"ignoredFiles": ["q/**"]}"#)).unwrap();
    assert_eq!(shape(&answer), [("p", vec!["handler.lua", "schema.lua", "spec/x.lua"])]);
    assert_eq!(codes(&answer), [(Severity::Info, "Ignored")]);
}

#[test]
fn bad_settings_are_found() {
    let found = |document: &str| {
        let findings = parse_settings::<DefaultPolicy>(document).unwrap_err();
        findings.into_iter().map(|f| (f.code, f.path)).collect::<Vec<_>>()
    };
    let pair = |code: &str, path: &str| (code.to_owned(), path.to_owned());
    assert_eq!(found(r#"{"allowedFiles": ["a", "/b"]}"#), [pair("InvalidPattern", "allowedFiles[1]")]);
    assert_eq!(found(r#"{"ignoredFiles": ["*.{a,b}"]}"#), [pair("InvalidPattern", "ignoredFiles[0]")]);
    assert_eq!(
        found(r#"{"namePrefix": {"require": [""], "forbid": ["a."]}}"#),
        [pair("InvalidPrefix", "namePrefix.require[0]"), pair("InvalidPrefix", "namePrefix.forbid[0]")]
    );
    assert_eq!(found(r#"{"maxBytes": 0}"#), [pair("InvalidSize", "maxBytes")]);
    let many = serde_json::json!({ "allowedFiles": vec!["a"; 65] }).to_string();
    assert_eq!(found(&many), [pair("TooManyEntries", "allowedFiles")]);
    let wrong = serde_json::json!({ "allowedFiles": vec![""; 64], "ignoredFiles": vec![""; 64] }).to_string();
    assert_eq!(found(&wrong).len(), 32, "the host takes 64");
    for document in [r#"{"maxBytes": -1}"#, r#"{"allowedFile": []}"#, r#"{"namePrefix": {"deny": []}}"#, r#"{"allowedFiles": "a"}"#] {
        assert_eq!(found(document)[0].0, "InvalidSettings", "{document}");
    }
}
