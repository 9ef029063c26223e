//! Who answers for an object, and what holds while it fails (design section 6, semantics "Refusal").

use std::sync::Arc;

use weir_api::condition::reasons;
pub use weir_api::reconcile_policy::OnFailure;

use super::{Finding, Identity, Policy, PolicyError, Severity, Slot, SlotName};
use crate::plan::{Outcome, PolicyUse};

/// The policy of a slot, and what holds while it fails. A refusal is an answer: `on_failure` is for all other ways to end without one.
pub struct Chosen<S: Slot> {
    /// Who is asked.
    pub policy: Arc<dyn Policy<S>>,
    /// What holds while it fails.
    pub on_failure: OnFailure,
    /// Who is asked instead under [`OnFailure::Fallback`]; without one the last answer stays.
    pub fallback: Option<Arc<dyn Policy<S>>>,
}

impl<S: Slot> Clone for Chosen<S> {
    fn clone(&self) -> Self {
        Self { policy: Arc::clone(&self.policy), on_failure: self.on_failure, fallback: self.fallback.clone() }
    }
}

impl<S: Slot, P: Policy<S> + 'static> From<Arc<P>> for Chosen<S> {
    fn from(policy: Arc<P>) -> Self {
        let policy: Arc<dyn Policy<S>> = policy;
        policy.into()
    }
}

impl<S: Slot> From<Arc<dyn Policy<S>>> for Chosen<S> {
    fn from(policy: Arc<dyn Policy<S>>) -> Self {
        Self { policy, on_failure: OnFailure::KeepLast, fallback: None }
    }
}

/// How asking ended.
pub struct Reply<'a, A> {
    /// Who had the last word: the policy, or the one that was asked instead.
    pub by: &'a Identity,
    /// What it said.
    pub answer: Result<A, Unanswered>,
    /// Everybody who was asked, in order, and how that ended.
    pub asked: Vec<(&'a Identity, Outcome)>,
    /// That the answer is not of the policy that was chosen: nobody may miss it.
    pub fell_back: Option<Finding>,
    /// The policy that was chosen, where another one answered in its place.
    pub fallback_for: Option<&'a Identity>,
}

impl<A> Reply<'_, A> {
    /// Everybody who was asked about `object` (`Kind namespace/name`), in order.
    pub fn uses(&self, slot: SlotName, object: &str) -> Vec<PolicyUse> {
        let asked = self.asked.iter().map(|(who, outcome)| PolicyUse {
            slot,
            object: object.to_owned(),
            source: who.source.clone(),
            digest: who.digest.clone(),
            outcome: *outcome,
            fell_back: self.fallback_for.is_some() && *outcome != Outcome::Answered,
        });
        asked.collect()
    }
}

/// There is no accepted answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unanswered {
    /// How the question ended.
    pub error: PolicyError,
    /// The same for a person, with the word of the policy that was asked instead.
    pub message: String,
    /// What the answer shapes stays as it is in the cluster, even where there is a last answer.
    pub blocks: bool,
}

impl Unanswered {
    /// Reason of a condition.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        self.error.reason()
    }
}

impl<S: Slot> Chosen<S> {
    /// Which policy it is.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        self.policy.identity()
    }

    /// The same choice with each policy inside of something that behaves like it: a memory, a counter.
    #[must_use]
    pub fn map(self, wrap: impl Fn(Arc<dyn Policy<S>>) -> Arc<dyn Policy<S>>) -> Self {
        Self { policy: wrap(self.policy), on_failure: self.on_failure, fallback: self.fallback.map(wrap) }
    }

    /// Asks the policy, and where it fails the one that stands in. `usable` says what the asker cannot do with an answer that the slot allows.
    pub async fn ask(&self, input: &S::Input, usable: fn(&S::Answer) -> Result<(), &'static str>) -> Reply<'_, S::Answer> {
        let by = self.policy.identity();
        let answer = evaluate(self.policy.as_ref(), input, usable).await;
        let mut asked = vec![(by, Outcome::of(&answer))];
        let error = match answer {
            Ok(answer) => return Reply { by, answer: Ok(answer), asked, fell_back: None, fallback_for: None },
            Err(error) => error,
        };
        let fallback = match self.on_failure {
            OnFailure::Fallback => self.fallback.as_deref().filter(|_| error.is_failure()),
            OnFailure::KeepLast | OnFailure::Block => None,
        };
        let Some(fallback) = fallback else {
            let blocks = self.on_failure == OnFailure::Block && error.is_failure();
            let unanswered = Unanswered { message: error.to_string(), error, blocks };
            return Reply { by, answer: Err(unanswered), asked, fell_back: None, fallback_for: None };
        };
        let second = evaluate(fallback, input, usable).await;
        asked.push((fallback.identity(), Outcome::of(&second)));
        match second {
            Ok(answer) => {
                let fell_back = Some(fell_back::<S>(by, &error, fallback.identity()));
                Reply { by: fallback.identity(), answer: Ok(answer), asked, fell_back, fallback_for: Some(by) }
            }
            Err(second) => {
                let message = format!("{error}; {} was asked instead: {second}", fallback.identity().source);
                // A refusal is an answer, whoever gives it. Two failures are known by the first.
                let (by, error) = if second.is_failure() { (by, error) } else { (fallback.identity(), second) };
                Reply { by, answer: Err(Unanswered { error, message, blocks: false }), asked, fell_back: None, fallback_for: None }
            }
        }
    }
}

async fn evaluate<S: Slot>(
    policy: &dyn Policy<S>,
    input: &S::Input,
    usable: fn(&S::Answer) -> Result<(), &'static str>,
) -> Result<S::Answer, PolicyError> {
    let answer = policy.evaluate(input).await?;
    match usable(&answer) {
        Ok(()) => Ok(answer),
        Err(why) => Err(PolicyError::BadOutput(why.into())),
    }
}

fn fell_back<S: Slot>(policy: &Identity, error: &PolicyError, fallback: &Identity) -> Finding {
    let (slot, failed, answered) = (S::NAME, &policy.source, &fallback.source);
    let message = format!(
        "{slot}: {failed} failed ({error}) and {answered} answered instead, since onFailure is Fallback: what only {failed} would refuse \
         is let through meanwhile"
    );
    Finding { severity: Severity::Warning, code: reasons::FELL_BACK.into(), path: String::new(), message }
}
