//! How the plugins of a DataPlane stand: fetched, configured, rolled out.

use k8s_openapi::api::apps::v1::Deployment;
use serde::Serialize;
use weir_api::condition::reasons;

use super::{
    super::{
        decide::Decided,
        plan::lookup,
        validate::{State, Validated},
    },
    Mounted, Used, maps_of, mounted_maps, volume,
};
use crate::plan::HeldPart;

/// How an installation stands in a DataPlane, for people and machines.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Standing {
    /// `namespace/name`.
    pub installation: String,
    /// The installation gives something.
    pub fetched: bool,
    /// That is in the live Deployment.
    pub configured: bool,
    /// All pods of its newest ReplicaSet have it.
    pub rolled_out: bool,
    /// Digest of what the pods get; none when they get nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Plugins in the pods.
    pub plugins: Vec<Named>,
    /// Why what it gives is not to be in the pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
    /// Digest of what the pods would get if an undone rollout went forward; none where that is what they have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits: Option<String>,
    /// Names of plugins that somebody else got.
    #[serde(skip)]
    pub lost: Vec<String>,
}

/// A plugin by name and version.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Named {
    /// Kong's name of it.
    pub name: String,
    /// Version, where the handler says one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

impl Named {
    fn of(mounted: Mounted<'_>) -> Self {
        Self { name: mounted.plugin.name.clone(), version: mounted.plugin.version.clone() }
    }
}

impl Standing {
    /// For a condition's message.
    #[must_use]
    pub fn line(&self) -> String {
        let named = |p: &Named| p.version.as_ref().map_or_else(|| p.name.clone(), |version| format!("{} {version}", p.name));
        let names: Vec<String> = self.plugins.iter().map(named).collect();
        let state = match (self.configured, self.rolled_out, self.plugins.is_empty()) {
            (_, _, true) => "not in the pods",
            (true, true, false) => "rolled out",
            (true, false, false) => "rolling out",
            (false, _, false) => "waits",
        };
        let names = if names.is_empty() { String::new() } else { format!(" {}", names.join(", ")) };
        let short = |digest: &String| digest.chars().take(19).collect::<String>();
        let digest = self.digest.as_ref().map(|digest| format!(" ({})", short(digest))).unwrap_or_default();
        let mut line = format!("{}:{names}{digest} {state}", self.installation);
        if let Some(waits) = &self.waits {
            line.push_str(&format!(" again, {} waits", short(waits)));
        }
        if !self.lost.is_empty() {
            let cure = "give it another plugin name, or remove what takes its place";
            line.push_str(&format!(", without {}, whose name or place is another's: {cure}", self.lost.join(", ")));
        }
        line
    }
}

/// How each installation stands, in the order of the spec. `restored` is what an undone rollout brought back: it is what the pods have, whatever
/// the spec says.
#[must_use]
pub fn standing(dp: &Validated<'_>, decided: &Decided, restored: &[Used]) -> Vec<Standing> {
    let live = lookup::live_deployment(dp).map(|child| &child.object);
    let maps = live.map(mounted_maps).unwrap_or_default();
    let settled = live.is_some_and(rolled_out);
    let named = dp.plugins.iter().map(|plugin| {
        let installation = plugin.reference();
        let used = decided.plugins.iter().find(|used| used.reference == installation);
        if let Some(restored) = restored.iter().find(|used| used.reference == installation) {
            let waits = used.filter(|used| used.content.digest != restored.content.digest).map(|used| used.content.digest.clone());
            let missing = match &plugin.state {
                State::Ready(_) => None,
                State::Unavailable { reason, message: _ } => Some((*reason).to_owned()),
            };
            return Standing { fetched: matches!(plugin.state, State::Ready(_)), missing, waits, ..brought_back(restored, live, settled) };
        }
        let mine = |name: &str| decided.mounted.iter().any(|(plugin, by)| plugin == name && *by == installation);
        let (present, lost): (Vec<Mounted<'_>>, Vec<Mounted<'_>>) = used.into_iter().flat_map(each).partition(|m| mine(&m.plugin.name));
        let configured = !present.is_empty() && present.iter().flat_map(|m| maps_of(&volume(*m))).all(|name| maps.contains(&name));
        let missing = match &plugin.state {
            State::Ready(_) => lost.first().map(|m| why_lost(&m.plugin.name, decided)),
            State::Unavailable { reason, message: _ } => Some((*reason).to_owned()),
        };
        Standing {
            installation,
            fetched: matches!(plugin.state, State::Ready(_)),
            configured,
            rolled_out: configured && settled,
            digest: used.filter(|_| !present.is_empty()).map(|u| u.content.digest.clone()),
            plugins: present.iter().map(|m| Named::of(*m)).collect(),
            missing,
            waits: None,
            lost: lost.iter().map(|m| m.plugin.name.clone()).collect(),
        }
    });
    // What the spec does not name any more, and the pods have again.
    let unnamed = restored.iter().filter(|used| !dp.plugins.iter().any(|plugin| plugin.reference() == used.reference));
    named.chain(unnamed.map(|used| brought_back(used, live, settled))).collect()
}

/// How an installation stands whose former content is in the pods again: by what they mount.
fn brought_back(used: &Used, live: Option<&Deployment>, settled: bool) -> Standing {
    let volumes = || live.iter().filter_map(|d| d.spec.as_ref()?.template.spec.as_ref()?.volumes.as_ref()).flatten();
    let mounts = |m: &Mounted<'_>| {
        let wanted = volume(*m);
        volumes().any(|v| v.name == wanted.name && maps_of(v) == maps_of(&wanted))
    };
    let present: Vec<Mounted<'_>> = each(used).filter(mounts).collect();
    Standing {
        installation: used.reference.clone(),
        fetched: false,
        configured: !present.is_empty(),
        rolled_out: !present.is_empty() && settled,
        digest: Some(used.content.digest.clone()).filter(|_| !present.is_empty()),
        plugins: present.into_iter().map(Named::of).collect(),
        missing: None,
        waits: None,
        lost: Vec::new(),
    }
}

/// The plugins of an installation.
fn each(used: &Used) -> impl Iterator<Item = Mounted<'_>> {
    used.content.plugins.iter().map(move |plugin| Mounted { used, plugin })
}

/// Reason why a plugin of this name is not in the pods: the policy's, where it settles nothing.
fn why_lost(name: &str, decided: &Decided) -> String {
    let about = format!("{name}: ");
    // A policy that fails and blocks holds the whole template for it.
    let of_plugin = |part| matches!(part, HeldPart::Plugin | HeldPart::PodTemplate);
    let hold = decided.holds.iter().find(|h| of_plugin(h.what) && h.message.starts_with(&about));
    hold.map_or_else(|| reasons::REJECTED.to_owned(), |h| h.reason.clone())
}

/// Whether all pods are of the newest ReplicaSet and available.
fn rolled_out(deployment: &Deployment) -> bool {
    let wanted = deployment.spec.as_ref().and_then(|s| s.replicas).unwrap_or(1);
    let Some(status) = &deployment.status else { return false };
    let count = |n: Option<i32>| n.unwrap_or(0);
    status.observed_generation >= deployment.metadata.generation
        && count(status.updated_replicas) == wanted
        && count(status.replicas) == wanted
        && count(status.available_replicas) == wanted
}
