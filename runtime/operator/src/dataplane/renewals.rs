//! When certificates have to be renewed. By the wall clock, looked at every second: a clock that jumps is noticed.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use jiff::{SignedDuration, Timestamp};
use weir_api::keys;
use weir_core::dataplane::{Snapshot, objects::client_certificate};

use crate::cache::Key;

/// The next renewal of each DataPlane.
#[derive(Default)]
pub struct Renewals(Mutex<BTreeMap<Key, Timestamp>>);

impl Renewals {
    /// Notes when a DataPlane has to be looked at again for its certificate.
    pub fn note(&self, key: &Key, snapshot: &Snapshot) {
        let margin = SignedDuration::from_secs(snapshot.operator.certificate_margin_seconds);
        let end = |text: &String| text.parse::<Timestamp>().ok()?.checked_sub(margin).ok();
        let ends =
            snapshot.children.secrets.iter().filter_map(|s| s.metadata.annotations.as_ref()?.get(keys::CERT_EXPIRES_AT).and_then(end));
        // Those in the past were just looked at; the newest certificate is the one that counts.
        let admin = ends.filter(|at| *at > snapshot.now).max();
        // A new client certificate may wait for its owner's word until then.
        let client = snapshot.children.deployments.iter().filter_map(|d| client_certificate::looked_at(&d.object));
        let next = client.filter(|at| *at > snapshot.now).chain(admin).min();
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match next {
            Some(at) => all.insert(key.clone(), at),
            None => all.remove(key),
        };
    }

    /// The DataPlane is gone.
    pub fn forget(&self, key: &Key) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }

    /// Those whose time has come.
    #[must_use]
    pub fn due(&self, now: Timestamp) -> Vec<Key> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let due: Vec<Key> = all.iter().filter(|(_, at)| **at <= now).map(|(key, _)| key.clone()).collect();
        for key in &due {
            all.remove(key);
        }
        due
    }
}
