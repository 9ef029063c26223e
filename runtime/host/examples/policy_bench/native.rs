//! What the default component decides for a hybrid control plane, in this process, and the same as messages of the contract.

use std::collections::BTreeMap;

use weir_core::policy::{
    BoxFuture, EnvVar, Identity, KonnectEnv, Policy, PolicyError,
    konnect_env::{Answer, Input, Mount, Volume, VolumeSource},
};
use weir_proto::policy::{self as wire, konnect_env_answer as answer};

const VOLUME: &str = "kong-cluster-cert";
const READINESS: &str = "/status/ready";
const MODE: u32 = 0o644;

/// The policy.
pub(crate) struct Native(Identity);

impl Native {
    pub(crate) fn new() -> Self {
        Self(Identity { source: "native".into(), digest: String::new(), settings_digest: String::new() })
    }
}

impl Policy<KonnectEnv> for Native {
    fn identity(&self) -> &Identity {
        &self.0
    }

    fn evaluate<'a>(&'a self, input: &'a Input) -> BoxFuture<'a, Result<Answer, PolicyError>> {
        let env = env(&input.endpoints.control_plane, &input.endpoints.telemetry, &input.certificate.mount_path, &input.data_plane_labels);
        let secret = VolumeSource::Secret { secret_name: input.certificate.secret_name.clone(), default_mode: Some(MODE) };
        let mount_path = input.certificate.mount_path.clone();
        let answer = Answer {
            env: env.into_iter().map(|(name, value)| EnvVar { name: name.into(), value }).collect(),
            volumes: vec![Volume { name: VOLUME.into(), source: secret }],
            mounts: vec![Mount { volume: VOLUME.into(), mount_path, sub_path: None, read_only: true }],
            readiness_path: Some(READINESS.into()),
            findings: Vec::new(),
        };
        Box::pin(std::future::ready(Ok(answer)))
    }
}

/// The same, as a remote plugin that is written in Rust does it.
pub(crate) fn over_the_wire(input: &wire::KonnectEnvInput) -> wire::KonnectEnvAnswer {
    let endpoints = input.endpoints.clone().unwrap_or_default();
    let certificate = input.certificate.clone().unwrap_or_default();
    let env = env(&endpoints.control_plane, &endpoints.telemetry, &certificate.mount_path, &input.data_plane_labels);
    let secret = answer::SecretSource { secret_name: certificate.secret_name, default_mode: Some(MODE) };
    let volume = answer::Volume { name: VOLUME.into(), source: Some(answer::volume::Source::Secret(secret)) };
    let mount = answer::Mount { volume: VOLUME.into(), mount_path: certificate.mount_path, sub_path: None, read_only: true };
    wire::KonnectEnvAnswer {
        env: env.into_iter().map(|(name, value)| wire::EnvVar { name: name.into(), value }).collect(),
        volumes: vec![volume],
        mounts: vec![mount],
        readiness_path: Some(READINESS.into()),
        findings: Vec::new(),
    }
}

fn env<'a>(
    control_plane: &str,
    telemetry: &str,
    mount_path: &str,
    labels: impl IntoIterator<Item = (&'a String, &'a String)>,
) -> BTreeMap<&'static str, String> {
    let mount_path = mount_path.trim_end_matches('/');
    let mut labels: Vec<String> = labels.into_iter().map(|(key, value)| format!("{key}:{value}")).collect();
    labels.sort();
    let mut env = BTreeMap::from([
        ("KONG_ROLE", "data_plane".to_owned()),
        ("KONG_CLUSTER_CONTROL_PLANE", format!("{control_plane}:443")),
        ("KONG_CLUSTER_SERVER_NAME", control_plane.to_owned()),
        ("KONG_INCREMENTAL_SYNC", "on".to_owned()),
        ("KONG_CLUSTER_MTLS", "pki".to_owned()),
        ("KONG_CLUSTER_TELEMETRY_ENDPOINT", format!("{telemetry}:443")),
        ("KONG_CLUSTER_TELEMETRY_SERVER_NAME", telemetry.to_owned()),
        ("KONG_CLUSTER_CERT", format!("{mount_path}/tls.crt")),
        ("KONG_CLUSTER_CERT_KEY", format!("{mount_path}/tls.key")),
        ("KONG_LUA_SSL_TRUSTED_CERTIFICATE", "system".to_owned()),
        ("KONG_KONNECT_MODE", "on".to_owned()),
        ("KONG_VITALS", "off".to_owned()),
    ]);
    if !labels.is_empty() {
        env.insert("KONG_CLUSTER_DP_LABELS", labels.join(","));
    }
    env
}
