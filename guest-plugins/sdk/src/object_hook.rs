//! Slot object-hook: what a rendered object has besides.

use serde_json::{Value, json};

use crate::{
    Finding, Policy, Refusal, bindings::object_hook::exports::weir::policy0_1_1::object_hook as wit, policy::settings_for_evaluate,
};

pub use wit::{Answer, Input, Operation};

/// Answers the slot.
pub trait ObjectHook: Policy {
    /// Must depend on its arguments only: the operator remembers answers, and renders an object anew in each pass.
    ///
    /// # Errors
    /// A refusal keeps the last accepted patch in force; [`crate::refuse`] makes one.
    fn evaluate(input: Input, settings: Self::Settings) -> Result<Answer, Refusal>;
}

impl<P: ObjectHook> wit::Guest for P {
    fn evaluate(input: Input, settings: String) -> Result<Answer, Refusal> {
        <P as ObjectHook>::evaluate(input, settings_for_evaluate::<P>(&settings)?)
    }
}

/// The answer that changes nothing.
impl Default for Answer {
    fn default() -> Self {
        Self { patch: String::new(), findings: Vec::new(), extensions: Vec::new() }
    }
}

/// A JSON pointer made of its parts.
///
/// ```
/// use weir_policy_sdk::object_hook::pointer;
/// assert_eq!(pointer(&["metadata", "labels", "example.com/team"]), "/metadata/labels/example.com~1team");
/// ```
#[must_use]
pub fn pointer(parts: &[&str]) -> String {
    parts.iter().map(|part| format!("/{}", part.replace('~', "~0").replace('/', "~1"))).collect()
}

/// A JSON patch, operation by operation.
///
/// ```
/// use weir_policy_sdk::object_hook::{Patch, pointer};
/// let answer = Patch::new().add(pointer(&["metadata", "labels", "team"]), "edge").answer();
/// assert_eq!(answer.patch, r#"[{"op":"add","path":"/metadata/labels/team","value":"edge"}]"#);
/// assert_eq!(Patch::new().answer().patch, "");
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Patch(Vec<Value>);

impl Patch {
    /// One without operations.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a value, or puts it in the place of what is there. A path that ends with `/-` adds to the end of a list.
    #[must_use]
    pub fn add(mut self, path: impl Into<String>, value: impl Into<Value>) -> Self {
        self.0.push(json!({"op": "add", "path": path.into(), "value": value.into()}));
        self
    }

    /// Removes what is there.
    #[must_use]
    pub fn remove(mut self, path: impl Into<String>) -> Self {
        self.0.push(json!({"op": "remove", "path": path.into()}));
        self
    }

    /// The answer of this patch.
    #[must_use]
    pub fn answer(self) -> Answer {
        self.answer_with(Vec::new())
    }

    /// The answer of this patch, with findings.
    #[must_use]
    pub fn answer_with(self, findings: Vec<Finding>) -> Answer {
        let patch = if self.0.is_empty() { String::new() } else { Value::Array(self.0).to_string() };
        Answer { patch, findings, extensions: Vec::new() }
    }
}
