//! DataPlane: watches wake a pass, gather makes its snapshot, the core decides and plans, the writer carries it out.

mod gather;
mod plugins;
mod renewals;
pub mod watches;

use std::{
    sync::{Arc, PoisonError},
    time::{Duration, Instant},
};

use kube::Resource;
use tracing::Instrument;
use weir_api::dataplane::{DataPlane, DataPlaneStatus};
use weir_core::{
    dataplane::{Snapshot, provision, reconcile},
    events::Event,
    plan::{Change, ChildKind, Object, Outcome as Asked, Plan},
    policy::selection::ObjectKind as ObjectKindOf,
};

pub(crate) use self::gather::operator;
pub use self::renewals::Renewals;
use crate::{
    apply::{Failure, Patched},
    cache::Key,
    context::Context,
    memory::Remembered,
    metrics::{Kind, ObjectKind, Outcome},
    queue::{self, Next},
    reconcile_policy, record,
};

/// A pass that could not see everything it needs waits so long.
const UNSEEN: Duration = Duration::from_secs(2);

/// A policy that gave no answer is asked again after this: nothing else tells of one that was only slow.
const SLOW: Duration = Duration::from_secs(30);

/// What a pass over it would see now.
///
/// # Errors
/// What is not known yet.
pub(crate) async fn snapshot_of(context: &Context, key: &Key, data_plane: &DataPlane) -> Result<Snapshot, String> {
    let memory = context.data_planes.memory.of(key);
    let remembered = memory.lock().unwrap_or_else(PoisonError::into_inner).clone();
    gather::snapshot(context, data_plane, &remembered).await
}

/// One pass.
pub async fn pass(context: Arc<Context>, key: Key) -> Next {
    let begun = Instant::now();
    let Some(data_plane) = context.world.data_planes.get(&key) else {
        context.data_planes.memory.forget(&key);
        context.data_planes.queue.forget(&key);
        context.renewals.forget(&key);
        return Next::Done;
    };
    let span = tracing::info_span!("reconcile", kind = "DataPlane", namespace = key.namespace, name = key.name);
    let (outcome, next) = look(&context, &key, &data_plane).instrument(span).await;
    context.metrics.reconciled(Kind::DataPlane, outcome, begun.elapsed());
    next
}

async fn look(context: &Context, key: &Key, data_plane: &DataPlane) -> (Outcome, Next) {
    let uid = data_plane.metadata.uid.clone().unwrap_or_default();
    let memory = context.data_planes.memory.of(key);
    let mut remembered = memory.lock().unwrap_or_else(PoisonError::into_inner).clone();
    remembered.begin(&uid);
    let mut snapshot = match gather::snapshot(context, data_plane, &remembered).instrument(tracing::info_span!("gather")).await {
        Ok(snapshot) => snapshot,
        Err(reason) => {
            tracing::warn!(object = %key, %reason, "a pass waits");
            return (Outcome::Failed, Next::After(UNSEEN));
        }
    };
    context.renewals.note(key, &snapshot);
    // Set before the first pass; without a key no record could be believed, so nothing is decided.
    let Some(sealing) = context.sealing.get() else { return (Outcome::Failed, Next::After(UNSEEN)) };
    let place = reconcile_policy::place(context, ObjectKindOf::DataPlane, &data_plane.metadata);
    let policies = context.policies.book.policies(&place);
    let mut plan = reconcile(&snapshot, &policies, sealing).instrument(tracing::info_span!("decide")).await;
    record::keep(context, &snapshot, &policies, &plan);
    let mut failures = children(context, key, &snapshot, &plan, &mut remembered).await;
    if failures.iter().any(Failure::is_leaving) {
        *memory.lock().unwrap_or_else(PoisonError::into_inner) = remembered;
        return (Outcome::Done, Next::Rest(queue::LEAVING));
    }
    let failed = |kind| failures.iter().find(|f| f.kind == kind).map(|f| f.message.clone());
    // Without a new certificate the pods go on with the one they have, and everything else of the Deployment goes on too. Without the content
    // of a plugin they would not start.
    if let (Some(problem), None) = (failed(ChildKind::Secret), failed(ChildKind::ConfigMap)) {
        snapshot.operator.certificate_problem = Some(problem);
        plan = reconcile(&snapshot, &policies, sealing).await;
        plan.changes.retain(|c| matches!(c, Change::Apply { object: Object::Deployment(_), .. }));
        failures.extend(children(context, key, &snapshot, &plan, &mut remembered).await);
    }
    for failure in &failures {
        context.metrics.failed(Kind::DataPlane, failure.failed.reason());
    }
    publish(context, data_plane, &plan, &failures, &mut remembered);
    let held = !plan.holds.is_empty();
    let wrote = !plan.changes.is_empty();
    let slow = plan.policies.iter().any(|asked| is_failure(asked.outcome));
    let fights = remembered.fights();
    // A status made before our writes would say "Ready" of a generation that has not begun to roll; the next pass knows better. What
    // is held or failed is said at once.
    let report = !wrote || held || !failures.is_empty() || fights.is_some();
    let written = own(context, data_plane, &snapshot, plan, &failures, report).await;
    *memory.lock().unwrap_or_else(PoisonError::into_inner) = remembered;
    match (written, failures.is_empty(), fights) {
        (Written::Failed, _, _) | (_, false, _) => (Outcome::Failed, Next::BackOff),
        // Somebody wrote meanwhile. The watch will say so; until it does, trying again and again is of no use.
        (Written::Again, true, _) => (Outcome::Done, Next::BackOff),
        (Written::Done, true, Some((_, rest))) => (Outcome::Held, Next::Rest(rest)),
        // The answers to our own writes are no news to the queue: a Service has an address now.
        (Written::Done, true, None) if wrote => (if held { Outcome::Held } else { Outcome::Done }, Next::After(queue::COLLECT)),
        (Written::Done, true, None) if held => (Outcome::Held, if slow { Next::After(SLOW) } else { Next::Done }),
        (Written::Done, true, None) => (Outcome::Done, Next::Done),
    }
}

fn is_failure(outcome: Asked) -> bool {
    match outcome {
        Asked::Answered | Asked::Refused => false,
        Asked::Deadline | Asked::Memory | Asked::Trap | Asked::Unavailable | Asked::BadOutput | Asked::Incompatible => true,
    }
}

async fn children(
    context: &Context,
    key: &Key,
    snapshot: &Snapshot,
    plan: &Plan<DataPlaneStatus>,
    remembered: &mut Remembered,
) -> Vec<Failure> {
    let asks = plan.changes.iter().any(|c| matches!(c, Change::ProvideContent(_)));
    let known = if asks { plugins::known(context, snapshot) } else { Vec::new() };
    let uid = snapshot.data_plane.metadata.uid.as_deref().unwrap_or_default();
    context.writer.children(key, uid, &known, &plan.changes, remembered).await
}

enum Written {
    Done,
    Again,
    Failed,
}

/// Writes to the DataPlane itself: annotations first, so that an instruction is used up before its effect is reported.
async fn own(
    context: &Context,
    data_plane: &DataPlane,
    snapshot: &Snapshot,
    plan: Plan<DataPlaneStatus>,
    failures: &[Failure],
    report: bool,
) -> Written {
    let cache = &context.world.data_planes;
    match context.writer.object(ObjectKind::DataPlane, cache, data_plane, &plan.changes).await {
        Patched::Done => {}
        Patched::Stale => return Written::Again,
        Patched::Gone => return Written::Done,
        Patched::Failed(error) => return failed(context, &error),
    }
    let Some(mut wanted) = plan.status.filter(|_| report) else { return Written::Done };
    let messages: Vec<String> = failures.iter().filter(|f| f.needs_a_person()).map(|f| f.message.clone()).collect();
    if !messages.is_empty() {
        provision::unable_to_provision(&mut wanted, snapshot, &messages.join("; "));
    }
    if data_plane.status.as_ref() == Some(&wanted) {
        return Written::Done;
    }
    // The annotations may just have made another version.
    let current = cache.get(&Key::of(data_plane.meta())).filter(|c| c.metadata.uid == data_plane.metadata.uid);
    let current = current.as_deref().filter(|c| c.metadata.generation == data_plane.metadata.generation).unwrap_or(data_plane);
    match context.writer.status(ObjectKind::DataPlane, cache, current, current.status.as_ref(), &wanted).await {
        Patched::Done | Patched::Gone => Written::Done,
        Patched::Stale => Written::Again,
        Patched::Failed(error) => failed(context, &error),
    }
}

fn failed(context: &Context, error: &kube::Error) -> Written {
    let reason = crate::metrics::ErrorReason::of(error);
    context.metrics.failed(Kind::DataPlane, reason);
    tracing::warn!(%error, "a write to a DataPlane failed");
    Written::Failed
}

fn publish(context: &Context, data_plane: &DataPlane, plan: &Plan<DataPlaneStatus>, failures: &[Failure], remembered: &mut Remembered) {
    let mut events = plan.events.clone();
    // What failed did not happen.
    events.retain(|e| !failures.iter().any(|f| e.data == f.what));
    events.extend(
        failures
            .iter()
            .filter(|f| f.needs_a_person())
            .map(|f| Event::warning("WriteFailed", "The API server refused a write", f.message.clone())),
    );
    if let Some((names, _)) = remembered.fights() {
        let data = format!("{}: another manager keeps changing it; Weir repairs it less and less often", names.join(", "));
        events.push(Event::warning("Contended", "A child is changed again and again", data));
    }
    let altered = remembered.alterations();
    if !altered.is_empty() {
        let data = format!("{}: an admission webhook or policy changed a value we sent; it is left as it is", altered.join(", "));
        events.push(Event::warning("Altered", "Admission changed a child", data));
    }
    let news = remembered.news(events);
    if !news.is_empty() {
        context.events.publish(&data_plane.object_ref(&()), news);
    }
}
