//! The default policy of slot konnect-env: what Kong's own operator sets for a DataPlane with a Konnect extension.
//!
//! | variable | control plane, control plane group | ingress controller |
//! |---|---|---|
//! | `KONG_ROLE` | `data_plane` | `traditional` |
//! | `KONG_CLUSTER_MTLS` | `pki` | same |
//! | `KONG_CLUSTER_CONTROL_PLANE`, `KONG_CLUSTER_SERVER_NAME` | endpoint with port 443, endpoint | not set |
//! | `KONG_CLUSTER_TELEMETRY_ENDPOINT`, `KONG_CLUSTER_TELEMETRY_SERVER_NAME` | endpoint with port 443, endpoint | same |
//! | `KONG_CLUSTER_CERT`, `KONG_CLUSTER_CERT_KEY` | `tls.crt`, `tls.key` below the mount path | same |
//! | `KONG_LUA_SSL_TRUSTED_CERTIFICATE` | `system` | same |
//! | `KONG_KONNECT_MODE` | `on` | same |
//! | `KONG_VITALS` | `off` | same |
//! | `KONG_INCREMENTAL_SYNC` | `on` | not set |
//! | `KONG_CLUSTER_DP_LABELS` | `k:v,k2:v2`, sorted; only when there are labels | same |

mod settings;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use weir_policy_sdk::{
    Finding, KonnectEnv, Policy, Refusal, env_var,
    konnect_env::{Answer, ClusterType, Input, read_only, secret_volume},
    refuse,
};

pub use settings::{SCHEMA, Settings};

/// Name of the volume with the client certificate.
pub const CERTIFICATE_VOLUME: &str = "kong-cluster-cert";
/// Path of the readiness probe of a data plane: ready means configured.
pub const READINESS_PATH: &str = "/status/ready";

/// Every variable the policy may set; `extraEnv` must not name them.
pub const OWN_VARIABLES: [&str; 13] = [
    "KONG_CLUSTER_CERT",
    "KONG_CLUSTER_CERT_KEY",
    "KONG_CLUSTER_CONTROL_PLANE",
    "KONG_CLUSTER_DP_LABELS",
    "KONG_CLUSTER_MTLS",
    "KONG_CLUSTER_SERVER_NAME",
    "KONG_CLUSTER_TELEMETRY_ENDPOINT",
    "KONG_CLUSTER_TELEMETRY_SERVER_NAME",
    "KONG_INCREMENTAL_SYNC",
    "KONG_KONNECT_MODE",
    "KONG_LUA_SSL_TRUSTED_CERTIFICATE",
    "KONG_ROLE",
    "KONG_VITALS",
];

/// The policy.
#[derive(Debug, Clone, Copy)]
pub struct DefaultPolicy;

impl Policy for DefaultPolicy {
    type Settings = Settings;

    fn schema() -> &'static str {
        SCHEMA
    }

    fn validate(settings: &Settings) -> Vec<Finding> {
        settings.validate("")
    }
}

impl KonnectEnv for DefaultPolicy {
    fn evaluate(input: Input, settings: Settings) -> Result<Answer, Refusal> {
        evaluate(&input, &settings)
    }
}

/// The policy as a function, for policies that change its answer.
///
/// # Errors
/// Refuses cluster types that are not in the table and control planes without endpoints.
pub fn evaluate(input: &Input, settings: &Settings) -> Result<Answer, Refusal> {
    let mut env = match &input.cluster_type {
        ClusterType::ControlPlane | ClusterType::ControlPlaneGroup => hybrid(input, settings)?,
        ClusterType::K8sIngressController => BTreeMap::from([("KONG_ROLE", "traditional".to_owned())]),
        ClusterType::Other(name) => {
            let message = format!("cluster type {name:?} is not known to this policy; use a policy that knows it");
            return Err(refuse("UnknownClusterType", message));
        }
    };
    env.extend(common(input, settings)?);
    // A map: the order of the answer must not depend on the order of this code.
    let env: BTreeMap<&str, String> =
        env.into_iter().chain(settings.extra_env.iter().map(|(name, value)| (name.as_str(), value.clone()))).collect();

    let volume = secret_volume(CERTIFICATE_VOLUME, &input.certificate.secret_name, 0o644);
    Ok(Answer {
        env: env.into_iter().map(|(name, value)| env_var(name, value)).collect(),
        mounts: vec![read_only(&volume, &input.certificate.mount_path)],
        volumes: vec![volume],
        readiness_path: Some(READINESS_PATH.to_owned()),
        ..Answer::default()
    })
}

/// What only a data plane of a hybrid control plane has: it gets its configuration from Konnect.
fn hybrid(input: &Input, settings: &Settings) -> Result<BTreeMap<&'static str, String>, Refusal> {
    let host = endpoint(&input.endpoints.control_plane, "configuration")?;
    Ok(BTreeMap::from([
        ("KONG_ROLE", "data_plane".to_owned()),
        ("KONG_CLUSTER_CONTROL_PLANE", format!("{host}:443")),
        ("KONG_CLUSTER_SERVER_NAME", host.to_owned()),
        ("KONG_INCREMENTAL_SYNC", on_off(settings.incremental_sync)),
    ]))
}

fn common(input: &Input, settings: &Settings) -> Result<BTreeMap<&'static str, String>, Refusal> {
    let host = endpoint(&input.endpoints.telemetry, "telemetry")?;
    let mount_path = input.certificate.mount_path.trim_end_matches('/');
    let mut env = BTreeMap::from([
        ("KONG_CLUSTER_MTLS", "pki".to_owned()),
        ("KONG_CLUSTER_TELEMETRY_ENDPOINT", format!("{host}:443")),
        ("KONG_CLUSTER_TELEMETRY_SERVER_NAME", host.to_owned()),
        ("KONG_CLUSTER_CERT", format!("{mount_path}/tls.crt")),
        ("KONG_CLUSTER_CERT_KEY", format!("{mount_path}/tls.key")),
        ("KONG_LUA_SSL_TRUSTED_CERTIFICATE", "system".to_owned()),
        ("KONG_KONNECT_MODE", "on".to_owned()),
        ("KONG_VITALS", on_off(settings.vitals)),
    ]);
    // Joined first, sorted then, as Kong's operator does it: `a-b:1` comes before `a:1`.
    let mut labels: Vec<String> = input.data_plane_labels.iter().map(|(key, value)| format!("{key}:{value}")).collect();
    labels.sort();
    if !labels.is_empty() {
        env.insert("KONG_CLUSTER_DP_LABELS", labels.join(","));
    }
    Ok(env)
}

/// Konnect names the endpoints some time after the control plane was created; `:443` alone would make Kong crash.
fn endpoint<'a>(host: &'a str, what: &str) -> Result<&'a str, Refusal> {
    if host.is_empty() {
        return Err(refuse("MissingEndpoint", format!("the control plane has no {what} endpoint; wait until Konnect names it")));
    }
    Ok(host)
}

fn on_off(on: bool) -> String {
    if on { "on" } else { "off" }.to_owned()
}
