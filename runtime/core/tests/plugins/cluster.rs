//! A cluster that keeps what a pass writes, and is strict about the order.

use std::collections::BTreeSet;

use k8s_openapi::api::{
    apps::v1::{Deployment, ReplicaSet},
    core::v1::PodTemplateSpec,
};
use serde_json::json;
use weir_api::keys;
use weir_core::{
    dataplane::{
        plugins::mounted_maps,
        snapshot::{Child, ContentMap, ReplicaSetFacts, SecretFacts},
    },
    plan::{Change, Object},
    plugin_installation::content::mounted_name,
};

use crate::{support, world::World};

pub(crate) fn days(days: i64) -> jiff::SignedDuration {
    jiff::SignedDuration::from_hours(days * 24)
}

impl World {
    pub(crate) fn carry_out(&mut self, change: &Change) {
        let children = &mut self.snapshot.children;
        match change {
            Change::Apply { object: Object::Deployment(deployment), first } => self.apply(deployment, *first),
            Change::Apply { object: Object::Service(service), first } => {
                let mut stored = Child { object: (**service).clone(), answered: None };
                stored.object.metadata.uid = service.metadata.name.clone();
                stored.object.status = serde_json::from_value(json!({"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}})).unwrap();
                children.services.retain(|c| c.object.metadata.name != service.metadata.name);
                children.services.push(stored);
                assert!(*first || children.services.len() == 2);
            }
            Change::MintCertificate(request) => {
                let mut metadata = request.metadata.clone();
                metadata.uid = metadata.name.clone();
                let ends = self.snapshot.now + days(365);
                metadata.annotations.as_mut().unwrap().insert(keys::CERT_EXPIRES_AT.into(), ends.to_string());
                children.secrets.push(SecretFacts { metadata, ..SecretFacts::default() });
            }
            Change::ProvideContent(request) => {
                assert_eq!((request.namespace.as_str(), request.owner.controller), ("ns", None));
                for name in (0..request.maps).map(|index| mounted_name(&request.hash, index)) {
                    if !children.contents.iter().any(|map| map.name == name) {
                        let uid = format!("uid-{name}");
                        children.contents.push(ContentMap { name: name.clone(), uid, ..ContentMap::default() });
                    }
                    let map = children.contents.iter_mut().find(|map| map.name == name).unwrap();
                    map.owners.insert(request.owner.uid.clone());
                }
            }
            Change::ReleaseContent { target, owner } => {
                let used = children.deployments.iter().flat_map(|d| mounted_maps(&d.object));
                let used: BTreeSet<String> = used.chain(children.replica_sets.iter().flat_map(|r| r.config_maps.clone())).collect();
                assert!(!used.contains(&target.name), "pods still use {}", target.name);
                let map = children.contents.iter_mut().find(|map| map.uid == target.uid).unwrap();
                assert!(map.owners.remove(owner));
                children.contents.retain(|map| !map.owners.is_empty());
            }
            Change::Delete(target) => {
                children.secrets.retain(|s| s.metadata.name.as_deref() != Some(&target.name));
            }
            Change::TakeOver(target) => {
                let deployments = children.deployments.iter_mut().map(|d| &mut d.object.metadata);
                let metas = deployments.chain(children.secrets.iter_mut().map(|s| &mut s.metadata));
                metas.filter(|m| m.name.as_deref() == Some(&target.name)).for_each(|m| m.finalizers = None);
            }
            Change::Reclaim(_) => {
                let live = &mut children.deployments[0].object.metadata;
                live.managed_fields = None;
            }
            Change::SetAnnotation { key, value } => self.annotate(key, value),
            Change::RemoveAnnotation { key } => self.unannotate(key),
            Change::Apply { .. } | Change::SetFinalizer { .. } => panic!("not expected here: {change:?}"),
        }
    }

    /// What an API server and its Deployment controller do.
    fn apply(&mut self, applied: &Deployment, first: bool) {
        let children = &mut self.snapshot.children;
        let missing = |name: &String| !children.contents.iter().any(|map| map.name == *name && map.owners.contains(support::UID));
        let content: Vec<String> = mounted_maps(applied).into_iter().filter(|n| n.starts_with("plugin-")).filter(missing).collect();
        assert_eq!(content, [] as [&str; 0], "it stands in the namespace before the pods mount it");
        assert_eq!(first, children.deployments.is_empty());
        if first {
            let mut object = applied.clone();
            object.metadata.uid = Some("uid-deployment".into());
            object.metadata.generation = Some(0);
            object.spec.as_mut().unwrap().template = PodTemplateSpec::default();
            children.deployments.push(Child { object, answered: None });
        }
        let live = &mut children.deployments[0].object;
        live.metadata.annotations.clone_from(&applied.metadata.annotations);
        let (spec, wanted) = (live.spec.as_mut().unwrap(), applied.spec.as_ref().unwrap());
        let rolls = spec.template != wanted.template;
        if rolls || (wanted.replicas.is_some() && spec.replicas != wanted.replicas) {
            live.metadata.generation = live.metadata.generation.map(|g| g + 1);
        }
        spec.replicas = wanted.replicas.or(spec.replicas);
        spec.template = wanted.template.clone();
        self.rolls += usize::from(rolls);
        self.control();
    }

    /// The Deployment controller: the template's ReplicaSet is the newest, and has the Deployment's annotations.
    pub(crate) fn control(&mut self) {
        let live = &self.snapshot.children.deployments[0].object;
        let template = live.spec.as_ref().unwrap().template.clone();
        let of = |set: &ReplicaSet| set.spec.as_ref().unwrap().template.as_ref() == Some(&template);
        let mut set = match self.sets.iter().position(of) {
            Some(index) => self.sets.remove(index),
            None => serde_json::from_value(json!({
                "metadata": {"name": format!("rs-{}", self.rolls), "ownerReferences": [
                    {"apiVersion": "apps/v1", "kind": "Deployment", "name": live.metadata.name, "uid": live.metadata.uid, "controller": true},
                ]},
                "spec": {"selector": {}, "template": template},
            }))
            .unwrap(),
        };
        // What the Deployment has no more, the ReplicaSet keeps.
        set.metadata.annotations.get_or_insert_default().extend(live.metadata.annotations.clone().unwrap_or_default());
        self.sets.push(set);
        self.snapshot.children.replica_sets = self.sets.iter().map(ReplicaSetFacts::of).collect();
    }

    /// `kubectl rollout undo`: the template before this one, and the annotations of its ReplicaSet in the place of all.
    pub(crate) fn undo(&mut self) {
        let former = self.sets[self.sets.len() - 2].clone();
        let live = &mut self.snapshot.children.deployments[0].object;
        live.metadata.annotations = former.metadata.annotations;
        live.metadata.generation = live.metadata.generation.map(|g| g + 1);
        live.spec.as_mut().unwrap().template = former.spec.unwrap().template.unwrap();
        self.rolls += 1;
        self.control();
    }

    /// All pods are of the newest ReplicaSet.
    pub(crate) fn roll_out(&mut self) {
        let Some(child) = self.snapshot.children.deployments.first_mut() else { return };
        let live = &mut child.object;
        let replicas = live.spec.as_ref().unwrap().replicas;
        let status = live.status.get_or_insert_default();
        status.observed_generation = live.metadata.generation;
        status.replicas = replicas;
        status.updated_replicas = replicas;
        status.ready_replicas = replicas;
        status.available_replicas = replicas;
    }

    /// The history of the Deployment is cut to its newest ReplicaSet.
    pub(crate) fn forget_history(&mut self) {
        self.sets.drain(..self.sets.len() - 1);
        self.snapshot.children.replica_sets = self.sets.iter().map(ReplicaSetFacts::of).collect();
    }
}
