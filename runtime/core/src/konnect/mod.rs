//! What a token-free KonnectExtension says, resolved (semantics "Konnect without a token").

use weir_api::{keys, konnect_extension::KonnectExtension, names};

use crate::{
    dataplane::snapshot::{Lookup, SecretFacts},
    policy::{
        Pairs,
        konnect_env::{ClusterType, Endpoints},
    },
};

/// Where the client certificate is mounted (facts/kong-operator.md 3.6).
pub const CERTIFICATE_MOUNT: &str = "/etc/secrets/kong-cluster-cert";

/// Everything the konnect-env policy is asked about, apart from the object.
#[derive(Debug, Clone, PartialEq)]
pub struct Facts {
    /// Name of the extension.
    pub extension: String,
    /// Konnect's id of the control plane.
    pub control_plane_id: String,
    /// Kind of the control plane.
    pub cluster_type: ClusterType,
    /// Where it is reached.
    pub endpoints: Endpoints,
    /// Region.
    pub region: Option<String>,
    /// Secret with the client certificate.
    pub certificate_secret: String,
    /// Labels the data plane reports.
    pub labels: Pairs,
}

/// Why an extension cannot be used: condition reason and message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unusable {
    /// Reason of KonnectExtensionApplied.
    pub reason: &'static str,
    /// Names field and cure.
    pub message: String,
}

/// Reads a token-free extension.
///
/// # Errors
/// What is missing or wrong, as a condition.
pub fn token_free(extension: &KonnectExtension) -> Result<Facts, Unusable> {
    let name = extension.metadata.name.clone().unwrap_or_default();
    let invalid = |field: &str, cure: &str| Unusable {
        reason: weir_api::condition::reasons::INVALID_EXTENSION,
        message: format!("KonnectExtension {name:?}: {field}: {cure}"),
    };
    let spec = &extension.spec;
    let id = spec.control_plane_ref.konnect_id.clone().filter(|id| !id.is_empty());
    let id = id.ok_or_else(|| invalid("spec.controlPlaneRef.konnectID", "set the id of the Konnect control plane"))?;
    let prefix = annotation(extension, keys::ENDPOINT_PREFIX).unwrap_or(&id).to_owned();
    if !names::is_dns_label(&prefix) {
        let field = if annotation(extension, keys::ENDPOINT_PREFIX).is_some() {
            "annotation weir.dev/endpoint-prefix"
        } else {
            "spec.controlPlaneRef.konnectID"
        };
        return Err(invalid(
            field,
            "it is part of a host name: use lower-case letters, digits and `-`, or set annotation weir.dev/endpoint-prefix",
        ));
    }
    let region = spec.control_plane_region.as_deref().unwrap_or("us");
    if !names::is_dns_label(region) {
        return Err(invalid("spec.controlPlaneRegion", "a region is a DNS label such as `us` or `eu`"));
    }
    let host = spec.server_hostname.as_deref().unwrap_or("konghq.com");
    if !names::is_dns_subdomain(host) {
        return Err(invalid("spec.serverHostname", "use a host name without scheme and port"));
    }
    let cluster_type = cluster_type(annotation(extension, keys::CLUSTER_TYPE))
        .ok_or_else(|| invalid("annotation weir.dev/cluster-type", "use one of ControlPlane, ControlPlaneGroup, K8SIngressController"))?;
    let secret = spec.konnect_control_plane_api_auth_configuration.as_ref().and_then(|a| a.cluster_certificate_secret_ref.as_ref());
    let secret = secret.and_then(|s| s.name.clone()).filter(|n| !n.is_empty()).ok_or_else(|| Unusable {
        reason: weir_api::condition::reasons::INVALID_SECRET,
        message: format!(
            "KonnectExtension {name:?}: spec.konnectControlPlaneAPIAuthConfiguration.clusterCertificateSecretRef.name: \
             name the kubernetes.io/tls Secret with the client certificate"
        ),
    })?;
    let labels = spec.cluster_data_plane_labels.clone().unwrap_or_default();
    // A `:` or `,` would forge another label in KONG_CLUSTER_DP_LABELS.
    if let Some(key) = labels.iter().find(|(k, v)| [k, v].iter().any(|t| t.is_empty() || !names::is_label_value(t))).map(|(k, _)| k) {
        return Err(invalid(
            &format!("spec.clusterDataPlaneLabels[{key:?}]"),
            "key and value have 1 to 63 letters, digits, `-`, `_` or `.`, and begin and end with a letter or digit",
        ));
    }
    Ok(Facts {
        extension: name.clone(),
        control_plane_id: id,
        cluster_type,
        endpoints: Endpoints { control_plane: format!("{prefix}.{region}.cp0.{host}"), telemetry: format!("{prefix}.{region}.tp0.{host}") },
        region: Some(region.to_owned()),
        certificate_secret: secret,
        labels,
    })
}

/// Digest of `tls.crt` in the Secret of an extension; none when nobody can know.
///
/// # Errors
/// The Secret is missing, or has not what a client certificate needs, as a condition.
pub fn certificate_digest(facts: &Facts, secret: &Lookup<SecretFacts>) -> Result<Option<String>, Unusable> {
    let (name, extension) = (&facts.certificate_secret, &facts.extension);
    let invalid = |message: String| Unusable { reason: weir_api::condition::reasons::INVALID_SECRET, message };
    let secret = match secret {
        Lookup::Unknown => return Ok(None),
        Lookup::Missing => {
            let message =
                format!("Secret {name:?} of KonnectExtension {extension:?} does not exist: create it with keys tls.crt and tls.key");
            return Err(invalid(message));
        }
        Lookup::Found(secret) => secret,
    };
    if let Some(key) = ["tls.crt", "tls.key"].into_iter().find(|key| !secret.keys.contains_key(*key)) {
        let found: Vec<&str> = secret.keys.keys().map(String::as_str).collect();
        let found = if found.is_empty() { "none".into() } else { found.join(", ") };
        return Err(invalid(format!(
            "Secret {name:?} of KonnectExtension {extension:?}: key {key} is missing (found: {found}): use a kubernetes.io/tls Secret"
        )));
    }
    Ok(secret.keys.get("tls.crt").cloned())
}

fn annotation<'a>(extension: &'a KonnectExtension, key: &str) -> Option<&'a str> {
    extension.metadata.annotations.as_ref()?.get(key).map(String::as_str)
}

fn cluster_type(text: Option<&str>) -> Option<ClusterType> {
    match text {
        None | Some("ControlPlane") => Some(ClusterType::ControlPlane),
        Some("ControlPlaneGroup") => Some(ClusterType::ControlPlaneGroup),
        Some("K8SIngressController") => Some(ClusterType::K8SIngressController),
        Some(_) => None,
    }
}
