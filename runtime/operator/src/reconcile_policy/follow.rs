//! Every replica runs what the status says: the leader that wrote it, and standbys, so that they need not compile when they lead.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{mpsc::UnboundedSender, watch},
    task::JoinHandle,
};
use weir_api::reconcile_policy::{Mode, ReconcilePolicy, Revision as Recorded};
use weir_core::{
    policy::selection::Entry,
    reconcile_policy::{
        Snapshot,
        decide::SUPERSEDED,
        snapshot::{Failure, Reach, Step, Work},
        validate::{Cost, recorded_cost, remote, validate},
    },
};

use super::{
    demand::{Demand, Source, limits},
    steps::Workshop,
    works::Works,
};
use crate::{
    cache::Key,
    clock::Clock,
    health::Health,
    metrics::InForce,
    policies::{Beside, Body, Recipe, Revision, RevisionId, Service, Shadow},
};

/// Waits between tries to load what is in force.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// Why a revision in force does not run in the first moments of a process.
const LOADING: &str = "the revision in force is being loaded";

/// Brings what runs in line with what statuses say.
pub struct Follower {
    workshop: Arc<Workshop>,
    works: Arc<Works>,
    clock: Clock,
    health: Health,
    operator_namespace: String,
    tenants: bool,
    table: Mutex<HashMap<Key, Loading>>,
    /// Policies that have not been tried to be loaded even once.
    untried: watch::Sender<usize>,
    /// Told of each policy for which something else runs now.
    changed: UnboundedSender<Key>,
    /// What all shadows share.
    beside: Beside,
}

struct Loading {
    id: RevisionId,
    problem: Option<String>,
    task: JoinHandle<()>,
}

impl Drop for Loading {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What a follower is set up with.
pub struct Setup {
    /// Tools.
    pub workshop: Arc<Workshop>,
    /// What candidates have come to.
    pub works: Arc<Works>,
    /// Time.
    pub clock: Clock,
    /// Told what runs.
    pub health: Health,
    /// The operator's own namespace.
    pub operator_namespace: String,
    /// Whether policies of other namespaces count.
    pub tenants: bool,
    /// What all shadows share.
    pub beside: Beside,
}

impl Follower {
    /// `changed` is told of each policy for which something else runs now.
    pub fn new(setup: Setup, changed: UnboundedSender<Key>) -> Self {
        let Setup { workshop, works, clock, health, operator_namespace, tenants, beside } = setup;
        let table = Mutex::default();
        Self { workshop, works, clock, health, operator_namespace, tenants, table, untried: watch::Sender::new(0), changed, beside }
    }

    fn table(&self) -> MutexGuard<'_, HashMap<Key, Loading>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until every revision in force was tried to be loaded, so that the first passes do not report what is over in a moment.
    pub async fn settled(&self, most: Duration) {
        let mut untried = self.untried.subscribe();
        // The sender lives here: waiting cannot fail.
        let _ = tokio::time::timeout(most, untried.wait_for(|n| *n == 0)).await;
    }

    /// Why the revision in force does not run.
    pub fn problem(&self, policy: &Key) -> Option<String> {
        let service = self.workshop.book.get(policy)?;
        let why = service.running.err()?;
        Some(self.table().get(policy).and_then(|loading| loading.problem.clone()).unwrap_or(why))
    }

    /// A policy as it stands now.
    pub fn follow(self: &Arc<Self>, policy: &ReconcilePolicy) {
        let key = Key::of(&policy.metadata);
        let active = policy.status.as_ref().and_then(|status| status.active.as_ref());
        let (Some(active), Ok(entry)) = (active, Entry::new(policy, true)) else {
            return self.set(&key, None);
        };
        let slot = entry.slot;
        let id = |revision: &Recorded| RevisionId {
            policy: key.clone(),
            slot,
            layer: revision.layer_digest.clone(),
            settings: revision.settings_digest.clone(),
        };
        self.keep(&key, policy, &id);
        let service = |running: Result<Arc<Revision>, String>| Service {
            entry: entry.clone(),
            on_failure: policy.spec.on_failure.unwrap_or_default(),
            id: id(active),
            shadow: running.as_ref().ok().and_then(|revision| self.shadow(&key, entry.mode, revision)),
            running,
        };
        if let Some(revision) = self.workshop.revisions.get(&id(active)) {
            self.table().remove(&key);
            revision.follows(self.previous(policy, &id).as_deref());
            return self.set(&key, Some(service(Ok(revision))));
        }
        let mut table = self.table();
        if table.get(&key).is_none_or(|loading| loading.id != id(active)) {
            self.untried.send_modify(|n| *n = n.saturating_add(1));
            let task = tokio::spawn(Arc::clone(self).load(policy.clone(), active.clone(), id(active)));
            table.insert(key.clone(), Loading { id: id(active), problem: None, task });
        }
        drop(table);
        self.set(&key, Some(service(Err(LOADING.into()))));
    }

    /// The policy is gone.
    pub fn forget(&self, key: &Key) {
        self.table().remove(key);
        self.workshop.revisions.keep(key, &HashSet::new());
        self.workshop.revisions.breakers.forget(key);
        self.set(key, None);
    }

    /// A shadow that is at work already stays at it.
    fn shadow(&self, key: &Key, mode: Mode, revision: &Revision) -> Option<Arc<Shadow>> {
        if mode == Mode::Enforce {
            return None;
        }
        let known = self.workshop.book.get(key).filter(|service| service.id == revision.id).and_then(|service| service.shadow);
        known.or_else(|| Shadow::of(revision, &self.beside).map(Arc::new))
    }

    fn set(&self, key: &Key, service: Option<Service>) {
        if self.workshop.book.set(key, service) {
            self.report();
            // The receiver lives as long as passes do.
            let _ = self.changed.send(key.clone());
        }
    }

    /// For probes and metrics.
    fn report(&self) {
        let line = |service: &Service| {
            let word = match &service.running {
                Ok(_) => format!("ok: {}", service.id.layer),
                Err(why) => format!("not ok: {}: {why}", service.id.layer),
            };
            (format!("{} {}", service.id.slot, service.id.policy), word)
        };
        let lines: BTreeMap<String, String> = self.workshop.book.all().iter().map(line).collect();
        self.health.reconcile_policies(lines);
        let in_force = |service: Service| {
            let (id, runs) = (service.id, service.running.is_ok());
            (id.policy, InForce { slot: id.slot, digest: id.layer, runs })
        };
        self.workshop.metrics.policies.in_force(self.workshop.book.all().into_iter().map(in_force).collect());
    }

    /// Loaded revisions that may be needed: the one in force, former ones, and what waits.
    fn keep(&self, key: &Key, policy: &ReconcilePolicy, id: &impl Fn(&Recorded) -> RevisionId) {
        let status = policy.status.clone().unwrap_or_default();
        let recorded = status.active.iter().chain(status.history.iter().flatten());
        let mut keep: HashSet<RevisionId> = recorded.map(id).collect();
        keep.extend(self.works.ready(key));
        self.workshop.revisions.keep(key, &keep);
        let layers: BTreeSet<String> =
            self.workshop.book.all().into_iter().map(|service| service.id.layer).chain(keep.into_iter().map(|id| id.layer)).collect();
        self.workshop.sources.pin(&layers);
    }

    fn previous(&self, policy: &ReconcilePolicy, id: &impl Fn(&Recorded) -> RevisionId) -> Option<Arc<Revision>> {
        let former = policy.status.iter().flat_map(|status| status.history.iter().flatten());
        let mut good = former.filter(|revision| revision.reason.as_deref() == Some(SUPERSEDED));
        good.find_map(|revision| self.workshop.revisions.get(&id(revision)))
    }

    /// Loads what the status says, and tries again until it can.
    async fn load(self: Arc<Self>, policy: ReconcilePolicy, revision: Recorded, id: RevisionId) {
        let mut wait = FIRST_WAIT;
        let mut first = Some(Untried(&self.untried));
        loop {
            let loaded = self.try_load(&policy, &revision, &id).await;
            drop(first.take());
            match loaded {
                Ok(()) => {
                    tracing::info!(policy = %id.policy, layer = id.layer, "the revision in force is loaded");
                    let _ = self.changed.send(id.policy.clone());
                    return;
                }
                Err(failure) => {
                    tracing::warn!(policy = %id.policy, layer = id.layer, message = failure.message, "the revision in force is not loaded");
                    if let Some(loading) = self.table().get_mut(&id.policy).filter(|loading| loading.id == id) {
                        loading.problem = Some(format!("the revision in force is not loaded, so last answers stay: {}", failure.message));
                    }
                    let _ = self.changed.send(id.policy.clone());
                }
            }
            tokio::time::sleep(wait).await;
            wait = wait.saturating_mul(2).min(LONGEST_WAIT);
        }
    }

    async fn try_load(&self, policy: &ReconcilePolicy, revision: &Recorded, id: &RevisionId) -> Result<(), Failure> {
        if let Some(plugin) = remote(revision) {
            let registry = Arc::clone(&self.workshop.remote.registry);
            let body = Body::Remote { registry, plugin: plugin.to_owned(), check: false };
            return self.workshop.load_recorded(recipe(id, revision, body)).await;
        }
        let snapshot = self.bare_snapshot(policy);
        let validated = validate(&snapshot);
        let demand = Demand::of(&validated, false).ok_or_else(|| Failure {
            step: Step::Resolved,
            reason: "NotSupported".into(),
            message: "its source is not served".into(),
            transient: false,
        })?;
        let body = match (&demand.source, &revision.image) {
            (Source::Oci(oci), Some(_)) => Body::Component(self.workshop.sources.revision(&demand, oci, revision).await?),
            // A former source may have been a registry that the spec does not name any more.
            (Source::Builtin | Source::Remote { .. }, Some(_)) => {
                Body::Component(self.workshop.sources.revision(&demand, &Default::default(), revision).await?)
            }
            (_, None) => Body::Builtin,
        };
        self.workshop.load_recorded(recipe(id, revision, body)).await
    }

    /// Enough of a snapshot to read a spec.
    fn bare_snapshot(&self, policy: &ReconcilePolicy) -> Snapshot {
        Snapshot {
            now: self.clock.now(),
            policy: policy.clone(),
            operator_namespace: self.operator_namespace.clone(),
            tenants: self.tenants,
            work: Work::None,
            verification: None,
            plugin: None,
            tripped: None,
            not_running: None,
            reach: Reach::default(),
            shadow: None,
        }
    }
}

/// What a record says, with what it is made of.
fn recipe(id: &RevisionId, revision: &Recorded, body: Body) -> Recipe {
    let cost: Cost = recorded_cost(revision);
    Recipe {
        id: id.clone(),
        body,
        source: revision.image.clone().unwrap_or_else(|| "builtin".into()),
        settings: revision.settings.clone().unwrap_or_default(),
        limits: limits(cost),
    }
}

/// One less when it is dropped, however its task ends.
struct Untried<'a>(&'a watch::Sender<usize>);

impl Drop for Untried<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|n| *n = n.saturating_sub(1));
    }
}
