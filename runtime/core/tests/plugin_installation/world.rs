//! A registry, two policies and an object: what the shell does around a pass.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use futures::executor::block_on;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use weir_api::{condition::Condition, keys, plugin_installation::KongPluginInstallationStatus};
use weir_core::{
    dataplane::snapshot::Operator,
    decisions::{Sealing, SealingKey},
    plan::{Change, Object, Plan},
    plugin_installation::{
        Need, Snapshot,
        content::Content,
        in_force, need, reconcile,
        snapshot::{Artifact, Claimant, Fetch, PullSecret},
    },
    policy::{
        BoxFuture, Chosen, Identity, OnFailure, Policies, Policy, PolicyError, Slot,
        conflict_resolution::{self, ConflictResolution},
        konnect_env::KonnectEnv,
        plugin_packaging::{self, Placement, Plugin, PluginPackaging},
    },
};

pub(crate) type Status = KongPluginInstallationStatus;
type Answer<S> = Result<<S as Slot>::Answer, PolicyError>;
type Says<S> = Box<dyn Fn(&<S as Slot>::Input) -> Answer<S> + Send + Sync>;

/// A policy in Rust.
pub(crate) struct Scripted<S: Slot> {
    identity: Identity,
    says: Says<S>,
    asked: AtomicUsize,
    pub(crate) last: Mutex<Option<serde_json::Value>>,
}

impl<S: Slot> Scripted<S> {
    pub(crate) fn new(digest: &str, says: impl Fn(&S::Input) -> Answer<S> + Send + Sync + 'static) -> Arc<Self> {
        let identity = Identity { source: "test".into(), digest: digest.into(), settings_digest: "s".into() };
        Arc::new(Self { identity, says: Box::new(says), asked: AtomicUsize::new(0), last: Mutex::new(None) })
    }

    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    /// The last question.
    pub(crate) fn last(&self) -> serde_json::Value {
        self.last.lock().unwrap().clone().unwrap()
    }
}

impl<S: Slot> Policy<S> for Scripted<S> {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn evaluate<'a>(&'a self, input: &'a S::Input) -> BoxFuture<'a, Answer<S>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        *self.last.lock().unwrap() = Some(serde_json::to_value(input).unwrap());
        let answer = (self.says)(input);
        let checked = answer.and_then(|answer| S::check(input, &answer).map(|()| answer).map_err(PolicyError::BadOutput));
        Box::pin(std::future::ready(checked))
    }
}

/// One plugin, named like the object or by its annotation, with all files below one folder.
pub(crate) fn one_plugin(input: &plugin_packaging::Input) -> plugin_packaging::Answer {
    let object = &input.context.object;
    let name = object.annotations.get(keys::PLUGIN_NAME).unwrap_or(&object.name).clone();
    let placements = input.files.iter().map(|f| Placement { source: f.path.clone(), target: f.path.clone() }).collect();
    let plugin = Plugin { name, version: Some("1.0.0".into()), priority: Some(10), placements };
    plugin_packaging::Answer { plugins: vec![plugin], lua_package_path: None, env: Vec::new(), findings: Vec::new() }
}

/// An artifact whose handler says this.
pub(crate) fn artifact(digest: &str, handler: &str) -> Artifact {
    let files = [("handler.lua", handler.as_bytes()), ("schema.lua", b"return {}"), ("logo.png", &[0xff, 0xfe])];
    Artifact {
        digest: digest.into(),
        files: files.into_iter().map(|(path, bytes)| (path.to_owned(), bytes.to_vec())).collect(),
        ..Artifact::default()
    }
}

pub(crate) struct World {
    pub(crate) snapshot: Snapshot,
    /// Artifacts by digest.
    pub(crate) registry: BTreeMap<String, Artifact>,
    /// Where the tag leads.
    pub(crate) tag: String,
    pub(crate) packaging: Arc<Scripted<PluginPackaging>>,
    pub(crate) conflicts: Arc<Scripted<ConflictResolution>>,
    /// What holds while one of the two fails.
    pub(crate) on_failure: OnFailure,
    /// Who is asked then under `Fallback`.
    pub(crate) other_packaging: Arc<Scripted<PluginPackaging>>,
    pub(crate) other_conflicts: Arc<Scripted<ConflictResolution>>,
    /// What was needed in the last pass.
    pub(crate) needed: Vec<Need>,
}

pub(crate) fn key() -> Sealing {
    Sealing::Key(SealingKey::new(vec![7; 32]))
}

impl World {
    pub(crate) fn new() -> Self {
        let installation = json!({
            "apiVersion": "gateway-operator.konghq.com/v1alpha1", "kind": "KongPluginInstallation",
            "metadata": {"name": "rate", "namespace": "ns", "uid": "uid-1", "generation": 1},
            "spec": {"image": "registry.example/rate:1"},
        });
        let snapshot = Snapshot {
            now: "2026-01-01T00:00:00Z".parse().unwrap(),
            operator: Operator::with_ca("sha256:ca".into()),
            installation: serde_json::from_value(installation).unwrap(),
            namespace_labels: BTreeMap::new(),
            pull_secret: PullSecret::Usable,
            verification: None,
            fetch: Fetch::NotAsked,
            claimants: Vec::new(),
            config_maps: Vec::new(),
            foreign: Vec::new(),
        };
        let mut world = Self {
            snapshot,
            registry: BTreeMap::new(),
            tag: String::new(),
            packaging: Scripted::new("p1", |input| Ok(one_plugin(input))),
            conflicts: Scripted::new("c1", |_| Err(PolicyError::Unavailable("nobody is asked here".into()))),
            on_failure: OnFailure::KeepLast,
            other_packaging: Scripted::new("p-builtin", |input| Ok(one_plugin(input))),
            other_conflicts: Scripted::new("c-builtin", |_| Ok(verdict(conflict_resolution::Verdict::KeepSome(vec![0, 1])))),
            needed: Vec::new(),
        };
        world.publish("sha256:one", "return {}");
        world
    }

    /// A world in which the first artifact is in force.
    pub(crate) fn installed() -> Self {
        let mut world = Self::new();
        world.pass();
        world.pass();
        assert_eq!(world.accepted().status, "True");
        world
    }

    /// Puts an artifact into the registry and moves the tag to it.
    pub(crate) fn publish(&mut self, digest: &str, handler: &str) {
        self.registry.insert(digest.into(), artifact(digest, handler));
        self.tag = digest.into();
    }

    pub(crate) fn annotate(&mut self, key: &str, value: &str) {
        self.snapshot.installation.metadata.annotations.get_or_insert_default().insert(key.into(), value.into());
    }

    pub(crate) fn annotation(&self, key: &str) -> Option<String> {
        self.snapshot.installation.metadata.annotations.as_ref()?.get(key).cloned()
    }

    pub(crate) fn image(&mut self, image: &str) {
        self.snapshot.installation.spec.image = image.into();
        self.snapshot.installation.metadata.generation = self.snapshot.installation.metadata.generation.map(|g| g + 1);
    }

    pub(crate) fn claimant(&mut self, name: &str) -> &mut Claimant {
        let claimant = Claimant {
            namespace: "gw".into(),
            name: name.into(),
            uid: format!("uid-{name}"),
            permitted: true,
            mounts: false,
            created: None,
        };
        self.snapshot.claimants.push(claimant);
        self.snapshot.claimants.last_mut().unwrap()
    }

    pub(crate) fn need(&self, resync_due: bool) -> Need {
        need(&self.snapshot, self.packaging.identity(), &key(), resync_due)
    }

    pub(crate) fn in_force(&self) -> Option<Content> {
        in_force(&self.snapshot.installation, &key())
    }

    /// The pass over the snapshot as it is, and nothing is carried out.
    pub(crate) fn dry(&self) -> Plan<Status> {
        let policies = Policies {
            konnect_env: Scripted::<KonnectEnv>::new("k1", |_| Err(PolicyError::Unavailable("nobody is asked here".into()))).into(),
            conflict_resolution: Chosen {
                policy: self.conflicts.clone(),
                on_failure: self.on_failure,
                fallback: Some(self.other_conflicts.clone()),
            },
            plugin_packaging: Chosen {
                policy: self.packaging.clone(),
                on_failure: self.on_failure,
                fallback: Some(self.other_packaging.clone()),
            },
            object_hooks: Default::default(),
        };
        block_on(reconcile(&self.snapshot, &policies, &key()))
    }

    pub(crate) fn pass(&mut self) -> Plan<Status> {
        self.pass_when(false)
    }

    /// What the shell does: ask what is needed, ask the registry, the pass, its changes.
    pub(crate) fn pass_when(&mut self, resync_due: bool) -> Plan<Status> {
        self.snapshot.fetch = Fetch::NotAsked;
        self.needed.clear();
        for _ in 0..3 {
            let need = self.need(resync_due);
            self.needed.push(need.clone());
            match need {
                Need::Nothing => break,
                Need::Digest => self.snapshot.fetch = Fetch::Resolved(self.tag.clone()),
                Need::Content { digest } => {
                    let digest = digest.unwrap_or_else(|| self.tag.clone());
                    let failed = |digest| Fetch::Failed { message: "no such manifest".into(), transient: false, digest: Some(digest) };
                    let found = self.registry.get(&digest).cloned();
                    self.snapshot.fetch = found.map_or_else(|| failed(digest), |found| Fetch::Fetched(Arc::new(found)));
                    break;
                }
            }
        }
        let plan = self.dry();
        self.carry_out(&plan);
        plan
    }

    pub(crate) fn carry_out(&mut self, plan: &Plan<Status>) {
        for change in &plan.changes {
            match change {
                Change::Apply { object: Object::ConfigMap(map), first } => {
                    assert!(first);
                    let mut meta = map.metadata.clone();
                    meta.uid = meta.name.clone();
                    self.snapshot.config_maps.push(meta);
                }
                Change::SetAnnotation { key, value } => self.annotate(key, value),
                Change::RemoveAnnotation { key } => {
                    self.snapshot.installation.metadata.annotations.as_mut().unwrap().remove(key);
                }
                Change::Delete(target) => self.snapshot.config_maps.retain(|meta| meta.name.as_ref() != Some(&target.name)),
                Change::Apply { .. }
                | Change::MintCertificate(_)
                | Change::ProvideContent(_)
                | Change::ReleaseContent { .. }
                | Change::TakeOver(_)
                | Change::Reclaim(_)
                | Change::SetFinalizer { .. } => panic!("no installation needs {change:?}"),
            }
        }
        if plan.status.is_some() {
            self.snapshot.installation.status.clone_from(&plan.status);
        }
    }

    pub(crate) fn condition(&self, type_: &str) -> Option<Condition> {
        self.snapshot.installation.status.as_ref()?.conditions.iter().flatten().find(|c| c.type_ == type_).cloned()
    }

    pub(crate) fn accepted(&self) -> Condition {
        self.condition("Accepted").unwrap()
    }

    /// Status, reason and message of a condition.
    pub(crate) fn said(&self, type_: &str) -> (String, String, String) {
        self.condition(type_).map(|c| (c.status, c.reason, c.message)).unwrap_or_default()
    }
}

pub(crate) fn applied(plan: &Plan<Status>) -> Vec<ConfigMap> {
    let map = |c: &Change| if let Change::Apply { object: Object::ConfigMap(map), .. } = c { Some((**map).clone()) } else { None };
    plan.changes.iter().filter_map(map).collect()
}

/// Changes in short.
pub(crate) fn steps(plan: &Plan<Status>) -> Vec<String> {
    let step = |change: &Change| match change {
        Change::Apply { object, .. } => format!("apply {}", object.kind().api().1),
        Change::SetAnnotation { key, .. } => format!("set {key}"),
        Change::RemoveAnnotation { key } => format!("remove {key}"),
        Change::Delete(target) => format!("delete {}", target.name),
        Change::MintCertificate(_)
        | Change::ProvideContent(_)
        | Change::ReleaseContent { .. }
        | Change::TakeOver(_)
        | Change::Reclaim(_)
        | Change::SetFinalizer { .. } => format!("{change:?}"),
    };
    plan.changes.iter().map(step).collect()
}

/// What the policy says to conflicts.
pub(crate) fn verdict(verdict: conflict_resolution::Verdict) -> conflict_resolution::Answer {
    conflict_resolution::Answer { resolutions: vec![conflict_resolution::Resolution { verdict, findings: Vec::new() }] }
}
