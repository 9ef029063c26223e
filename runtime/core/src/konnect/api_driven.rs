//! An API-driven extension: Kong's operator has asked Konnect and written the answers into its status, of which nothing is taken on trust.

use weir_api::{
    condition::{reasons, types},
    konnect_v2::{KonnectExtension, KonnectExtensionStatus},
    names,
};

use super::{CLUSTER_TYPE_CURE, Facts, LABEL_CURE, Unusable, bad_label, cluster_type};
use crate::policy::konnect_env::Endpoints;

/// Longest id; Konnect's are UUIDs.
const MAX_ID: usize = 253;
/// Longest quote of a word, characters.
const WORD: usize = 100;
/// Longest quote of a message, characters: the schema allows 32 KiB.
const MESSAGE: usize = 512;

/// Reads an API-driven extension.
///
/// # Errors
/// What is missing or wrong, as a condition.
pub fn api_driven(extension: &KonnectExtension) -> Result<Facts, Unusable> {
    let about = About(extension.metadata.name.as_deref().unwrap_or_default());
    let status = ready(extension, about)?;
    let konnect = status.konnect.clone().unwrap_or_default();
    let endpoints = konnect.endpoints.unwrap_or_default();
    let id = about.filled("status.konnect.controlPlaneID", konnect.control_plane_id)?;
    let type_ = about.filled("status.konnect.clusterType", konnect.cluster_type)?;
    let control_plane = about.filled(CONTROL_PLANE, endpoints.control_plane)?;
    let telemetry = about.filled(TELEMETRY, endpoints.telemetry)?;
    let secret = about.filled(SECRET, secret_name(extension).map(str::to_owned))?;
    if id.len() > MAX_ID || !id.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(about.invalid("status.konnect.controlPlaneID", &id, "an id has at most 253 visible ASCII characters"));
    }
    let cluster_type = cluster_type(&type_).ok_or_else(|| about.invalid("status.konnect.clusterType", &type_, CLUSTER_TYPE_CURE))?;
    let endpoints = Endpoints { control_plane: about.host(CONTROL_PLANE, &control_plane)?, telemetry: about.host(TELEMETRY, &telemetry)? };
    if !names::is_dns_subdomain(&secret) {
        let invalid = about.invalid(SECRET, &secret, "no Secret can have this name");
        return Err(Unusable { reason: reasons::INVALID_SECRET, ..invalid });
    }
    let labels = extension.spec.konnect.as_ref().and_then(|k| k.data_plane.as_ref()).and_then(|d| d.labels.clone()).unwrap_or_default();
    if let Some(key) = bad_label(&labels) {
        return Err(about.invalid("spec.konnect.dataPlane.labels", key, LABEL_CURE));
    }
    Ok(Facts {
        extension: about.0.to_owned(),
        control_plane_id: id,
        cluster_type,
        endpoints,
        region: None,
        certificate_secret: secret,
        labels,
    })
}

const CONTROL_PLANE: &str = "status.konnect.endpoints.controlPlane";
const TELEMETRY: &str = "status.konnect.endpoints.telemetry";
const SECRET: &str = "status.dataPlaneClientAuth.certificateSecretRef.name";

/// Name of the Secret with the client certificate, where it says one.
#[must_use]
pub fn secret_name(extension: &KonnectExtension) -> Option<&str> {
    let auth = extension.status.as_ref()?.data_plane_client_auth.as_ref()?;
    auth.certificate_secret_ref.as_ref()?.name.as_deref().filter(|name| !name.is_empty())
}

/// The status, if it is about the extension as it is now and says Ready.
fn ready<'a>(extension: &'a KonnectExtension, about: About<'_>) -> Result<&'a KonnectExtensionStatus, Unusable> {
    if extension.metadata.deletion_timestamp.is_some() {
        return Err(about.not_ready("it is being deleted: name another one, or make it again once it is gone"));
    }
    let status = extension.status.as_ref();
    let found = status.and_then(|s| Some((s, s.conditions.iter().flatten().find(|c| c.type_ == types::READY)?)));
    let Some((status, ready)) = found else {
        return Err(about.not_ready("it has no condition Ready: Kong's operator fills in its status, look whether that runs"));
    };
    if ready.status != "True" {
        let (word, reason) = (quoted(&ready.status, WORD), quoted(&ready.reason, WORD));
        let message = quoted(&ready.message, MESSAGE);
        return Err(about.not_ready(&format!("its condition Ready is {word} with reason {reason} and message {message}")));
    }
    if let (Some(seen), Some(now)) = (ready.observed_generation, extension.metadata.generation)
        && seen < now
    {
        return Err(about.not_ready(&format!(
            "its condition Ready is of generation {seen} and its spec of {now}: Kong's operator has not looked at that"
        )));
    }
    Ok(status)
}

/// Messages about one extension, by its name.
#[derive(Clone, Copy)]
struct About<'a>(&'a str);

impl About<'_> {
    fn not_ready(self, what: &str) -> Unusable {
        let message = format!("KonnectExtension {:?} of group konnect.konghq.com is not ready: {what}", self.0);
        Unusable { reason: reasons::KONNECT_EXTENSION_NOT_READY, message }
    }

    fn invalid(self, field: &str, value: &str, cure: &str) -> Unusable {
        let message = format!("KonnectExtension {:?} of group konnect.konghq.com: {field} is {}: {cure}", self.0, quoted(value, WORD));
        Unusable { reason: reasons::INVALID_EXTENSION, message }
    }

    fn filled(self, field: &str, value: Option<String>) -> Result<String, Unusable> {
        value
            .filter(|value| !value.is_empty())
            .ok_or_else(|| self.not_ready(&format!("{field} is not filled in, although its condition Ready is True")))
    }

    /// Konnect's API gives URLs; a host name is what Kong takes.
    fn host(self, field: &str, endpoint: &str) -> Result<String, Unusable> {
        let host = endpoint.strip_prefix("https://").unwrap_or(endpoint);
        if names::is_dns_subdomain(host) && host.split('.').all(names::is_dns_label) {
            return Ok(host.to_owned());
        }
        Err(self.invalid(field, endpoint, "a host name is expected, after https:// or alone, without port and path"))
    }
}

/// Somebody else's text in a message of ours: bounded, and escaped so that it cannot pass for ours.
fn quoted(text: &str, most: usize) -> String {
    let start: String = text.chars().take(most).collect();
    let cut = if start.len() < text.len() { " (cut)" } else { "" };
    format!("{start:?}{cut}")
}
