//! KongPluginInstallation: from an artifact in a registry to content that DataPlanes mount, and who may.

mod gather;
mod known;
mod looks;
mod own;
pub mod pull_secret;
pub mod pulls;
mod users;
pub mod watches;

use std::{
    sync::{Arc, PoisonError},
    time::{Duration, Instant},
};

use kube::Resource;
use tracing::Instrument;
use weir_api::{keys, plugin_installation::KongPluginInstallation};
use weir_core::{
    events::Event,
    plan::{Change, Outcome as Asked},
    plugin_installation::{reconcile, snapshot::Fetch},
    policy::selection::ObjectKind as ObjectKindOf,
};

pub use self::{
    known::Known,
    looks::{Anew, Looks},
    users::{Index, installations},
};
use crate::{
    apply::{Failure, Patched},
    cache::Key,
    context::Context,
    grants,
    metrics::{Kind, Outcome},
    queue::{self, Next},
    reconcile_policy,
};

/// A pass that could not see everything it needs waits so long.
const UNSEEN: Duration = Duration::from_secs(2);

/// A policy that gave no answer in time is asked again after this.
const SLOW: Duration = Duration::from_secs(30);

/// What passes over installations and DataPlanes share about plugins. All of it may be lost.
pub struct Shared {
    /// Which DataPlanes name which installation.
    pub users: Index,
    /// Which installations name which Secret.
    pub secrets: Index,
    /// What installations give.
    pub known: Known,
    /// When tags were last looked up.
    pub looks: Looks,
    /// Credentials.
    pub pull_secrets: pull_secret::PullSecrets,
    /// Requests to registries.
    pub pulls: pulls::Pulls,
}

/// Whether a DataPlane in a namespace may use an installation.
#[must_use]
pub fn permitted(context: &Context, from: &str, installation: &Key) -> bool {
    let group = keys::GATEWAY_OPERATOR_GROUP;
    let reference = grants::Reference {
        from: (group, "DataPlane", from),
        to: (group, "KongPluginInstallation", &installation.namespace, &installation.name),
    };
    from == installation.namespace || context.settings.cross_namespace_plugins || grants::permitted(&context.world, &reference)
}

/// One pass.
pub async fn pass(context: Arc<Context>, key: Key) -> Next {
    let begun = Instant::now();
    let Some(installation) = context.world.installations.get(&key) else {
        context.installations.memory.forget(&key);
        context.installations.queue.forget(&key);
        context.plugins.known.forget(&key);
        context.plugins.looks.forget(&key);
        context.plugins.pulls.forget(&key);
        return Next::Done;
    };
    let span = tracing::info_span!("reconcile", kind = "KongPluginInstallation", namespace = key.namespace, name = key.name);
    let (outcome, next) = look(&context, &key, &installation).instrument(span).await;
    context.metrics.reconciled(Kind::KongPluginInstallation, outcome, begun.elapsed());
    next
}

async fn look(context: &Context, key: &Key, installation: &KongPluginInstallation) -> (Outcome, Next) {
    let uid = installation.metadata.uid.clone().unwrap_or_default();
    let memory = context.installations.memory.of(key);
    let mut remembered = memory.lock().unwrap_or_else(PoisonError::into_inner).clone();
    remembered.begin(&uid);
    // Set before the first pass; without a key no record could be believed, so nothing is decided.
    let Some(sealing) = context.sealing.get() else { return (Outcome::Failed, Next::After(UNSEEN)) };
    let place = reconcile_policy::place(context, ObjectKindOf::PluginInstallation, &installation.metadata);
    let policies = context.policies.book.policies(&place);
    let packaging = policies.plugin_packaging.identity();
    let gathering = gather::look(context, key, installation, packaging, sealing).instrument(tracing::info_span!("gather"));
    let gather::Seen { snapshot, after } = match gathering.await {
        Ok(seen) => seen,
        Err(reason) => {
            tracing::warn!(object = %key, %reason, "a pass waits");
            return (Outcome::Failed, Next::BackOff);
        }
    };
    let mut plan = reconcile(&snapshot, &policies, sealing).instrument(tracing::info_span!("decide")).await;
    // Whoever asks a registry now is told that it is not asked as its administrator last wrote.
    let own = key.namespace == context.settings.namespace;
    let unusable = if snapshot.fetch == Fetch::NotAsked { Vec::new() } else { context.registries.findings(own) };
    plan.events.extend(unusable.iter().filter_map(Event::of_finding));
    plan.findings.extend(unusable);
    let failures = context.writer.children(key, &uid, &[], &plan.changes, &mut remembered).await;
    if failures.iter().any(Failure::is_leaving) {
        *memory.lock().unwrap_or_else(PoisonError::into_inner) = remembered;
        return (Outcome::Done, Next::Rest(queue::LEAVING));
    }
    for failure in &failures {
        context.metrics.failed(Kind::KongPluginInstallation, failure.failed.reason());
    }
    if !failures.is_empty() {
        own::not_stored(&mut plan);
    }
    let (wrote, held) = (!plan.changes.is_empty(), !plan.holds.is_empty());
    // Nothing else tells of a policy that was only slow.
    let slow = plan.policies.iter().any(|asked| matches!(asked.outcome, Asked::Deadline | Asked::Unavailable));
    let after = after.into_iter().chain(slow.then_some(SLOW)).min();
    let stored = plan.changes.iter().any(|change| matches!(change, Change::Apply { .. } | Change::Delete(_)));
    let events = std::mem::take(&mut plan.events);
    let written = own::write(context, installation, plan, &failures, &snapshot).await;
    let news = remembered.news(own::news(events, &failures, &written));
    if !news.is_empty() {
        context.events.publish(&installation.object_ref(&()), news);
    }
    *memory.lock().unwrap_or_else(PoisonError::into_inner) = remembered;
    // Answers to our own writes are no news to any queue.
    match context.world.installations.get(key) {
        Some(now) if !stored => watches::wake_concerned(context, key, installation, &now),
        Some(_) | None => watches::wake_users(context, key),
    }
    let done = if held { Outcome::Held } else { Outcome::Done };
    match (written.how, failures.is_empty()) {
        (Patched::Failed(_), _) | (_, false) => (Outcome::Failed, Next::BackOff),
        (Patched::Stale, true) => (Outcome::Done, Next::BackOff),
        (Patched::Gone, true) => (Outcome::Done, Next::Done),
        (Patched::Done, true) if wrote => (done, Next::After(after.map_or(queue::COLLECT, |after| after.min(queue::COLLECT)))),
        (Patched::Done, true) => (done, after.map_or(Next::Done, Next::After)),
    }
}
