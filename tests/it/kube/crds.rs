//! What the API server itself lets in and refuses (facts/kong-operator.md, appendix A and B.1).

use libtest_mimic::Trial;
use serde_json::{Value, json};

use super::{
    api::{self, EXTENSION, Failure, INSTALLATION},
    labs::shared,
    ns::Ns,
    shape::{containers, extension, gateway, gateway_with, merge},
};

pub(crate) fn tests() -> Vec<Trial> {
    vec![
        shared("crds rules of a DataPlane", rules),
        shared("crds limits of a DataPlane", limits),
        shared("crds the extension and the installation", others),
    ]
}

/// What is tried, and words of the refusal; none when it has to be let in.
pub(super) type Row = (&'static str, Value, Option<&'static str>);

/// Tries every row without storing anything, and reports all that are wrong.
pub(super) async fn check(ns: &Ns, rows: Vec<Row>) {
    let mut wrong = Vec::new();
    for (what, object, refusal) in rows {
        match (try_create(ns, &object).await, refusal) {
            (Ok(_), None) => {}
            (Ok(_), Some(words)) => wrong.push(format!("{what}: was let in, not refused with {words:?}")),
            (Err(failure), None) => wrong.push(format!("{what}: {}", failure.message)),
            (Err(failure), Some(words)) if failure.message.contains(words) => {}
            (Err(failure), Some(words)) => wrong.push(format!("{what}: refused, but not with {words:?}: {}", failure.message)),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

pub(super) async fn try_create(ns: &Ns, object: &Value) -> Result<Value, Failure> {
    let mut object = object.clone();
    object["metadata"]["namespace"] = ns.name.clone().into();
    api::create(&ns.client, &ns.name, &object, "test", "dryRun=All").await
}

pub(super) fn with(spec: Value) -> Value {
    gateway_with("a", json!({"spec": spec}))
}

pub(super) fn ingress(block: Value) -> Value {
    with(json!({"network": {"services": {"ingress": block}}}))
}

fn env(list: Value) -> Value {
    gateway_with("a", containers(json!([{"name": "proxy", "image": "kong:3.9", "env": list}])))
}

fn budget(spec: Value) -> Value {
    with(json!({"resources": {"podDisruptionBudget": {"spec": spec}}}))
}

pub(super) fn reference(reference: Value) -> Value {
    with(json!({"extensions": [reference]}))
}

async fn rules(ns: Ns) {
    let horizontal = json!({"horizontal": {"maxReplicas": 3}});
    let no_pod = json!({"apiVersion": "gateway-operator.konghq.com/v1beta1", "kind": "DataPlane", "metadata": {"name": "a"}, "spec": {}});
    let mut no_spec = no_pod.clone();
    no_spec.as_object_mut().unwrap().remove("spec");
    let sidecar_first = json!([
        {"name": "side", "image": "a"},
        {"name": "proxy", "image": "kong:3.9", "env": [{"name": "KONG_DATABASE", "value": "postgres"}]}
    ]);
    let extension = |group: &str, kind: &str| reference(json!({"group": group, "kind": kind, "name": "k"}));
    let rows: Vec<Row> = vec![
        ("an image", gateway("a"), None),
        ("no spec", no_spec, Some("image of Kong")),
        ("an empty spec", no_pod, Some("image of Kong")),
        ("a proxy without image", gateway_with("a", containers(json!([{"name": "proxy"}]))), Some("image of Kong")),
        ("no proxy", gateway_with("a", containers(json!([{"name": "kong", "image": "kong:3.9"}]))), Some("image of Kong")),
        ("no container", gateway_with("a", containers(json!([]))), Some("image of Kong")),
        ("database off", env(json!([{"name": "KONG_DATABASE", "value": "off"}])), None),
        ("database empty", env(json!([{"name": "KONG_DATABASE", "value": ""}])), None),
        (
            "database from elsewhere",
            env(json!([{"name": "KONG_DATABASE", "valueFrom": {"configMapKeyRef": {"name": "a", "key": "b"}}}])),
            None,
        ),
        ("database postgres", env(json!([{"name": "KONG_DATABASE", "value": "postgres"}])), Some("without a database")),
        (
            "database postgres, listed late",
            env(json!([{"name": "A", "value": "1"}, {"name": "KONG_DATABASE", "value": "postgres"}])),
            Some("without a database"),
        ),
        ("database behind a sidecar", gateway_with("a", containers(sidecar_first)), None),
        ("the token-free extension", extension("gateway-operator.konghq.com", "KonnectExtension"), None),
        ("the other extension", extension("konnect.konghq.com", "KonnectExtension"), None),
        ("an extension of a foreign group", extension("example.com", "KonnectExtension"), Some("one sort of extension")),
        ("a foreign kind", extension("gateway-operator.konghq.com", "DataPlaneMetricsExtension"), Some("one sort of extension")),
        (
            "an extension elsewhere",
            reference(json!({"kind": "KonnectExtension", "name": "k", "namespace": "elsewhere"})),
            Some("own namespace"),
        ),
        ("replicas", with(json!({"deployment": {"replicas": 0}})), None),
        ("scaling", with(json!({"deployment": {"scaling": horizontal}})), None),
        ("replicas and scaling", with(json!({"deployment": {"replicas": 2, "scaling": horizontal}})), Some("not both")),
        ("nodePort on a load balancer", ingress(json!({"ports": [{"port": 80, "nodePort": 30080}]})), None),
        ("nodePort on NodePort", ingress(json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": 30080}]})), None),
        (
            "nodePort on ClusterIP",
            ingress(json!({"type": "ClusterIP", "ports": [{"port": 80, "nodePort": 30080}]})),
            Some("nodePort needs"),
        ),
        ("external policy", ingress(json!({"type": "NodePort", "externalTrafficPolicy": "Local"})), None),
        (
            "external policy on ClusterIP",
            ingress(json!({"type": "ClusterIP", "externalTrafficPolicy": "Local"})),
            Some("externalTrafficPolicy needs"),
        ),
        ("internal policy on ClusterIP", ingress(json!({"type": "ClusterIP", "internalTrafficPolicy": "Local"})), None),
        ("budget by minimum", budget(json!({"minAvailable": 1})), None),
        ("budget by percentage", budget(json!({"maxUnavailable": "25%"})), None),
        ("budget by both", budget(json!({"minAvailable": 1, "maxUnavailable": 1})), Some("exactly one")),
        ("budget by none", budget(json!({})), Some("exactly one")),
    ];
    check(&ns, rows).await;
}

/// So many labels.
fn many(count: usize) -> Value {
    (0..count).map(|n| (format!("k{n}"), Value::from("v"))).collect::<serde_json::Map<_, _>>().into()
}

async fn limits(ns: Ns) {
    let deployment = |field: &str, value: Value| with(json!({"deployment": {field: value}}));
    let ports = |count: i32| ingress(json!({"ports": (1..=count).map(|port| json!({"port": port})).collect::<Vec<_>>()}));
    let port = |port: Value| ingress(json!({"ports": [port]}));
    let label = |value: String| ingress(json!({"labels": {"a": value}}));
    let rollout = |promotion: Value| with(json!({"deployment": {"rollout": {"strategy": {"blueGreen": {"promotion": promotion}}}}}));
    let two = json!([{"kind": "KonnectExtension", "name": "a"}, {"kind": "KonnectExtension", "name": "b"}]);
    let limit = |value: &str| {
        let resources = json!({"limits": {"memory": value}});
        gateway_with("a", containers(json!([{"name": "proxy", "image": "kong:3.9", "resources": resources}])))
    };
    let named = |name: String| reference(json!({"kind": "KonnectExtension", "name": name}));
    let rows: Vec<Row> = vec![
        ("64 labels", deployment("labels", many(64)), None),
        ("65 labels", deployment("labels", many(65)), Some("64")),
        ("64 annotations", deployment("annotations", many(64)), None),
        ("65 annotations", deployment("annotations", many(65)), Some("64")),
        ("hardened", deployment("hardened", json!("enabled")), None),
        ("hardened in other words", deployment("hardened", json!("yes")), Some("Unsupported value")),
        ("the largest int32", deployment("replicas", json!(2_147_483_647_i64)), None),
        ("more than int32", deployment("replicas", json!(2_147_483_648_i64)), Some("int32")),
        ("replicas as text", deployment("replicas", json!("3")), Some("integer")),
        ("scaling without maximum", deployment("scaling", json!({"horizontal": {"minReplicas": 1}})), Some("maxReplicas")),
        ("a promotion", rollout(json!({"strategy": "BreakBeforePromotion"})), None),
        ("an automatic promotion", rollout(json!({"strategy": "AutomaticPromotion"})), Some("Unsupported value")),
        ("a rollout without strategy", deployment("rollout", json!({})), Some("strategy")),
        ("two extensions", with(json!({"extensions": two})), Some("at most 1")),
        ("an extension without kind", reference(json!({"name": "a"})), Some("kind")),
        ("an extension without name", reference(json!({"kind": "KonnectExtension"})), Some("name")),
        ("a name of 0", named(String::new()), Some("at least 1")),
        ("a name of 253", named("a".repeat(253)), None),
        ("a name of 254", named("a".repeat(254)), Some("253")),
        ("64 ports", ports(64), None),
        ("65 ports", ports(65), Some("at most 64")),
        ("a port without number", port(json!({"name": "http"})), Some("Required value")),
        ("a port to a name", port(json!({"port": 80, "targetPort": "http"})), None),
        ("UDP", port(json!({"port": 53, "protocol": "UDP"})), None),
        ("SCTP", port(json!({"port": 53, "protocol": "SCTP"})), Some("Unsupported value")),
        ("ExternalName", ingress(json!({"type": "ExternalName"})), Some("Unsupported value")),
        ("a policy of no sort", ingress(json!({"externalTrafficPolicy": "Near"})), Some("Unsupported value")),
        ("a distribution", ingress(json!({"trafficDistribution": "PreferSameNode"})), None),
        ("a distribution of no sort", ingress(json!({"trafficDistribution": "PreferClose"})), Some("Unsupported value")),
        ("64 labels of a Service", ingress(json!({"labels": many(64)})), None),
        ("65 labels of a Service", ingress(json!({"labels": many(65)})), Some("at most 64")),
        ("a label of 63", label("a".repeat(63)), None),
        ("a label of 64", label("a".repeat(64)), Some("63")),
        ("a label with a space", label("a b".into()), Some("should match")),
        ("an issuer without name", with(json!({"network": {"konnectCertificate": {"issuer": {}}}})), Some("name")),
        ("a plugin without name", with(json!({"pluginsToInstall": [{"namespace": "a"}]})), Some("name")),
        ("a quantity", limit("2Gi"), None),
        ("no quantity", limit("2Gb"), Some("should match")),
        ("an unknown field", with(json!({"deploymnet": {}})), Some("deploymnet")),
        (
            "an unknown field in a pod",
            gateway_with("a", containers(json!([{"name": "proxy", "image": "a:1", "imgae": "b"}]))),
            Some("imgae"),
        ),
    ];
    check(&ns, rows).await;
}

async fn others(ns: Ns) {
    let changed = |patch: Value| {
        let mut object = extension("a", "s");
        merge(&mut object, json!({"spec": patch}));
        object
    };
    let no_id = json!({"controlPlaneRef": {"konnectID": null}});
    let installation = |spec: Value| json!({"apiVersion": INSTALLATION.api_version, "kind": "KongPluginInstallation", "metadata": {"name": "a"}, "spec": spec});
    let rows: Vec<Row> = vec![
        ("an extension", changed(json!({})), None),
        ("an id that is no UUID", changed(json!({"controlPlaneRef": {"konnectID": "mine"}})), None),
        ("no id", changed(no_id), Some("needs konnectID")),
        ("an empty id", changed(json!({"controlPlaneRef": {"konnectID": ""}})), Some("needs konnectID")),
        ("another sort of reference", changed(json!({"controlPlaneRef": {"type": "konnectNamespacedRef"}})), Some("Unsupported value")),
        ("a region of two labels", changed(json!({"controlPlaneRegion": "eu.us"})), Some("should match")),
        ("a region of 64", changed(json!({"controlPlaneRegion": "a".repeat(64)})), Some("63")),
        ("a host with a scheme", changed(json!({"serverHostname": "https://a"})), Some("should match")),
        ("no Secret", changed(json!({"konnectControlPlaneAPIAuthConfiguration": null})), None),
        ("an installation", installation(json!({"image": "registry.example.com/p:1"})), None),
        ("an installation without image", installation(json!({})), Some("image")),
        (
            "a pull Secret of a bad kind",
            installation(json!({"image": "a", "imagePullSecretRef": {"name": "s", "kind": "1"}})),
            Some("should match"),
        ),
        (
            "a pull Secret in a bad namespace",
            installation(json!({"image": "a", "imagePullSecretRef": {"name": "s", "namespace": "A"}})),
            Some("should match"),
        ),
    ];
    check(&ns, rows).await;
    ns.apply(&extension("kept", "s")).await;
    let moved = json!({"spec": {"controlPlaneRef": {"konnectID": "other"}}});
    let refused = ns.try_edit("test", EXTENSION, "kept", &moved).await.unwrap_err();
    assert!(refused.message.contains("cannot change"), "{}", refused.message);
    ns.edit(EXTENSION, "kept", json!({"spec": {"controlPlaneRegion": "au"}})).await;
}
