//! A token-free extension: everything is in its spec and its annotations (semantics "Konnect without a token").

use weir_api::{condition::reasons, keys, konnect_extension::KonnectExtension, names};

use super::{CLUSTER_TYPE_CURE, Facts, LABEL_CURE, Unusable, bad_label, cluster_type};
use crate::policy::konnect_env::{ClusterType, Endpoints};

/// Reads a token-free extension.
///
/// # Errors
/// What is missing or wrong, as a condition.
pub fn token_free(extension: &KonnectExtension) -> Result<Facts, Unusable> {
    let name = extension.metadata.name.clone().unwrap_or_default();
    let invalid = |field: &str, cure: &str| Unusable {
        reason: reasons::INVALID_EXTENSION,
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
    if !names::is_dns_subdomain(host) || !host.split('.').all(names::is_dns_label) {
        return Err(invalid("spec.serverHostname", "use a host name without scheme and port"));
    }
    let cluster_type = annotation(extension, keys::CLUSTER_TYPE)
        .map_or(Some(ClusterType::ControlPlane), cluster_type)
        .ok_or_else(|| invalid("annotation weir.dev/cluster-type", CLUSTER_TYPE_CURE))?;
    let secret = secret_name(extension).ok_or_else(|| Unusable {
        reason: reasons::INVALID_SECRET,
        message: format!(
            "KonnectExtension {name:?}: spec.konnectControlPlaneAPIAuthConfiguration.clusterCertificateSecretRef.name: \
             name the kubernetes.io/tls Secret with the client certificate"
        ),
    })?;
    let labels = spec.cluster_data_plane_labels.clone().unwrap_or_default();
    if let Some(key) = bad_label(&labels) {
        return Err(invalid(&format!("spec.clusterDataPlaneLabels[{key:?}]"), LABEL_CURE));
    }
    Ok(Facts {
        extension: name.clone(),
        control_plane_id: id,
        cluster_type,
        endpoints: Endpoints { control_plane: format!("{prefix}.{region}.cp0.{host}"), telemetry: format!("{prefix}.{region}.tp0.{host}") },
        region: Some(region.to_owned()),
        certificate_secret: secret.to_owned(),
        labels,
    })
}

/// Name of the Secret with the client certificate, where it says one.
#[must_use]
pub fn secret_name(extension: &KonnectExtension) -> Option<&str> {
    let auth = extension.spec.konnect_control_plane_api_auth_configuration.as_ref()?;
    auth.cluster_certificate_secret_ref.as_ref()?.name.as_deref().filter(|name| !name.is_empty())
}

fn annotation<'a>(extension: &'a KonnectExtension, key: &str) -> Option<&'a str> {
    extension.metadata.annotations.as_ref()?.get(key).map(String::as_str)
}
