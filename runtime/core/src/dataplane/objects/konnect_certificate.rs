//! The cert-manager Certificate of `spec.network.konnectCertificate` (facts/kong-operator.md 1.3.8).

use serde_json::json;
use weir_api::{dataplane::KonnectCertificate, keys};

use super::{labels, meta};
use crate::{dataplane::validate::Validated, hash, names, plan::ForeignObject};

/// Volume of the certificate.
pub const VOLUME: &str = "konnect-cert";
/// Where it is mounted.
pub const MOUNT: &str = "/var/konnect-client-certificate/";

/// The user's block, where there is one.
#[must_use]
pub fn options<'a>(dp: &'a Validated<'_>) -> Option<&'a KonnectCertificate> {
    dp.spec().network.as_ref()?.konnect_certificate.as_ref()
}

/// The Secret that cert-manager fills.
#[must_use]
pub fn secret_name(dp: &Validated<'_>) -> String {
    names::child("", &format!("{}-konnect-cert", dp.name))
}

/// Name of a Certificate that is not there yet.
#[must_use]
pub fn planned_name(dp: &Validated<'_>) -> String {
    names::child("dataplane-", &format!("{}-konnect", dp.name))
}

/// Builds the Certificate.
#[must_use]
pub fn build(dp: &Validated<'_>, name: String, options: &KonnectCertificate) -> ForeignObject {
    let labels =
        labels(dp, &[("gateway-operator.konghq.com/cert-purpose", "konnect-dataplane"), ("gateway-operator.konghq.com/owner-id", &dp.uid)]);
    let kind = if options.issuer.namespace.as_deref().is_some_and(|n| !n.is_empty()) { "Issuer" } else { "ClusterIssuer" };
    ForeignObject {
        metadata: meta(dp, name, labels),
        spec: json!({
            "secretName": secret_name(dp),
            "secretTemplate": {"labels": {keys::APP: dp.name, keys::MANAGED_BY: "dataplane"}},
            "commonName": format!("konnect-{}", hash::short(format!("{}.{}", dp.name, dp.namespace).as_bytes(), 16)),
            "dnsNames": [format!("{}.{}.dataplane.konnect", dp.name, dp.namespace)],
            "issuerRef": {"name": options.issuer.name, "kind": kind, "group": "cert-manager.io"},
        }),
    }
}
