//! What a hook may change about an object that was rendered. A hook answers with a JSON patch (RFC 6902), and is not trusted: it may touch
//! paths that are listed for the kind, the object stays the one it was, and what comes out has to be one that the API server can read.
//!
//! This is the contract and the check. Who is asked, and in which order, is said by [`Hooks`]; `dataplane/decide/hooks.rs` asks.

mod chain;
mod lists;
mod paths;
mod same;
mod slot;

use json_patch::PatchOperation;
use serde_json::Value;

pub use self::{
    chain::{Hook, Hooks, MAX_HOOKS},
    paths::{Malformed, MalformedWord, Paths, Pattern, Word},
    slot::{Answer, Input, ObjectHook, Operation},
};
use super::limits;
use crate::plan::{ChildKind, Object};

/// Largest patch, bytes.
pub const MAX_PATCH: usize = 256 << 10;
/// Most operations of a patch.
pub const MAX_OPERATIONS: usize = 256;
/// Largest object that may come out, bytes of its JSON: etcd takes 1.5 MiB.
pub const MAX_OBJECT: usize = 1 << 20;

/// Why a patch is not used. Names the path; whoever shows it names the hook.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Objects of this kind are nobody's to change.
    #[error("objects of kind {0} cannot be changed by a hook")]
    Kind(&'static str),
    /// There is no such kind among those that are rendered.
    #[error("objects of kind {0:?} are not rendered")]
    Unknown(String),
    /// Over a bound.
    #[error("the patch has {what} {found}, at most {most} are allowed")]
    TooLarge {
        /// What there is too much of.
        what: &'static str,
        /// How much there is.
        found: usize,
        /// How much there may be.
        most: usize,
    },
    /// It is no patch.
    #[error("the answer is no JSON patch (RFC 6902): {0}")]
    Malformed(String),
    /// A path that is not listed.
    #[error("path {path}: hooks may not change it in objects of kind {kind}")]
    Path {
        /// The path.
        path: String,
        /// Kind of the object.
        kind: &'static str,
    },
    /// It does not fit the object.
    #[error("path {path}: the patch does not fit the object: {why}")]
    Unfit {
        /// The path.
        path: String,
        /// Why.
        why: String,
    },
    /// It makes another object of it, or takes it from its owner.
    #[error("path {0}: the patch changes what makes the object the operator's")]
    Identity(String),
    /// What comes out is no object of its kind.
    #[error("what the patch makes is no valid object: {0}")]
    Invalid(String),
}

/// The object after a hook's answer. An empty answer, `null` and `[]` change nothing.
///
/// # Errors
/// Why the answer is not used; the object is then as it was.
pub fn apply(object: &Object, patch: &str, allowed: &Paths) -> Result<Object, Refused> {
    if patch.len() > MAX_PATCH {
        return Err(Refused::TooLarge { what: "bytes", found: patch.len(), most: MAX_PATCH });
    }
    let operations = parse(patch)?;
    if operations.is_empty() {
        return Ok(object.clone());
    }
    let kind = object.kind();
    let name = kind.api().1;
    for operation in &operations {
        let refused = touched(operation).into_iter().find(|path| !allowed.allow(kind, path));
        if let Some(path) = refused {
            return Err(Refused::Path { path: limits::cut(&path), kind: name });
        }
    }
    let before = slot::shown(object);
    let mut after = patched(&before, &operations)?;
    if let Some(path) = same::changed(&before, &after) {
        return Err(Refused::Identity(path));
    }
    if let Some(problem) = (kind == ChildKind::Deployment).then(|| lists::problem(&after)).flatten() {
        return Err(Refused::Invalid(limits::cut_at(&problem, 300)));
    }
    same::without_empty(&mut after);
    read(kind, after)
}

fn parse(patch: &str) -> Result<Vec<PatchOperation>, Refused> {
    if patch.trim().is_empty() {
        return Ok(Vec::new());
    }
    let operations: Option<Vec<Value>> =
        serde_json::from_str(patch).map_err(|error| Refused::Malformed(limits::cut(&error.to_string())))?;
    let operations = operations.unwrap_or_default();
    if operations.len() > MAX_OPERATIONS {
        return Err(Refused::TooLarge { what: "operations", found: operations.len(), most: MAX_OPERATIONS });
    }
    let read = |(at, value): (usize, Value)| {
        serde_json::from_value(value).map_err(|error| Refused::Malformed(limits::cut(&format!("operation {at}: {error}"))))
    };
    operations.into_iter().enumerate().map(read).collect()
}

/// Paths at which an operation changes something.
fn touched(operation: &PatchOperation) -> Vec<String> {
    match operation {
        PatchOperation::Add(_) | PatchOperation::Remove(_) | PatchOperation::Replace(_) | PatchOperation::Copy(_) => {
            vec![operation.path().to_string()]
        }
        PatchOperation::Move(moved) => vec![moved.from.to_string(), moved.path.to_string()],
        PatchOperation::Test(_) => Vec::new(),
    }
}

/// One operation after the other: a few copies of copies would fill any memory before the whole is looked at.
fn patched(before: &Value, operations: &[PatchOperation]) -> Result<Value, Refused> {
    let mut after = before.clone();
    for operation in operations {
        let path = || limits::cut(operation.path().as_str());
        json_patch::patch(&mut after, std::slice::from_ref(operation))
            .map_err(|error| Refused::Unfit { path: path(), why: limits::cut(&error.kind.to_string()) })?;
        let grows = match operation {
            PatchOperation::Copy(_) | PatchOperation::Add(_) | PatchOperation::Replace(_) => true,
            PatchOperation::Remove(_) | PatchOperation::Move(_) | PatchOperation::Test(_) => false,
        };
        let size = if grows { after.to_string().len() } else { 0 };
        if size > MAX_OBJECT {
            return Err(Refused::TooLarge { what: "an object of bytes", found: size, most: MAX_OBJECT });
        }
    }
    Ok(after)
}

/// The object, typed again. What its type does not know would be dropped in silence, so it is an error.
fn read(kind: ChildKind, value: Value) -> Result<Object, Refused> {
    let invalid = |error: serde_json::Error| Refused::Invalid(limits::cut(&error.to_string()));
    let object = match kind {
        ChildKind::Service => Object::Service(serde_json::from_value(value.clone()).map_err(invalid)?),
        ChildKind::Deployment => Object::Deployment(serde_json::from_value(value.clone()).map_err(invalid)?),
        ChildKind::HorizontalPodAutoscaler => Object::HorizontalPodAutoscaler(serde_json::from_value(value.clone()).map_err(invalid)?),
        ChildKind::PodDisruptionBudget => Object::PodDisruptionBudget(serde_json::from_value(value.clone()).map_err(invalid)?),
        ChildKind::Secret | ChildKind::Certificate | ChildKind::ConfigMap => return Err(Refused::Kind(kind.api().1)),
    };
    match same::lost(&value, &object.to_json()) {
        Some(path) => Err(Refused::Invalid(format!("path {path}: there is no such field, or it has another type"))),
        None => Ok(object),
    }
}
