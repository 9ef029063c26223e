//! A DataPlane, its installations and two policies: what people change, a pass, and what is there after it.

use std::sync::Arc;

use futures::executor::block_on;
use k8s_openapi::api::{
    apps::v1::{Deployment, ReplicaSet},
    core::v1::{PodTemplateSpec, Volume, VolumeMount},
};
use serde_json::{Value, json};
use weir_api::{
    condition::Condition,
    dataplane::{DataPlaneSpec, DataPlaneStatus},
    keys,
};
use weir_core::{
    dataplane::{
        self, Snapshot,
        objects::{deployment::TEMPLATE_HASH, proxy::CLUSTER_CERTIFICATE_VOLUME},
        plugins::mounted_maps,
        snapshot::{Installation, Lookup, PluginUse, SecretFacts},
    },
    decisions::{Sealing, SealingKey},
    hash,
    konnect::Extension,
    plan::Plan,
    plugin_installation::{
        Standing,
        content::{Content, mounted_name},
    },
    policy::{
        Chosen, ConflictResolution, KonnectEnv, OnFailure, Policies, conflict_resolution::Verdict, plugin_packaging::PluginPackaging,
    },
};

use crate::{
    cluster::days,
    policies::{Scripted, content, environment, unavailable, verdicts},
    support,
};

pub(crate) type DataPlanePlan = Plan<DataPlaneStatus>;

pub(crate) struct World {
    pub(crate) snapshot: Snapshot,
    pub(crate) konnect: Arc<Scripted<KonnectEnv>>,
    pub(crate) conflicts: Arc<Scripted<ConflictResolution>>,
    /// What holds while one of the two fails.
    pub(crate) on_failure: OnFailure,
    /// Who is asked then under `Fallback`.
    pub(crate) other_konnect: Arc<Scripted<KonnectEnv>>,
    pub(crate) other_conflicts: Arc<Scripted<ConflictResolution>>,
    /// How often the pods were replaced.
    pub(crate) rolls: usize,
    /// ReplicaSets, the newest last.
    pub(crate) sets: Vec<ReplicaSet>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with_spec(&json!({"deployment": {"podTemplateSpec": {"spec": {"containers": [{"name": "proxy", "image": "kong:3.9"}]}}}}))
    }

    pub(crate) fn with_spec(spec: &Value) -> Self {
        Self {
            snapshot: support::with_spec(spec),
            konnect: environment("k1", None),
            conflicts: verdicts("c1", |_| Verdict::Keep(0)),
            on_failure: OnFailure::KeepLast,
            other_konnect: environment("k-builtin", Some("builtin")),
            other_conflicts: verdicts("c-builtin", |_| Verdict::Keep(1)),
            rolls: 0,
            sets: Vec::new(),
        }
    }

    /// A world in which the installation `ns/rate` is in the pods.
    pub(crate) fn installed() -> Self {
        let mut world = Self::new();
        world.install("ns/rate", &content(&["rate"], "1.0.0"));
        world.converge();
        world
    }

    /// The owner changes the spec.
    pub(crate) fn edit(&mut self, change: impl FnOnce(&mut DataPlaneSpec)) {
        change(&mut self.snapshot.data_plane.spec);
        let generation = &mut self.snapshot.data_plane.metadata.generation;
        *generation = generation.map(|g| g + 1);
    }

    pub(crate) fn image(&mut self, image: &str) {
        self.edit(|spec| {
            let pod = spec.deployment.as_mut().unwrap().pod_template_spec.as_mut().unwrap();
            pod.spec.as_mut().unwrap().containers[0].image = Some(image.into());
        });
    }

    pub(crate) fn scale(&mut self, replicas: i32) {
        self.edit(|spec| spec.deployment.as_mut().unwrap().replicas = Some(replicas));
    }

    pub(crate) fn annotate(&mut self, key: &str, value: &str) {
        support::annotate(&mut self.snapshot, key, value);
    }

    pub(crate) fn unannotate(&mut self, key: &str) {
        self.snapshot.data_plane.metadata.annotations.as_mut().unwrap().remove(key);
    }

    /// The owner names an installation that gives this.
    pub(crate) fn install(&mut self, reference: &str, content: &Arc<Content>) {
        self.name_installation(reference);
        self.publish(reference, content);
    }

    /// The owner names an installation, which is not there.
    pub(crate) fn name_installation(&mut self, reference: &str) {
        let (namespace, name) = reference.split_once('/').unwrap();
        self.edit(|spec| {
            let entry = serde_json::from_value(json!({"namespace": namespace, "name": name})).unwrap();
            spec.plugins_to_install.get_or_insert_default().push(entry);
        });
        let (namespace, name) = (namespace.into(), name.into());
        self.snapshot.plugins.push(PluginUse { namespace, name, installation: Lookup::Missing, permitted: true });
    }

    /// The owner no longer names it.
    pub(crate) fn uninstall(&mut self, reference: &str) {
        self.edit(|spec| {
            let of = |namespace: Option<&str>, name: &str| format!("{}/{name}", namespace.unwrap_or("ns"));
            spec.plugins_to_install.as_mut().unwrap().retain(|p| of(p.namespace.as_deref(), &p.name) != reference);
        });
        self.snapshot.plugins.retain(|p| format!("{}/{}", p.namespace, p.name) != reference);
    }

    pub(crate) fn publish(&mut self, reference: &str, content: &Arc<Content>) {
        let content = Some(Arc::clone(content));
        self.plugin(reference).installation =
            Lookup::Found(Installation { content, stored: true, standing: Standing::Granted, problem: None });
    }

    pub(crate) fn plugin(&mut self, reference: &str) -> &mut PluginUse {
        self.snapshot.plugins.iter_mut().find(|p| format!("{}/{}", p.namespace, p.name) == reference).unwrap()
    }

    /// The installation, which is there.
    pub(crate) fn installation(&mut self, reference: &str) -> &mut Installation {
        match &mut self.plugin(reference).installation {
            Lookup::Found(installation) => installation,
            Lookup::Missing | Lookup::Unknown => panic!("{reference} is not there"),
        }
    }

    /// The owner names an extension.
    pub(crate) fn extend(&mut self) {
        self.name_extension("k");
        self.region("us");
        self.client_certificate("sha256:client-1");
    }

    pub(crate) fn name_extension(&mut self, name: &str) {
        self.edit(|spec| {
            let reference = json!({"group": keys::GATEWAY_OPERATOR_GROUP, "kind": "KonnectExtension", "name": name});
            spec.extensions = Some(vec![serde_json::from_value(reference).unwrap()]);
        });
    }

    pub(crate) fn region(&mut self, region: &str) {
        self.extension(region, "tls");
    }

    /// The extension is of this region, and its certificate is in this Secret.
    pub(crate) fn extension(&mut self, region: &str, secret: &str) {
        let extension = json!({
            "apiVersion": "gateway-operator.konghq.com/v1alpha1", "kind": "KonnectExtension",
            "metadata": {"name": "k", "namespace": "ns"},
            "spec": {
                "controlPlaneRef": {"type": "konnectID", "konnectID": "abc"}, "controlPlaneRegion": region,
                "konnectControlPlaneAPIAuthConfiguration": {"clusterCertificateSecretRef": {"name": secret}},
            },
        });
        self.snapshot.extension = Lookup::Found(Extension::TokenFree(Box::new(serde_json::from_value(extension).unwrap())));
    }

    pub(crate) fn client_certificate(&mut self, digest: &str) {
        self.secret("tls", digest, None);
    }

    /// A Secret with a client certificate that ends in so many days from now.
    pub(crate) fn secret(&mut self, name: &str, digest: &str, ends: Option<i64>) {
        let keys = [("tls.crt".to_owned(), digest.to_owned()), ("tls.key".to_owned(), "sha256:key".to_owned())].into();
        let ends = ends.map(|ends| self.snapshot.now + days(ends));
        self.snapshot.secrets.insert(name.into(), Lookup::Found(SecretFacts { keys, ends, ..SecretFacts::default() }));
    }

    /// As if another version had rendered what is live, without a variable that this one has.
    pub(crate) fn another_version(&mut self) {
        let live = &mut self.snapshot.children.deployments[0].object;
        let template: &mut PodTemplateSpec = &mut live.spec.as_mut().unwrap().template;
        template.spec.as_mut().unwrap().containers[0].env.as_mut().unwrap().retain(|v| v.name != "KONG_PORT_MAPS");
        let hash = hash::digest_json(template);
        let annotations = live.metadata.annotations.as_mut().unwrap();
        annotations.insert(TEMPLATE_HASH.into(), hash);
        annotations.insert(keys::OPERATOR_VERSION.into(), "0.0.1".into());
    }

    /// The pass over the snapshot as it is, and nothing is carried out.
    pub(crate) fn dry(&self) -> DataPlanePlan {
        let policies = Policies {
            konnect_env: Chosen { policy: self.konnect.clone(), on_failure: self.on_failure, fallback: Some(self.other_konnect.clone()) },
            conflict_resolution: Chosen {
                policy: self.conflicts.clone(),
                on_failure: self.on_failure,
                fallback: Some(self.other_conflicts.clone()),
            },
            plugin_packaging: unavailable::<PluginPackaging>("p1").into(),
            object_hooks: Default::default(),
        };
        block_on(dataplane::reconcile(&self.snapshot, &policies, &Sealing::Key(SealingKey::new(vec![7; 32]))))
    }

    /// A pass, carried out.
    pub(crate) fn pass(&mut self) -> DataPlanePlan {
        let plan = self.dry();
        plan.changes.iter().for_each(|change| self.carry_out(change));
        self.snapshot.data_plane.status.clone_from(&plan.status);
        plan
    }

    /// Passes and rollouts until nothing is left to do. What was planned first is returned.
    pub(crate) fn converge(&mut self) -> DataPlanePlan {
        let first = self.pass();
        for _ in 0..4 {
            self.roll_out();
            let plan = self.pass();
            if plan.changes.is_empty() && !plan.status_changed {
                return first;
            }
        }
        panic!("it never ends: {:?}", self.dry());
    }

    /// Nothing is left to do.
    pub(crate) fn is_steady(&self) -> bool {
        let plan = self.dry();
        plan.changes.is_empty() && !plan.status_changed
    }

    pub(crate) fn live(&self) -> &Deployment {
        &self.snapshot.children.deployments[0].object
    }

    pub(crate) fn template(&self) -> &PodTemplateSpec {
        &self.live().spec.as_ref().unwrap().template
    }

    /// Hash of the template in force.
    pub(crate) fn hash(&self) -> String {
        support::annotation(self.live(), TEMPLATE_HASH).unwrap()
    }

    pub(crate) fn env(&self, name: &str) -> Option<String> {
        let env = self.template().spec.as_ref().unwrap().containers[0].env.iter().flatten();
        env.filter(|v| v.name == name).find_map(|v| v.value.clone())
    }

    pub(crate) fn volume(&self, name: &str) -> Option<&Volume> {
        self.template().spec.as_ref().unwrap().volumes.iter().flatten().find(|v| v.name == name)
    }

    /// Secret of the admin certificate.
    pub(crate) fn certificate(&self) -> String {
        self.volume(CLUSTER_CERTIFICATE_VOLUME).unwrap().secret.clone().unwrap().secret_name.unwrap()
    }

    pub(crate) fn mount(&self, path: &str) -> Option<&VolumeMount> {
        self.template().spec.as_ref().unwrap().containers[0].volume_mounts.iter().flatten().find(|m| m.mount_path == path)
    }

    /// Whether the pods mount this content.
    pub(crate) fn mounts(&self, content: &Content) -> bool {
        let mounted = mounted_maps(self.live());
        (0..content.maps).all(|index| mounted.contains(&mounted_name(&content.hash, index)))
    }

    /// Whether its ConfigMaps stand in the namespace.
    pub(crate) fn holds(&self, content: &Content) -> bool {
        let there = |name| self.snapshot.children.contents.iter().any(|map| map.name == name);
        (0..content.maps).all(|index| there(mounted_name(&content.hash, index)))
    }

    pub(crate) fn condition(&self, type_: &str) -> Option<Condition> {
        self.snapshot.data_plane.status.as_ref()?.conditions.iter().flatten().find(|c| c.type_ == type_).cloned()
    }

    /// Status, reason and message of a condition.
    pub(crate) fn said(&self, type_: &str) -> (String, String, String) {
        self.condition(type_).map(|c| (c.status, c.reason, c.message)).unwrap_or_default()
    }

    /// Status and reason of a condition, as `True/Installed`.
    pub(crate) fn word(&self, type_: &str) -> String {
        self.condition(type_).map(|c| format!("{}/{}", c.status, c.reason)).unwrap_or_default()
    }

    /// The annotation for machines.
    pub(crate) fn machine(&self) -> Value {
        let annotations = self.snapshot.data_plane.metadata.annotations.as_ref().unwrap();
        serde_json::from_str(&annotations[keys::PLUGINS]).unwrap()
    }

    /// The record of answers on the Deployment.
    pub(crate) fn decisions(&self) -> Value {
        serde_json::from_str(&support::annotation(self.live(), keys::DECISIONS).unwrap()).unwrap()
    }

    /// Hash that waits, from the condition.
    pub(crate) fn pending(&self) -> String {
        let (_, _, message) = self.said("RolloutHeld");
        let word = message.split_whitespace().find(|word| word.starts_with("sha256:")).unwrap_or_else(|| panic!("{message}"));
        word.trim_end_matches(';').to_owned()
    }
}
