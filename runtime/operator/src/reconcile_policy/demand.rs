//! What the spec of a policy asks for, as far as work has to be done for it.

use serde_json::Value;
use weir_api::reconcile_policy::{OciSource, ReconcilePolicy, Revision};
use weir_core::{
    policy::SlotName,
    reconcile_policy::validate::{Cost, Origin, Validated},
};
use weir_host::wasm::Limits;

use crate::{cache::Key, policies::RevisionId};

/// Where the component comes from.
#[derive(Debug, Clone, PartialEq)]
pub enum Source {
    /// The operator itself.
    Builtin,
    /// A registry.
    Oci(Box<OciSource>),
    /// A remote plugin.
    Remote {
        /// Its name.
        plugin: String,
        /// Its digest of record when it was asked for: another one is another demand.
        digest: String,
    },
}

/// What the spec asks for.
#[derive(Debug, Clone)]
pub struct Demand {
    /// The policy.
    pub policy: Key,
    /// Its UID.
    pub uid: String,
    /// Its slot.
    pub slot: SlotName,
    /// Where the component comes from.
    pub source: Source,
    /// The same in short, for people.
    pub image: String,
    /// Settings.
    pub settings: Value,
    /// Digest of settings and limits.
    pub settings_digest: String,
    /// What one question may cost.
    pub limits: Limits,
    /// Digest of the signatures that are wanted.
    pub verification: Option<String>,
    /// The whole object, for who it is for.
    pub object: ReconcilePolicy,
    /// What is in force and would be the same: nothing has to be fetched while the tag leads to it.
    pub current: Option<Revision>,
}

impl Demand {
    /// What the spec asks for; none where nothing can be done.
    pub fn of(policy: &Validated<'_>, is_current: bool) -> Option<Self> {
        let object = &policy.snapshot.policy;
        let source = match policy.origin? {
            Origin::Builtin => Source::Builtin,
            Origin::Oci(oci) => Source::Oci(Box::new(oci.clone())),
            // While it may not be asked nothing can be done.
            Origin::Remote(plugin) => Source::Remote { plugin: plugin.to_owned(), digest: policy.plugin_digest.clone()? },
        };
        let active = object.status.as_ref().and_then(|status| status.active.clone());
        Some(Self {
            policy: Key::of(&object.metadata),
            uid: object.metadata.uid.clone().unwrap_or_default(),
            slot: policy.slot,
            source,
            image: policy.source.clone(),
            settings: policy.settings.clone(),
            settings_digest: policy.settings_digest.clone(),
            limits: limits(policy.cost),
            verification: policy.snapshot.verification.clone(),
            object: object.clone(),
            current: active.filter(|_| is_current),
        })
    }

    /// Whether work that was done for one is done for the other. Who it is for, and what is in force, changes nothing about that.
    pub fn is_same(&self, other: &Self) -> bool {
        self.uid == other.uid
            && self.slot == other.slot
            && self.source == other.source
            && self.settings_digest == other.settings_digest
            && self.verification == other.verification
    }

    /// Whether it reads an object that is not watched: a CA bundle is a ConfigMap, and clusters have far too many of them for a cache.
    pub fn rests_on_unwatched(&self) -> bool {
        matches!(&self.source, Source::Oci(oci) if oci.ca_bundle_ref.is_some())
    }

    /// The revision that a component of this digest would be.
    pub fn revision(&self, layer: &str) -> RevisionId {
        RevisionId { policy: self.policy.clone(), slot: self.slot, layer: layer.to_owned(), settings: self.settings_digest.clone() }
    }
}

/// What one question may cost, as the host has it. The core has checked the bounds already, and they are the host's.
pub(super) fn limits(cost: Cost) -> Limits {
    Limits::new(cost.timeout, cost.memory).unwrap_or_default()
}
