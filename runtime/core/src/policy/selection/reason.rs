//! Why a policy is not asked, and who answers instead.

use std::fmt;

use super::{Entry, Key, MAX_HOOKS, MAX_SHADOWS};

/// Why a policy is not asked about an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// Who answers; none: the built-in policy.
    pub winner: Option<Key>,
    /// Why not this one.
    pub why: Why,
}

/// Why it is not this one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// It stands outside of the operator's namespace, and such policies are not allowed.
    TenantsOff,
    /// No revision of it was ever active.
    NeverActive,
    /// It stands outside of the operator's namespace, and one inside of it does not let it compete.
    Outranked,
    /// The winner's priority is higher.
    Priority {
        /// The winner's.
        winners: i32,
        /// Its own.
        own: i32,
    },
    /// Of this priority, the winner is older.
    Age(i32),
    /// Of this priority and equally old, the winner's name comes first.
    Name(i32),
    /// Enough hooks before it are asked.
    TooManyHooks,
    /// It is a shadow, and enough others are asked.
    TooManyShadows,
}

impl Why {
    /// What decided between two that compete.
    pub(super) fn between(winner: &Entry, loser: &Entry) -> Self {
        if winner.priority != loser.priority {
            Self::Priority { winners: winner.priority, own: loser.priority }
        } else if winner.created != loser.created {
            Self::Age(loser.priority)
        } else {
            Self::Name(loser.priority)
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of_chain = matches!(self.why, Why::TooManyHooks) || (self.why == Why::Outranked && self.winner.is_none());
        match &self.winner {
            None if of_chain => {}
            Some((namespace, name)) => write!(f, "ReconcilePolicy {namespace}/{name} answers: ")?,
            None => f.write_str("the built-in policy answers: ")?,
        }
        match &self.why {
            Why::TenantsOff => f.write_str("policies outside of the operator's namespace are not allowed here"),
            Why::NeverActive => f.write_str("no revision of this one was ever active"),
            Why::Outranked if of_chain => f.write_str("a hook of the operator's namespace does not say allowOverride"),
            Why::Outranked => f.write_str("it is of the operator's namespace and does not say allowOverride"),
            Why::Priority { winners, own } => write!(f, "its priority {winners} is higher than {own}"),
            Why::Age(priority) => write!(f, "both have priority {priority}, and it is older"),
            Why::Name(priority) => write!(f, "both have priority {priority} and are equally old, and its name comes first"),
            Why::TooManyHooks => write!(f, "{MAX_HOOKS} hooks whose names come first are asked already"),
            Why::TooManyShadows => write!(f, "{MAX_SHADOWS} other shadows are asked beside it already"),
        }
    }
}
