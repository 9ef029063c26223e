#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests fail by panicking")]

use std::{fmt::Write as _, time::Instant};

use serde_json::{Value, json};

use super::{MAX_TEXT, Parsed, Position, parse};

fn values(text: &str) -> Vec<Value> {
    let Parsed { documents, errors } = parse(text);
    assert_eq!(errors, [], "{text}");
    documents.into_iter().map(|document| document.value).collect()
}

fn value(text: &str) -> Value {
    let values = values(text);
    assert_eq!(values.len(), 1, "{text}");
    values.into_iter().next().unwrap()
}

/// The only error, as `line:column: message`.
fn error(text: &str) -> String {
    let errors = parse(text).errors;
    assert_eq!(errors.len(), 1, "{errors:?}");
    errors[0].to_string()
}

fn at(line: usize, column: usize) -> Option<Position> {
    Some(Position { line, column })
}

#[test]
fn every_field_has_a_place() {
    let text = "# comment\nspec:\n  names:\n  - one\n  - inner: 2\n  a.b/c: x\nflow: {a: [1, 2]}\n";
    let document = parse(text).documents.remove(0);
    assert_eq!(document.position(""), at(2, 1));
    assert_eq!(document.position("/spec"), at(2, 1));
    assert_eq!(document.position("/spec/names"), at(3, 3));
    assert_eq!(document.position("/spec/names/0"), at(4, 5));
    assert_eq!(document.position("/spec/names/1/inner"), at(5, 5));
    assert_eq!(document.position("/spec/a.b~1c"), at(6, 3));
    assert_eq!(document.position("/flow/a/1"), at(7, 15));
    assert_eq!(document.position("/spec/missing"), None);
}

#[test]
fn a_missing_field_is_placed_at_its_closest_parent() {
    let document = parse("a: 1\nspec:\n  b: 1\n").documents.remove(0);
    assert_eq!(Some(document.closest(&super::FieldPath::from_pointer("/spec/c/d"))), at(2, 1));
    assert_eq!(Some(document.closest(&super::FieldPath::from_pointer("/x"))), at(1, 1));
}

#[test]
fn rules_paths_are_read_with_the_keys_that_exist() {
    let (_, node) = parse("m:\n  a.b/c:\n  - x: 1\n").documents.remove(0).into_parts();
    let path = node.resolve("m.a.b/c[0].x");
    assert_eq!(path.to_string(), "m[a.b/c][0].x");
    assert_eq!(node.position(&path), at(3, 5));
    assert_eq!(node.resolve("m.missing.y").to_string(), "m.missing.y");
    assert_eq!(node.resolve("").to_string(), "");
    assert_eq!(node.resolve("..[").to_string(), "");
}

#[test]
fn all_words_of_yaml_1_1_are_booleans_and_remembered() {
    for (words, expected) in [("y Y yes Yes YES on On ON", true), ("n N no No NO off Off OFF", false)] {
        for word in words.split(' ') {
            let document = parse(&format!("a: {word}")).documents.remove(0);
            assert_eq!(document.value, json!({ "a": expected }), "{word}");
            assert_eq!(document.yaml11("/a"), Some(word));
            assert_eq!(value(&format!("a: '{word}'")), json!({ "a": word }));
            assert_eq!(value(&format!("a: \"{word}\"")), json!({ "a": word }));
            assert_eq!(value(&format!("a: !!str {word}")), json!({ "a": word }));
            assert_eq!(value(&format!("a: ! {word}")), json!({ "a": word }));
        }
    }
    for word in ["yEs", "oN", "oFF", "nO", "yess", "tRUE"] {
        assert_eq!(value(&format!("a: {word}")), json!({ "a": word }));
    }
    assert_eq!(value("{on: 1}"), json!({ "true": 1 }), "kubectl does the same to names");
}

#[test]
fn plain_scalars_follow_the_core_schema() {
    for (text, expected) in [
        ("~", json!(null)),
        ("null", json!(null)),
        ("Null", json!(null)),
        ("NULL", json!(null)),
        ("", json!(null)),
        ("true", json!(true)),
        ("True", json!(true)),
        ("TRUE", json!(true)),
        ("false", json!(false)),
        ("False", json!(false)),
        ("FALSE", json!(false)),
        ("0", json!(0)),
        ("-7", json!(-7)),
        ("+7", json!(7)),
        ("0x1F", json!(31)),
        ("0o17", json!(15)),
        ("0b11", json!(3)),
        ("9223372036854775807", json!(i64::MAX)),
        ("-9223372036854775808", json!(i64::MIN)),
        ("18446744073709551615", json!(u64::MAX)),
        ("0644", json!(420)),
        ("1_000", json!(1000)),
        ("_1", json!("_1")),
        ("0899", json!(899)),
        ("1.5", json!(1.5)),
        (".5", json!(0.5)),
        ("-1.5e3", json!(-1500)),
        ("1.0", json!(1)),
        ("1e3", json!(1000)),
        ("5.", json!(5)),
        ("1.2.3", json!("1.2.3")),
        ("2020-01-01", json!("2020-01-01")),
        ("-", json!([null])),
        ("1e999", json!("1e999")),
        ("100m", json!("100m")),
        ("1Gi", json!("1Gi")),
        ("-foo", json!("-foo")),
        ("0x", json!("0x")),
        ("e5", json!("e5")),
    ] {
        let text = format!("a:\n  {text}\n");
        assert_eq!(value(&text), json!({ "a": expected }), "{text}");
    }
    assert!(error("a: .nan").contains("no number `.nan`"));
    assert!(error("a: -.Inf").contains("quote it"));
}

#[test]
fn only_tags_of_the_core_schema_are_read() {
    assert_eq!(
        value("a: !!str 5\nb: !!int '5'\nc: !!float 1.5\nd: !!bool yes\ne: !!null ''\nf: !!map {}\ng: !!seq []\n"),
        json!({ "a": "5", "b": 5, "c": 1.5, "d": true, "e": null, "f": {}, "g": [] })
    );
    assert_eq!(value("a: !<tag:yaml.org,2002:str> 5"), json!({ "a": "5" }));
    assert!(error("a: !!binary aGk=").starts_with("1:4: this tag is not read"));
    // A password may look like a tag: it is not repeated.
    assert!(!error("a: !hunter2 x").contains("hunter2"));
    assert!(!error("a: !hunter2 [x]").contains("hunter2"));
    assert!(error("a: !foo {}").contains("tag is not read"));
    assert!(error("a: !!set {}").contains("tag is not read"));
    assert!(error("a: !!int x").contains("remove the tag"));
}

#[test]
fn merge_keys_and_aliases() {
    let text = "base: &b {x: 1, w: 2}\nother: &o {w: 3, z: 4}\none: {<<: *b, x: 9}\nlate:\n  x: 8\n  <<: *b\nmany:\n  <<: [*b, *o]\nplain: *b\n'<<': text\n";
    assert_eq!(
        value(text),
        json!({
            "base": { "x": 1, "w": 2 }, "other": { "w": 3, "z": 4 }, "one": { "x": 9, "w": 2 }, "late": { "x": 8, "w": 2 },
            "many": { "x": 1, "w": 2, "z": 4 }, "plain": { "x": 1, "w": 2 }, "<<": "text",
        })
    );
    assert_eq!(value("- <<\n"), json!(["<<"]));
    assert!(error("a: {<<: 5}").contains("give it a map"));
    assert!(error("a: {<<: {x: 1}, <<: {w: 1}}").contains("`<<` is given in line 1"));
    let document = parse(text).documents.remove(0);
    assert_eq!(document.position("/one/w"), at(1, 17), "a merged field stands where it was written");
}

#[test]
fn aliases_of_open_or_foreign_anchors_are_refused() {
    assert!(error("a: &x [1, *x]").contains("inside its own anchor"));
    let parsed = parse("a: &x 1\n...\nb: *x\n---\nc: 3\n");
    assert_eq!(parsed.errors.len(), 1);
    assert_eq!(parsed.documents.len(), 2);
    assert!(error("a: *nowhere").contains("unknown anchor"));
}

#[test]
fn duplicate_fields_name_both_lines() {
    assert_eq!(error("a: 1\nb: 2\na: 3\n"), "3:1: field `a` is given in line 1 and again in line 3: keep one");
    assert!(error("1: x\n'1': y\n").contains("`1`"));
    assert!(error("on: x\n'true': y\n").contains("`true`"));
}

#[test]
fn names_must_be_texts() {
    assert_eq!(value("8080: a\n0x10: b\n"), json!({ "8080": "a", "16": "b" }));
    assert!(error("[a]: b").contains("no name of a field"));
    assert!(error("{{a: b}: c}").contains("no name of a field"));
    assert!(error("~: b").contains("quote it"));
    assert!(error("1.5: b").contains("quote it"));
    assert!(error("x: &k [1]\n*k : b\n").contains("no name of a field"));
    assert_eq!(value("x: &k name\n*k : b\n"), json!({ "x": "name", "name": "b" }));
}

#[test]
fn documents_are_separate() {
    assert_eq!(
        values("a: 1\n---\n---\n# nothing\n---\nb: 2\n...\n---\nnull\n---\nc: 3\n"),
        [json!({ "a": 1 }), json!({ "b": 2 }), json!({ "c": 3 })]
    );
    assert_eq!(values(""), Vec::<Value>::new());
    assert_eq!(values("---\n"), Vec::<Value>::new());
    assert_eq!(values("%YAML 1.1\n---\na: 1\n"), [json!({ "a": 1 })]);
    assert_eq!(values("a: 1\n...\n%YAML 1.2\n---\nb: 1\n").len(), 2);
    assert_eq!(values("--- {a: 1}\n--- {b: 1}\n").len(), 2);
    assert_eq!(value("a: |\n  x\n  ---\n  y\nb: '---'\n"), json!({ "a": "x\n---\ny\n", "b": "---" }));
}

#[test]
fn a_broken_document_hides_no_other() {
    let parsed = parse("a: 1\n---\nb: [1,\n---\nc: 3\n---\nd: 1\nd: 2\n---\ne: 'open\n---\nf: 6\n");
    let found: Vec<Value> = parsed.documents.iter().map(|document| document.value.clone()).collect();
    assert_eq!(found, [json!({ "a": 1 }), json!({ "c": 3 }), json!({ "f": 6 })]);
    assert_eq!(parsed.errors.len(), 3, "{:?}", parsed.errors);
    assert_eq!(parsed.errors.iter().map(|error| error.syntax).collect::<Vec<_>>(), [true, false, true]);
    assert_eq!(parsed.errors[1].position, Position { line: 8, column: 1 });
    assert_eq!(parsed.documents[1].position("/c"), at(5, 1));
}

#[test]
fn line_ends_marks_and_tabs() {
    let parsed = parse("\u{feff}a: 1\r\nb:\r\n  c: x\r\n---\r\nd: 4\r\n");
    assert_eq!(parsed.errors, []);
    assert_eq!(parsed.documents[0].value, json!({ "a": 1, "b": { "c": "x" } }));
    assert_eq!(parsed.documents[0].position("/b/c"), at(3, 3));
    assert_eq!(parsed.documents[1].position("/d"), at(5, 1));
    assert!(error("a:\n\tb: 1\n").starts_with("2:"));
    assert_eq!(value("a: 1\t# tab\n"), json!({ "a": 1 }));
    assert_eq!(error("a: b\nx: \0c\n").split(' ').next(), Some("2:4:"));
    assert!(parse("a: \0").errors[0].syntax);
}

#[test]
fn json_is_yaml() {
    let text = "{\n\t\"a\": [1, 2.5, true, null, \"x\\u00e9\\/\\ud83d\\ude00\\\\ud83d\"],\n\t\"b\":{\"c\":\"off\"}\n}\n";
    assert_eq!(value(text), json!({ "a": [1, 2.5, true, null, "xé/😀\\ud83d"], "b": { "c": "off" } }));
    let document = parse(text).documents.remove(0);
    assert_eq!(document.position("/b/c"), at(3, 7));
    assert_eq!(value("[\n]"), json!([]));
    assert!(error("{\"a\": \"\\ud83d\"}").contains("not valid YAML"));
}

#[test]
fn alias_bombs_are_refused_quickly() {
    let started = Instant::now();
    let mut text = String::from("l0: &l0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..10 {
        let below = level - 1;
        let items = vec![format!("*l{below}"); 10].join(", ");
        writeln!(text, "l{level}: &l{level} [{items}]").unwrap();
    }
    assert!(error(&text).contains("more than 1000000 values, aliases counted"));
    let long = format!("a: &a \"{}\"\nb: [{}]\n", "x".repeat(1 << 20), vec!["*a"; 100].join(", "));
    assert!(error(&long).contains("bytes of text, aliases counted"));
    let fields: String = (0..2000).fold(String::new(), |text, number| text + &format!("f{number}: 1, "));
    let merges = format!("a: &a {{{fields}}}\nb:\n  <<: [{}]\n", vec!["*a"; 10_000].join(", "));
    assert!(error(&merges).contains("aliases counted"));
    assert!(started.elapsed().as_secs() < 10);
}

#[test]
fn deep_nesting_is_refused_quickly() {
    let started = Instant::now();
    for size in [1000, 1024, 10_000, 1 << 20] {
        assert!(!parse(&"[".repeat(size)).errors.is_empty());
        assert!(!parse(&format!("{}{}", "[".repeat(size), "]".repeat(size))).errors.is_empty());
        assert!(!parse(&"{a: ".repeat(size / 4)).errors.is_empty());
        assert!(!parse(&"- ".repeat(size / 2)).errors.is_empty(), "{size}");
        assert!(!parse(&"? ".repeat(size / 2)).errors.is_empty());
    }
    let nested = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
    assert_eq!(parse(&nested(200)).errors, []);
    assert!(error(&nested(201)).contains("200 levels"));
    let aliased = format!("a: &a {}\nb: {}*a{}\n", nested(150), "[".repeat(60), "]".repeat(60));
    assert!(error(&aliased).contains("200 levels"));
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
}

#[test]
fn large_texts_are_read_or_refused_quickly() {
    let started = Instant::now();
    let many: String = (0..50_000).fold(String::new(), |mut text, number| {
        writeln!(text, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a{number}}}").unwrap();
        text
    });
    assert_eq!(parse(&many).documents.len(), 50_000);
    assert!(error(&" ".repeat(MAX_TEXT + 1)).contains("split it"));
    let json = format!("[{}1]", "{\"a\": 1},\n".repeat(100_000));
    assert_eq!(value(&json).as_array().map(Vec::len), Some(100_001));
    assert!(error(&"- x\n".repeat(1_000_001)).contains("more than 1000000 values"));
    assert!(started.elapsed().as_secs() < 30, "{:?}", started.elapsed());
}

#[test]
fn nothing_panics() {
    // A cheap fuzzer: all texts of a few characters that mean something to YAML.
    let parts = [
        "a", ":", " ", "\n", "-", "[", "]", "{", "}", "&a", "*a", "!", "|", ">", "'", "\"", "#", "%", "?", ",", "<<", "---", "\t", "\r",
        "\\", "\u{feff}", "é",
    ];
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..60_000 {
        let mut text = String::new();
        for _ in 0..12 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            text.push_str(parts[usize::try_from(state % 27).unwrap()]);
        }
        let _ = parse(&text);
    }
}
