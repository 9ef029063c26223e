//! What a KonnectExtension says, resolved: the question to konnect-env.

mod api_driven;
mod token_free;

use weir_api::{condition::reasons, dataplane::ExtensionRef, keys, konnect_extension::KonnectExtension, konnect_v2, names};

pub use self::{
    api_driven::{api_driven, secret_name as api_driven_secret},
    token_free::{secret_name as token_free_secret, token_free},
};
use crate::{
    dataplane::snapshot::{Lookup, SecretFacts},
    policy::{
        Pairs,
        konnect_env::{ClusterType, Endpoints},
    },
};

/// Where the client certificate is mounted (facts/kong-operator.md 3.6).
pub const CERTIFICATE_MOUNT: &str = "/etc/secrets/kong-cluster-cert";

const CLUSTER_TYPE_CURE: &str = "use one of ControlPlane, ControlPlaneGroup, K8SIngressController";
const LABEL_CURE: &str = "key and value have 1 to 63 letters, digits, `-`, `_` or `.`, and begin and end with a letter or digit";

/// The two kinds named KonnectExtension.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Sort {
    /// Group gateway-operator.konghq.com: served by us.
    TokenFree,
    /// Group konnect.konghq.com: filled in by Kong's operator, which needs an account token; read by us.
    ApiDriven,
}

impl Sort {
    /// The sort that a DataPlane names; none for a kind that is neither.
    #[must_use]
    pub fn of(reference: &ExtensionRef) -> Option<Self> {
        let sort = [Self::TokenFree, Self::ApiDriven].into_iter().find(|sort| reference.group == sort.group());
        sort.filter(|_| reference.kind == "KonnectExtension")
    }

    /// Its API group.
    #[must_use]
    pub fn group(self) -> &'static str {
        match self {
            Self::TokenFree => keys::GATEWAY_OPERATOR_GROUP,
            Self::ApiDriven => keys::KONNECT_GROUP,
        }
    }

    /// The other one, which a reference may have meant.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::TokenFree => Self::ApiDriven,
            Self::ApiDriven => Self::TokenFree,
        }
    }
}

/// An extension of either sort.
#[derive(Debug, Clone, PartialEq)]
pub enum Extension {
    /// All is in its spec.
    TokenFree(Box<KonnectExtension>),
    /// Most is in its status.
    ApiDriven(Box<konnect_v2::KonnectExtension>),
}

impl Extension {
    /// Name of the Secret with the client certificate, where it says one.
    #[must_use]
    pub fn secret_name(&self) -> Option<&str> {
        match self {
            Self::TokenFree(extension) => token_free_secret(extension),
            Self::ApiDriven(extension) => api_driven_secret(extension),
        }
    }

    /// Reads it.
    ///
    /// # Errors
    /// What is missing or wrong, as a condition.
    pub fn facts(&self) -> Result<Facts, Unusable> {
        match self {
            Self::TokenFree(extension) => token_free(extension),
            Self::ApiDriven(extension) => api_driven(extension),
        }
    }
}

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
    /// Region; none when the extension does not say it.
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

/// Digest of `tls.crt` in the Secret of an extension; none when nobody can know.
///
/// # Errors
/// The Secret is missing, or has not what a client certificate needs, as a condition.
pub fn certificate_digest(facts: &Facts, secret: &Lookup<SecretFacts>) -> Result<Option<String>, Unusable> {
    let (name, extension) = (&facts.certificate_secret, &facts.extension);
    let invalid = |message: String| Unusable { reason: reasons::INVALID_SECRET, message };
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
    if let Some(why) = &secret.unusable {
        return Err(invalid(format!("Secret {name:?} of KonnectExtension {extension:?}: {why}")));
    }
    Ok(secret.keys.get("tls.crt").cloned())
}

/// Kong's words, in annotations and statuses alike.
fn cluster_type(text: &str) -> Option<ClusterType> {
    match text {
        "ControlPlane" => Some(ClusterType::ControlPlane),
        "ControlPlaneGroup" => Some(ClusterType::ControlPlaneGroup),
        "K8SIngressController" => Some(ClusterType::K8SIngressController),
        _ => None,
    }
}

/// Key of a label that cannot be used: a `:` or `,` would forge another one in KONG_CLUSTER_DP_LABELS.
fn bad_label(labels: &Pairs) -> Option<&String> {
    let bad = |text: &String| text.is_empty() || !names::is_label_value(text);
    labels.iter().find(|(key, value)| bad(key) || bad(value)).map(|(key, _)| key)
}
