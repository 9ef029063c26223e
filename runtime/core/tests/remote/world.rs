//! Services, Secrets and slices of one namespace, and what the shell carries from pass to pass.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::{core::v1::Service, discovery::v1::EndpointSlice};
use serde_json::{Value, json};
use weir_core::{
    policy::SlotName,
    remote::{
        Facts, Key, Plan, Report, ServicePlan, Snapshot, Spec, reconcile,
        snapshot::{Certificates, SecretFacts, Validity},
    },
};

pub(crate) const NS: &str = "weir-system";

pub(crate) struct World {
    pub(crate) snapshot: Snapshot,
}

pub(crate) fn key(name: &str) -> Key {
    (NS.into(), name.into())
}

pub(crate) fn days(days: i64) -> SignedDuration {
    SignedDuration::from_hours(24 * days)
}

/// A Secret whose one certificate is valid from yesterday, for so many days from now.
pub(crate) fn secret(now: Timestamp, ends: i64) -> SecretFacts {
    let validity = Validity { begins: now.checked_sub(days(1)).unwrap(), ends: now.checked_add(days(ends)).unwrap() };
    let certificates = Certificates { digest: format!("sha256:crt-{ends}"), validity: vec![validity] };
    SecretFacts { certificates: Ok(certificates), authorities: None, key: Ok(format!("sha256:key-{ends}")) }
}

pub(crate) fn slice(service: &str, ready: &[(&str, bool)]) -> EndpointSlice {
    let endpoints: Vec<Value> =
        ready.iter().map(|(address, ready)| json!({"addresses": [address], "conditions": {"ready": ready}})).collect();
    let slice = json!({
        "metadata": {"name": format!("{service}-1"), "namespace": NS, "labels": {"kubernetes.io/service-name": service}},
        "addressType": "IPv4", "endpoints": endpoints, "ports": [{"name": "grpc", "port": 9091}],
    });
    serde_json::from_value(slice).unwrap()
}

impl World {
    pub(crate) fn new() -> Self {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        Self {
            snapshot: Snapshot {
                now,
                cnpg: false,
                services: Vec::new(),
                secrets: BTreeMap::from([(key("client"), secret(now, 90)), (key("server"), secret(now, 60))]),
                slices: Some(BTreeMap::new()),
                kept: BTreeMap::new(),
                reports: BTreeMap::new(),
                told: BTreeSet::new(),
            },
        }
    }

    /// One plugin `p` of Service `a`, ready.
    pub(crate) fn with() -> Self {
        let mut world = Self::new();
        world.service("a", "p", "2025-01-01T00:00:00Z");
        world.answers("p", "1");
        world.pass();
        assert_eq!(world.ready("a"), "True/Ready");
        world
    }

    pub(crate) fn service(&mut self, name: &str, plugin: &str, created: &str) {
        let service = json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {
                "name": name, "namespace": NS, "uid": format!("uid-{name}"), "creationTimestamp": created,
                "labels": {"weir.dev/plugin-name": plugin},
                "annotations": {
                    "weir.dev/plugin-port": "9090", "weir.dev/plugin-client-secret": "client", "weir.dev/plugin-server-secret": "server",
                },
            },
            "spec": {"clusterIP": "10.0.0.1", "ports": [{"name": "grpc", "port": 9090, "targetPort": 9091}]},
        });
        self.snapshot.services.push(serde_json::from_value(service).unwrap());
        self.pods(name, &[("10.1.0.1", true)]);
    }

    pub(crate) fn pods(&mut self, service: &str, ready: &[(&str, bool)]) {
        self.snapshot.slices.as_mut().unwrap().insert(key(service), vec![slice(service, ready)]);
    }

    pub(crate) fn edit(&mut self, name: &str, change: impl FnOnce(&mut Service)) {
        change(self.snapshot.services.iter_mut().find(|s| s.metadata.name.as_deref() == Some(name)).unwrap());
    }

    pub(crate) fn annotate(&mut self, name: &str, annotation: &str, value: Option<&str>) {
        self.edit(name, |service| {
            let annotations = service.metadata.annotations.get_or_insert_default();
            match value {
                Some(value) => annotations.insert(annotation.into(), value.into()),
                None => annotations.remove(annotation),
            };
        });
    }

    pub(crate) fn label(&mut self, name: &str, plugin: &str) {
        self.edit(name, |service| {
            service.metadata.labels.get_or_insert_default().insert("weir.dev/plugin-name".into(), plugin.into());
        });
    }

    pub(crate) fn answers(&mut self, plugin: &str, version: &str) {
        let facts = Facts {
            name: plugin.into(),
            version: version.into(),
            digest: format!("sha256:{plugin}-{version}"),
            slots: [SlotName::KonnectEnv].into(),
        };
        self.snapshot.reports.insert(plugin.into(), Report::Ready(facts));
    }

    pub(crate) fn later(&mut self, by: SignedDuration) {
        self.snapshot.now = self.snapshot.now.checked_add(by).unwrap();
    }

    /// A pass whose effects are carried out. The next one over the same things writes nothing.
    pub(crate) fn pass(&mut self) -> Plan {
        let plan = reconcile(&self.snapshot);
        for said in &plan.services {
            self.edit(&said.service.1.clone(), |service| {
                let status = service.status.get_or_insert_default();
                let theirs = status.conditions.take().unwrap_or_default().into_iter().filter(|c| !c.type_.starts_with("weir.dev/"));
                status.conditions = Some(theirs.chain(said.conditions.clone()).collect());
            });
        }
        self.snapshot.told = plan.services.iter().map(|said| said.service.clone()).collect();
        self.snapshot.kept = plan.plugins.iter().map(|spec| (spec.name.clone(), spec.clone())).collect();
        let again = reconcile(&self.snapshot);
        assert!(again.services.iter().all(|said| !said.changed), "{again:?}");
        assert_eq!((&again.plugins, &again.standings, again.cleared), (&plan.plugins, &plan.standings, vec![]));
        plan
    }

    pub(crate) fn said(&self, name: &str, type_: &str) -> (String, String) {
        let service = self.snapshot.services.iter().find(|s| s.metadata.name.as_deref() == Some(name)).unwrap();
        let conditions = service.status.as_ref().and_then(|s| s.conditions.clone()).unwrap_or_default();
        let found = conditions.into_iter().find(|c| c.type_ == format!("weir.dev/{type_}"));
        found.map(|c| (format!("{}/{}", c.status, c.reason), c.message)).unwrap_or_default()
    }

    pub(crate) fn ready(&self, name: &str) -> String {
        self.said(name, "Ready").0
    }

    pub(crate) fn configured(&self, name: &str) -> String {
        self.said(name, "Configured").0
    }
}

/// What is dialled for a plugin.
pub(crate) fn spec<'a>(plan: &'a Plan, plugin: &str) -> Option<&'a Spec> {
    plan.plugins.iter().find(|spec| spec.name == plugin)
}

pub(crate) fn of<'a>(plan: &'a Plan, service: &str) -> &'a ServicePlan {
    plan.services.iter().find(|said| said.service.1 == service).unwrap()
}

/// Reasons of the events on a Service.
pub(crate) fn events(plan: &Plan, service: &str) -> Vec<String> {
    of(plan, service).events.iter().map(|event| event.reason.clone()).collect()
}
