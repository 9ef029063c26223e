//! `spec.pluginsToInstall`: which installations can be used, and why the others cannot.

use std::{collections::BTreeSet, sync::Arc};

use weir_api::condition::reasons;

use super::{
    super::snapshot::{Installation, Lookup, PluginUse, Snapshot},
    Report,
};
use crate::{
    plugin_installation::{Standing, content::Content},
    policy::Severity,
};

/// An installation that the DataPlane names.
#[derive(Debug, Clone, PartialEq)]
pub struct Plugin {
    /// Namespace of the installation.
    pub namespace: String,
    /// Name of the installation.
    pub name: String,
    /// Whether it can be used.
    pub state: State,
}

impl Plugin {
    /// `namespace/name`: its key in the record of answers, and its name in conflicts.
    #[must_use]
    pub fn reference(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

/// Whether an installation can be used.
#[derive(Debug, Clone, PartialEq)]
pub enum State {
    /// This is to be mounted.
    Ready(Arc<Content>),
    /// It cannot be used now; content that is in the pods already stays.
    Unavailable {
        /// Reason, as in conditions.
        reason: &'static str,
        /// Names the object and the cure.
        message: String,
    },
}

pub(crate) fn check(snapshot: &Snapshot, report: &mut Report) -> Vec<Plugin> {
    let mut seen = BTreeSet::new();
    let mut plugins = Vec::with_capacity(snapshot.plugins.len());
    for (index, used) in snapshot.plugins.iter().enumerate() {
        if !seen.insert((&used.namespace, &used.name)) {
            let message = format!("{}/{} is there twice and counts once", used.namespace, used.name);
            report.finding(Severity::Warning, "PluginTwice", format!("spec.pluginsToInstall[{index}]"), message);
            continue;
        }
        let state = state(used);
        plugins.push(Plugin { namespace: used.namespace.clone(), name: used.name.clone(), state });
    }
    plugins
}

fn state(used: &PluginUse) -> State {
    let what = format!("KongPluginInstallation {}/{}", used.namespace, used.name);
    let unavailable = |reason, rest: String| State::Unavailable { reason, message: format!("{what} {rest}") };
    let missing = reasons::REFERENCED_RESOURCES_NOT_AVAILABLE;
    if !used.permitted {
        let cure = format!(
            "is in another namespace: create a ReferenceGrant in namespace {} from group gateway-operator.konghq.com kind DataPlane to kind \
             KongPluginInstallation",
            used.namespace
        );
        return unavailable(reasons::REF_NOT_PERMITTED, cure);
    }
    let installation = match &used.installation {
        Lookup::Found(installation) => installation,
        Lookup::Missing => return unavailable(missing, "does not exist: create it, or remove it from spec.pluginsToInstall".into()),
        Lookup::Unknown => {
            let cure = "is not known: start the operator with --enable-plugin-installations, or wait until it has";
            return unavailable(missing, cure.into());
        }
    };
    claimed(installation).map_or_else(|(reason, rest)| unavailable(reason, rest), State::Ready)
}

fn claimed(installation: &Installation) -> Result<Arc<Content>, (&'static str, String)> {
    match &installation.standing {
        Standing::Granted => {}
        Standing::Refused(message) => {
            return Err((
                reasons::REJECTED,
                format!("is not for this DataPlane: {message}; if it is to do without, remove it from spec.pluginsToInstall"),
            ));
        }
        Standing::Held(message) => {
            return Err((
                reasons::HELD,
                format!("is not decided for this DataPlane: {message}; it waits, or remove it from spec.pluginsToInstall"),
            ));
        }
        Standing::Unknown => return Err((reasons::PENDING, "has not decided yet who may use it".into())),
    }
    let missing = reasons::REFERENCED_RESOURCES_NOT_AVAILABLE;
    match (&installation.content, &installation.problem) {
        (Some(content), _) if installation.stored => Ok(Arc::clone(content)),
        (Some(_), _) => Err((missing, "has been fetched, and its content is being stored".into())),
        (None, Some(problem)) => Err((missing, format!("cannot be used: {problem}"))),
        (None, None) => Err((reasons::PENDING, "has nothing in force yet: it is being fetched, or waits for its owner's approval".into())),
    }
}
