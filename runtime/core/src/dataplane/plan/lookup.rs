//! Which live child stands for which role, and which name a new one gets (design section 4, "Names are deterministic").

use std::{cmp::Reverse, collections::BTreeMap};

use k8s_openapi::{
    Metadata,
    api::{apps::v1::Deployment, core::v1::Service},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use serde_json::Value;
use weir_api::keys;

use super::{
    super::{
        objects::{ingress_service, konnect_certificate},
        snapshot::{Child, ForeignName},
        validate::Validated,
    },
    takeover,
};
use crate::{names, plan::ChildKind};

/// The name of a child, or why it has none yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Name {
    /// Use this one.
    Use(String),
    /// It will be free: an old child is leaving.
    Wait(String),
    /// A stranger holds the name that the user gave.
    Taken(String),
}

impl Name {
    /// The name, usable or not.
    #[must_use]
    pub fn text(&self) -> &str {
        match self {
            Self::Use(name) | Self::Wait(name) | Self::Taken(name) => name,
        }
    }
}

fn is_leaving(meta: &ObjectMeta) -> bool {
    meta.deletion_timestamp.is_some()
}

fn has_label(meta: &ObjectMeta, key: &str, value: &str) -> bool {
    meta.labels.as_ref().and_then(|l: &BTreeMap<String, String>| l.get(key)).is_some_and(|v| v == value)
}

/// The live Deployment: of several the one with more available, then more ready pods, then the older (facts/kong-operator.md 1.3).
#[must_use]
pub fn live_deployment<'a>(dp: &'a Validated<'_>) -> Option<&'a Child<Deployment>> {
    let preview = |meta: &ObjectMeta| has_label(meta, keys::DATAPLANE_DEPLOYMENT_STATE, "preview");
    let candidates = dp.snapshot.children.deployments.iter().filter(|c| !is_leaving(&c.object.metadata) && !preview(&c.object.metadata));
    candidates.min_by_key(|c| {
        let status = c.object.status.as_ref();
        let count = |n: Option<i32>| Reverse(n.unwrap_or(0));
        let meta = &c.object.metadata;
        (count(status.and_then(|s| s.available_replicas)), count(status.and_then(|s| s.ready_replicas)), age(meta), meta.name.clone())
    })
}

/// The live Service of a type: of several the one with more load balancer addresses, then the older.
#[must_use]
pub fn live_service<'a>(dp: &'a Validated<'_>, service_type: &str) -> Option<&'a Child<Service>> {
    services(dp, service_type).filter(|c| !is_leaving(&c.object.metadata)).min_by_key(|c| {
        let meta = &c.object.metadata;
        (Reverse(ingress_count(&c.object)), age(meta), meta.name.clone())
    })
}

/// All Services of a type on the live side.
pub fn services<'a>(dp: &'a Validated<'_>, service_type: &str) -> impl Iterator<Item = &'a Child<Service>> {
    dp.snapshot.children.services.iter().filter(move |c| {
        let meta = &c.object.metadata;
        has_label(meta, keys::DATAPLANE_SERVICE_TYPE, service_type) && !has_label(meta, keys::DATAPLANE_SERVICE_STATE, "preview")
    })
}

fn ingress_count(service: &Service) -> usize {
    service.status.as_ref().and_then(|s| s.load_balancer.as_ref()).and_then(|l| l.ingress.as_ref()).map_or(0, Vec::len)
}

/// Creation time as text sorts by age; without one an object counts as the youngest.
fn age(meta: &ObjectMeta) -> (bool, String) {
    match &meta.creation_timestamp {
        Some(time) => (false, time.0.to_string()),
        None => (true, String::new()),
    }
}

/// Those that are not leaving, the oldest first: of several it is the one that stays.
pub fn by_age<'a>(all: impl Iterator<Item = &'a ObjectMeta>) -> Vec<&'a ObjectMeta> {
    let mut staying: Vec<&ObjectMeta> = all.filter(|m| !is_leaving(m)).collect();
    staying.sort_by_key(|m| (age(m), m.name.clone()));
    staying
}

/// Name of the Deployment.
#[must_use]
pub fn deployment(dp: &Validated<'_>) -> Name {
    if let Some(name) = live_deployment(dp).and_then(|c| c.object.metadata.name.clone()) {
        return Name::Use(name);
    }
    let leaving: Vec<&ObjectMeta> = dp.snapshot.children.deployments.iter().map(|c| &c.object.metadata).filter(|m| is_leaving(m)).collect();
    planned(dp, ChildKind::Deployment, names::child("dataplane-", &dp.name), &leaving)
}

/// Name of the admin Service.
#[must_use]
pub fn admin_service(dp: &Validated<'_>) -> Name {
    service(dp, "admin")
}

/// Name of the ingress Service: the user's, else the live one's, else the planned one.
#[must_use]
pub fn ingress_service(dp: &Validated<'_>) -> Name {
    let given = ingress_service::options(dp).and_then(|o| o.name.clone()).filter(|n| !n.is_empty());
    let Some(given) = given else { return service(dp, "ingress") };
    if given == admin_service(dp).text() {
        return Name::Taken(given);
    }
    let mine = |c: &&Child<Service>| c.object.metadata.name.as_deref() == Some(given.as_str());
    match services(dp, "ingress").find(mine) {
        Some(child) if is_leaving(&child.object.metadata) => Name::Wait(given),
        Some(_) => Name::Use(given),
        None => match foreign(dp, ChildKind::Service, &given) {
            None => Name::Use(given),
            Some(holder) if holder.leaving => Name::Wait(given),
            Some(_) => Name::Taken(given),
        },
    }
}

fn service(dp: &Validated<'_>, service_type: &str) -> Name {
    if let Some(name) = live_service(dp, service_type).and_then(|c| c.object.metadata.name.clone()) {
        return Name::Use(name);
    }
    let leaving: Vec<&ObjectMeta> = services(dp, service_type).map(|c| &c.object.metadata).filter(|m| is_leaving(m)).collect();
    planned(dp, ChildKind::Service, names::child(&format!("dataplane-{service_type}-"), &dp.name), &leaving)
}

/// The live autoscaler or disruption budget, the oldest of several, and its name: a new one has the DataPlane's, which every object of these
/// kinds may have.
#[must_use]
pub fn same_named<'a, T: Metadata<Ty = ObjectMeta>>(
    dp: &Validated<'_>,
    kind: ChildKind,
    all: &'a [Child<T>],
) -> (Option<&'a Child<T>>, Name) {
    let metas = || all.iter().map(|c| c.object.metadata());
    if let Some(name) = by_age(metas()).first().and_then(|m| m.name.clone()) {
        let live = all.iter().find(|c| !is_leaving(c.object.metadata()) && c.object.metadata().name.as_ref() == Some(&name));
        return (live, Name::Use(name));
    }
    let leaving: Vec<&ObjectMeta> = metas().filter(|m| is_leaving(m)).collect();
    (None, planned(dp, kind, dp.name.clone(), &leaving))
}

/// The live Certificate of cert-manager, the oldest of several, and its name. A second one would fill the same Secret.
#[must_use]
pub fn certificate<'a>(dp: &'a Validated<'_>) -> (Option<&'a Child<Value>>, String) {
    let all = &dp.snapshot.children.certificates;
    let metas: Vec<ObjectMeta> = all.iter().filter_map(|c| takeover::metadata(&c.object)).collect();
    let oldest = by_age(metas.iter()).first().and_then(|m| m.name.clone());
    let name = oldest.unwrap_or_else(|| konnect_certificate::planned_name(dp));
    (all.iter().find(|c| c.object.pointer("/metadata/name").and_then(Value::as_str) == Some(name.as_str())), name)
}

fn planned(dp: &Validated<'_>, kind: ChildKind, name: String, leaving: &[&ObjectMeta]) -> Name {
    if leaving.iter().any(|meta| meta.name.as_deref() == Some(name.as_str())) {
        return Name::Wait(name);
    }
    match foreign(dp, kind, &name) {
        None => Name::Use(name),
        Some(holder) if holder.leaving => Name::Wait(name),
        Some(_) => Name::Use(names::suffixed(&name, &names::uid_suffix(&dp.uid))),
    }
}

fn foreign<'a>(dp: &'a Validated<'_>, kind: ChildKind, name: &str) -> Option<&'a ForeignName> {
    dp.snapshot.children.foreign.iter().find(|f| f.kind == kind && f.name == name)
}
