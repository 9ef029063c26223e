//! Which ReconcilePolicy answers for an object (semantics "Selection"). Pure: the same entries in another order select the same one.

mod labels;
mod reason;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;

use jiff::Timestamp;
use weir_api::reconcile_policy::{Mode, ReconcilePolicy};

pub use self::{
    labels::{Malformed, Selector},
    reason::{Reason, Why},
};
use super::{Pairs, SlotName, object_hook::MAX_HOOKS};

/// Most shadows that are asked for one object and slot.
pub const MAX_SHADOWS: usize = 2;

/// Namespace and name of a policy.
pub type Key = (String, String);

/// A ReconcilePolicy, as far as it matters for who answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Namespace and name.
    pub key: Key,
    /// UID.
    pub uid: String,
    /// The slot it is for.
    pub slot: SlotName,
    /// The highest answers.
    pub priority: i32,
    /// When it was made; of equal priority the oldest answers. One that nobody knows of is the youngest.
    pub created: Option<Timestamp>,
    /// In the operator's namespace: policies of other namespaces compete with it. Without it they never do.
    pub allow_override: bool,
    /// Whether its answers are used.
    pub mode: Mode,
    /// Namespaces of the objects it is for.
    pub namespace_selector: Selector,
    /// The objects it is for.
    pub selector: Selector,
    /// A revision of it is active, even if it cannot run just now. One that never had an active revision takes nobody's place: whoever
    /// answered before goes on.
    pub usable: bool,
}

/// A ReconcilePolicy that can never answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// One of its selectors selects nothing that can be said.
    #[error(transparent)]
    Selector(#[from] Malformed),
}

impl Entry {
    /// Reads a policy. `usable`: see [`Entry::usable`].
    ///
    /// # Errors
    /// Names the field that is wrong.
    pub fn new(policy: &ReconcilePolicy, usable: bool) -> Result<Self, Error> {
        let (meta, spec) = (&policy.metadata, &policy.spec);
        let targets = spec.targets.as_ref();
        let selector = |field, of: Option<_>| Selector::parse(field, of);
        Ok(Self {
            key: (meta.namespace.clone().unwrap_or_default(), meta.name.clone().unwrap_or_default()),
            uid: meta.uid.clone().unwrap_or_default(),
            slot: SlotName::of(spec.slot),
            priority: spec.priority.unwrap_or_default(),
            created: meta.creation_timestamp.as_ref().map(|time| time.0),
            allow_override: spec.allow_override.unwrap_or_default(),
            mode: spec.mode.unwrap_or_default(),
            namespace_selector: selector("spec.targets.namespaceSelector", targets.and_then(|t| t.namespace_selector.as_ref()))?,
            selector: selector("spec.targets.selector", targets.and_then(|t| t.selector.as_ref()))?,
            usable,
        })
    }

    /// Whether it is for this object: one of the operator's namespace for all that its targets select, another one for those of its own.
    fn serves(&self, subject: &Subject<'_>, operator_namespace: &str) -> bool {
        (self.is_operators(operator_namespace) || self.key.0 == subject.namespace)
            && self.namespace_selector.matches(subject.namespace_labels)
            && self.selector.matches(subject.labels)
    }

    fn is_operators(&self, operator_namespace: &str) -> bool {
        self.key.0 == operator_namespace
    }

    /// The smallest answers: highest priority, then oldest, then name. The rest is there so that no two are ever equal.
    fn rank(&self) -> impl Ord + use<'_> {
        (Reverse(self.priority), self.created.is_none(), self.created, &self.key.1, &self.key.0, &self.uid)
    }
}

/// What a policy is asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectKind {
    /// A DataPlane: its Konnect environment, conflicts inside of it, and the objects that are rendered for it.
    DataPlane,
    /// A KongPluginInstallation: how it is packaged, and who may claim it.
    PluginInstallation,
}

/// The object that an answer is wanted for.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// Its kind.
    pub kind: ObjectKind,
    /// Its namespace.
    pub namespace: &'a str,
    /// Its name, for who reads about it: no policy is chosen by it.
    pub name: &'a str,
    /// Its labels.
    pub labels: &'a Pairs,
    /// Labels of its namespace.
    pub namespace_labels: &'a Pairs,
}

/// Who answers for an object, and who does not.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Selection<'e> {
    /// Who answers; none: the built-in policy, and for a chain always none.
    pub winner: Option<&'e Entry>,
    /// Slot object-hook: all who are asked, in this order; at most [`MAX_HOOKS`].
    pub chain: Vec<&'e Entry>,
    /// Who is for the object too and is not asked, with the reason.
    pub losers: Vec<(&'e Entry, Reason)>,
    /// Those of one priority where the priority should have decided, the winner first; empty when it did.
    pub ambiguous: Vec<&'e Entry>,
    /// Who is asked beside the winner, and not listened to: at most [`MAX_SHADOWS`].
    pub shadows: Vec<&'e Entry>,
}

/// Who answers `slot` for `subject`: one, or for slot object-hook a chain in name order. `tenants`: policies outside of the operator's namespace are allowed.
#[must_use]
pub fn select<'e>(entries: &'e [Entry], slot: SlotName, subject: &Subject<'_>, operator_namespace: &str, tenants: bool) -> Selection<'e> {
    if !is_asked(slot, subject.kind) {
        return Selection::default();
    }
    let operators = |entry: &Entry| entry.is_operators(operator_namespace);
    let mut all: Vec<&Entry> = entries.iter().filter(|e| e.slot == slot && e.serves(subject, operator_namespace)).collect();
    all.sort_by(|a, b| a.rank().cmp(&b.rank()));
    let (allowed, forbidden): (Vec<&Entry>, Vec<&Entry>) = all.into_iter().partition(|e| tenants || operators(e));
    let (usable, never_active): (Vec<&Entry>, Vec<&Entry>) = allowed.into_iter().partition(|e| e.usable);
    let (enforced, mut shadows): (Vec<&Entry>, Vec<&Entry>) = usable.into_iter().partition(|e| e.mode == Mode::Enforce);

    // The operator's best one has the word on whether tenants compete.
    let mut best = enforced.iter().filter(|e| operators(e));
    let closed = if slot == SlotName::ObjectHook {
        // All of a chain are asked, so all of them have it.
        best.any(|hook| !hook.allow_override)
    } else {
        best.next().is_some_and(|best| !best.allow_override)
    };
    let (contest, outranked): (Vec<&Entry>, Vec<&Entry>) = enforced.into_iter().partition(|e| !closed || operators(e));
    // A tenant's shadow takes no place from one of the operator's.
    shadows.sort_by_key(|e| !operators(e));
    let spare = shadows.split_off(shadows.len().min(MAX_SHADOWS));

    if slot == SlotName::ObjectHook {
        let mut chain = contest;
        chain.sort_by_key(|e| (&e.key.1, &e.key.0, &e.uid));
        let spare_hooks = chain.split_off(chain.len().min(MAX_HOOKS));
        let mut losers: Vec<(&Entry, Reason)> = Vec::new();
        for (all, why) in [
            (spare_hooks, Why::TooManyHooks),
            (outranked, Why::Outranked),
            (never_active, Why::NeverActive),
            (forbidden, Why::TenantsOff),
            (spare, Why::TooManyShadows),
        ] {
            losers.extend(all.into_iter().map(|e| (e, Reason { winner: None, why: why.clone() })));
        }
        return Selection { winner: None, chain, losers, ambiguous: Vec::new(), shadows };
    }

    let (winner, beaten) = contest.split_first().map_or((None, [].as_slice()), |(winner, beaten)| (Some(*winner), beaten));
    let reason = |why| Reason { winner: winner.map(|w| w.key.clone()), why };
    let between = |winner| beaten.iter().map(move |e| (*e, Why::between(winner, e)));
    let mut losers: Vec<(&Entry, Reason)> = winner.into_iter().flat_map(between).map(|(e, why)| (e, reason(why))).collect();
    losers.extend(outranked.into_iter().map(|e| (e, reason(Why::Outranked))));
    losers.extend(never_active.into_iter().map(|e| (e, reason(Why::NeverActive))));
    losers.extend(forbidden.into_iter().map(|e| (e, reason(Why::TenantsOff))));
    losers.extend(spare.into_iter().map(|e| (e, reason(Why::TooManyShadows))));
    let tied = |e: &&Entry| winner.is_some_and(|winner| winner.priority == e.priority);
    let ambiguous: Vec<&Entry> = if beaten.iter().any(&tied) { contest.iter().copied().filter(tied).collect() } else { Vec::new() };
    Selection { winner, chain: Vec::new(), losers, ambiguous, shadows }
}

/// Which slots are asked about which kind. Conflicts inside of a DataPlane are the DataPlane's, those about an installation the installation's.
fn is_asked(slot: SlotName, kind: ObjectKind) -> bool {
    match (slot, kind) {
        (SlotName::KonnectEnv | SlotName::ObjectHook, ObjectKind::DataPlane)
        | (SlotName::PluginPackaging, ObjectKind::PluginInstallation)
        | (SlotName::ConflictResolution, ObjectKind::DataPlane | ObjectKind::PluginInstallation) => true,
        (SlotName::KonnectEnv | SlotName::ObjectHook, ObjectKind::PluginInstallation)
        | (SlotName::PluginPackaging, ObjectKind::DataPlane) => false,
    }
}
