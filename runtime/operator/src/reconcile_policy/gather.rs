//! What one pass sees. Reads caches and what work has come to; writes nothing.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use weir_api::reconcile_policy::ReconcilePolicy;
use weir_core::{
    policy::{SlotName, breaker::Serves, selection::ObjectKind},
    reconcile_policy::{
        Snapshot, is_current,
        snapshot::{Reach, Tripped, Work},
        validate,
    },
};

use super::{demand::Demand, fetch::wanted_signatures};
use crate::{
    cache::{Cached, Key},
    context::Context,
    plugin_installation::Anew,
    policies::{Place, RevisionId},
};

/// Work that is over so soon is waited for: one status says more than two.
const SOON: Duration = Duration::from_millis(400);
/// Work that takes longer shows which step it is at.
const SHOWN: Duration = Duration::from_secs(1);

/// What a pass sees, and when to look again where nobody will say.
pub(super) struct Seen {
    pub(super) snapshot: Snapshot,
    pub(super) after: Option<Duration>,
}

/// Makes the snapshot, and begins with the work that is missing.
pub(super) async fn look(context: &Arc<Context>, key: &Key, policy: &ReconcilePolicy) -> Seen {
    let mut snapshot = bare(context, policy);
    let (mut after, mut resync) = (None, None);
    let validated = validate(&snapshot);
    if validated.stop.is_some() {
        context.policies.works.forget(key);
    } else {
        let current = is_current(&validated);
        let uid = policy.metadata.uid.as_deref().unwrap_or_default();
        let asked =
            validated.asked.then(|| policy.metadata.annotations.as_ref()?.get(weir_api::keys::CHECK_AT).map(String::as_str)).flatten();
        let looks = &context.policies.looks;
        let interval = validated.resync;
        let due = looks.due(key, uid, interval, asked);
        if due.anew == Anew::Asked {
            context.policies.revisions.breakers.reset(key);
        }
        // What is in force and asked for needs no work: a restart never moves a tag. But what began goes on.
        if (!current || due.looking || context.policies.works.knows(key))
            && let Some(demand) = Demand::of(&validated, current)
        {
            let told = context.policies.works.ask(demand, due.anew);
            after = told.after;
            let soon = context.policies.works.soon(key, SOON).await;
            snapshot.work = soon.unwrap_or(told.work);
            match &snapshot.work {
                Work::Busy { .. } => after = Some(SHOWN),
                Work::None => {}
                Work::Failed { .. } | Work::Ready { .. } => looks.ended(key),
            }
        }
        resync = interval.and_then(|interval| looks.remaining(key, interval));
    }
    let (reach, serves) = reach(context, key, policy);
    context.policies.revisions.breakers.serves(key, serves);
    snapshot.reach = reach;
    snapshot.tripped = tripped(context, key, policy);
    snapshot.shadow = context.policies.book.get(key).and_then(|service| service.shadow).map(|shadow| shadow.compared());
    snapshot.not_running = context.policies.follower.problem(key);
    Seen { snapshot, after: after.into_iter().chain(resync).min() }
}

fn bare(context: &Context, policy: &ReconcilePolicy) -> Snapshot {
    Snapshot {
        now: context.clock.now(),
        policy: policy.clone(),
        operator_namespace: context.settings.namespace.clone(),
        tenants: context.settings.tenant_policies,
        work: Work::None,
        verification: wanted_signatures(&context.registries.current(), policy.spec.source.oci.as_ref()),
        plugin: policy.spec.source.remote.as_ref().and_then(|remote| context.remote.standing(&remote.plugin_name)),
        tripped: None,
        not_running: None,
        reach: Reach::default(),
        shadow: None,
    }
}

/// Whom it answers for.
fn reach(context: &Context, key: &Key, policy: &ReconcilePolicy) -> (Reach, Serves) {
    let slot = SlotName::of(policy.spec.slot);
    let (reach, namespaces) = context.policies.book.reach(key, slot, &places(context, slot));
    let objects = reach.objects;
    (reach, Serves { objects, namespaces })
}

/// Every object that a slot is asked about.
fn places(context: &Context, slot: SlotName) -> Vec<Place> {
    let world = &context.world;
    let data_planes = || world.data_planes.all().into_iter().map(|o| place(context, ObjectKind::DataPlane, Cached::meta(&*o)));
    let installations = || world.installations.all().into_iter().map(|o| place(context, ObjectKind::PluginInstallation, Cached::meta(&*o)));
    match slot {
        SlotName::KonnectEnv | SlotName::ObjectHook => data_planes().collect(),
        SlotName::PluginPackaging => installations().collect(),
        SlotName::ConflictResolution => data_planes().chain(installations()).collect(),
    }
}

/// An object, for who answers for it.
pub(crate) fn place(context: &Context, kind: ObjectKind, meta: &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta) -> Place {
    let key = Key::of(meta);
    let namespace = context.world.namespaces.get(&Key::new("", &key.namespace));
    let namespace_labels: BTreeMap<String, String> = namespace.and_then(|n| n.metadata.labels.clone()).unwrap_or_default();
    Place { kind, key, labels: meta.labels.clone().unwrap_or_default(), namespace_labels }
}

fn tripped(context: &Context, key: &Key, policy: &ReconcilePolicy) -> Option<Tripped> {
    let active = policy.status.as_ref()?.active.as_ref()?;
    let slot = SlotName::of(policy.spec.slot);
    let id = RevisionId { policy: key.clone(), slot, layer: active.layer_digest.clone(), settings: active.settings_digest.clone() };
    let trip = context.policies.revisions.breakers.tripped(&id)?;
    Some(Tripped { layer_digest: id.layer, settings_digest: id.settings, reason: trip.reason, message: trip.message })
}
