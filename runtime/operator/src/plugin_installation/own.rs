//! Writes to the installation itself: annotations first, so that the status says nothing that a crash would undo, and so that nothing is
//! told as done that the API server refused.

use weir_api::{
    condition::reasons,
    keys,
    plugin_installation::{KongPluginInstallation, KongPluginInstallationStatus},
};
use weir_core::{
    events::Event,
    plan::{Change, Plan},
    plugin_installation::{Snapshot, provision},
};

use crate::{
    apply::{Failure, Patched, refused},
    cache::Key,
    context::Context,
    metrics::{ErrorReason, Kind, ObjectKind},
};

/// How the writes ended.
pub(super) struct Written {
    /// The one that matters: that of the annotations, unless it was done.
    pub(super) how: Patched,
    /// The annotations are as the plan wants them, the record of what is in force among them.
    recorded: bool,
    /// Why they are not, where somebody has to do something.
    refused: Option<String>,
}

/// What could not be stored is not in force: the record of it is not written.
pub(super) fn not_stored(plan: &mut Plan<KongPluginInstallationStatus>) {
    plan.changes.retain(|change| match change {
        Change::SetAnnotation { key, value: _ } => key != keys::DECISIONS && key != keys::ARTIFACT,
        Change::Apply { .. }
        | Change::MintCertificate(_)
        | Change::ProvideContent(_)
        | Change::ReleaseContent { .. }
        | Change::Delete(_)
        | Change::TakeOver(_)
        | Change::Reclaim(_)
        | Change::SetFinalizer { .. }
        | Change::RemoveAnnotation { .. } => true,
    });
    plan.events.retain(|event| event.reason != reasons::INSTALLED);
}

/// Writes them.
pub(super) async fn write(
    context: &Context,
    installation: &KongPluginInstallation,
    plan: Plan<KongPluginInstallationStatus>,
    failures: &[Failure],
    snapshot: &Snapshot,
) -> Written {
    let (cache, kind) = (&context.world.installations, ObjectKind::KongPluginInstallation);
    let noted = counted(context, context.writer.object(kind, cache, installation, &plan.changes).await);
    let written = match &noted {
        Patched::Done => Written { how: noted, recorded: true, refused: None },
        Patched::Stale | Patched::Gone => return Written { how: noted, recorded: false, refused: None },
        Patched::Failed(error) => {
            let refused = refused("the operator's annotations cannot be written", error);
            Written { how: noted, recorded: false, refused }
        }
    };
    if !written.recorded && written.refused.is_none() {
        return written;
    }
    let Some(mut wanted) = plan.status else { return written };
    if !told(&mut wanted, snapshot, &plan.changes, failures, written.refused.as_deref()) {
        return written;
    }
    // The annotations may just have made another version.
    let current = cache.get(&Key::of(&installation.metadata)).filter(|c| c.metadata.uid == installation.metadata.uid);
    let current = current.as_deref().filter(|c| c.metadata.generation == installation.metadata.generation).unwrap_or(installation);
    if current.status.as_ref() == Some(&wanted) {
        return written;
    }
    let said = counted(context, context.writer.status(kind, cache, current, current.status.as_ref(), &wanted).await);
    Written { how: if written.recorded { said } else { written.how }, ..written }
}

/// Puts into the status what could not be written. False when nothing is said: what goes away by itself is no condition, and what the pass
/// wanted is not so yet.
fn told(
    wanted: &mut KongPluginInstallationStatus,
    snapshot: &Snapshot,
    changes: &[Change],
    failures: &[Failure],
    refused: Option<&str>,
) -> bool {
    let messages: Vec<&str> = failures.iter().filter(|f| f.needs_a_person()).map(|f| f.message.as_str()).collect();
    if !messages.is_empty() {
        provision::unable_to_store(wanted, snapshot, &messages.join("; "));
        return true;
    }
    if !failures.is_empty() {
        return false;
    }
    let is_record = |change: &Change| matches!(change, Change::SetAnnotation { key, .. } if key == keys::DECISIONS);
    match refused {
        Some(message) if changes.iter().any(is_record) => provision::unable_to_store(wanted, snapshot, message),
        Some(message) => provision::unable_to_note(wanted, snapshot, message),
        None => {}
    }
    true
}

/// What people hear: what has happened, and what was refused.
pub(super) fn news(mut events: Vec<Event>, failures: &[Failure], written: &Written) -> Vec<Event> {
    if !written.recorded {
        events.retain(|event| event.reason != reasons::INSTALLED);
    }
    let failed = failures.iter().filter(|f| f.needs_a_person()).map(|f| f.message.clone());
    let refused = failed.chain(written.refused.clone());
    events.extend(refused.map(|message| Event::warning("WriteFailed", "The API server refused a write", message)));
    events
}

fn counted(context: &Context, written: Patched) -> Patched {
    if let Patched::Failed(error) = &written {
        context.metrics.failed(Kind::KongPluginInstallation, ErrorReason::of(error));
        tracing::warn!(%error, "a write to a KongPluginInstallation failed");
    }
    written
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use weir_core::{
        dataplane::snapshot::Operator,
        plan::ChildKind,
        plugin_installation::snapshot::{Fetch, PullSecret},
    };

    use super::*;
    use crate::apply::Failed;

    fn snapshot() -> Snapshot {
        let installation = json!({
            "apiVersion": "gateway-operator.konghq.com/v1alpha1", "kind": "KongPluginInstallation",
            "metadata": {"name": "p", "namespace": "n", "uid": "u", "generation": 3}, "spec": {"image": "r.example.com/p:1"},
            "status": {"underlyingConfigMapName": "old"},
        });
        Snapshot {
            now: "2026-01-01T00:00:00Z".parse().unwrap(),
            operator: Operator::with_ca(String::new()),
            installation: serde_json::from_value(installation).unwrap(),
            namespace_labels: Default::default(),
            pull_secret: PullSecret::Usable,
            verification: None,
            fetch: Fetch::NotAsked,
            claimants: vec![],
            config_maps: vec![],
            foreign: vec![],
        }
    }

    /// What a pass planned that accepted something new.
    fn planned() -> KongPluginInstallationStatus {
        let condition = |type_: &str| json!({"type": type_, "status": "True", "reason": "Ready", "message": "new", "lastTransitionTime": "2026-01-01T00:00:00Z"});
        let conditions = ["Accepted", "Ready"].map(condition);
        serde_json::from_value(json!({"underlyingConfigMapName": "new", "conditions": conditions})).unwrap()
    }

    fn set(key: &str) -> Change {
        Change::SetAnnotation { key: key.into(), value: "v".into() }
    }

    /// Whether anything is said; Accepted, Ready and the name of the ConfigMap then.
    fn said(changes: &[Change], failures: &[Failure], refused: Option<&str>) -> Option<[String; 3]> {
        let mut status = planned();
        let says = told(&mut status, &snapshot(), changes, failures, refused);
        let conditions = status.conditions.unwrap();
        let text = |type_: &str| conditions.iter().find(|c| c.type_ == type_).map(|c| format!("{} {}", c.status, c.message)).unwrap();
        says.then(|| [text("Accepted"), text("Ready"), status.underlying_config_map_name.unwrap_or_default()])
    }

    #[test]
    fn a_record_that_is_refused_is_said_and_nothing_new_is_in_force() {
        let record = [set(keys::DECISIONS), set(keys::CLAIMS)];
        assert_eq!(said(&record, &[], None).unwrap(), ["True new", "True new", "new"]);
        assert_eq!(said(&record, &[], Some("too long")).unwrap(), ["False too long", "False too long", "old"]);
        // What is in force is not touched by a list of claims that cannot be written.
        assert_eq!(said(&[set(keys::CLAIMS)], &[], Some("too long")).unwrap(), ["True new", "False too long", "new"]);
    }

    #[test]
    fn content_that_is_not_stored_is_said_where_somebody_has_to_act() {
        let failure = |failed| Failure { kind: ChildKind::ConfigMap, what: "ConfigMap a".into(), failed, message: "quota".into() };
        assert_eq!(said(&[], &[failure(Failed::Forbidden)], Some("too long")).unwrap(), ["False quota", "False quota", "old"]);
        assert_eq!(said(&[], &[failure(Failed::Transient(ErrorReason::Timeout))], Some("too long")), None);
    }

    #[test]
    fn installed_is_told_when_it_is_recorded_and_not_before() {
        let installed = || vec![Event::normal(reasons::INSTALLED, "m", "d"), Event::warning("Other", "m", "d")];
        let reasons = |written: &Written| news(installed(), &[], written).into_iter().map(|e| e.reason).collect::<Vec<_>>();
        let written = |recorded, how, refused: Option<&str>| Written { how, recorded, refused: refused.map(String::from) };
        assert_eq!(reasons(&written(true, Patched::Done, None)), ["Installed", "Other"]);
        assert_eq!(reasons(&written(false, Patched::Stale, None)), ["Other"]);
        let events = news(installed(), &[], &written(false, Patched::Gone, Some("too long")));
        assert_eq!(events.iter().map(|e| e.reason.as_str()).collect::<Vec<_>>(), ["Other", "WriteFailed"]);
        assert_eq!(events.last().unwrap().data, "too long");
    }
}
