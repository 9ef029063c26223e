//! Whether a plugin may answer for a policy, and if not, why.

use super::{Facts, Reason, Tenants, reason::Problem, snapshot::SLOT_KEY};
use crate::{
    policy::SlotName,
    reconcile_policy::snapshot::{Failure, Step},
};

/// How a plugin stands, for the policies that name it.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    /// What it says about itself, when it can be asked; why it cannot, otherwise.
    pub ready: Result<Facts, Problem>,
    /// Whose policies may use it.
    pub tenants: Tenants,
}

/// Why a plugin does not answer for a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unusable {
    /// Reason of a condition.
    pub reason: &'static str,
    /// For a person.
    pub message: String,
    /// Whether it may pass by itself.
    pub transient: bool,
}

impl From<Unusable> for Failure {
    fn from(unusable: Unusable) -> Self {
        Self { step: Step::Resolved, reason: unusable.reason.into(), message: unusable.message, transient: unusable.transient }
    }
}

/// Who asks for a plugin.
#[derive(Debug, Clone, Copy)]
pub struct Asker<'a> {
    /// Name of the plugin.
    pub plugin: &'a str,
    /// The slot that it is to serve.
    pub slot: SlotName,
    /// Namespace of the policy.
    pub namespace: &'a str,
    /// The operator's own namespace.
    pub operator_namespace: &'a str,
}

/// The digest of record of the plugin, where it may be asked.
///
/// # Errors
/// What keeps it from that.
pub fn serves(asker: Asker<'_>, standing: Option<&Standing>) -> Result<String, Unusable> {
    const FIELD: &str = "spec.source.remote.pluginName";
    let Asker { plugin, slot, namespace, operator_namespace } = asker;
    let unusable = |reason: &'static str, message: String, transient| Err(Unusable { reason, message, transient });
    let Some(standing) = standing else {
        let message = format!(
            "{FIELD}: there is no plugin {plugin:?}: label its Service {}={plugin} in a plugin namespace of the operator",
            weir_api::keys::PLUGIN_NAME
        );
        // It may come, and a watch tells.
        return unusable("PluginNotFound", message, true);
    };
    if namespace != operator_namespace && !standing.tenants.allow(namespace) {
        let message = format!(
            "{FIELD}: plugin {plugin} does not let policies of namespace {namespace} use it: its owner has to add that to annotation {} of its \
             Service",
            weir_api::keys::PLUGIN_TENANTS
        );
        return unusable("TenantsNotAllowed", message, false);
    }
    let facts = match &standing.ready {
        Ok(facts) => facts,
        Err(problem) => {
            let Problem { reason, event: _, message } = problem;
            let message = format!("{FIELD}: plugin {plugin} is not ready ({}): {message}", reason.as_str());
            return unusable(Reason::NotReady.as_str(), message, true);
        }
    };
    if !facts.slots.contains(&slot) {
        let has: Vec<&str> = facts.slots.iter().map(|slot| slot.as_str()).collect();
        let has = if has.is_empty() { "none".to_owned() } else { has.join(", ") };
        let needs = match slot {
            SlotName::ObjectHook => "it has to have the lifecycle service of CNPG-I".to_owned(),
            SlotName::KonnectEnv | SlotName::ConflictResolution | SlotName::PluginPackaging => {
                format!("its manifest has to have the key {SLOT_KEY}{slot}")
            }
        };
        let version = crate::policy::limits::cut(&facts.version);
        let message = format!("spec.slot: plugin {plugin} {version} does not serve {slot}; it serves {has}: {needs}");
        return unusable("SlotNotServed", message, false);
    }
    Ok(facts.digest.clone())
}
