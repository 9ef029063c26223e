//! Defaulting as the API server does it before it validates.

use kube::core::cel::apply_defaults;
use serde_json::Value;

/// Completes the schema's own default values once: a default of `{}` takes in the defaults of the fields below it, as
/// the API server does on every object.
pub(super) fn complete(schema: &mut Value) {
    let Some(node) = schema.as_object_mut() else { return };
    for name in ["properties"] {
        for field in node.get_mut(name).and_then(Value::as_object_mut).into_iter().flat_map(|fields| fields.values_mut()) {
            complete(field);
        }
    }
    for name in ["items", "additionalProperties"] {
        if let Some(below) = node.get_mut(name) {
            complete(below);
        }
    }
    if let Some(default) = schema.get("default").map(|default| apply_defaults(schema, default))
        && let Some(node) = schema.as_object_mut()
    {
        node.insert("default".into(), default);
    }
}

/// Removes nulls of fields that may not be null, then fills in defaults. The schema must be [`complete`].
pub(super) fn apply(schema: &Value, value: &mut Value) {
    prune_nulls(schema, value);
    *value = apply_defaults(schema, value);
}

fn prune_nulls(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            let properties = schema.get("properties");
            let others = schema.get("additionalProperties").filter(|others| others.is_object());
            let below = |name: &str| properties.and_then(|properties| properties.get(name)).or(others);
            fields.retain(|name, field| {
                let known = below(name);
                let nullable = known.is_none_or(|known| known.get("nullable") == Some(&Value::Bool(true)));
                nullable || !field.is_null()
            });
            for (name, field) in fields.iter_mut() {
                if let Some(known) = below(name) {
                    prune_nulls(known, field);
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = schema.get("items") {
                items.iter_mut().for_each(|item| prune_nulls(schema, item));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
