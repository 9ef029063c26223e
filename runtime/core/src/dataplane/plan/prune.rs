//! What is ours and not wanted any more. A part that is held is never pruned.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::{Wanted, lookup, takeover, target};
use crate::{
    dataplane::{
        decide::Decided,
        objects::{autoscaler, certificate, disruption_budget, konnect_certificate},
        plugins,
        validate::Validated,
    },
    plan::{Change, ChildKind, HeldPart, Target},
};

pub(crate) fn prune(dp: &Validated<'_>, decided: &Decided, deployment: Option<&str>, wanted: &mut Wanted) {
    let held = |wanted: &Wanted, part: HeldPart| wanted.holds.iter().any(|h| h.what == part);
    let children = &dp.snapshot.children;
    let mut gone = Vec::new();
    if let Some(name) = deployment.filter(|_| lookup::live_deployment(dp).is_some()) {
        let others = children.deployments.iter().map(|c| &c.object.metadata).filter(|m| m.name.as_deref() != Some(name));
        gone.extend(others.filter(|m| !is_preview(m)).map(|m| (ChildKind::Deployment, m)));
    }
    for (service_type, part, name) in [
        ("admin", HeldPart::AdminService, Some(decided.admin_service.text().to_owned())),
        ("ingress", HeldPart::IngressService, wanted.ingress.clone()),
    ] {
        if let Some(name) = name.filter(|_| !held(wanted, part)) {
            let others =
                lookup::services(dp, service_type).map(|c| &c.object.metadata).filter(|m| m.name.as_deref() != Some(name.as_str()));
            gone.extend(others.map(|m| (ChildKind::Service, m)));
        }
    }
    // With the option one stays: the one that is applied; without it none does.
    let spare = |wanted: bool| usize::from(wanted);
    let autoscalers = lookup::by_age(children.autoscalers.iter().map(|c| &c.object.metadata));
    gone.extend(autoscalers.into_iter().skip(spare(autoscaler::options(dp).is_some())).map(|m| (ChildKind::HorizontalPodAutoscaler, m)));
    let budgets = lookup::by_age(children.disruption_budgets.iter().map(|c| &c.object.metadata));
    gone.extend(budgets.into_iter().skip(spare(disruption_budget::options(dp).is_some())).map(|m| (ChildKind::PodDisruptionBudget, m)));
    let certificates: Vec<ObjectMeta> = children.certificates.iter().filter_map(|c| takeover::metadata(&c.object)).collect();
    let certificates = lookup::by_age(certificates.iter());
    gone.extend(certificates.into_iter().skip(spare(konnect_certificate::options(dp).is_some())).map(|m| (ChildKind::Certificate, m)));
    let unused = certificate::unused(dp, &decided.certificate.secret);
    gone.extend(unused.iter().map(|s| (ChildKind::Secret, &s.metadata)));
    contents(dp, decided, wanted);
    for (kind, meta) in gone.into_iter().filter(|(_, m)| m.deletion_timestamp.is_none()) {
        if takeover::is_bound(meta) {
            wanted.take_over(target(dp, kind, meta));
        }
        wanted.changes.push(Change::Delete(target(dp, kind, meta)));
    }
}

/// Plugin content that neither this pass nor any ReplicaSet mounts: an undone rollout finds what it had.
fn contents(dp: &Validated<'_>, decided: &Decided, wanted: &mut Wanted) {
    let own = decided.own.iter().flat_map(|own| &own.plugins);
    let mut used: BTreeSet<String> = plugins::map_names(decided.plugins.iter().chain(own).map(|u| &*u.content)).collect();
    used.extend(dp.snapshot.children.replica_sets.iter().flat_map(|r| r.config_maps.iter().cloned()));
    used.extend(lookup::live_deployment(dp).into_iter().flat_map(|d| plugins::mounted_maps(&d.object)));
    for map in dp.snapshot.children.contents.iter().filter(|m| m.owners.contains(&dp.uid) && !m.leaving && !used.contains(&m.name)) {
        let target = Target { kind: ChildKind::ConfigMap, namespace: dp.namespace.clone(), name: map.name.clone(), uid: map.uid.clone() };
        wanted.changes.push(Change::ReleaseContent { target, owner: dp.uid.clone() });
    }
}

fn is_preview(meta: &ObjectMeta) -> bool {
    meta.labels.as_ref().and_then(|l| l.get(weir_api::keys::DATAPLANE_DEPLOYMENT_STATE)).is_some_and(|s| s == "preview")
}
