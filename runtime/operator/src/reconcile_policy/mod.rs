//! ReconcilePolicy: from a component in a registry to the one that answers, and back. What is decided is decided in the core; here it is
//! fetched, verified, compiled, tried, and run.

mod demand;
mod fetch;
mod follow;
mod gather;
mod signatures;
mod steps;
pub mod watches;
mod works;

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use kube::Resource;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tracing::Instrument;
use weir_api::reconcile_policy::{ReconcilePolicy, ReconcilePolicyStatus, Strategy};
use weir_core::{
    events::Event,
    plan::Plan,
    reconcile_policy::{decide::ROLLED_BACK, plan::ACTIVATED, reconcile},
};
use weir_host::oci::Store;

pub(crate) use self::gather::place;
use self::{
    fetch::Sources,
    follow::{Follower, Setup},
    steps::Workshop,
    works::Works,
};
use crate::{
    apply::Patched,
    cache::Key,
    clock::Clock,
    context::Context,
    health::Health,
    memory::Memory,
    metrics::{ErrorReason, Kind, Metrics, ObjectKind, Outcome, Swap},
    plugin_installation::Looks,
    policies::{Beside, Book, Breakers, Revisions},
    queue::{Next, Queue},
    registries::Live,
    remote::Remote,
    world::World,
};

/// What passes over policies and over everything else share.
pub struct Shared {
    /// What is looked at next.
    pub queue: Queue,
    /// What is remembered between passes.
    pub memory: Memory,
    /// When tags were last looked up.
    pub looks: Looks,
    /// Candidates.
    pub works: Arc<Works>,
    /// What runs.
    pub follower: Arc<Follower>,
    /// Loaded revisions.
    pub revisions: Arc<Revisions>,
    /// Who answers.
    pub book: Arc<Book>,
    /// Policies whose work ended, whose breaker opened, or for which something else runs.
    news: Mutex<Option<News>>,
}

struct News {
    ended: UnboundedReceiver<Key>,
    changed: UnboundedReceiver<Key>,
}

/// What [`Shared::new`] is made of.
pub struct Parts {
    /// Who answers.
    pub book: Arc<Book>,
    /// Loaded revisions.
    pub revisions: Arc<Revisions>,
    /// Told of policies whose work ended or whose breaker opened.
    pub ended: (UnboundedSender<Key>, UnboundedReceiver<Key>),
    /// Registries.
    pub sources: Sources,
    /// Told of what takes over.
    pub metrics: Arc<Metrics>,
    /// Caches.
    pub world: Arc<World>,
    /// Time.
    pub clock: Clock,
    /// Told what runs.
    pub health: Health,
    /// The operator's own namespace.
    pub operator_namespace: String,
    /// Whether policies of other namespaces count.
    pub tenants: bool,
    /// Remote plugins.
    pub remote: Arc<Remote>,
}

/// Where components come from.
pub fn sources(client: kube::Client, live: Arc<Live>, store: Option<Store>) -> Sources {
    Sources::new(client, live, store)
}

/// The breakers, and where they and work tell of their ends.
pub fn breakers(clock: Clock, metrics: Arc<Metrics>) -> (Arc<Breakers>, (UnboundedSender<Key>, UnboundedReceiver<Key>)) {
    let (sender, receiver) = unbounded_channel();
    (Arc::new(Breakers::new(clock, metrics, sender.clone())), (sender, receiver))
}

impl Shared {
    /// Nothing runs yet.
    pub fn new(parts: Parts) -> Self {
        let Parts { book, revisions, ended, sources, metrics, world, clock, health, operator_namespace, tenants, remote } = parts;
        let (ended_sender, ended) = ended;
        let (changed_sender, changed) = unbounded_channel();
        let beside = Beside::new(ended_sender.clone(), metrics.shadows.clone());
        let workshop = Arc::new(Workshop { sources, metrics, revisions: Arc::clone(&revisions), book: Arc::clone(&book), world, remote });
        let works = Arc::new(Works::new(Arc::clone(&workshop), ended_sender));
        let setup = Setup { workshop, works: Arc::clone(&works), clock, health, operator_namespace, tenants, beside };
        Self {
            queue: Queue::default(),
            memory: Memory::default(),
            looks: Looks::default(),
            works,
            follower: Arc::new(Follower::new(setup, changed_sender)),
            revisions,
            book,
            news: Mutex::new(Some(News { ended, changed })),
        }
    }
}

/// Passes on what happens to policies, on every replica: what is loaded by now runs. Queues of a standby are closed. Only the first call
/// does anything.
pub async fn news(context: Arc<Context>) {
    let shared = &context.policies;
    let news = shared.news.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(mut news) = news else { return };
    loop {
        tokio::select! {
            Some(key) = news.ended.recv() => shared.queue.now(key),
            Some(key) = news.changed.recv() => {
                if let Some(policy) = context.world.policies.get(&key) {
                    shared.follower.follow(&policy);
                }
                context.all_installations();
                context.all_data_planes();
                shared.queue.changed(key);
            }
            else => return,
        }
    }
}

/// One pass.
pub async fn pass(context: Arc<Context>, key: Key) -> Next {
    let begun = Instant::now();
    let Some(policy) = context.world.policies.get(&key) else {
        context.policies.memory.forget(&key);
        context.policies.queue.forget(&key);
        context.policies.looks.forget(&key);
        context.policies.works.forget(&key);
        return Next::Done;
    };
    let span = tracing::info_span!("reconcile", kind = "ReconcilePolicy", namespace = key.namespace, name = key.name);
    let (outcome, next) = look(&context, &key, &policy).instrument(span).await;
    context.metrics.reconciled(Kind::ReconcilePolicy, outcome, begun.elapsed());
    next
}

async fn look(context: &Arc<Context>, key: &Key, policy: &ReconcilePolicy) -> (Outcome, Next) {
    let gather::Seen { snapshot, after } = gather::look(context, key, policy).await;
    let mut plan = reconcile(&snapshot);
    let unusable = context.registries.findings(key.namespace == context.settings.namespace);
    plan.events.extend(unusable.iter().filter_map(Event::of_finding));
    plan.findings.extend(unusable);
    let next = after.map_or(Next::Done, Next::After);
    match write(context, key, policy, &plan).await {
        Patched::Done => {
            publish(context, key, policy, plan);
            (Outcome::Done, next)
        }
        Patched::Gone => (Outcome::Done, Next::Done),
        Patched::Stale => (Outcome::Done, Next::BackOff),
        Patched::Failed(error) => {
            context.metrics.failed(Kind::ReconcilePolicy, ErrorReason::of(&error));
            tracing::warn!(%error, "a write to a ReconcilePolicy failed");
            (Outcome::Failed, Next::BackOff)
        }
    }
}

/// The status first: what takes over is what it says.
async fn write(context: &Arc<Context>, key: &Key, policy: &ReconcilePolicy, plan: &Plan<ReconcilePolicyStatus>) -> Patched {
    let cache = &context.world.policies;
    if let Some(status) = plan.status.as_ref().filter(|_| plan.status_changed) {
        match context.writer.status(ObjectKind::ReconcilePolicy, cache, policy, policy.status.as_ref(), status).await {
            Patched::Done => {
                count(context, key, policy, plan);
                context.policies.follower.follow(&ReconcilePolicy { status: Some(status.clone()), ..policy.clone() });
            }
            other @ (Patched::Stale | Patched::Gone | Patched::Failed(_)) => return other,
        }
    }
    let current = cache.get(key).unwrap_or_else(|| Arc::new(policy.clone()));
    context.writer.object(ObjectKind::ReconcilePolicy, cache, &current, &plan.changes).await
}

/// What took over, once it is written down.
fn count(context: &Context, key: &Key, policy: &ReconcilePolicy, plan: &Plan<ReconcilePolicyStatus>) {
    let slot = weir_core::policy::SlotName::of(policy.spec.slot);
    for event in &plan.events {
        if event.reason == ROLLED_BACK {
            context.metrics.policies.swapped(slot, Swap::RolledBack);
        } else if event.reason == ACTIVATED {
            context.metrics.policies.swapped(slot, Swap::Activated);
            let waits = policy.spec.rollout.as_ref().is_some_and(|rollout| rollout.strategy == Some(Strategy::Manual));
            // How long a person thinks about it says nothing about the operator.
            if let Some(age) = context.policies.works.age(key).filter(|_| !waits) {
                context.metrics.policies.took(age);
            }
        }
    }
}

/// After the status: what is told has happened.
fn publish(context: &Context, key: &Key, policy: &ReconcilePolicy, plan: Plan<ReconcilePolicyStatus>) {
    let memory = context.policies.memory.of(key);
    let news = {
        let mut remembered = memory.lock().unwrap_or_else(PoisonError::into_inner);
        remembered.begin(policy.metadata.uid.as_deref().unwrap_or_default());
        remembered.news(plan.events)
    };
    if !news.is_empty() {
        context.events.publish(&policy.object_ref(&()), news);
    }
}
