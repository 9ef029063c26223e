//! One question to a candidate, beside the policy in force: what would change (semantics "Dry evaluation").

use super::{Policy, PolicyError, Slot};

/// How an answer of a candidate compares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Compared {
    /// It says the same.
    Same,
    /// It says something else.
    Changed,
    /// It refuses, where the policy in force does not.
    Refused,
    /// It gives no answer.
    Failed {
        /// How that ended.
        error: PolicyError,
        /// The policy in force answers, so the candidate is to blame.
        answered_now: bool,
    },
}

/// Asks both. `now` usually remembers its answer.
pub async fn compare<S: Slot>(candidate: &dyn Policy<S>, now: &dyn Policy<S>, input: &S::Input) -> Compared {
    let answer = candidate.evaluate(input).await;
    let before = now.evaluate(input).await;
    match (answer, before) {
        (Ok(answer), Ok(before)) if answer == before => Compared::Same,
        (Err(PolicyError::Refused(_)), Err(PolicyError::Refused(_))) => Compared::Same,
        (Ok(_), _) => Compared::Changed,
        (Err(PolicyError::Refused(_)), _) => Compared::Refused,
        (Err(error), before) => {
            // A refusal is an answer.
            let answered_now = before.is_ok() || before.is_err_and(|error| !error.is_failure());
            Compared::Failed { error, answered_now }
        }
    }
}
