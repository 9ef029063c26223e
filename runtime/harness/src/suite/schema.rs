//! The JSON Schema of suites, for editors.

use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings, json_schema};
use serde_json::{Value, json};

use super::document::{Ending, PolicyTest};

impl JsonSchema for Ending {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Ending".into()
    }

    /// Each in both ways to write it: as conditions and metrics have it, and in lower case.
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "How asking ends.",
            "enum": [
                "accepted", "refused", "timeout", "memory", "trap", "unavailable", "badOutput", "incompatible",
                "Accepted", "answered", "Refused", "Deadline", "deadline", "Memory", "Trap", "Unavailable", "BadOutput", "Incompatible",
            ],
        })
    }
}

/// The JSON Schema (draft 2020-12) of documents of kind `PolicyTest`.
#[must_use]
pub fn schema() -> Value {
    let mut schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<PolicyTest>().to_value();
    if let Some(map) = schema.as_object_mut() {
        map.insert("$id".into(), json!("https://weir.dev/schemas/policytest-v1alpha1.json"));
    }
    schema
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_published_schema_is_that_of_the_types() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema/policytest-v1alpha1.json");
        let text = format!("{:#}\n", schema());
        if std::env::var_os("WEIR_BLESS").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        let published = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(published == text, "{} is not what `weir policy schema` prints; write it again", path.display());
    }

    #[test]
    fn the_schema_takes_what_is_read_and_refuses_unknown_fields() {
        let validator = jsonschema::draft202012::new(&schema()).unwrap();
        let good = json!({
            "apiVersion": "test.weir.dev/v1alpha1", "kind": "PolicyTest", "metadata": {"name": "a"},
            "policies": {"konnect-env": {"file": "a.wasm"}, "plugin-packaging": "named"},
            "cases": [{"name": "b", "given": {"objects": [{}]}, "expect": {"outcome": "timeout", "none": ["Secret", {"kind": "Service", "name": "x"}]}}],
        });
        assert!(validator.is_valid(&good), "{:?}", validator.iter_errors(&good).map(|e| e.to_string()).collect::<Vec<_>>());
        serde_json::from_value::<PolicyTest>(good.clone()).unwrap();
        let mut bad = good;
        bad["cases"][0]["expect"]["outcom"] = json!("trap");
        assert!(!validator.is_valid(&bad));
        assert!(serde_json::from_value::<PolicyTest>(bad).unwrap_err().to_string().contains("outcom"));
    }
}
