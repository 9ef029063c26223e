//! Properties: a plan is deterministic, planning what was applied wants nothing, and no Secret value reaches a policy.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use futures::executor::block_on;
use k8s_openapi::{ByteString, api::core::v1::Secret};
use libtest_mimic::Trial;
use proptest::{
    prelude::*,
    test_runner::{Config, TestRunner},
};
use serde_json::{Value, json};
use weir_api::{dataplane::DataPlane, konnect_extension::KonnectExtension};
use weir_core::{
    dataplane::{
        self,
        snapshot::{Child, Children, Lookup, Operator, SecretFacts, Snapshot},
    },
    decisions::Sealing,
    hash,
    konnect::Extension,
    names,
    plan::{Change, Object, Plan},
    policy::{BoxFuture, ConflictResolution, Identity, KonnectEnv, Policies, Policy, PolicyError, Slot},
};

use crate::support::{defaults, test};

const SECRET_VALUE: &str = "-----BEGIN PRIVATE KEY----- very-secret-bytes";

pub(crate) fn tests() -> Vec<Trial> {
    vec![
        test("property plan is deterministic", deterministic),
        test("property plan of what was applied is empty", idempotent),
        test("property no Secret value reaches a policy", secretless),
        test("a missing Secret holds what it shapes and nothing else", missing_secret),
        test("a sealed answer is believed with its key only", sealed),
    ]
}

fn cases(n: u32, check: impl Fn(Value) -> Result<(), TestCaseError>) {
    let mut runner = TestRunner::new(Config { cases: n, failure_persistence: None, ..Config::default() });
    runner.run(&spec(), check).unwrap();
}

/// Specs that pass schema and rules, with and without mistakes that only `validate` finds.
fn spec() -> impl Strategy<Value = Value> {
    let env_name = prop::sample::select(vec![
        "KONG_LOG_LEVEL",
        "KONG_PLUGINS",
        "KONG_ROLE",
        "KONG_VITALS",
        "A",
        "Z",
        "KONG_PROXY_LISTEN",
        "KONG_CLUSTER_CERT",
    ]);
    let env_value = prop::sample::select(vec!["debug", "bundled,mine", "$(A)", "", "off", "0.0.0.0:8000"]);
    let env = prop::collection::btree_map(env_name, env_value, 0..6);
    let image = prop::sample::select(vec!["kong:3.9", "kong/kong-gateway:3.11", "mycorp/kong:prod", "kong:2.8", "registry:5000/kong"]);
    let scaling = prop::sample::select(vec![json!({"replicas": 2}), json!({}), json!({"scaling": {"horizontal": {"maxReplicas": 4}}})]);
    let service = prop::sample::select(vec![
        json!({}),
        json!({"type": "ClusterIP"}),
        json!({"name": "front", "ports": [{"port": 53, "protocol": "UDP"}, {"port": 53}]}),
    ]);
    let order = any::<bool>();
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    (env, image, scaling, service, order, flags).prop_map(
        |(env, image, scaling, service, sidecar_first, (konnect, hardened, budget, volume))| {
            let env: Vec<Value> = env.into_iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
            let mut containers = vec![json!({"name": "proxy", "image": image, "env": env})];
            if sidecar_first {
                containers.insert(0, json!({"name": "sidecar", "image": "busybox:1"}));
            }
            let mut pod = json!({"containers": containers});
            if volume {
                pod["volumes"] = json!([{"name": "cluster-certificate", "emptyDir": {}}, {"name": "mine", "emptyDir": {}}]);
            }
            let mut deployment = scaling;
            deployment["podTemplateSpec"] = json!({"spec": pod});
            if hardened {
                deployment["hardened"] = json!("enabled");
            }
            let mut spec = json!({"deployment": deployment, "network": {"services": {"ingress": service}}});
            if budget {
                spec["resources"] = json!({"podDisruptionBudget": {"spec": {"minAvailable": "50%"}}});
            }
            if konnect {
                spec["extensions"] = json!([{"group": "gateway-operator.konghq.com", "kind": "KonnectExtension", "name": "k"}]);
            }
            spec
        },
    )
}

fn extension() -> KonnectExtension {
    serde_json::from_value(json!({
        "apiVersion": "gateway-operator.konghq.com/v1alpha1", "kind": "KonnectExtension", "metadata": {"name": "k", "namespace": "ns"},
        "spec": {
            "controlPlaneRef": {"type": "konnectID", "konnectID": "abc"},
            "konnectControlPlaneAPIAuthConfiguration": {"clusterCertificateSecretRef": {"name": "tls"}},
            "clusterDataPlaneLabels": {"a": "b"},
        },
    }))
    .unwrap()
}

fn snapshot(spec: &Value) -> Snapshot {
    let object = json!({
        "apiVersion": "gateway-operator.konghq.com/v1beta1", "kind": "DataPlane",
        "metadata": {"name": "gw", "namespace": "ns", "uid": "0b5a1f0e-3f53-4c1c-9c62-7a2b6f6c1a11", "generation": 1}, "spec": spec,
    });
    let data_plane: DataPlane = serde_json::from_value(object).unwrap();
    let secret = Secret {
        data: Some(BTreeMap::from([("tls.crt".into(), bytes("certificate")), ("tls.key".into(), bytes(SECRET_VALUE))])),
        ..Secret::default()
    };
    let keys = secret.data.iter().flatten().map(|(k, v)| (k.clone(), hash::digest(&v.0))).collect();
    Snapshot {
        now: "2026-01-01T00:00:00Z".parse().unwrap(),
        operator: Operator::with_ca("sha256:ca".into()),
        data_plane,
        namespace_labels: BTreeMap::new(),
        extension: Lookup::Found(Extension::TokenFree(Box::new(extension()))),
        namesake: false,
        secrets: BTreeMap::from([(
            "tls".into(),
            Lookup::Found(SecretFacts { keys, type_: "kubernetes.io/tls".into(), ..SecretFacts::default() }),
        )]),
        plugins: Vec::new(),
        children: Children::default(),
    }
}

fn bytes(text: &str) -> ByteString {
    ByteString(text.as_bytes().to_vec())
}

type DataPlanePlan = Plan<weir_api::dataplane::DataPlaneStatus>;

fn plan(snapshot: &Snapshot) -> DataPlanePlan {
    block_on(dataplane::reconcile(snapshot, &defaults(), &Sealing::Open))
}

fn deterministic() {
    cases(48, |spec| {
        let snapshot = snapshot(&spec);
        prop_assert_eq!(plan(&snapshot), plan(&snapshot.clone()));
        Ok(())
    });
}

/// What the API server would have after the plan: our objects with server-side additions, and the certificate minted.
fn apply(snapshot: &Snapshot, plan: &DataPlanePlan) -> Snapshot {
    let mut next = snapshot.clone();
    next.data_plane.status = plan.status.clone();
    for change in &plan.changes {
        match change {
            Change::Apply { object, first: _ } => store(&mut next.children, object),
            Change::MintCertificate(request) => next.children.secrets.push(SecretFacts {
                metadata: request.metadata.clone(),
                type_: "kubernetes.io/tls".into(),
                keys: BTreeMap::new(),
                unusable: None,
                ends: None,
            }),
            Change::Delete(target) => panic!("nothing is there to delete: {target:?}"),
            Change::ProvideContent(request) => panic!("no plugin was named: {request:?}"),
            Change::ReleaseContent { target, owner: _ } => panic!("no plugin was named: {target:?}"),
            Change::TakeOver(target) => panic!("nothing of Kong's operator is there: {target:?}"),
            Change::Reclaim(target) => panic!("nobody undid a rollout: {target:?}"),
            Change::SetFinalizer { key, .. } => panic!("a DataPlane has no finalizer: {key}"),
            Change::SetAnnotation { key, .. } | Change::RemoveAnnotation { key } => panic!("no annotation was given: {key}"),
        }
    }
    next
}

fn store(children: &mut Children, object: &Object) {
    let mut json = object.to_json();
    // The server fills in what we do not send.
    json["metadata"]["uid"] = json!(names::offline_uid("child", "ns", object.meta().name.as_deref().unwrap()));
    json["metadata"]["resourceVersion"] = json!("7");
    if json["kind"] == "Service" {
        json["spec"]["sessionAffinity"] = json!("None");
    }
    let child = |json: Value| Child { object: json, answered: None };
    match object {
        Object::Service(_) => children.services.push(typed(child(json))),
        Object::Deployment(_) => children.deployments.push(typed(child(json))),
        Object::HorizontalPodAutoscaler(_) => children.autoscalers.push(typed(child(json))),
        Object::PodDisruptionBudget(_) => children.disruption_budgets.push(typed(child(json))),
        Object::Certificate(_) | Object::ConfigMap(_) => panic!("no spec asks for one"),
    }
}

fn typed<T: serde::de::DeserializeOwned>(child: Child<Value>) -> Child<T> {
    Child { object: serde_json::from_value(child.object).unwrap(), answered: None }
}

fn idempotent() {
    cases(48, |spec| {
        let first = snapshot(&spec);
        let applied = apply(&first, &plan(&first));
        let second = plan(&applied);
        prop_assert!(second.changes.is_empty(), "the second pass still wants {:#?}", second.changes);
        // The status has seen the children now; a third pass has nothing to say.
        let mut settled = applied;
        settled.data_plane.status = second.status;
        let third = plan(&settled);
        prop_assert!(!third.status_changed && third.changes.is_empty());
        Ok(())
    });
}

/// Remembers every input it is asked with.
struct Spy<S: Slot> {
    inner: Arc<dyn Policy<S>>,
    seen: Arc<Mutex<Vec<String>>>,
}

impl<S: Slot> Policy<S> for Spy<S> {
    fn identity(&self) -> &Identity {
        self.inner.identity()
    }

    fn evaluate<'a>(&'a self, input: &'a S::Input) -> BoxFuture<'a, Result<S::Answer, PolicyError>> {
        self.seen.lock().unwrap().push(serde_json::to_string(input).unwrap());
        self.inner.evaluate(input)
    }
}

fn secretless() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let real = defaults();
    let policies = Policies {
        konnect_env: real.konnect_env.map(|inner| Arc::new(Spy::<KonnectEnv> { inner, seen: seen.clone() })),
        conflict_resolution: real.conflict_resolution.map(|inner| Arc::new(Spy::<ConflictResolution> { inner, seen: seen.clone() })),
        plugin_packaging: real.plugin_packaging,
        object_hooks: real.object_hooks,
    };
    cases(48, |spec| {
        let snapshot = snapshot(&spec);
        let plan = block_on(dataplane::reconcile(&snapshot, &policies, &Sealing::Open));
        let everything = format!("{plan:?} {snapshot:?}");
        prop_assert!(!everything.contains("very-secret-bytes"), "a Secret value is in the plan or the snapshot");
        Ok(())
    });
    let seen = seen.lock().unwrap();
    assert!(seen.iter().any(|input| input.contains("\"secretName\":\"tls\"")), "the konnect-env policy was asked with the Secret's name");
    assert!(seen.iter().any(|input| input.contains("conflicts")), "the conflict-resolution policy was asked");
    let leaked: Vec<&String> =
        seen.iter().filter(|input| input.contains("very-secret-bytes") || input.contains(&hex_of(SECRET_VALUE))).collect();
    assert!(leaked.is_empty(), "{leaked:?}");
}

/// Not even the digest of a private key is of use to a policy.
fn hex_of(text: &str) -> String {
    hash::digest(text.as_bytes())
}

fn konnect_spec() -> Value {
    json!({
        "extensions": [{"group": "gateway-operator.konghq.com", "kind": "KonnectExtension", "name": "k"}],
        "deployment": {"podTemplateSpec": {"spec": {"containers": [{"name": "proxy", "image": "kong:3.9"}]}}},
    })
}

/// `weir plan` cannot see this: it knows of a cluster's Secrets only what manifests say.
fn missing_secret() {
    let mut snapshot = snapshot(&konnect_spec());
    snapshot.secrets.insert("tls".into(), Lookup::Missing);
    let plan = plan(&snapshot);
    let kinds: Vec<_> =
        plan.changes.iter().filter_map(|c| if let Change::Apply { object, .. } = c { Some(object.kind()) } else { None }).collect();
    assert_eq!(kinds, [weir_core::plan::ChildKind::Service, weir_core::plan::ChildKind::Service]);
    let conditions = plan.status.unwrap().conditions.unwrap();
    let applied = conditions.iter().find(|c| c.type_ == "KonnectExtensionApplied").unwrap();
    assert_eq!((applied.status.as_str(), applied.reason.as_str()), ("False", "InvalidSecret"));
    assert!(applied.message.contains("\"tls\"") && applied.message.contains("does not exist"), "{}", applied.message);
}

/// Fails whatever it is asked.
struct Down(Identity);

impl<S: Slot> Policy<S> for Down {
    fn identity(&self) -> &Identity {
        &self.0
    }

    fn evaluate<'a>(&'a self, _: &'a S::Input) -> BoxFuture<'a, Result<S::Answer, PolicyError>> {
        Box::pin(std::future::ready(Err(PolicyError::Unavailable("down".into()))))
    }
}

fn sealed() {
    let key = |byte: u8| Sealing::Key(weir_core::decisions::SealingKey::new(vec![byte; 32]));
    let first = snapshot(&konnect_spec());
    let applied = apply(&first, &block_on(dataplane::reconcile(&first, &defaults(), &key(7))));
    let mut next = applied;
    let edited = json!({"spec": {"containers": [{"name": "proxy", "image": "kong:3.10"}]}});
    next.data_plane.spec.deployment.as_mut().unwrap().pod_template_spec = serde_json::from_value(edited).unwrap();
    let identity = Identity { source: "down".into(), digest: "sha256:0".into(), settings_digest: "sha256:0".into() };
    let down = Policies {
        konnect_env: Arc::new(Down(identity)).into(),
        conflict_resolution: defaults().conflict_resolution,
        plugin_packaging: defaults().plugin_packaging,
        object_hooks: defaults().object_hooks,
    };

    let kept = block_on(dataplane::reconcile(&next, &down, &key(7)));
    let text = format!("{:?}", kept.changes);
    assert!(text.contains("kong:3.10") && text.contains("KONG_CLUSTER_CONTROL_PLANE"), "new image, old environment: {text}");

    let other = block_on(dataplane::reconcile(&next, &down, &key(8)));
    assert!(!format!("{:?}", other.changes).contains("kong:3.10"), "what cannot be believed is no answer: {:?}", other.changes);
    assert!(other.findings.iter().any(|f| f.code == "DecisionsUnverified"), "{:?}", other.findings);
    assert!(other.events.iter().any(|e| e.reason == "DecisionsUnverified"), "{:?}", other.events);
}
