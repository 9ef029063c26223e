//! What installations give, read once per version: every DataPlane's pass asks for each of its installations, and a record is verified by
//! an HMAC over all of it.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use weir_api::plugin_installation::KongPluginInstallation;
use weir_core::{
    decisions::Sealing,
    plugin_installation::{Standing, content::Content, in_force, standing},
};

use crate::cache::Key;

/// Remembers what installations say.
#[derive(Default)]
pub struct Known(Mutex<HashMap<Key, Entry>>);

struct Entry {
    uid: Option<String>,
    version: Option<String>,
    content: Option<Arc<Content>>,
    /// By UID of a DataPlane, as far as anybody asked.
    standings: HashMap<String, Standing>,
}

impl Known {
    /// The content in force.
    #[must_use]
    pub fn content(&self, installation: &KongPluginInstallation, sealing: &Sealing) -> Option<Arc<Content>> {
        self.entry(installation, sealing, |entry| entry.content.clone())
    }

    /// The content in force, and whether the DataPlane of this UID may use it.
    #[must_use]
    pub fn for_user(&self, installation: &KongPluginInstallation, sealing: &Sealing, uid: &str) -> (Option<Arc<Content>>, Standing) {
        self.entry(installation, sealing, |entry| {
            let standing = entry.standings.entry(uid.to_owned()).or_insert_with(|| standing(installation, uid));
            (entry.content.clone(), standing.clone())
        })
    }

    /// The installation is gone.
    pub fn forget(&self, key: &Key) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }

    fn entry<T>(&self, installation: &KongPluginInstallation, sealing: &Sealing, read: impl FnOnce(&mut Entry) -> T) -> T {
        let meta = &installation.metadata;
        let new = || Entry {
            uid: meta.uid.clone(),
            version: meta.resource_version.clone(),
            content: in_force(installation, sealing).map(Arc::new),
            standings: HashMap::new(),
        };
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = all.entry(Key::of(meta)).or_insert_with(new);
        // Without a version nobody knows whether it is the same.
        if entry.uid != meta.uid || entry.version != meta.resource_version || entry.version.is_none() {
            *entry = new();
        }
        read(entry)
    }
}
