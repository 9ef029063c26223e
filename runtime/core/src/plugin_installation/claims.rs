//! Who may use an installation: annotation `weir.dev/claims` (semantics "Last answers"). A claim begins when a DataPlane first names the
//! installation and ends with its UID. One claimant is granted without a question, several are a conflict that a policy decides. Without the
//! ReferenceGrant that it needs nobody has a grant, whatever a policy says; the claim stays where pods have the content.

mod settle;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use weir_api::{keys, plugin_installation::KongPluginInstallation};

use super::{snapshot::Claimant, validate::Validated};
use crate::{annotations, policy::Finding};

pub(super) use settle::{Settled, settle};

/// Most claims that are kept.
pub const MAX_CLAIMS: usize = 1000;
/// Most bytes the annotation may have: all annotations of an object share 256 KiB.
pub const MAX_BYTES: usize = 96 * 1024;

/// One DataPlane's claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
    /// Since when it claims.
    pub since: Timestamp,
    /// Whether it may use the installation.
    pub granted: bool,
    /// Nobody has decided about it: the policy waits, or gives no answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub held: bool,
    /// Whether it may name the installation; left out where it may.
    #[serde(default = "yes", skip_serializing_if = "Clone::clone")]
    pub permitted: bool,
    /// Why not, and who may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl Claim {
    /// The DataPlane, as `namespace/name`.
    pub(super) fn who(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

fn yes() -> bool {
    true
}

/// Whether a DataPlane may use an installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// It may.
    Granted,
    /// It may not; says who does, or what has to happen.
    Refused(String),
    /// It has to wait for a decision; says what for.
    Held(String),
    /// Nobody has decided yet.
    Unknown,
}

/// The claims as the last pass left them, oldest first. What cannot be read is none.
#[must_use]
pub fn claims(installation: &KongPluginInstallation) -> Vec<Claim> {
    read(installation).unwrap_or_default()
}

/// How the DataPlane of this UID stands.
#[must_use]
pub fn standing(installation: &KongPluginInstallation, uid: &str) -> Standing {
    match claims(installation).into_iter().find(|claim| claim.uid == uid) {
        Some(claim) if claim.granted => Standing::Granted,
        Some(claim) if claim.held => Standing::Held(claim.message.unwrap_or_else(|| "its claim waits".into())),
        // Whether it may name the installation is seen by its own pass; with the grant back, nobody has decided yet.
        Some(claim) if !claim.permitted => Standing::Unknown,
        Some(claim) => Standing::Refused(claim.message.unwrap_or_else(|| "its claim waits".into())),
        None => Standing::Unknown,
    }
}

/// None when the annotation is there and is not what we write.
fn read(installation: &KongPluginInstallation) -> Option<Vec<Claim>> {
    match super::annotation(installation, keys::CLAIMS) {
        None => Some(Vec::new()),
        Some(text) => serde_json::from_str(text).ok(),
    }
}

/// The annotation's new text; none when nobody claims.
pub(super) fn text(claims: &[Claim]) -> Option<String> {
    (!claims.is_empty()).then(|| serde_json::to_string(claims).unwrap_or_default())
}

/// Claims of everybody who may name the installation, or has its content already, oldest first, as they stood before this pass. A lost
/// annotation is rebuilt: who mounts the content had the grant. So had who mounts it while the ReferenceGrant was away.
fn collect(installation: &Validated<'_>, findings: &mut Vec<Finding>) -> Vec<Claim> {
    let snapshot = installation.snapshot;
    let known = read(&snapshot.installation).unwrap_or_else(|| {
        let message = "the list of claims is not what the operator wrote and is made again: leave this annotation to it";
        findings.push(annotations::warning("ClaimsUnreadable", keys::CLAIMS, message.into()));
        Vec::new()
    });
    let known: std::collections::BTreeMap<&str, &Claim> = known.iter().map(|claim| (claim.uid.as_str(), claim)).collect();
    let mut claims: Vec<Claim> = snapshot
        .claimants
        .iter()
        .filter(|claimant| claimant.permitted || claimant.mounts)
        .map(|claimant| match known.get(claimant.uid.as_str()) {
            Some(known) if known.permitted => {
                Claim { held: known.held, message: known.message.clone(), ..begin(claimant, known.since, known.granted) }
            }
            Some(known) => begin(claimant, known.since, claimant.mounts),
            None => begin(claimant, claimant.created.filter(|_| claimant.mounts).unwrap_or(snapshot.now), claimant.mounts),
        })
        .collect();
    claims.sort_by(|a, b| (a.since, &a.namespace, &a.name).cmp(&(b.since, &b.namespace, &b.name)));
    claims
}

/// Who names the installation, may not, and has nothing of it: no claim, or anybody could fill the list.
fn outside(installation: &Validated<'_>) -> Vec<Claim> {
    let snapshot = installation.snapshot;
    let outside = snapshot.claimants.iter().filter(|claimant| !claimant.permitted && !claimant.mounts);
    outside.map(|claimant| refused(installation, begin(claimant, snapshot.now, false))).collect()
}

/// The claim while the ReferenceGrant that it needs is not there.
fn refused(installation: &Validated<'_>, claim: Claim) -> Claim {
    let (here, there) = (installation.namespace, &claim.namespace);
    let message = format!(
        "no ReferenceGrant in namespace {here} lets DataPlanes of namespace {there} name it: create one from group {group} kind DataPlane to \
         kind KongPluginInstallation",
        group = keys::GATEWAY_OPERATOR_GROUP
    );
    Claim { granted: false, held: false, permitted: false, message: Some(message), ..claim }
}

fn begin(claimant: &Claimant, since: Timestamp, granted: bool) -> Claim {
    Claim {
        namespace: claimant.namespace.clone(),
        name: claimant.name.clone(),
        uid: claimant.uid.clone(),
        since,
        granted,
        held: false,
        permitted: claimant.permitted,
        message: None,
    }
}

/// Keeps the oldest that fit. Whoever is left out has no standing, and the installation's owner hears of it.
fn cut(claims: &mut Vec<Claim>, findings: &mut Vec<Finding>) {
    let all = claims.len();
    claims.truncate(MAX_CLAIMS);
    while text(claims).is_some_and(|text| text.len() > MAX_BYTES) {
        claims.truncate(claims.len().saturating_sub(claims.len() / 20 + 1));
    }
    if claims.len() < all {
        let message = format!(
            "{all} DataPlanes name this installation and only the oldest {} are kept, the others do not get the plugin: make a second installation for them",
            claims.len()
        );
        findings.push(annotations::warning("TooManyClaims", keys::CLAIMS, message));
    }
}
