//! Who a plugin says it is and what it offers: bounded, with absent parts and unknown numbers accepted.

use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest, Sha256};
use weir_core::policy::SlotName;
use weir_proto::{
    identity as id, lifecycle as lc, operator as op,
    policy::{SLOT_VERSION, slot_key},
    reconciler as rc,
};

use super::{Verb, text};

/// Longest name (it is a label's value), bytes.
const MAX_NAME: usize = 63;
/// Longest other text, bytes.
const MAX_TEXT: usize = 1_024;
/// Most entries of the manifest, of a list of capabilities, and of a capability.
const MAX_ENTRIES: usize = 128;

/// Who a plugin says it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Metadata {
    /// Name.
    pub name: String,
    /// Version; not understood, only shown and compared.
    pub version: String,
    /// Name for people.
    pub display_name: String,
    /// Vendor.
    pub vendor: String,
    /// Maturity.
    pub maturity: String,
    /// Where it lives.
    pub project_url: String,
    /// License.
    pub license: String,
    /// Extensions, slots of ours among them.
    pub manifest: BTreeMap<String, String>,
}

impl Metadata {
    /// `sha256:…` over name, version and manifest: what stands for a remote plugin where a component has the digest of its bytes.
    #[must_use]
    pub fn digest(&self) -> String {
        let mut hash = Sha256::new();
        let mut part = |text: &str| {
            hash.update(u64::try_from(text.len()).unwrap_or(u64::MAX).to_be_bytes());
            hash.update(text);
        };
        part(&self.name);
        part(&self.version);
        for (key, value) in &self.manifest {
            part(key);
            part(value);
        }
        format!("sha256:{}", hex::encode(hash.finalize()))
    }

    /// The slots it advertises in the version that this host speaks. Slot object-hook is not advertised here: it is the lifecycle service.
    #[must_use]
    pub fn slots(&self) -> BTreeSet<SlotName> {
        let served = |slot: &SlotName| self.manifest.get(&slot_key(slot.as_str())).is_some_and(|version| version == SLOT_VERSION);
        SlotName::ALL.into_iter().filter(|slot| *slot != SlotName::ObjectHook).filter(served).collect()
    }

    /// From the wire.
    ///
    /// # Errors
    /// Names the field that is over its bound.
    pub(super) fn read(wire: id::GetPluginMetadataResponse) -> Result<Self, String> {
        if wire.name.is_empty() {
            return Err("its metadata has no name".into());
        }
        if wire.name.len() > MAX_NAME {
            return Err(format!("its metadata has a name of {} bytes, at most {MAX_NAME} are allowed", wire.name.len()));
        }
        if wire.manifest.len() > MAX_ENTRIES {
            return Err(format!("its manifest has {} entries, at most {MAX_ENTRIES} are allowed", wire.manifest.len()));
        }
        let manifest = wire.manifest.into_iter();
        let manifest = manifest.map(|(key, value)| Ok((bounded("manifest", key)?, bounded("manifest", value)?)));
        Ok(Self {
            name: bounded("name", wire.name)?,
            version: bounded("version", wire.version)?,
            display_name: bounded("display_name", wire.display_name)?,
            vendor: bounded("vendor", wire.vendor)?,
            maturity: bounded("maturity", wire.maturity)?,
            project_url: bounded("project_url", wire.project_url)?,
            license: bounded("license", wire.license)?,
            manifest: manifest.collect::<Result<_, String>>()?,
        })
    }
}

/// A service a plugin can have. What is not here is accepted and not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Service {
    /// Validation, mutation and status.
    Operator,
    /// Hooks on objects.
    Lifecycle,
    /// Hooks around a pass.
    Reconciler,
}

impl Service {
    /// Kebab-case.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::Lifecycle => "lifecycle",
            Self::Reconciler => "reconciler",
        }
    }
}

/// A call of the service [`Service::Operator`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OperatorCall {
    /// Check a new object.
    ValidateCreate,
    /// Check a changed object.
    ValidateChange,
    /// Change an object before it is stored.
    Mutate,
    /// Report into the object's status.
    SetStatus,
    /// Say farewell to an object.
    Deregister,
}

impl OperatorCall {
    /// Kebab-case.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ValidateCreate => "validate-create",
            Self::ValidateChange => "validate-change",
            Self::Mutate => "mutate",
            Self::SetStatus => "set-status",
            Self::Deregister => "deregister",
        }
    }
}

/// A kind of objects a plugin wants to see.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lifecycle {
    /// API group; empty is the core group.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// On which operations.
    pub verbs: BTreeSet<Verb>,
}

/// What a plugin offers. Nothing that is not in here is ever called.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Capabilities {
    /// Services of CNPG-I.
    pub services: BTreeSet<Service>,
    /// Calls of the operator service.
    pub operator: BTreeSet<OperatorCall>,
    /// Objects of the lifecycle service.
    pub lifecycle: Vec<Lifecycle>,
    /// Whether the reconciler's hooks are for the main object.
    pub reconciler: bool,
    /// Slots of ours.
    pub slots: BTreeSet<SlotName>,
}

impl Capabilities {
    /// Whether the lifecycle hook wants this operation on this kind.
    #[must_use]
    pub fn wants(&self, group: &str, kind: &str, verb: Verb) -> bool {
        self.lifecycle.iter().any(|of| of.group == group && of.kind == kind && of.verbs.contains(&verb))
    }

    /// The list of services; an entry without its part is passed over.
    pub(super) fn services(wire: &id::GetPluginCapabilitiesResponse) -> Result<BTreeSet<Service>, String> {
        use id::plugin_capability::{Type, service::Type as Kind};
        count("capabilities", wire.capabilities.len())?;
        let service = |entry: &id::PluginCapability| match &entry.r#type {
            Some(Type::Service(service)) => match Kind::try_from(service.r#type) {
                Ok(Kind::OperatorService) => Some(Service::Operator),
                Ok(Kind::LifecycleService) => Some(Service::Lifecycle),
                Ok(Kind::ReconcilerHooks) => Some(Service::Reconciler),
                // For databases, or newer than this host.
                Ok(
                    Kind::Unspecified
                    | Kind::WalService
                    | Kind::BackupService
                    | Kind::RestoreJob
                    | Kind::Postgres
                    | Kind::InstanceSidecarInjection
                    | Kind::InstanceJobSidecarInjection
                    | Kind::Metrics,
                )
                | Err(_) => None,
            },
            None => None,
        };
        Ok(wire.capabilities.iter().filter_map(service).collect())
    }

    pub(super) fn operator(wire: &op::OperatorCapabilitiesResult) -> Result<BTreeSet<OperatorCall>, String> {
        use op::operator_capability::{Type, rpc::Type as Kind};
        count("operator capabilities", wire.capabilities.len())?;
        let call = |entry: &op::OperatorCapability| match &entry.r#type {
            Some(Type::Rpc(rpc)) => match Kind::try_from(rpc.r#type) {
                Ok(Kind::ValidateClusterCreate) => Some(OperatorCall::ValidateCreate),
                Ok(Kind::ValidateClusterChange) => Some(OperatorCall::ValidateChange),
                Ok(Kind::MutateCluster) => Some(OperatorCall::Mutate),
                Ok(Kind::SetStatusInCluster) => Some(OperatorCall::SetStatus),
                Ok(Kind::Deregister) => Some(OperatorCall::Deregister),
                Ok(Kind::Unspecified) | Err(_) => None,
            },
            None => None,
        };
        Ok(wire.capabilities.iter().filter_map(call).collect())
    }

    pub(super) fn lifecycle(wire: lc::OperatorLifecycleCapabilitiesResponse) -> Result<Vec<Lifecycle>, String> {
        count("lifecycle capabilities", wire.lifecycle_capabilities.len())?;
        let read = |entry: lc::OperatorLifecycleCapabilities| {
            count("operations of a lifecycle capability", entry.operation_types.len())?;
            let verbs = entry.operation_types.iter().filter_map(|operation| Verb::read(operation.r#type)).collect();
            Ok(Lifecycle { group: bounded("group", entry.group)?, kind: bounded("kind", entry.kind)?, verbs })
        };
        wire.lifecycle_capabilities.into_iter().map(read).collect()
    }

    pub(super) fn reconciler(wire: &rc::ReconcilerHooksCapabilitiesResult) -> Result<bool, String> {
        use rc::reconciler_hooks_capability::Kind;
        count("reconciler capabilities", wire.reconciler_capabilities.len())?;
        Ok(wire.reconciler_capabilities.iter().any(|entry| entry.kind == i32::from(Kind::Cluster)))
    }
}

fn count(what: &str, found: usize) -> Result<(), String> {
    if found > MAX_ENTRIES { Err(format!("it lists {found} {what}, at most {MAX_ENTRIES} are allowed")) } else { Ok(()) }
}

fn bounded(field: &str, value: String) -> Result<String, String> {
    if value.len() > MAX_TEXT {
        return Err(format!("its metadata has a {field} of {} bytes, at most {MAX_TEXT} are allowed", value.len()));
    }
    Ok(text::line(&value, MAX_TEXT))
}
