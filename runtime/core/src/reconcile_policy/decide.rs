//! Which revision answers: the one in force, the one that the spec asks for, or a former one. Neither a policy nor a registry is asked here.

mod approval;
mod before;
mod former;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use weir_api::reconcile_policy::{Candidate, EffectiveLimits, Impact, Revision};

use self::before::Before;
use super::{
    snapshot::{Failure, Found, Step, Tripped, Work},
    validate::{Cost, Origin, Stop, Validated},
};

pub use self::{
    approval::Wait,
    former::{REMOVED, ROLLED_BACK, SUPERSEDED},
};

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
    Waiting(Wait),
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
    /// A former revision, because the one in force failed: its digest, and why.
    RolledBack(String, String),
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
    /// What took over in this pass, in this order.
    pub swaps: Vec<Swap>,
}

/// Decides.
#[must_use]
pub fn decide(policy: &Validated<'_>) -> Decided {
    let mut pass = Pass::new(policy);
    match &policy.stop {
        Some(stop) => pass.stopped(stop),
        None => {
            pass.judge();
            pass.wanted();
        }
    }
    pass.trim();
    pass.decided
}

/// Whether what answers is what the spec asks for, and nothing else is known to be asked for: as far as anybody knows without asking a
/// registry, nothing is left to do.
#[must_use]
pub fn is_current(policy: &Validated<'_>) -> bool {
    let pass = Pass::new(policy);
    pass.is_current() && pass.before.candidate.is_none()
}

/// What one question may cost, in words.
#[must_use]
pub fn effective(cost: Cost) -> EffectiveLimits {
    EffectiveLimits { timeout: format!("{}ms", cost.timeout.as_millis()), memory: format!("{}Mi", cost.memory >> 20) }
}

impl Decided {
    /// Why the revision in force fails, where the breaker speaks of it and nothing could take its place.
    #[must_use]
    pub fn failing<'a>(&self, policy: &Validated<'a>) -> Option<&'a Tripped> {
        policy.snapshot.tripped.as_ref().filter(|tripped| !policy.asked && self.is_of(tripped))
    }

    /// Whether the remote plugin that the spec names is the revision in force. It tells by itself, so no look is needed.
    #[must_use]
    pub fn is_plugin(&self, policy: &Validated<'_>) -> bool {
        policy.plugin_digest.is_some() && self.active.as_ref().map(|active| &active.layer_digest) == policy.plugin_digest.as_ref()
    }

    /// Whether the breaker speaks of the revision in force.
    fn is_of(&self, tripped: &Tripped) -> bool {
        self.active.as_ref().is_some_and(|active| is(active, &tripped.layer_digest, &tripped.settings_digest))
    }
}

/// One decision on its way.
struct Pass<'a> {
    policy: &'a Validated<'a>,
    before: Before,
    decided: Decided,
}

impl<'a> Pass<'a> {
    fn new(policy: &'a Validated<'a>) -> Self {
        let status = policy.snapshot.policy.status.clone().unwrap_or_default();
        let decided = Decided {
            active: status.active,
            history: status.history.unwrap_or_default(),
            candidate: None,
            standing: Standing::InForce,
            swaps: Vec::new(),
        };
        Self { policy, before: Before::of(policy), decided }
    }

    fn stopped(&mut self, stop: &Stop) {
        match stop {
            Stop::NotServed(..) => self.retire(),
            // What was known is still so when the pause ends.
            Stop::Paused => self.decided.candidate.clone_from(&self.before.candidate),
            Stop::Deleting => {}
        }
        self.decided.standing = Standing::Stopped(stop.clone());
    }

    /// What the spec asks for.
    fn wanted(&mut self) {
        if let Some(failure) = &self.policy.unusable {
            return self.failed(failure, &Found::default());
        }
        if self.policy.plugin_digest.is_some() && self.is_current() {
            // The plugin itself says so: nothing has to be looked up.
            return;
        }
        match &self.policy.snapshot.work {
            Work::None => self.on_its_way(Step::Resolved, &Found::default()),
            Work::Busy { next, found } => self.on_its_way(*next, found),
            Work::Failed { failure, found } => self.failed(failure, found),
            Work::Ready { found, impact, findings: _ } => self.ready(found, *impact),
        }
    }

    /// Whether the spec's words ask for what answers. A tag may lead elsewhere by now.
    fn is_current(&self) -> bool {
        // A plugin is what it says it is now, and nobody asks for what it was before. While it is away nothing else is known.
        let is_it = |active: &Revision| self.policy.plugin_digest.as_ref().is_none_or(|digest| active.layer_digest == *digest);
        self.decided.active.as_ref().is_some_and(|active| asks_for(self.policy, active) && is_it(active))
    }

    /// Whether what was found may be something else than what answers.
    fn is_news(&self, found: &Found) -> bool {
        let active = self.decided.active.as_ref();
        let layer = found.layer_digest.as_ref().is_some_and(|layer| active.is_none_or(|a| a.layer_digest != *layer));
        let manifest = found.manifest_digest.is_some() && active.is_none_or(|a| a.manifest_digest != found.manifest_digest);
        layer || (manifest && found.layer_digest.is_none())
    }

    /// Nothing is known yet of what the spec asks for: as it stood, it stands, unless somebody wants to see a fresh look. A look at the tag
    /// of what answers changes nothing either, until it is known where it leads.
    fn on_its_way(&mut self, next: Step, found: &Found) {
        let stands = !self.policy.asked && self.stands(next, found);
        if stands || (self.is_current() && self.before.candidate.is_none()) {
            return;
        }
        self.comes(next, found);
    }

    fn comes(&mut self, next: Step, found: &Found) {
        self.decided.candidate = Some(self.seen(found));
        self.decided.standing = Standing::Coming(next);
    }

    /// What is known of the candidate.
    fn seen(&self, found: &Found) -> Candidate {
        match self.before.known(found).filter(|_| found.layer_digest.is_none()) {
            Some(known) => Candidate { approve: self.waiting(known).map(|wait| wait.approve), ..known.clone() },
            None => candidate(self.policy, found, None),
        }
    }

    fn failed(&mut self, failure: &Failure, found: &Found) {
        // A look that tells nothing new makes what is known no less so.
        if failure.step == Step::Resolved && (self.stands(Step::Verified, found) || self.went_back(failure, found)) {
            return;
        }
        let harmless = failure.step == Step::Resolved && self.is_current() && self.before.candidate.is_none() && !self.is_news(found);
        if !harmless {
            self.decided.candidate = Some(self.seen(found));
        }
        self.decided.standing = Standing::Failed { failure: failure.clone(), harmless };
    }

    /// A candidate that has passed every step.
    fn ready(&mut self, found: &Found, impact: Option<Impact>) {
        let policy = self.policy;
        let Some(layer) = found.layer_digest.as_deref() else { return self.on_its_way(Step::Resolved, found) };
        if policy.plugin_digest.as_ref().is_some_and(|digest| digest != layer) {
            // It was another one when it was tried.
            return self.on_its_way(Step::Resolved, &Found::default());
        }
        if policy.image().is_some() && found.verification.as_deref() != policy.verification() {
            // Other signatures are wanted by now than those that were looked for. Who asked is not answered by that.
            return if policy.asked && self.is_news(found) {
                self.comes(Step::Verified, found)
            } else {
                self.on_its_way(Step::Verified, found)
            };
        }
        if let Some(active) = self.decided.active.as_mut().filter(|active| is(active, layer, &policy.settings_digest)) {
            // The same component, whatever its name: nothing changes for anybody.
            let since = active.since.clone();
            *active = Revision { since, ..revision(policy, found, layer) };
            return;
        }
        if self.has_failed(layer) && !policy.asked {
            self.decided.candidate = Some(candidate(policy, found, impact));
            self.decided.standing = Standing::RolledBack(layer.to_owned());
        } else if let Some(wait) = self.wait(layer) {
            // The look is answered with this pass, and the wait outlasts it: what failed must not stand as failed again with the next one.
            self.forgive(layer);
            self.decided.candidate = Some(Candidate { approve: Some(wait.approve.clone()), ..candidate(policy, found, impact) });
            self.decided.standing = Standing::Waiting(wait);
        } else {
            self.activate(revision(policy, found, layer));
        }
    }
}

/// Whether it is this component with these settings.
fn is(revision: &Revision, layer: &str, settings: &str) -> bool {
    revision.layer_digest == layer && revision.settings_digest == settings
}

/// Whether the spec asks for this revision, as far as its words tell.
fn asks_for(policy: &Validated<'_>, revision: &Revision) -> bool {
    revision.settings_digest == policy.settings_digest
        && revision.image.as_deref() == policy.image()
        && revision.verification.as_deref() == policy.verification()
}

/// What takes over. Its image is what the spec says, so that the spec can be compared with it.
fn revision(policy: &Validated<'_>, found: &Found, layer: &str) -> Revision {
    Revision {
        image: policy.image().map(String::from),
        manifest_digest: found.manifest_digest.clone(),
        layer_digest: layer.to_owned(),
        settings_digest: policy.settings_digest.clone(),
        signer: found.signer.clone(),
        version: found.version.clone().or_else(|| tag(policy, found)),
        verification: policy.verification().map(String::from),
        limits: Some(effective(policy.cost)),
        settings: Some(policy.settings.clone()),
        since: Some(Time(policy.snapshot.now)),
        reason: None,
    }
}

/// Where a range chooses the tag, the tag is the version.
fn tag(policy: &Validated<'_>, found: &Found) -> Option<String> {
    match policy.origin {
        Some(Origin::Oci(oci)) if oci.semver.is_some() => {}
        Some(Origin::Oci(_) | Origin::Builtin | Origin::Remote(_)) | None => return None,
    }
    let reference = found.image.as_deref()?;
    let reference = reference.split_once('@').map_or(reference, |(reference, _)| reference);
    let (_, tag) = reference.rsplit_once(':')?;
    (!tag.contains('/')).then(|| tag.to_owned())
}

fn candidate(policy: &Validated<'_>, found: &Found, impact: Option<Impact>) -> Candidate {
    Candidate {
        image: policy.image().map(String::from),
        manifest_digest: found.manifest_digest.clone(),
        layer_digest: found.layer_digest.clone(),
        settings_digest: Some(policy.settings_digest.clone()),
        signer: found.signer.clone(),
        approve: None,
        impact,
    }
}
