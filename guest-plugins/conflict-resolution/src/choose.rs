//! Picking one claim.

use std::cmp::Ordering;

use weir_policy_sdk::conflict_resolution::{Claim, Conflict, Origin};

use crate::instant;

/// A claim and its index in the question.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Choice<'a> {
    pub(crate) index: u32,
    pub(crate) claim: &'a Claim,
}

/// Every claim, in the order of the question.
pub(crate) fn all(conflict: &Conflict) -> impl Iterator<Item = Choice<'_>> {
    (0..).zip(&conflict.claims).map(|(index, claim)| Choice { index, claim })
}

/// The first claim, which is the strongest.
pub(crate) fn first(conflict: &Conflict) -> Option<Choice<'_>> {
    all(conflict).next()
}

/// The first claim of an origin.
pub(crate) fn index_of(conflict: &Conflict, origin: Origin) -> Option<Choice<'_>> {
    all(conflict).find(|choice| choice.claim.origin == origin)
}

/// The first claim that is not of an origin.
pub(crate) fn strongest_not(conflict: &Conflict, origin: Origin) -> Option<Choice<'_>> {
    all(conflict).find(|choice| choice.claim.origin != origin)
}

/// The claims that lose to a choice.
pub(crate) fn others<'a>(conflict: &'a Conflict, choice: Choice<'_>) -> impl Iterator<Item = &'a Claim> {
    all(conflict).filter(move |other| other.index != choice.index).map(|other| other.claim)
}

/// The oldest claim; the name decides between equals, so that the answer does not depend on the order of the question.
pub(crate) fn oldest(conflict: &Conflict) -> Option<Choice<'_>> {
    all(conflict).min_by(|a, b| by_age(a.claim, b.claim))
}

/// An unknown age is younger than any known one: who cannot prove to have been first was not.
fn by_age(a: &Claim, b: &Claim) -> Ordering {
    let key = |claim: &Claim| {
        let instant = claim.since.as_deref().and_then(instant::parse);
        (instant.is_none(), instant)
    };
    key(a).cmp(&key(b)).then_with(|| a.who.cmp(&b.who))
}
