//! Which fields make [`covers`](super::covers) say no.

use serde_json::Value;

use super::{MERGE_KEYS, element, has_quantities, is_empty, same_text};

/// Most fields that are named.
const MOST: usize = 64;

/// A field that is not as it is wanted.
#[derive(Debug, Clone, PartialEq)]
pub struct Missing {
    /// Where: `spec.template.spec.containers[name=proxy].image`.
    pub path: String,
    /// What is wanted there.
    pub wanted: Value,
    /// What is there, if anything.
    pub found: Option<Value>,
}

/// The fields of `wanted` that `live` does not have as they are wanted, at most 64: none exactly if `live` [covers](super::covers) it.
#[must_use]
pub fn missing(live: &Value, wanted: &Value) -> Vec<Missing> {
    let mut all = Vec::new();
    add(&mut all, "", live, wanted, false);
    all
}

fn add(all: &mut Vec<Missing>, path: &str, live: &Value, wanted: &Value, quantities: bool) {
    if all.len() == MOST {
        return;
    }
    let here = |found: Option<Value>, path: String, wanted: &Value| Missing { path, wanted: wanted.clone(), found };
    match (live, wanted) {
        (Value::Object(live), Value::Object(wanted)) => {
            for (key, value) in wanted {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                match live.get(key) {
                    Some(found) => add(all, &path, found, value, quantities || has_quantities(key)),
                    None if is_empty(value) => {}
                    None => all.push(here(None, path, value)),
                }
            }
        }
        (Value::Array(_), Value::Array(items)) => {
            for (index, item) in items.iter().enumerate() {
                let path = format!("{path}[{}]", place(item, index));
                match element(live, item, index) {
                    Some(found) => add(all, &path, found, item, quantities),
                    None => all.push(here(None, path, item)),
                }
            }
        }
        (Value::String(a), Value::String(b)) if same_text(a, b, quantities) => {}
        (a, b) if a == b => {}
        (found, wanted) => all.push(here(Some(found.clone()), path.to_owned(), wanted)),
    }
    all.truncate(MOST);
}

/// What an element of a list is known by: its merge key, else its place.
fn place(item: &Value, index: usize) -> String {
    let keys = MERGE_KEYS.iter().find(|keys| keys.first().is_some_and(|key| item.get(key).is_some()));
    let first = keys.and_then(|keys| keys.first()).and_then(|key| Some((key, item.get(key)?)));
    match first {
        Some((key, Value::String(text))) => format!("{key}={text}"),
        Some((key, value)) => format!("{key}={value}"),
        None => index.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::covers, *};

    #[test]
    fn the_differing_field_is_named() {
        let live = json!({"spec": {"replicas": 2, "containers": [{"name": "a"}, {"name": "proxy", "env": [{"name": "X", "value": "1"}]}], "args": ["x", "y"]}});
        let wanted = json!({"spec": {"replicas": 3, "containers": [{"name": "proxy", "env": [{"name": "X", "value": "2"}, {"name": "Y"}]}], "args": ["x", "z"], "more": 1}});
        let lines: Vec<String> =
            missing(&live, &wanted).into_iter().map(|m| format!("{}: {:?} {}", m.path, m.found.map(|f| f.to_string()), m.wanted)).collect();
        assert_eq!(
            lines,
            [
                "spec.args[1]: Some(\"\\\"y\\\"\") \"z\"",
                "spec.containers[name=proxy].env[name=X].value: Some(\"\\\"1\\\"\") \"2\"",
                "spec.containers[name=proxy].env[name=Y]: None {\"name\":\"Y\"}",
                "spec.more: None 1",
                "spec.replicas: Some(\"2\") 3",
            ]
        );
    }

    #[test]
    fn nothing_is_missing_exactly_where_the_object_covers_what_is_wanted() {
        let values = [
            json!(null),
            json!({}),
            json!([]),
            json!({"a": null}),
            json!({"a": {}}),
            json!({"a": [1]}),
            json!({"a": [1, 2]}),
            json!({"a": [{"name": "x", "v": 1}]}),
            json!({"a": [{"name": "y"}, {"name": "x", "v": 1, "w": 2}]}),
            json!({"limits": {"cpu": "1"}}),
            json!({"limits": {"cpu": "1000m"}}),
            json!({"b": "1"}),
            json!({"b": "1000m"}),
        ];
        for live in &values {
            for wanted in &values {
                assert_eq!(missing(live, wanted).is_empty(), covers(live, wanted), "{live} {wanted}");
            }
        }
    }
}
