//! What one pass over all remote plugins sees. Of Secrets: names, digests and times, never a value.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use k8s_openapi::api::{core::v1::Service, discovery::v1::EndpointSlice};

use serde_json::json;

use super::{Key, Spec, reason::Reason};
use crate::{hash, policy::SlotName};

/// What comes before the name of a slot in the manifest of a plugin that serves it.
pub const SLOT_KEY: &str = "weir.dev/slot.";

/// When a certificate can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Validity {
    /// Its notBefore.
    pub begins: Timestamp,
    /// Its notAfter.
    pub ends: Timestamp,
}

/// The certificates under one key of a Secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificates {
    /// Digest of the value.
    pub digest: String,
    /// When each can be used, in their order; at least one.
    pub validity: Vec<Validity>,
}

/// A Secret that the Service of a plugin names. What is wrong with a key is said without its name: whoever shows it knows which Secret it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretFacts {
    /// `tls.crt`, or why it is no list of certificates.
    pub certificates: Result<Certificates, String>,
    /// `ca.crt`, where there is one, or why it is no list of certificates.
    pub authorities: Option<Result<Certificates, String>>,
    /// Digest of `tls.key`, or why it is not the key of the first certificate in `tls.crt`.
    pub key: Result<String, String>,
}

impl SecretFacts {
    /// Digest of what the operator shows, where it can be shown.
    #[must_use]
    pub fn client_digest(&self) -> Option<String> {
        let (certificates, key) = (self.certificates.as_ref().ok()?, self.key.as_ref().ok()?);
        Some(hash::digest_json(&json!([certificates.digest, key])))
    }

    /// Digest of what the operator trusts, where it can be trusted.
    #[must_use]
    pub fn server_digest(&self) -> Option<String> {
        let authorities = self.authorities.as_ref().map(|read| read.as_ref().map(|a| &a.digest)).transpose().ok()?;
        Some(hash::digest_json(&json!([self.certificates.as_ref().ok()?.digest, authorities])))
    }
}

/// What a plugin says about itself, over the newest connection.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Facts {
    /// Its name.
    pub name: String,
    /// Its version; means nothing to us.
    pub version: String,
    /// The digest of record, over name, version and manifest: what stands for the plugin where a component has the digest of its bytes.
    pub digest: String,
    /// Slots that it says it serves, in a version that the host speaks.
    pub slots: BTreeSet<SlotName>,
}

/// What the host says about a plugin.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Report {
    /// It has not been dialled yet.
    #[default]
    Connecting,
    /// It answers.
    Ready(Facts),
    /// It does not, or may not be asked.
    Failing {
        /// Why.
        reason: Reason,
        /// For a person, without stack traces.
        message: String,
    },
}

/// What one pass sees.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// The time of the pass.
    pub now: Timestamp,
    /// Labels and annotations `cnpg.io/*` count too.
    pub cnpg: bool,
    /// Labelled Services of the plugin namespaces.
    pub services: Vec<Service>,
    /// Secrets that they name and that are there.
    pub secrets: BTreeMap<Key, SecretFacts>,
    /// EndpointSlices by Service; none where they cannot be read, and then the Service's DNS name is dialled.
    pub slices: Option<BTreeMap<Key, Vec<EndpointSlice>>>,
    /// What was in force after the last pass, by the plugin's name.
    pub kept: BTreeMap<String, Spec>,
    /// What the host says, by the plugin's name.
    pub reports: BTreeMap<String, Report>,
    /// Services that were told of as plugins before.
    pub told: BTreeSet<Key>,
}
