//! A CRD's schema, rewritten for a validator of plain JSON Schema.
//!
//! Kubernetes' dialect differs in ways that matter: unknown fields are dropped (kubectl refuses them), `nullable` and
//! `x-kubernetes-int-or-string` replace lists of types, exclusive bounds are booleans, integer formats are bounds.

use serde_json::{Map, Value, json};

/// Keywords that mean the same in both dialects.
const SHARED: [&str; 11] = [
    "required",
    "minimum",
    "maximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
];

/// Rewrites a structural schema: fields that are not listed are errors, unless the schema preserves them.
pub(super) fn strict(schema: &Value) -> Value {
    rewrite(schema, true)
}

/// `structural` is false below `allOf`, `anyOf`, `oneOf` and `not`: those restrict values and list no fields.
fn rewrite(schema: &Value, structural: bool) -> Value {
    let Some(schema) = schema.as_object() else { return schema.clone() };
    let flag = |name: &str| schema.get(name) == Some(&Value::Bool(true));
    let mut out = Map::new();
    for name in SHARED {
        if let Some(value) = schema.get(name) {
            out.insert(name.to_owned(), value.clone());
        }
    }
    if flag("uniqueItems") || schema.get("x-kubernetes-list-type") == Some(&json!("set")) {
        out.insert("uniqueItems".into(), Value::Bool(true));
    }
    exclusive(schema, &mut out, "exclusiveMinimum", "minimum");
    exclusive(schema, &mut out, "exclusiveMaximum", "maximum");
    types(schema, &mut out, flag("nullable"), flag("x-kubernetes-int-or-string"));
    format(schema, &mut out);
    fields(schema, &mut out, structural, flag("x-kubernetes-preserve-unknown-fields"));
    if flag("x-kubernetes-embedded-resource") {
        embedded(&mut out);
    }
    if let Some(items) = schema.get("items") {
        out.insert("items".into(), rewrite(items, structural));
    }
    for name in ["allOf", "oneOf", "anyOf"] {
        // `anyOf: [integer, string]` only repeats the type; its errors would repeat the type's.
        let repeats = name == "anyOf" && flag("x-kubernetes-int-or-string");
        if let Some(branches) = schema.get(name).and_then(Value::as_array).filter(|_| !repeats) {
            out.insert(name.into(), branches.iter().map(|branch| rewrite(branch, false)).collect());
        }
    }
    if let Some(not) = schema.get("not") {
        out.insert("not".into(), rewrite(not, false));
    }
    Value::Object(out)
}

fn exclusive(schema: &Map<String, Value>, out: &mut Map<String, Value>, name: &str, bound: &str) {
    match schema.get(name) {
        Some(Value::Bool(true)) => {
            if let Some(limit) = out.remove(bound) {
                out.insert(name.to_owned(), limit);
            }
        }
        Some(limit @ Value::Number(_)) => {
            out.insert(name.to_owned(), limit.clone());
        }
        Some(Value::Null | Value::Bool(false) | Value::String(_) | Value::Array(_) | Value::Object(_)) | None => {}
    }
}

fn types(schema: &Map<String, Value>, out: &mut Map<String, Value>, nullable: bool, int_or_string: bool) {
    let mut types: Vec<Value> = match schema.get("type") {
        _ if int_or_string => vec![json!("integer"), json!("string")],
        Some(Value::Array(types)) => types.clone(),
        Some(one) => vec![one.clone()],
        None => Vec::new(),
    };
    if nullable && !types.is_empty() {
        types.push(json!("null"));
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        // Kubernetes does not look at `enum` for a null that is allowed.
        let null = nullable.then_some(Value::Null);
        out.insert("enum".into(), values.iter().cloned().chain(null).collect());
    }
    if let Some(first) = types.first() {
        let several = if types.len() == 1 { first.clone() } else { Value::Array(types) };
        out.insert("type".into(), several);
    }
}

fn format(schema: &Map<String, Value>, out: &mut Map<String, Value>) {
    let (low, high) = match schema.get("format").and_then(Value::as_str) {
        Some("int32") => (i64::from(i32::MIN), i64::from(i32::MAX)),
        Some("int64") => (i64::MIN, i64::MAX),
        Some("date-time") => {
            out.insert("format".into(), json!("date-time"));
            return;
        }
        // The validator's own `duration` is ISO 8601, Kubernetes' is Go's; the rest is not checked here.
        Some(_) | None => return,
    };
    // A bound of the schema itself lies within its format.
    for (name, exclusive, limit) in [("minimum", "exclusiveMinimum", low), ("maximum", "exclusiveMaximum", high)] {
        if !out.contains_key(exclusive) {
            out.entry(name).or_insert_with(|| json!(limit));
        }
    }
}

fn fields(schema: &Map<String, Value>, out: &mut Map<String, Value>, structural: bool, preserve: bool) {
    let properties = schema.get("properties").and_then(Value::as_object);
    if let Some(properties) = properties {
        let rewritten = properties.iter().map(|(name, field)| (name.clone(), rewrite(field, structural)));
        out.insert("properties".into(), Value::Object(rewritten.collect()));
    }
    let object = properties.is_some() || schema.get("type") == Some(&json!("object"));
    match schema.get("additionalProperties") {
        Some(map @ Value::Object(_)) => {
            out.insert("additionalProperties".into(), rewrite(map, structural));
        }
        Some(Value::Bool(true)) => {}
        Some(Value::Null | Value::Bool(false) | Value::Number(_) | Value::String(_) | Value::Array(_)) | None => {
            if structural && object && !preserve {
                out.insert("additionalProperties".into(), Value::Bool(false));
            }
        }
    }
}

fn embedded(out: &mut Map<String, Value>) {
    let properties = out.entry("properties").or_insert_with(|| json!({}));
    if let Some(properties) = properties.as_object_mut() {
        for (name, field) in [("apiVersion", "string"), ("kind", "string"), ("metadata", "object")] {
            properties.entry(name).or_insert_with(|| json!({ "type": field }));
        }
        // Its fields are the API server's, not the schema's.
        if let Some(metadata) = properties.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("additionalProperties");
        }
    }
}
