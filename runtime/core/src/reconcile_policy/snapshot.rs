//! What one pass over a ReconcilePolicy sees. No bytes of a component are in it: what became of them is.

use jiff::Timestamp;
use weir_api::reconcile_policy::{Impact, ReconcilePolicy, Shadow};

use crate::{
    policy::{Finding, difference::Difference},
    remote::Standing,
};

/// A step on the way of a candidate, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// The reference leads to a component, which was fetched whole.
    Resolved,
    /// The signatures that are wanted are there.
    Verified,
    /// It exports the slot, imports nothing foreign, and compiles.
    Compatible,
    /// It takes its settings.
    SettingsValid,
    /// It answers what is asked of it already.
    Answers,
}

/// What is known of a component, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Found {
    /// The reference it was found under: with a range, the one of the tag that was chosen.
    pub image: Option<String>,
    /// Digest of its manifest; of the index, where there is one.
    pub manifest_digest: Option<String>,
    /// Digest of the component itself.
    pub layer_digest: Option<String>,
    /// Who signed it.
    pub signer: Option<String>,
    /// Digest of the signatures that were wanted of it; none where none were.
    pub verification: Option<String>,
    /// Version that the artifact says it has.
    pub version: Option<String>,
}

/// Why a step failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The step.
    pub step: Step,
    /// Condition reason.
    pub reason: String,
    /// What happened and what to do; names the object and the field.
    pub message: String,
    /// Whether it may pass by itself; the shell then tries again.
    pub transient: bool,
}

/// How far the shell is with what the spec asks for. After a new value of annotation `weir.dev/check-at` it begins anew: what a look found that
/// began before is not given any more, or the new value would be answered with it.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Work {
    /// It was not asked for.
    #[default]
    None,
    /// It is on its way.
    Busy {
        /// The steps before this one are done.
        next: Step,
        /// What is known.
        found: Found,
    },
    /// A step failed.
    Failed {
        /// Which, and why.
        failure: Failure,
        /// What is known.
        found: Found,
    },
    /// Every step is done: it can take over at once.
    Ready {
        /// What is known; the layer digest always is.
        found: Found,
        /// What the component says about its settings.
        findings: Vec<Finding>,
        /// What it would change.
        impact: Option<Impact>,
    },
}

/// The breaker of this policy opened: its revision in force fails for too many objects. A new value of annotation `weir.dev/check-at` closes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tripped {
    /// The revision it is about.
    pub layer_digest: String,
    /// Its settings.
    pub settings_digest: String,
    /// How it failed: the name of a [`crate::policy::PolicyError`].
    pub reason: String,
    /// For a person: how many objects, and one of the errors.
    pub message: String,
}

/// What is asked of the policy in the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reach {
    /// Objects it answers for.
    pub objects: usize,
    /// Objects that it selects and another policy answers for, and that other policy (`namespace/name`) for the first of them.
    pub lost: usize,
    /// The policy that won most of those.
    pub lost_to: Option<String>,
    /// Policies of equal priority that select the same objects.
    pub ambiguous: Vec<String>,
}

/// What one pass sees.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// The time of the pass.
    pub now: Timestamp,
    /// The object.
    pub policy: ReconcilePolicy,
    /// The operator's own namespace.
    pub operator_namespace: String,
    /// Whether policies of other namespaces count.
    pub tenants: bool,
    /// What the shell has done for this spec.
    pub work: Work,
    /// Digest of the signatures that are wanted now, the operator's own rules included; none where none are. What was found under another
    /// one does not take over.
    pub verification: Option<String>,
    /// The remote plugin that the spec names, where there is one.
    pub plugin: Option<Standing>,
    /// The breaker has opened.
    pub tripped: Option<Tripped>,
    /// Why the revision in force does not run in this process although the status says so; none when it does.
    pub not_running: Option<String>,
    /// What is asked of it.
    pub reach: Reach,
    /// How the answers of a shadow compare.
    pub shadow: Option<Compared>,
}

/// How the answers of a shadow compare, as far as it was asked since it took this form.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Compared {
    /// Numbers.
    pub counts: Shadow,
    /// The first of the gravest differences.
    pub sample: Option<Sample>,
}

/// One question to which a shadow says something else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// Whom it was about: `Kind namespace/name`.
    pub object: String,
    /// What differs.
    pub difference: Difference,
}

impl Compared {
    /// The first one stays, until there is a graver one: a status must not change with every object.
    pub fn differs(&mut self, sample: Sample) {
        if self.sample.as_ref().is_none_or(|there| there.difference.grade() < sample.difference.grade()) {
            self.sample = Some(sample);
        }
    }
}
