//! KongPluginInstallation: one pass, pure but for the policies it asks. From an artifact to content that DataPlanes can mount.
//!
//! Before a pass the shell asks [`need()`] what the registry has to be asked. What is in force stands sealed in annotation
//! `weir.dev/decisions` of the installation and changes only when something newer was accepted: a pending, refused or failing update
//! never takes anything away (design section 7).

pub mod bundled;
pub mod claims;
pub mod content;
pub mod decide;
pub mod need;
mod objects;
mod package;
pub mod plan;
pub mod provision;
mod question;
pub mod report;
pub mod resync;
pub mod snapshot;
mod status;
pub mod validate;

pub use self::{
    claims::{Claim, Standing, claims, standing},
    decide::decide,
    need::{Need, need},
    plan::plan,
    resync::resync,
    snapshot::Snapshot,
    validate::validate,
};

use weir_api::{
    condition::{reasons, types},
    keys,
    plugin_installation::{KongPluginInstallation, KongPluginInstallationStatus},
};

use crate::{
    decisions::{Found, Sealing, Stored},
    plan::Plan,
    policy::{Policies, SlotName},
};

/// The whole pass: validate, decide, plan.
pub async fn reconcile(snapshot: &Snapshot, policies: &Policies, sealing: &Sealing) -> Plan<KongPluginInstallationStatus> {
    let validated = validate(snapshot, sealing);
    let decided = decide(&validated, policies, sealing).await;
    plan(&validated, &decided)
}

/// The content that DataPlanes may use: the last one that was accepted, whatever became of newer ones.
#[must_use]
pub fn in_force(installation: &KongPluginInstallation, sealing: &Sealing) -> Option<content::Content> {
    match record(installation, sealing) {
        Found::Record(record) => Some(record.answer),
        Found::None | Found::Unverified => None,
    }
}

/// Why nothing of the installation can be used, in its own words: Accepted is False, and not because its artifact is still being fetched.
#[must_use]
pub fn problem(installation: &KongPluginInstallation) -> Option<String> {
    let conditions = installation.status.as_ref()?.conditions.as_ref()?;
    let accepted = conditions.iter().find(|c| c.type_ == types::ACCEPTED)?;
    (accepted.status != "True" && accepted.reason != reasons::PENDING).then(|| accepted.message.clone())
}

fn record(installation: &KongPluginInstallation, sealing: &Sealing) -> Found<content::Content> {
    let uid = installation.metadata.uid.as_deref().unwrap_or_default();
    Stored::parse(annotation(installation, keys::DECISIONS)).get(SlotName::PluginPackaging, uid, sealing)
}

fn annotation<'a>(installation: &'a KongPluginInstallation, key: &str) -> Option<&'a str> {
    installation.metadata.annotations.as_ref()?.get(key).map(String::as_str)
}
