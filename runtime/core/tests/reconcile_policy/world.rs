//! An object and what the shell does around a pass: it carries the status back, and each pass has to be at rest when it is run again.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};
use weir_api::{
    condition::Condition,
    keys,
    reconcile_policy::{Impact, ReconcilePolicySpec, ReconcilePolicyStatus, Revision, Rollout, Strategy},
};
use weir_core::{
    plan::{Change, Plan},
    policy::{Finding, Severity},
    reconcile_policy::{
        reconcile,
        snapshot::{Failure, Found, Reach, Snapshot, Step, Tripped, Work},
        validate,
    },
};

pub(crate) type Status = ReconcilePolicyStatus;

pub(crate) const STEPS: [Step; 5] = [Step::Resolved, Step::Verified, Step::Compatible, Step::SettingsValid, Step::Answers];
pub(crate) const IMAGE: &str = "registry.example/env:1";
pub(crate) const NOW: &str = "2026-01-01T00:00:00.123456Z";

#[derive(Clone)]
pub(crate) struct World {
    pub(crate) snapshot: Snapshot,
}

/// A component and the manifest it was published with.
pub(crate) fn found(layer: &str) -> Found {
    Found {
        image: Some(IMAGE.into()),
        manifest_digest: Some(format!("sha256:manifest-of-{layer}")),
        layer_digest: Some(layer.into()),
        ..Found::default()
    }
}

pub(crate) fn finding(path: &str, message: &str) -> Finding {
    Finding { severity: Severity::Warning, code: "Odd".into(), path: path.into(), message: message.into() }
}

impl World {
    pub(crate) fn new() -> Self {
        let policy = json!({
            "apiVersion": "weir.dev/v1alpha1", "kind": "ReconcilePolicy",
            "metadata": {"name": "env", "namespace": "weir-system", "uid": "uid-1", "generation": 1},
            "spec": {"slot": "KonnectEnv", "source": {"oci": {"image": IMAGE}}, "settings": {"region": "eu"}},
        });
        let snapshot = Snapshot {
            now: NOW.parse().unwrap(),
            policy: serde_json::from_value(policy).unwrap(),
            operator_namespace: "weir-system".into(),
            tenants: false,
            work: Work::None,
            verification: None,
            plugin: None,
            tripped: None,
            not_running: None,
            reach: Reach { objects: 7, ..Reach::default() },
            shadow: None,
        };
        Self { snapshot }
    }

    /// A world in which this component answers.
    pub(crate) fn with(layer: &str) -> Self {
        let mut world = Self::new();
        world.publish(layer);
        assert_eq!(world.active(), layer);
        world
    }

    /// Several, one after the other, by one tag: the last one answers.
    pub(crate) fn with_all(layers: &[&str]) -> Self {
        let mut world = Self::with(layers[0]);
        layers.iter().skip(1).for_each(|layer| drop(world.publish(layer)));
        world
    }

    /// A world of which a person has to be asked.
    pub(crate) fn manual() -> Self {
        let mut world = Self::new();
        world.snapshot.policy.spec.rollout = Some(Rollout { strategy: Some(Strategy::Manual), ..Rollout::default() });
        world
    }

    /// Somebody changes the spec: the shell begins anew.
    pub(crate) fn edit(&mut self, change: impl FnOnce(&mut ReconcilePolicySpec)) {
        change(&mut self.snapshot.policy.spec);
        self.snapshot.policy.metadata.generation = self.snapshot.policy.metadata.generation.map(|g| g + 1);
        self.snapshot.work = Work::None;
    }

    pub(crate) fn image(&mut self, image: &str) {
        self.edit(|spec| spec.source.oci.as_mut().unwrap().image = image.into());
    }

    pub(crate) fn settings(&mut self, settings: Value) {
        self.edit(|spec| spec.settings = Some(settings));
    }

    pub(crate) fn history_limit(&mut self, limit: i32) {
        self.edit(|spec| spec.rollout.get_or_insert_default().history_limit = Some(limit));
    }

    pub(crate) fn annotate(&mut self, key: &str, value: &str) {
        self.snapshot.policy.metadata.annotations.get_or_insert_default().insert(key.into(), value.into());
    }

    /// Somebody asks for a fresh look: the shell begins anew and closes the breaker.
    pub(crate) fn check(&mut self, value: &str) {
        self.annotate(keys::CHECK_AT, value);
        (self.snapshot.work, self.snapshot.tripped) = (Work::None, None);
    }

    /// The operator is started anew.
    pub(crate) fn restart(&mut self) {
        (self.snapshot.work, self.snapshot.tripped) = (Work::None, None);
    }

    /// Every step of this component is done.
    pub(crate) fn publish(&mut self, layer: &str) -> Plan<Status> {
        self.ready(Found { verification: self.snapshot.verification.clone(), ..found(layer) })
    }

    pub(crate) fn ready(&mut self, found: Found) -> Plan<Status> {
        self.ready_with(found, Vec::new(), None)
    }

    pub(crate) fn ready_with(&mut self, found: Found, findings: Vec<Finding>, impact: Option<Impact>) -> Plan<Status> {
        self.snapshot.work = Work::Ready { found, findings, impact };
        self.pass()
    }

    pub(crate) fn busy(&mut self, next: Step, found: Found) -> Plan<Status> {
        self.snapshot.work = Work::Busy { next, found };
        self.pass()
    }

    pub(crate) fn fail(&mut self, step: Step, transient: bool, found: Found) -> Plan<Status> {
        let failure = Failure { step, reason: format!("Not{step:?}"), message: format!("{step:?} went wrong"), transient };
        self.snapshot.work = Work::Failed { failure, found };
        self.pass()
    }

    /// The revision in force fails in use.
    pub(crate) fn trip(&mut self) -> Plan<Status> {
        let active = self.revision();
        self.snapshot.tripped = Some(Tripped {
            layer_digest: active.layer_digest,
            settings_digest: active.settings_digest,
            reason: "Trap".into(),
            message: "3 of 7 objects got no answer: unreachable".into(),
        });
        self.pass()
    }

    /// A pass whose effects are carried out. Whatever it was about: the next one over the same things wants nothing.
    pub(crate) fn pass(&mut self) -> Plan<Status> {
        let plan = reconcile(&self.snapshot);
        self.carry_out(&plan);
        if plan.status.is_some() {
            self.is_consistent();
        }
        self.later();
        let again = reconcile(&self.snapshot);
        assert_eq!(again.status, plan.status.as_ref().and(self.snapshot.policy.status.clone()), "at rest");
        assert_eq!((again.status_changed, again.events, again.changes), (false, vec![], vec![]), "{:?}", self.snapshot.work);
        plan
    }

    fn later(&mut self) {
        self.snapshot.now = self.snapshot.now.checked_add(SignedDuration::from_secs(61)).unwrap();
    }

    fn carry_out(&mut self, plan: &Plan<Status>) {
        for change in &plan.changes {
            let Change::SetAnnotation { key, value } = change else { panic!("no policy needs {change:?}") };
            self.annotate(key, value);
            // What somebody asks for again has closed the breaker before this pass.
            self.snapshot.tripped = None;
        }
        if let Some(status) = &plan.status {
            let id = |status: &Status| status.active.as_ref().map(|a| (a.layer_digest.clone(), a.settings_digest.clone()));
            // Each revision has a breaker of its own, and the shell tells of the one in force.
            if self.snapshot.policy.status.as_ref().and_then(id) != id(status) {
                self.snapshot.tripped = None;
            }
            // As an API server gives it back.
            self.snapshot.policy.status = Some(serde_json::from_value(serde_json::to_value(status).unwrap()).unwrap());
        }
    }

    /// What every status keeps (kstatus): never on its way and stuck at once, ready only when neither, and always about this spec.
    fn is_consistent(&self) {
        let status = self.status();
        let generation = self.snapshot.policy.metadata.generation;
        let conditions = status.conditions.as_deref().unwrap_or_default();
        let flag = |type_: &str| conditions.iter().any(|c| c.type_ == type_ && c.status == "True");
        let (ready, reconciling, stalled) = (flag("Ready"), flag("Reconciling"), flag("Stalled"));
        assert_eq!(usize::from(ready) + usize::from(reconciling) + usize::from(stalled), 1, "{conditions:?}");
        assert!(conditions.iter().filter(|c| c.type_ == "Reconciling" || c.type_ == "Stalled").all(|c| c.status == "True"));
        assert!(conditions.iter().any(|c| c.type_ == "Active") && conditions.len() <= 9);
        assert_eq!(status.observed_generation, generation);
        assert!(conditions.iter().all(|c| c.observed_generation == generation && !c.reason.is_empty()), "{conditions:?}");
        let history = status.history.as_deref().unwrap_or_default();
        assert!(history.len() <= validate(&self.snapshot).history);
        assert!(history.iter().all(|former| former.reason.is_some()) && status.active.as_ref().is_none_or(|a| a.reason.is_none()));
        let all: Vec<_> = history.iter().chain(&status.active).map(|r| (&r.layer_digest, &r.settings_digest)).collect();
        assert!(all.iter().enumerate().all(|(place, revision)| !all[..place].contains(revision)), "{all:?}");
    }

    pub(crate) fn status(&self) -> Status {
        self.snapshot.policy.status.clone().unwrap_or_default()
    }

    pub(crate) fn revision(&self) -> Revision {
        self.status().active.unwrap()
    }

    /// Layer of what answers; nothing where nobody does.
    pub(crate) fn active(&self) -> String {
        self.status().active.map(|active| active.layer_digest).unwrap_or_default()
    }

    /// Layers of former revisions, and why they do not answer.
    pub(crate) fn history(&self) -> Vec<(String, String)> {
        let history = self.status().history.unwrap_or_default();
        history.into_iter().map(|former| (former.layer_digest, former.reason.unwrap_or_default())).collect()
    }

    pub(crate) fn condition(&self, type_: &str) -> Option<Condition> {
        self.status().conditions.into_iter().flatten().find(|c| c.type_ == type_)
    }

    /// Status, reason and message of a condition.
    pub(crate) fn said(&self, type_: &str) -> (String, String, String) {
        self.condition(type_).map(|c| (c.status, c.reason, c.message)).unwrap_or_default()
    }

    /// Status and reason of a condition.
    pub(crate) fn is(&self, type_: &str) -> (String, String) {
        let (status, reason, _) = self.said(type_);
        (status, reason)
    }

    /// The health in one word, with its reason.
    pub(crate) fn health(&self) -> String {
        let found = ["Ready", "Reconciling", "Stalled"].into_iter().find(|type_| self.is(type_).0 == "True").unwrap();
        format!("{found}/{}", self.is(found).1)
    }

    /// The steps that have a condition, in order, with their status.
    pub(crate) fn steps(&self) -> Vec<(String, String)> {
        let conditions = self.status().conditions.unwrap_or_default();
        let is_step = |c: &&Condition| ["Resolved", "Verified", "Compatible", "SettingsValid"].contains(&c.type_.as_str());
        conditions.iter().filter(is_step).map(|c| (c.type_.clone(), c.status.clone())).collect()
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.snapshot.now
    }

    pub(crate) fn settings_digest(&self) -> String {
        validate(&self.snapshot).settings_digest
    }

    pub(crate) fn annotation(&self, key: &str) -> Option<String> {
        self.snapshot.policy.metadata.annotations.as_ref()?.get(key).cloned()
    }
}

/// Reasons of the events.
pub(crate) fn events(plan: &Plan<Status>) -> Vec<&str> {
    plan.events.iter().map(|event| event.reason.as_str()).collect()
}

/// A time as a status has it: in whole seconds.
pub(crate) fn seconds(time: Timestamp) -> Time {
    serde_json::from_value(serde_json::to_value(Time(time)).unwrap()).unwrap()
}

pub(crate) fn words(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
}

pub(crate) fn pair(a: &str, b: &str) -> (String, String) {
    (a.into(), b.into())
}
