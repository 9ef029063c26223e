//! Objects as the API server takes them.

use std::sync::LazyLock;

use serde_json::Value;
use weir_api::{
    crds,
    manifest::{Schemas, SourceRef},
};

/// Compiling takes most of the time of a test, so it is done once.
static SCHEMAS: LazyLock<Schemas> = LazyLock::new(|| Schemas::new(&crds::all()).unwrap());

/// Every complaint about a new object; the object with defaults.
fn create(mut object: Value) -> (Vec<String>, Value) {
    let text = |name: &str| object[name].as_str().unwrap().to_owned();
    let schema = SCHEMAS.get(&text("apiVersion"), &text("kind")).unwrap();
    schema.default(&mut object);
    let mut findings = schema.validate(&object);
    if findings.is_empty() {
        findings = schema.rules(&object, None);
    }
    (findings.into_iter().map(|finding| format!("{}: {}", finding.field, finding.message)).collect(), object)
}

/// The object as it is stored.
pub(crate) fn accepted(object: Value) -> Value {
    let (complaints, object) = create(object);
    assert_eq!(complaints, Vec::<String>::new(), "{object:#}");
    object
}

/// There is exactly one complaint, with these words.
pub(crate) fn refused(object: Value, because: &str) {
    let (complaints, object) = create(object);
    assert_eq!(complaints.len(), 1, "{complaints:?} {object:#}");
    assert!(complaints[0].contains(because), "{complaints:?}");
}

/// What the rules say that compare with the older self.
pub(crate) fn update(old: Value, new: Value) -> Vec<String> {
    let source = SourceRef { file: "test".into(), line: 1 };
    SCHEMAS.check_update(&old, &new, &source).into_iter().map(|problem| problem.message).collect()
}
