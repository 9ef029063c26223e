//! Semantic differences: fields of two documents, lists of things with a name by name.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

/// Most differences that are kept of one pair.
const MOST: usize = 1_000;
/// Longest value in a text, characters.
const LONGEST: usize = 120;

/// A field that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Where: `spec.template.spec.containers[name=proxy].env[name=A].value`.
    pub path: String,
    /// What the first one has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old: Option<Value>,
    /// What the second one has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new: Option<Value>,
}

impl Difference {
    /// What the first one has, for a line.
    #[must_use]
    pub fn old_text(&self) -> String {
        text(self.old.as_ref())
    }

    /// What the second one has, for a line.
    #[must_use]
    pub fn new_text(&self) -> String {
        text(self.new.as_ref())
    }

    /// The path without the places in lists that have no names: what a summary counts.
    #[must_use]
    pub fn field(&self) -> String {
        let mut field = String::new();
        let mut rest = self.path.as_str();
        while let Some((before, after)) = rest.split_once('[') {
            let (inside, behind) = after.split_once(']').unwrap_or((after, ""));
            field.push_str(before);
            field.push_str(&if inside.bytes().all(|b| b.is_ascii_digit()) { "[]".to_owned() } else { format!("[{inside}]") });
            rest = behind;
        }
        field.push_str(rest);
        field
    }
}

fn text(value: Option<&Value>) -> String {
    let Some(value) = value else { return "nothing".to_owned() };
    let text = value.to_string();
    match text.char_indices().nth(LONGEST) {
        None => text,
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
    }
}

/// What differs, at most a thousand fields.
#[must_use]
pub fn differences(old: &Value, new: &Value) -> Vec<Difference> {
    let mut all = Vec::new();
    walk(&mut all, "", old, new);
    all.truncate(MOST);
    all
}

fn walk(all: &mut Vec<Difference>, path: &str, old: &Value, new: &Value) {
    if old == new || all.len() >= MOST {
        return;
    }
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
            for key in keys {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                one(all, path, old.get(key), new.get(key));
            }
        }
        (Value::Array(old), Value::Array(new)) => {
            let (old, new) = (named(old), named(new));
            let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
            for key in keys {
                // A place was made sortable.
                let shown = key.strip_suffix('#').map_or(key.as_str(), |place| match place.trim_start_matches('0') {
                    "" => "0",
                    place => place,
                });
                one(all, format!("{path}[{shown}]"), old.get(key).copied(), new.get(key).copied());
            }
        }
        (old, new) => all.push(Difference { path: path.to_owned(), old: Some(old.clone()), new: Some(new.clone()) }),
    }
}

fn one(all: &mut Vec<Difference>, path: String, old: Option<&Value>, new: Option<&Value>) {
    match (old, new) {
        (Some(old), Some(new)) => walk(all, &path, old, new),
        (old, new) => all.push(Difference { path, old: old.cloned(), new: new.cloned() }),
    }
}

/// Elements by what names them, else by their place.
fn named(items: &[Value]) -> BTreeMap<String, &Value> {
    let name = |item: &Value| {
        if let (Some(kind), Some(meta)) = (item.get("kind").and_then(Value::as_str), item.get("metadata")) {
            let text = |field: &str| meta.get(field).and_then(Value::as_str).unwrap_or_default();
            return Some(format!("{kind} {}/{}", text("namespace"), text("name")));
        }
        let key = ["mountPath", "name", "type", "code"].into_iter().find(|key| item.get(key).is_some_and(Value::is_string))?;
        Some(format!("{key}={}", item.get(key).and_then(Value::as_str).unwrap_or_default()))
    };
    let names: Vec<Option<String>> = items.iter().map(name).collect();
    let unique: BTreeSet<&String> = names.iter().flatten().collect();
    let all_named = unique.len() == items.len();
    // Places sort as numbers: `#` keeps a place apart from a name, zeros keep its order.
    let key = |(index, name): (usize, &Option<String>)| name.clone().filter(|_| all_named).unwrap_or_else(|| format!("{index:09}#"));
    names.iter().enumerate().map(key).zip(items).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn things_are_compared_by_name_and_others_by_place() {
        let old = json!({"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}], "args": ["x", "y"], "gone": true});
        let new = json!({"env": [{"name": "B", "value": "3"}, {"name": "C", "value": "1"}, {"name": "A", "value": "1"}], "args": ["x"]});
        let lines: Vec<String> =
            differences(&old, &new).iter().map(|d| format!("{}: {} -> {}", d.path, d.old_text(), d.new_text())).collect();
        assert_eq!(
            lines,
            [
                "args[1]: \"y\" -> nothing",
                "env[name=B].value: \"2\" -> \"3\"",
                "env[name=C]: nothing -> {\"name\":\"C\",\"value\":\"1\"}",
                "gone: true -> nothing",
            ]
        );
        assert!(differences(&old, &old).is_empty());
    }
}
