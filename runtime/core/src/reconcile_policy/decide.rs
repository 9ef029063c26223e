//! Which revision answers: the one in force, the one that the spec asks for, or a former one. No policy is asked here.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use weir_api::reconcile_policy::{Candidate, EffectiveLimits, Impact, Revision, Strategy};

use super::{
    snapshot::{Failure, Found, Step, Tripped, Work},
    validate::{Cost, Origin, Stop, Validated},
};

/// Former revision: another one was asked for.
pub const SUPERSEDED: &str = "Superseded";
/// Former revision: its owner went back to an older one. Nothing ever goes back to it by itself.
pub const REMOVED: &str = "Removed";
/// Former revision: it failed in use.
pub const ROLLED_BACK: &str = "RolledBack";

/// Settings of former revisions that are kept, bytes of all of them: an object has to stay well below what etcd takes.
const MAX_KEPT_SETTINGS: usize = 256 << 10;

/// How what the spec asks for stands.
#[derive(Debug, Clone, PartialEq)]
pub enum Standing {
    /// It answers.
    InForce,
    /// It is on its way.
    Coming(Step),
    /// A step failed.
    Failed {
        /// Which, and why.
        failure: Failure,
        /// Only a look at a tag failed: what answers is what the spec asks for, as far as anybody knows.
        harmless: bool,
    },
    /// Every step is done, and a person has to say so.
    Waiting {
        /// What the annotation has to say.
        approve: String,
        /// What it says, where that is something else.
        stale: Option<String>,
    },
    /// It answered and failed too often.
    RolledBack(String),
    /// Nothing is done.
    Stopped(Stop),
}

/// What took over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Swap {
    /// What the spec asks for.
    Activated,
    /// A former revision, because the one in force failed; why.
    RolledBack(String),
}

/// Which revision answers, and what becomes of the others.
#[derive(Debug, Clone, PartialEq)]
pub struct Decided {
    /// The one that answers.
    pub active: Option<Revision>,
    /// Former ones, the latest first.
    pub history: Vec<Revision>,
    /// The one that would take over.
    pub candidate: Option<Candidate>,
    /// How what the spec asks for stands.
    pub standing: Standing,
    /// What took over in this pass.
    pub swap: Option<Swap>,
}

/// Decides.
#[must_use]
pub fn decide(policy: &Validated<'_>) -> Decided {
    let status = policy.snapshot.policy.status.clone().unwrap_or_default();
    let mut decided = Decided {
        active: status.active,
        history: status.history.unwrap_or_default(),
        candidate: None,
        standing: Standing::InForce,
        swap: None,
    };
    match &policy.stop {
        Some(stop @ Stop::NotServed(..)) => {
            decided.active = None;
            decided.standing = Standing::Stopped(stop.clone());
            return decided;
        }
        Some(stop @ (Stop::Deleting | Stop::Paused)) => {
            decided.standing = Standing::Stopped(stop.clone());
            return decided;
        }
        None => {}
    }
    if let Some(tripped) = policy.snapshot.tripped.as_ref().filter(|tripped| !policy.asked && decided.is_of(tripped)) {
        decided.roll_back(policy, tripped);
    }
    decided.wanted(policy);
    decided.trim(policy.history);
    decided
}

/// Whether what answers is what the spec asks for, as far as anybody knows without asking a registry.
#[must_use]
pub fn is_current(policy: &Validated<'_>) -> bool {
    let status = policy.snapshot.policy.status.as_ref();
    status.and_then(|status| status.active.as_ref()).is_some_and(|active| asks_for(policy, active))
}

/// Whether the spec asks for this revision, as far as its words tell.
fn asks_for(policy: &Validated<'_>, revision: &Revision) -> bool {
    let image = match policy.origin {
        Some(Origin::Oci(_)) => Some(policy.source.as_str()),
        Some(Origin::Builtin) | None => None,
    };
    revision.settings_digest == policy.settings_digest
        && revision.image.as_deref() == image
        && revision.verification == policy.snapshot.verification
}

/// What annotation `weir.dev/approved-digest` has to say for this candidate.
fn approval(active: Option<&Revision>, layer: &str, settings: &str) -> String {
    match active {
        None => layer.to_owned(),
        Some(active) if active.settings_digest == settings && active.layer_digest != layer => layer.to_owned(),
        Some(_) => format!("{layer}/{settings}"),
    }
}

impl Decided {
    /// Whether the breaker speaks of the revision in force.
    #[must_use]
    pub fn is_of(&self, tripped: &Tripped) -> bool {
        self.active.as_ref().is_some_and(|a| a.layer_digest == tripped.layer_digest && a.settings_digest == tripped.settings_digest)
    }

    /// The latest former revision that was good and is still allowed takes over. Without one the failing one stays: objects keep their
    /// last answers.
    fn roll_back(&mut self, policy: &Validated<'_>, tripped: &Tripped) {
        let allowed = |former: &Revision| {
            former.reason.as_deref() == Some(SUPERSEDED) && former.verification == policy.snapshot.verification && former.settings.is_some()
        };
        let Some(place) = self.history.iter().position(allowed) else { return };
        let mut target = self.history.remove(place);
        target.reason = None;
        target.since = Some(Time(policy.snapshot.now));
        if let Some(mut failed) = self.active.replace(target) {
            failed.reason = Some(ROLLED_BACK.into());
            self.history.insert(0, failed);
        }
        self.swap = Some(Swap::RolledBack(format!("{}: {}", tripped.reason, tripped.message)));
    }

    /// What the spec asks for.
    fn wanted(&mut self, policy: &Validated<'_>) {
        let current = self.active.as_ref().is_some_and(|active| asks_for(policy, active));
        match &policy.snapshot.work {
            Work::None if current => {}
            Work::None => self.came_back(policy, Standing::Coming(Step::Resolved)),
            Work::Busy { .. } if current => {}
            Work::Busy { next, found } => {
                self.candidate = Some(candidate(policy, found, None));
                self.came_back(policy, Standing::Coming(*next));
            }
            Work::Failed { failure, found } => {
                let harmless = current && failure.step == Step::Resolved && found.layer_digest.is_none();
                if !harmless {
                    self.candidate = Some(candidate(policy, found, None));
                }
                self.standing = Standing::Failed { failure: failure.clone(), harmless };
            }
            Work::Ready { found, impact, findings: _ } => self.ready(policy, found, *impact),
        }
    }

    /// A revision that failed in use stands as that, until something else is known of what the spec asks for.
    fn came_back(&mut self, policy: &Validated<'_>, otherwise: Standing) {
        let failed = self.history.iter().find(|former| former.reason.as_deref() == Some(ROLLED_BACK) && asks_for(policy, former));
        self.standing = match failed.filter(|_| !policy.asked) {
            Some(failed) => Standing::RolledBack(failed.layer_digest.clone()),
            None => otherwise,
        };
    }

    /// A candidate that has passed every step.
    fn ready(&mut self, policy: &Validated<'_>, found: &Found, impact: Option<Impact>) {
        let Some(layer) = found.layer_digest.as_deref() else { return };
        let is_it = |revision: &Revision| revision.layer_digest == layer && revision.settings_digest == policy.settings_digest;
        if let Some(active) = self.active.as_mut().filter(|active| is_it(active)) {
            // The same component under another name: nothing changes for anybody.
            let since = active.since.clone();
            *active = Revision { since, ..revision(policy, found, layer) };
            return;
        }
        let failed = self.history.iter().any(|former| is_it(former) && former.reason.as_deref() == Some(ROLLED_BACK));
        if failed && !policy.asked {
            self.candidate = Some(candidate(policy, found, impact));
            self.standing = Standing::RolledBack(layer.to_owned());
            return;
        }
        if policy.strategy == Strategy::Manual {
            let approve = approval(self.active.as_ref(), layer, &policy.settings_digest);
            let full = format!("{layer}/{}", policy.settings_digest);
            if policy.approved != Some(approve.as_str()) && policy.approved != Some(full.as_str()) {
                let of_active =
                    |a: &Revision, text: &str| text == a.layer_digest || text == format!("{}/{}", a.layer_digest, a.settings_digest);
                let stale = policy.approved.filter(|text| !self.active.as_ref().is_some_and(|a| of_active(a, text)));
                self.candidate = Some(Candidate { approve: Some(approve.clone()), ..candidate(policy, found, impact) });
                self.standing = Standing::Waiting { approve, stale: stale.map(String::from) };
                return;
            }
        }
        self.activate(revision(policy, found, layer));
    }

    fn activate(&mut self, revision: Revision) {
        let is_it = |former: &Revision| former.layer_digest == revision.layer_digest && former.settings_digest == revision.settings_digest;
        // Going back to a former one: those that came after it were not wanted any more.
        let back = self.history.iter().position(is_it);
        if let Some(place) = back {
            self.history
                .iter_mut()
                .take(place)
                .filter(|f| f.reason.as_deref() == Some(SUPERSEDED))
                .for_each(|f| f.reason = Some(REMOVED.into()));
            self.history.remove(place);
        }
        if let Some(mut former) = self.active.replace(revision) {
            former.reason = Some(if back.is_some() { REMOVED } else { SUPERSEDED }.into());
            self.history.insert(0, former);
        }
        self.swap = Some(Swap::Activated);
        self.standing = Standing::InForce;
    }

    fn trim(&mut self, most: usize) {
        self.history.truncate(most);
        let mut left = MAX_KEPT_SETTINGS;
        for former in &mut self.history {
            let size = former.settings.as_ref().map_or(0, |settings| settings.to_string().len());
            if size > left {
                former.settings = None;
            }
            left = left.saturating_sub(size);
        }
    }
}

fn revision(policy: &Validated<'_>, found: &Found, layer: &str) -> Revision {
    Revision {
        image: found.image.clone(),
        manifest_digest: found.manifest_digest.clone(),
        layer_digest: layer.to_owned(),
        settings_digest: policy.settings_digest.clone(),
        signer: found.signer.clone(),
        version: found.version.clone(),
        verification: found.verification.clone(),
        limits: Some(effective(policy.cost)),
        settings: Some(policy.settings.clone()),
        since: Some(Time(policy.snapshot.now)),
        reason: None,
    }
}

/// What one question may cost, in words.
#[must_use]
pub fn effective(cost: Cost) -> EffectiveLimits {
    EffectiveLimits { timeout: format!("{}ms", cost.timeout.as_millis()), memory: format!("{}Mi", cost.memory >> 20) }
}

fn candidate(policy: &Validated<'_>, found: &Found, impact: Option<Impact>) -> Candidate {
    Candidate {
        image: found.image.clone().or_else(|| policy.origin.filter(|o| matches!(o, Origin::Oci(_))).map(|_| policy.source.clone())),
        manifest_digest: found.manifest_digest.clone(),
        layer_digest: found.layer_digest.clone(),
        settings_digest: Some(policy.settings_digest.clone()),
        signer: found.signer.clone(),
        approve: None,
        impact,
    }
}
