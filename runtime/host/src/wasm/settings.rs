//! A policy's settings: checked by its own JSON Schema, then by its own `validate`.

use std::time::Duration;

use serde_json::Value;
use sha2::{Digest, Sha256};
use weir_core::policy::{Finding, PolicyError, Severity};

use super::{
    text,
    watchdog::{Stopped, Watchdog},
};

/// Most bytes of a settings document (the CRD says the same).
pub const MAX_SETTINGS: usize = 64 << 10;
/// Most bytes of a schema.
const MAX_SCHEMA: usize = 256 << 10;
/// Most findings of one check.
const MAX_FINDINGS: usize = 64;
/// Longest check by a schema: schemas can be written to double the work with every line.
const MAX_CHECK: Duration = Duration::from_secs(2);
/// Checks at once, those included that ran into the watchdog and still run.
const MAX_THREADS: usize = 8;
/// A schema of references to references recurses once for each; this much stack holds [`MAX_SCHEMA`] bytes of them.
const STACK: usize = 256 << 20;
/// Bytes of one compiled regular expression of a schema.
const MAX_REGEX: usize = 1 << 20;

/// A settings document as policies get it: canonical JSON, so that equal settings have one digest.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) value: Value,
    pub(crate) json: String,
    pub(crate) digest: String,
}

impl Settings {
    /// No settings is `{}`.
    pub(crate) fn new(mut value: Value) -> Result<Self, Vec<Finding>> {
        if value.is_null() {
            value = Value::Object(serde_json::Map::new());
        }
        value.sort_all_objects();
        let json = value.to_string();
        if json.len() > MAX_SETTINGS {
            let message = format!("the settings have {} bytes, at most {MAX_SETTINGS} are allowed", json.len());
            return Err(vec![finding("SettingsTooLarge", String::new(), message)]);
        }
        let digest = format!("sha256:{}", hex::encode(Sha256::digest(&json)));
        Ok(Self { value, json, digest })
    }

    /// Checks against the policy's schema. A bad schema is the component's fault, bad settings are the user's.
    pub(crate) fn check(&self, watchdog: &Watchdog, schema: String) -> Result<Vec<Finding>, PolicyError> {
        if schema.trim() == "{}" {
            return Ok(Vec::new());
        }
        let value = self.value.clone();
        match watchdog.run(MAX_CHECK, move || check(&value, &schema)) {
            Ok(outcome) => outcome.map_err(|e| PolicyError::Incompatible(format!("its settings schema {e}"))),
            Err(Stopped::Host(reason)) => Err(PolicyError::Unavailable(format!("settings cannot be checked: {reason}"))),
            Err(stopped @ (Stopped::Time(_) | Stopped::Panic(_))) => {
                Err(PolicyError::Incompatible(format!("its settings schema cannot be used: {stopped}")))
            }
        }
    }
}

/// The threads that schemas are used on.
pub(crate) fn watchdog() -> Watchdog {
    Watchdog::new("weir-settings", MAX_THREADS, STACK)
}

fn check(value: &Value, schema: &str) -> Result<Vec<Finding>, String> {
    let validator = validator(schema)?;
    let findings = validator.iter_errors(value).take(MAX_FINDINGS).map(|error| {
        let message: String = error.to_string().chars().take(300).collect();
        finding("SettingsSchema", field(error.instance_path().as_str()), message)
    });
    Ok(findings.collect())
}

fn validator(schema: &str) -> Result<jsonschema::Validator, String> {
    if schema.len() > MAX_SCHEMA {
        return Err(format!("has {} bytes, at most {MAX_SCHEMA} are allowed", schema.len()));
    }
    let schema: Value = serde_json::from_str(schema).map_err(|e| format!("is no JSON: {e}"))?;
    jsonschema::options()
        .with_draft(jsonschema::Draft::Draft202012)
        // Nothing is fetched on a guest's word, and no pattern of its can backtrack.
        .offline()
        .with_pattern_options(jsonschema::PatternOptions::regex().size_limit(MAX_REGEX).dfa_size_limit(MAX_REGEX))
        .build(&schema)
        .map_err(|e| format!("is not usable: {}", text::cut(&e.to_string())))
}

/// A guest's own findings, bounded before anybody shows them.
pub(crate) fn bounded(findings: Vec<Finding>) -> Result<Vec<Finding>, PolicyError> {
    if findings.len() > MAX_FINDINGS {
        let text = format!("validate answered {} findings, at most {MAX_FINDINGS} are allowed", findings.len());
        return Err(PolicyError::BadOutput(text));
    }
    let bounded = |f: Finding| Finding {
        severity: f.severity,
        code: text::cut(&f.code),
        path: text::cut(&f.path),
        message: f.message.chars().filter(|c| !c.is_control()).take(300).collect(),
    };
    Ok(findings.into_iter().map(bounded).collect())
}

/// Whether `findings` make settings invalid.
pub(crate) fn invalid(findings: &[Finding]) -> bool {
    findings.iter().any(|f| f.severity == Severity::Error)
}

/// `/a/0/b` as people write it: `settings.a.0.b`.
fn field(pointer: &str) -> String {
    let path: String = pointer.chars().filter(|c| !c.is_control()).take(500).collect();
    format!("settings{}", path.replace('/', "."))
}

fn finding(code: &str, path: String, message: String) -> Finding {
    Finding { severity: Severity::Error, code: code.into(), path, message }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn equal_settings_have_one_digest() {
        let a = Settings::new(json!({"b": 1, "a": {"d": 2, "c": 3}})).map(|s| s.digest);
        let b = Settings::new(json!({"a": {"c": 3, "d": 2}, "b": 1})).map(|s| s.digest);
        assert_eq!(a, b);
        assert_eq!(Settings::new(Value::Null).map(|s| s.json), Ok("{}".into()));
    }

    #[test]
    fn a_schema_names_the_field() -> Result<(), PolicyError> {
        let settings = Settings::new(json!({"mode": "loud"})).unwrap_or_else(|f| unreachable!("{f:?}"));
        let findings = settings.check(&watchdog(), r#"{"properties":{"mode":{"enum":["quiet"]}}}"#.into())?;
        assert_eq!(findings.iter().map(|f| f.path.as_str()).collect::<Vec<_>>(), ["settings.mode"]);
        assert!(settings.check(&watchdog(), "{}".into())?.is_empty());
        Ok(())
    }

    #[test]
    fn a_hostile_schema_is_the_components_fault() {
        let settings = Settings::new(json!({"a": "b"})).unwrap_or_else(|f| unreachable!("{f:?}"));
        for schema in [
            "{",
            r#"{"$ref": "https://example.com/schema.json"}"#,
            r#"{"$ref": "file:///etc/passwd"}"#,
            r#"{"pattern": "("}"#,
            r#"{"type": 7}"#,
        ] {
            let outcome = settings.check(&watchdog(), schema.into());
            assert!(matches!(outcome, Err(PolicyError::Incompatible(_))), "{schema}: {outcome:?}");
        }
    }

    #[test]
    fn a_schema_that_refers_to_itself_ends() {
        let settings = Settings::new(json!({"a": {"a": "b"}})).unwrap_or_else(|f| unreachable!("{f:?}"));
        for schema in [
            r##"{"$ref": "#"}"##,
            r##"{"allOf": [{"$ref": "#"}]}"##,
            r##"{"$dynamicRef": "#"}"##,
            r##"{"not": {"$ref": "#"}}"##,
            r##"{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}"##,
            r##"{"additionalProperties": {"$ref": "#"}}"##,
            r##"{"if": {"$ref": "#"}, "then": {"$ref": "#"}}"##,
            r##"{"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}"##,
        ] {
            drop(settings.check(&watchdog(), schema.into()));
        }
    }

    #[test]
    fn a_schema_that_doubles_with_every_line_is_stopped() {
        let settings = Settings::new(json!({"a": "b"})).unwrap_or_else(|f| unreachable!("{f:?}"));
        let line = |n: u32| format!(r##""a{n}":{{"allOf":[{{"$ref":"#/$defs/a{0}"}},{{"$ref":"#/$defs/a{0}"}}]}}"##, n + 1);
        let lines: Vec<String> = (0..60).map(line).collect();
        let schema = format!(r##"{{"$ref":"#/$defs/a0","$defs":{{{},"a60":{{"type":"object"}}}}}}"##, lines.join(","));
        let outcome = settings.check(&watchdog(), schema);
        assert!(matches!(&outcome, Err(PolicyError::Incompatible(m)) if m.contains("over 2 s")), "{outcome:?}");
    }

    #[test]
    fn a_long_chain_of_references_does_not_exhaust_the_stack() {
        let settings = Settings::new(json!({"a": "b"})).unwrap_or_else(|f| unreachable!("{f:?}"));
        for link in [r##"{"$ref":"#/$defs/N"}"##, r##"{"allOf":[{"$ref":"#/$defs/N"}]}"##, r##"{"not":{"$ref":"#/$defs/N"}}"##] {
            let mut lines = Vec::new();
            let mut length = 0;
            while length < MAX_SCHEMA - 1000 {
                let n = lines.len();
                lines.push(format!(r#""{n}":{}"#, link.replace('N', &(n + 1).to_string())));
                length += lines.last().map_or(0, String::len) + 1;
            }
            let schema = format!(r##"{{"$ref":"#/$defs/0","$defs":{{{},"{}":true}}}}"##, lines.join(","), lines.len());
            assert!(schema.len() <= MAX_SCHEMA);
            let outcome = settings.check(&watchdog(), schema);
            assert!(outcome.is_ok(), "{outcome:?}");
        }
    }
}
