//! What a recorded object cannot say by its own fields: digests of what was taken out of it, and what only an operator remembers.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use weir_core::{
    dataplane::snapshot::{CaFacts, Operator},
    plan::KeyAlgorithm,
};

/// Annotation of recorded objects. It is read from what is observed, and written to nothing.
pub(crate) const RECORDED: &str = "weir.dev/recorded";

/// The annotation's content. Everything but what differs from the usual is left out.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(crate) struct Recorded {
    /// Of a child: digest of the server's answer to the operator's last apply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) answered: Option<String>,
    /// Of a child: it counts as the DataPlane's own without an owner reference.
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) ours: bool,
    /// Of a Secret: digests of public parts. Values of other keys have none: a short password could be found by its digest.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) keys: BTreeMap<String, String>,
    /// Of a Secret: when its certificate ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ends: Option<Timestamp>,
    /// Of a Secret: why it is no certificate with its key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) unusable: Option<String>,
    /// Of an installation: its content stands nowhere.
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) unstored: bool,
    /// Of a DataPlane: the other group has an extension of the name.
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) namesake: bool,
    /// Of a DataPlane: nobody could know whether there is an extension, or an installation.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) unknown: BTreeSet<String>,
    /// Of a DataPlane: Secrets that were looked for and are not there.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) missing: BTreeSet<String>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks with a reference")]
fn is_false(value: &bool) -> bool {
    !*value
}

impl Recorded {
    /// Reads it; nothing where there is none, or none that is ours.
    pub(crate) fn of(meta: &ObjectMeta) -> Self {
        let text = meta.annotations.as_ref().and_then(|all| all.get(RECORDED));
        text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    }

    /// Writes it onto an object.
    pub(crate) fn put(&self, object: &mut Value) {
        if *self == Self::default() {
            return;
        }
        let text = serde_json::to_string(self).unwrap_or_default();
        let Some(meta) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
        let annotations = meta.entry("annotations").or_insert_with(|| json!({}));
        if let Some(annotations) = annotations.as_object_mut() {
            annotations.insert(RECORDED.to_owned(), text.into());
        }
    }
}

/// What an operator knows about itself beside manifests; what is left out is as in a fresh install.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OperatorFacts {
    /// The cluster CA. Without it that of the Secret `kong-operator-ca`, where the manifests have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca: Option<Ca>,
    /// Why no certificate can be made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate_problem: Option<String>,
    /// Label key that marks Secrets for Kong's own tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_label: Option<String>,
    /// Lifetime of an admin certificate, seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate_ttl_seconds: Option<i64>,
    /// How long before its end a certificate is renewed, seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate_margin_seconds: Option<i64>,
    /// Who holds the live Lease of Kong's own operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kong_operator: Option<String>,
}

/// The cluster CA, without its key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Ca {
    /// `sha256:…` of its certificate.
    pub digest: String,
    /// Algorithm of its key.
    #[serde(default)]
    pub key: CaKey,
    /// Its end (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub ends: Option<Timestamp>,
}

/// Algorithms of a CA's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CaKey {
    /// ECDSA on P-256.
    #[default]
    Ecdsa,
    /// RSA of 2048 bits.
    Rsa,
}

impl OperatorFacts {
    /// What differs from a fresh install.
    #[must_use]
    pub fn of(operator: &Operator) -> Self {
        let usual = Operator::with_ca(String::new());
        let key = match operator.ca.key {
            KeyAlgorithm::EcdsaP256 => CaKey::Ecdsa,
            KeyAlgorithm::Rsa2048 => CaKey::Rsa,
        };
        let seconds = |own: i64, usual: i64| (own != usual).then_some(own);
        Self {
            ca: Some(Ca { digest: operator.ca.digest.clone(), key, ends: operator.ca.ends }),
            certificate_problem: operator.certificate_problem.clone(),
            secret_label: (operator.secret_label != usual.secret_label).then(|| operator.secret_label.clone()),
            certificate_ttl_seconds: seconds(operator.certificate_ttl_seconds, usual.certificate_ttl_seconds),
            certificate_margin_seconds: seconds(operator.certificate_margin_seconds, usual.certificate_margin_seconds),
            kong_operator: operator.kong_operator.clone(),
        }
    }

    /// Puts it into what a pass sees.
    pub(crate) fn put(&self, operator: &mut Operator) {
        if let Some(Ca { digest, key, ends }) = &self.ca {
            let key = match key {
                CaKey::Ecdsa => KeyAlgorithm::EcdsaP256,
                CaKey::Rsa => KeyAlgorithm::Rsa2048,
            };
            operator.ca = CaFacts { digest: digest.clone(), key, ends: *ends };
        }
        operator.certificate_problem.clone_from(&self.certificate_problem);
        operator.kong_operator.clone_from(&self.kong_operator);
        if let Some(label) = &self.secret_label {
            operator.secret_label.clone_from(label);
        }
        operator.certificate_ttl_seconds = self.certificate_ttl_seconds.unwrap_or(operator.certificate_ttl_seconds);
        operator.certificate_margin_seconds = self.certificate_margin_seconds.unwrap_or(operator.certificate_margin_seconds);
    }
}
