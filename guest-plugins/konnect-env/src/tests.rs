//! Each row of the table, and what is refused.

use weir_policy_sdk::{Policy, konnect_env::VolumeSource, parse_settings, sample};

use super::*;

fn pairs(answer: &Answer) -> Vec<(&str, &str)> {
    answer.env.iter().map(|e| (e.name.as_str(), e.value.as_str())).collect()
}

fn settings(document: &str) -> Settings {
    parse_settings::<DefaultPolicy>(document).unwrap().0
}

const HYBRID: [(&str, &str); 12] = [
    ("KONG_CLUSTER_CERT", "/etc/secrets/kong-cluster-cert/tls.crt"),
    ("KONG_CLUSTER_CERT_KEY", "/etc/secrets/kong-cluster-cert/tls.key"),
    ("KONG_CLUSTER_CONTROL_PLANE", "abc.us.cp0.konghq.com:443"),
    ("KONG_CLUSTER_MTLS", "pki"),
    ("KONG_CLUSTER_SERVER_NAME", "abc.us.cp0.konghq.com"),
    ("KONG_CLUSTER_TELEMETRY_ENDPOINT", "abc.us.tp0.konghq.com:443"),
    ("KONG_CLUSTER_TELEMETRY_SERVER_NAME", "abc.us.tp0.konghq.com"),
    ("KONG_INCREMENTAL_SYNC", "on"),
    ("KONG_KONNECT_MODE", "on"),
    ("KONG_LUA_SSL_TRUSTED_CERTIFICATE", "system"),
    ("KONG_ROLE", "data_plane"),
    ("KONG_VITALS", "off"),
];

#[test]
fn control_plane_and_group_get_the_table_exactly() {
    for cluster_type in [ClusterType::ControlPlane, ClusterType::ControlPlaneGroup] {
        let answer = evaluate(&Input { cluster_type, ..sample::konnect_env() }, &Settings::default()).unwrap();
        assert_eq!(pairs(&answer), HYBRID);
        assert_eq!(answer.readiness_path.as_deref(), Some("/status/ready"));
        assert!(answer.findings.is_empty());
    }
}

#[test]
fn ingress_controller_gets_its_column() {
    let mut input = Input { cluster_type: ClusterType::K8sIngressController, ..sample::konnect_env() };
    // It talks to Kong's admin API; the control plane's endpoint does not matter.
    input.endpoints.control_plane.clear();
    let answer = evaluate(&input, &Settings::default()).unwrap();
    let absent = ["KONG_CLUSTER_CONTROL_PLANE", "KONG_CLUSTER_SERVER_NAME", "KONG_INCREMENTAL_SYNC"];
    let mut expected: Vec<_> = HYBRID.into_iter().filter(|(name, _)| !absent.contains(name)).collect();
    expected.iter_mut().filter(|(name, _)| *name == "KONG_ROLE").for_each(|pair| pair.1 = "traditional");
    assert_eq!(pairs(&answer), expected);
}

#[test]
fn certificate_is_mounted_read_only() {
    let answer = evaluate(&sample::konnect_env(), &Settings::default()).unwrap();
    let [volume] = answer.volumes.as_slice() else { panic!("one volume") };
    let VolumeSource::Secret(secret) = &volume.source else { panic!("a Secret") };
    assert_eq!((volume.name.as_str(), secret.secret_name.as_str(), secret.default_mode), ("kong-cluster-cert", "konnect-cert", Some(420)));
    let [mount] = answer.mounts.as_slice() else { panic!("one mount") };
    assert_eq!(
        (mount.volume.as_str(), mount.mount_path.as_str(), mount.read_only),
        ("kong-cluster-cert", "/etc/secrets/kong-cluster-cert", true)
    );
}

#[test]
fn labels_are_joined_and_then_sorted() {
    let mut input = sample::konnect_env();
    input.data_plane_labels = vec![("b".into(), "2".into()), ("a".into(), "1".into()), ("a-b".into(), "3".into())];
    let answer = evaluate(&input, &Settings::default()).unwrap();
    assert!(pairs(&answer).contains(&("KONG_CLUSTER_DP_LABELS", "a-b:3,a:1,b:2")));
}

#[test]
fn a_trailing_slash_of_the_mount_path_is_not_doubled() {
    let mut input = sample::konnect_env();
    input.certificate.mount_path.push('/');
    let answer = evaluate(&input, &Settings::default()).unwrap();
    assert!(pairs(&answer).contains(&("KONG_CLUSTER_CERT", "/etc/secrets/kong-cluster-cert/tls.crt")));
}

#[test]
fn unknown_cluster_types_and_missing_endpoints_are_refused() {
    let code = |input: Input| evaluate(&input, &Settings::default()).unwrap_err().code;
    assert_eq!(code(Input { cluster_type: ClusterType::Other("mesh".into()), ..sample::konnect_env() }), "UnknownClusterType");
    let mut input = sample::konnect_env();
    input.endpoints.control_plane.clear();
    assert_eq!(code(input), "MissingEndpoint");
    let mut input = sample::konnect_env();
    input.endpoints.telemetry.clear();
    assert_eq!(code(input), "MissingEndpoint");
}

#[test]
fn settings_change_switches_and_add_variables() {
    let settings = settings(r#"{"vitals": true, "incrementalSync": false, "extraEnv": {"KONG_LOG_LEVEL": "debug"}}"#);
    let answer = evaluate(&sample::konnect_env(), &settings).unwrap();
    for pair in [("KONG_VITALS", "on"), ("KONG_INCREMENTAL_SYNC", "off"), ("KONG_LOG_LEVEL", "debug")] {
        assert!(pairs(&answer).contains(&pair), "{pair:?}");
    }
    assert!(answer.env.is_sorted_by_key(|e| &e.name));
}

#[test]
fn bad_settings_are_found() {
    let code = |document: &str| {
        let findings = parse_settings::<DefaultPolicy>(document).unwrap_err();
        (findings[0].code.clone(), findings[0].path.clone())
    };
    assert_eq!(code("{"), ("InvalidSettings".into(), String::new()));
    assert_eq!(code(r#"{"vitalz": true}"#).0, "InvalidSettings");
    assert_eq!(code(r#"{"extraEnv": {"1 BAD=": ""}}"#), ("InvalidName".into(), "extraEnv.1 BAD=".into()));
    assert_eq!(code(r#"{"extraEnv": {"KONG_ROLE": "x"}}"#), ("ReservedName".into(), "extraEnv.KONG_ROLE".into()));
}

#[test]
fn an_empty_document_means_the_defaults() {
    assert_eq!(settings(""), Settings::default());
    assert_eq!(settings("{}"), Settings::default());
}

#[test]
fn schema_is_json_and_names_every_setting() {
    let schema: serde_json::Value = serde_json::from_str(DefaultPolicy::schema()).unwrap();
    let names: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["extraEnv", "incrementalSync", "vitals"]);
}

#[test]
fn every_variable_of_the_table_is_reserved() {
    assert!(HYBRID.iter().all(|(name, _)| OWN_VARIABLES.contains(name)));
}
