//! What the CRDs let into a cluster and what they refuse, evaluated as the API server does it, and that what they let in has our shape.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

mod support;

use serde_json::{Value, json};
use weir_api::{
    dataplane::{DataPlane, Hardened, Protocol, ServiceType},
    konnect_extension::KonnectExtension,
    plugin_installation::KongPluginInstallation,
};

use support::{accepted, refused, update};

fn object(version: &str, kind: &str, spec: Value) -> Value {
    let api_version = format!("gateway-operator.konghq.com/{version}");
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "a", "namespace": "kong"}, "spec": spec})
}

fn data_plane(spec: Value) -> Value {
    object("v1beta1", "DataPlane", spec)
}

fn pod(containers: Value) -> Value {
    json!({"deployment": {"podTemplateSpec": {"spec": {"containers": containers}}}})
}

/// A minimal spec with something added to it.
fn with(path: &str, value: Value) -> Value {
    let mut spec = pod(json!([{"name": "proxy", "image": "kong:3.9"}]));
    let (parents, last) = path.rsplit_once('.').unwrap_or(("", path));
    let mut node = &mut spec;
    for step in parents.split('.').filter(|step| !step.is_empty()) {
        node = node.as_object_mut().unwrap().entry(step).or_insert_with(|| json!({}));
    }
    node[last] = value;
    data_plane(spec)
}

fn extension(spec: Value) -> Value {
    object("v1alpha1", "KonnectExtension", spec)
}

#[test]
fn an_image_is_needed() {
    accepted(data_plane(pod(json!([{"name": "side", "image": "a"}, {"name": "proxy", "image": "kong:3.9"}]))));
    for spec in [
        json!({}),
        json!({"deployment": {}}),
        pod(json!([{"name": "proxy"}])),
        pod(json!([{"name": "kong", "image": "kong:3.9"}])),
        pod(json!([])),
    ] {
        refused(data_plane(spec), "image of Kong");
    }
    let mut nothing = data_plane(json!({}));
    nothing.as_object_mut().unwrap().remove("spec");
    refused(nothing, "image of Kong");
}

#[test]
fn no_database() {
    let env = |env: Value| data_plane(pod(json!([{"name": "proxy", "image": "kong:3.9", "env": env}])));
    for good in [
        json!([]),
        json!([{"name": "KONG_DATABASE", "value": "off"}]),
        json!([{"name": "KONG_DATABASE", "value": ""}]),
        json!([{"name": "KONG_DATABASE"}]),
        json!([{"name": "KONG_DATABASE", "valueFrom": {"configMapKeyRef": {"name": "a", "key": "b"}}}]),
        json!([{"name": "OTHER", "value": "postgres"}]),
    ] {
        accepted(env(good));
    }
    refused(env(json!([{"name": "A", "value": "1"}, {"name": "KONG_DATABASE", "value": "postgres"}])), "without a database");
    // Only the first container is looked at, and only if it is the proxy.
    accepted(data_plane(pod(json!([
        {"name": "side", "image": "a", "env": [{"name": "KONG_DATABASE", "value": "postgres"}]},
        {"name": "proxy", "image": "kong:3.9", "env": [{"name": "KONG_DATABASE", "value": "postgres"}]}
    ]))));
}

#[test]
fn extensions() {
    let one = |reference: Value| with("extensions", json!([reference]));
    let stored = accepted(one(json!({"kind": "KonnectExtension", "name": "k"})));
    assert_eq!(stored["spec"]["extensions"][0]["group"], "gateway-operator.konghq.com");
    accepted(one(json!({"group": "konnect.konghq.com", "kind": "KonnectExtension", "name": "k"})));
    refused(one(json!({"group": "example.com", "kind": "KonnectExtension", "name": "k"})), "one sort of extension");
    refused(one(json!({"kind": "DataPlaneMetricsExtension", "name": "k"})), "one sort of extension");
    refused(one(json!({"kind": "KonnectExtension", "name": "k", "namespace": "kong"})), "own namespace");
    refused(one(json!({"kind": "KonnectExtension", "name": ""})), "must not be empty");
    refused(with("extensions", json!([{"kind": "KonnectExtension", "name": "a"}, {"kind": "KonnectExtension", "name": "b"}])), "at most 1");
}

#[test]
fn replicas_or_scaling() {
    accepted(with("deployment.replicas", json!(0)));
    accepted(with("deployment.scaling", json!({"horizontal": {"maxReplicas": 3}})));
    let mut both = with("deployment.replicas", json!(2));
    both["spec"]["deployment"]["scaling"] = json!({"horizontal": {"maxReplicas": 3}});
    refused(both, "not both");
}

#[test]
fn ingress_service() {
    let ingress = |block: Value| with("network.services.ingress", block);
    let port = json!([{"port": 80, "nodePort": 30080}]);
    let stored = accepted(ingress(json!({"ports": port})));
    assert_eq!(stored["spec"]["network"]["services"]["ingress"]["type"], "LoadBalancer");
    assert_eq!(stored["spec"]["network"]["services"]["ingress"]["ports"][0]["protocol"], "TCP");
    accepted(ingress(json!({"type": "NodePort", "ports": port, "externalTrafficPolicy": "Local"})));
    accepted(ingress(json!({"type": "ClusterIP", "ports": [{"port": 80, "targetPort": "http"}], "internalTrafficPolicy": "Local"})));
    refused(ingress(json!({"type": "ClusterIP", "ports": port})), "nodePort needs");
    refused(ingress(json!({"type": "ClusterIP", "externalTrafficPolicy": "Local"})), "externalTrafficPolicy needs");
    refused(ingress(json!({"type": "ExternalName"})), "ExternalName");
    refused(ingress(json!({"labels": {"a": "not a value"}})), "pattern");
    refused(ingress(json!({"ports": [{"port": 80, "protocol": "SCTP"}]})), "SCTP");
}

#[test]
fn disruption_budget() {
    let budget = |spec: Value| with("resources.podDisruptionBudget.spec", spec);
    accepted(budget(json!({"minAvailable": 1})));
    accepted(budget(json!({"maxUnavailable": "25%", "unhealthyPodEvictionPolicy": "AlwaysAllow"})));
    refused(budget(json!({"minAvailable": 1, "maxUnavailable": 1})), "exactly one");
    refused(budget(json!({})), "exactly one");
}

#[test]
fn spec_is_frozen_during_promotion() {
    let state = |reason: &str, replicas: i32| {
        let mut object = with("deployment.replicas", json!(replicas));
        object["status"] = json!({"rollout": {"conditions": [{
            "type": "RolledOut", "status": "False", "reason": reason, "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"
        }]}});
        object
    };
    assert_eq!(update(state("PromotionInProgress", 1), state("PromotionInProgress", 1)), Vec::<String>::new());
    assert_eq!(update(state("PromotionInProgress", 1), state("PromotionDone", 1)), Vec::<String>::new());
    assert_eq!(update(state("AwaitingPromotion", 1), state("AwaitingPromotion", 2)), Vec::<String>::new());
    assert_eq!(update(with("deployment.replicas", json!(1)), with("deployment.replicas", json!(2))), Vec::<String>::new());
    let complaints = update(state("PromotionInProgress", 1), state("PromotionInProgress", 2));
    assert!(complaints.len() == 1 && complaints[0].contains("being promoted"), "{complaints:?}");
}

#[test]
fn defaults_of_a_rollout() {
    let stored = accepted(with("deployment.rollout", json!({"strategy": {"blueGreen": {"promotion": {}}}})));
    let expected = json!({
        "promotion": {"strategy": "BreakBeforePromotion"},
        "resources": {"plan": {"deployment": "ScaleDownOnPromotionScaleUpOnRollout"}}
    });
    assert_eq!(stored["spec"]["deployment"]["rollout"]["strategy"]["blueGreen"], expected);
    refused(
        with("deployment.rollout", json!({"strategy": {"blueGreen": {"promotion": {"strategy": "AutomaticPromotion"}}}})),
        "AutomaticPromotion",
    );
}

#[test]
fn what_is_accepted_reads_back_the_same() {
    let stored = accepted(data_plane(json!({
        "deployment": {
            "hardened": "enabled",
            "labels": {"a": "b"},
            "scaling": {"horizontal": {"minReplicas": 2, "maxReplicas": 5, "metrics": [
                {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70}}}
            ], "behavior": {"scaleDown": {"stabilizationWindowSeconds": 60}}}},
            "rollout": {"strategy": {"blueGreen": {"promotion": {}}}},
            "podTemplateSpec": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{
                "name": "proxy", "image": "kong:3.9", "ports": [{"containerPort": 8000}],
                "resources": {"limits": {"cpu": "2", "memory": "1Gi"}}, "readinessProbe": {"httpGet": {"path": "/status", "port": 8100}}
            }]}}
        },
        "network": {
            "services": {"ingress": {
                "ports": [{"name": "dns", "port": 53, "targetPort": 8053, "protocol": "UDP"}], "trafficDistribution": "PreferSameZone"
            }},
            "konnectCertificate": {"issuer": {"name": "ca", "namespace": "kong"}}
        },
        "resources": {"podDisruptionBudget": {"spec": {"minAvailable": "50%"}}},
        "extensions": [{"kind": "KonnectExtension", "name": "k"}],
        "pluginsToInstall": [{"name": "p"}, {"name": "q", "namespace": "plugins"}]
    })));
    let typed: DataPlane = serde_json::from_value(stored.clone()).unwrap();
    let deployment = typed.spec.deployment.as_ref().unwrap();
    assert_eq!(deployment.hardened, Some(Hardened::Enabled));
    let ingress = typed.spec.network.as_ref().unwrap().services.as_ref().unwrap().ingress.as_ref().unwrap();
    assert_eq!(ingress.type_, Some(ServiceType::LoadBalancer));
    assert_eq!(ingress.ports.as_ref().unwrap()[0].protocol.map(Protocol::as_str), Some("UDP"));
    assert_eq!(serde_json::to_value(&typed).unwrap(), stored);
    assert_eq!(serde_json::to_value(DataPlane::default()).unwrap()["spec"], json!({}));
}

#[test]
fn konnect_extension() {
    let minimal = json!({"controlPlaneRef": {"type": "konnectID", "konnectID": "not-a-uuid"}});
    let stored = accepted(extension(minimal.clone()));
    assert_eq!((&stored["spec"]["controlPlaneRegion"], &stored["spec"]["serverHostname"]), (&json!("us"), &json!("konghq.com")));
    // Reported as a condition where the extension is used, so it has to get that far.
    for secret in [json!({}), json!({"clusterCertificateSecretRef": {}}), json!({"clusterCertificateSecretRef": {"name": "cert"}})] {
        let mut spec = minimal.clone();
        spec["konnectControlPlaneAPIAuthConfiguration"] = secret;
        spec["clusterDataPlaneLabels"] = json!({"env": "prod"});
        let stored = accepted(extension(spec));
        let typed: KonnectExtension = serde_json::from_value(stored.clone()).unwrap();
        assert_eq!(serde_json::to_value(typed).unwrap(), stored);
    }
    refused(extension(json!({"controlPlaneRef": {"type": "konnectID"}})), "needs konnectID");
    refused(extension(json!({"controlPlaneRef": {"type": "konnectNamespacedRef"}})), "konnectNamespacedRef");
    refused(extension(json!({"controlPlaneRef": {"konnectID": "a"}})), "type");
    let with = |name: &str, value: &str| {
        let mut spec = minimal.clone();
        spec[name] = json!(value);
        extension(spec)
    };
    accepted(with("controlPlaneRegion", "moon"));
    accepted(with("serverHostname", "kong.example.com"));
    refused(with("controlPlaneRegion", "eu.us"), "pattern");
    refused(with("serverHostname", "https://a"), "pattern");

    let complaints = update(extension(minimal.clone()), extension(json!({"controlPlaneRef": {"type": "konnectID", "konnectID": "other"}})));
    assert!(complaints.len() == 1 && complaints[0].contains("cannot change"), "{complaints:?}");
    assert_eq!(update(extension(minimal.clone()), with("controlPlaneRegion", "eu")), Vec::<String>::new());
}

#[test]
fn plugin_installation() {
    let installation = |spec: Value| object("v1alpha1", "KongPluginInstallation", spec);
    let stored = accepted(installation(json!({"image": "registry.example.com/plugin:1", "imagePullSecretRef": {"name": "pull"}})));
    let typed: KongPluginInstallation = serde_json::from_value(stored.clone()).unwrap();
    let pull = typed.spec.image_pull_secret_ref.as_ref().unwrap();
    assert_eq!((pull.group.as_str(), pull.kind.as_str()), ("", "Secret"));
    assert_eq!(serde_json::to_value(typed).unwrap(), stored);
    refused(installation(json!({})), "image");
}
