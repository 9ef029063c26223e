//! What passes saw, for whoever keeps it: a field problem becomes a case. How a case is written is not this crate's matter.

mod serve;

use std::{fmt, sync::Arc};

use weir_api::{dataplane::DataPlaneStatus, plugin_installation::KongPluginInstallation};
use weir_core::{dataplane::Snapshot, plan::Plan, policy::Policies};

pub(crate) use self::serve::{Served, router};
use crate::{cache::Key, context::Context};

/// What a pass over a DataPlane saw. Nothing is redacted yet; it holds no value of a Secret.
pub struct Seen {
    /// The snapshot.
    pub snapshot: Snapshot,
    /// The installations that the DataPlane names.
    pub installations: Vec<KongPluginInstallation>,
    /// Who was asked.
    pub policies: Policies,
    /// Installations of other namespaces need no grant.
    pub cross_namespace_plugins: bool,
}

/// Writes cases.
pub trait Recorder: Send + Sync {
    /// Whether passes are kept; otherwise only single ones are asked for.
    fn keeps(&self) -> bool;

    /// Keeps a case. Returns at once, and may drop it when too many come.
    fn keep(&self, seen: Seen);

    /// A tar archive of a case. Takes its time.
    ///
    /// # Errors
    /// Why there is none, for a person.
    fn archive(&self, seen: Seen) -> Result<Vec<u8>, String>;
}

/// A recorder that is shared.
#[derive(Clone)]
pub struct Recording(pub Arc<dyn Recorder>);

impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recording").field("keeps", &self.0.keeps()).finish()
    }
}

/// Keeps a pass that did something, or waits for something.
pub(crate) fn keep(context: &Context, snapshot: &Snapshot, policies: &Policies, plan: &Plan<DataPlaneStatus>) {
    let Some(Recording(recorder)) = &context.recorder else { return };
    let did = !plan.changes.is_empty() || plan.status_changed || !plan.holds.is_empty();
    if did && recorder.keeps() {
        recorder.keep(seen(context, snapshot.clone(), policies.clone()));
    }
}

fn seen(context: &Context, snapshot: Snapshot, policies: Policies) -> Seen {
    let named = snapshot.plugins.iter().filter_map(|used| context.world.installations.get(&Key::new(&used.namespace, &used.name)));
    let installations = named.map(|installation| KongPluginInstallation::clone(&installation)).collect();
    Seen { installations, snapshot, policies, cross_namespace_plugins: context.settings.cross_namespace_plugins }
}
