//! Slot object-hook: the lifecycle hook of CNPG-I. It knows no settings and no findings, and patches are JSON as ours are.

use std::time::Duration;

use weir_core::policy::{ObjectHook, object_hook as core};

use super::{super::calls::Caps, RemoteSlot, Reply};
use crate::remote::{CallError, Capabilities, Class, Lease, Verb};

/// What a hook is asked.
#[derive(Debug, Clone)]
pub struct Question {
    operation: core::Operation,
    group: String,
    kind: String,
    owner: Vec<u8>,
    object: Vec<u8>,
}

impl RemoteSlot for ObjectHook {
    type Question = Question;
    const HAS_SETTINGS: bool = false;

    fn question(input: &core::Input, _settings: &str) -> Question {
        let group = input.api_version.split_once('/').map_or("", |(group, _)| group);
        Question {
            operation: input.operation,
            group: group.into(),
            kind: input.kind.clone(),
            owner: input.owner.clone().into_bytes(),
            object: input.object.clone().into_bytes(),
        }
    }

    async fn send(lease: &Lease, caps: Caps, within: Duration, question: Question) -> Result<Reply<core::Answer>, CallError> {
        const METHOD: &str = "OperatorLifecycle/LifecycleHook";
        let answer = |patch: String| Reply::Answer(Ok(core::Answer { patch, findings: Vec::new() }));
        let Question { operation, group, kind, owner, object } = question;
        let Some(verb) = verb(lease.capabilities(), &group, &kind, operation) else { return Ok(answer(String::new())) };
        let size = owner.len().saturating_add(object.len());
        if size > caps.question {
            let message = format!("the object and its DataPlane have {size} bytes, at most {} are sent", caps.question);
            return Err(CallError { method: METHOD, class: Class::TooLarge, message });
        }
        let patch = lease.lifecycle(verb, owner, object, within).await?;
        let text = String::from_utf8(patch);
        let garbage = |_| CallError { method: METHOD, class: Class::Garbage, message: "the patch is no UTF-8 text".into() };
        Ok(answer(text.map_err(garbage)?))
    }
}

/// How a plugin is asked; none where it does not want this kind. An object is rendered anew in each pass, and what a hook leaves out is taken
/// away: a plugin that wants a kind when it is made is asked about the one that exists too, by the word of its own that comes nearest.
fn verb(capabilities: &Capabilities, group: &str, kind: &str, operation: core::Operation) -> Option<Verb> {
    let by_nearness: &[Verb] = match operation {
        core::Operation::Create => &[Verb::Create, Verb::Evaluate, Verb::Patch],
        core::Operation::Patch => &[Verb::Patch, Verb::Update, Verb::Evaluate, Verb::Create],
        core::Operation::Evaluate => &[Verb::Evaluate, Verb::Patch, Verb::Create],
        core::Operation::Delete => &[Verb::Delete],
    };
    by_nearness.iter().copied().find(|verb| capabilities.wants(group, kind, *verb))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote::Lifecycle;

    fn wanting(verbs: &[Verb]) -> Capabilities {
        let of = Lifecycle { group: "apps".into(), kind: "Deployment".into(), verbs: verbs.iter().copied().collect() };
        Capabilities { lifecycle: vec![of], ..Capabilities::default() }
    }

    #[test]
    fn a_plugin_is_asked_in_its_own_words_and_about_nothing_else() {
        use weir_core::policy::object_hook::Operation::{Create, Delete, Evaluate, Patch};
        let full = wanting(&Verb::ALL);
        for (operation, verb) in [(Create, Verb::Create), (Patch, Verb::Patch), (Evaluate, Verb::Evaluate), (Delete, Verb::Delete)] {
            assert_eq!(self::verb(&full, "apps", "Deployment", operation), Some(verb));
            assert_eq!(self::verb(&full, "", "Deployment", operation), None, "another group");
            assert_eq!(self::verb(&full, "apps", "Service", operation), None, "another kind");
        }
        let sparse = wanting(&[Verb::Create, Verb::Evaluate]);
        assert_eq!(self::verb(&sparse, "apps", "Deployment", Patch), Some(Verb::Evaluate));
        assert_eq!(self::verb(&sparse, "apps", "Deployment", Delete), None);
        assert_eq!(self::verb(&wanting(&[Verb::Create]), "apps", "Deployment", Patch), Some(Verb::Create));
    }
}
