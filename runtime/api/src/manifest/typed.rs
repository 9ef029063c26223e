//! JSON values to Rust types, with the field that did not fit.

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::path::{FieldPath, Segment};

/// Why a value is not of a type.
#[derive(Debug, PartialEq)]
pub(super) struct TypeError {
    pub(super) path: FieldPath,
    /// serde's words. May repeat the value.
    pub(super) message: String,
}

/// Reads a value as a type.
pub(super) fn typed<T: DeserializeOwned>(value: &Value) -> Result<T, TypeError> {
    T::deserialize(value)
        .map_err(|error| located::<T>(value).unwrap_or_else(|| TypeError { path: FieldPath::root(), message: error.to_string() }))
}

/// serde names no field, but a line when it reads a text: written one value a line, the line tells the field.
fn located<T: DeserializeOwned>(value: &Value) -> Option<TypeError> {
    let text = serde_json::to_string_pretty(value).ok()?;
    let error = serde_json::from_str::<T>(&text).err()?;
    let mut walk = Walk { wanted: error.line(), line: 1, path: FieldPath::root(), found: None };
    walk.value(value);
    let place = format!(" at line {} column {}", error.line(), error.column());
    let message = error.to_string();
    Some(TypeError { path: walk.found?, message: message.strip_suffix(&place).unwrap_or(&message).to_owned() })
}

/// Follows the layout of `serde_json::to_string_pretty`.
struct Walk {
    wanted: usize,
    line: usize,
    path: FieldPath,
    found: Option<FieldPath>,
}

impl Walk {
    /// Visits a value that starts in the current line and leaves the line of its end.
    fn value(&mut self, value: &Value) {
        self.visit_line();
        match value {
            Value::Array(items) if !items.is_empty() => {
                for (index, item) in items.iter().enumerate() {
                    self.below(Segment::Index(index), item);
                }
                self.line += 1;
                self.visit_line();
            }
            Value::Object(fields) if !fields.is_empty() => {
                for (name, field) in fields {
                    self.below(Segment::Key(name.clone()), field);
                }
                self.line += 1;
                self.visit_line();
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {}
        }
    }

    fn below(&mut self, segment: Segment, value: &Value) {
        self.line += 1;
        self.path.push(segment);
        self.value(value);
        self.path.pop();
    }

    fn visit_line(&mut self) {
        if self.line == self.wanted && self.found.is_none() {
            self.found = Some(self.path.clone());
        }
    }
}
