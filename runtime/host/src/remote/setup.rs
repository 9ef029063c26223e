//! What a plugin's connections are made with, by generation.

use std::{sync::Arc, time::Instant};

use super::{Deadlines, Endpoint, Limits, Spec, Tuning, tls};

/// Most former certificates of one side that stay good after changes.
const MAX_FORMER: usize = 3;
/// Most endpoints that are dialled; a plugin with more is served by these.
const MAX_ENDPOINTS: usize = 64;

/// One generation.
pub(super) struct Setup {
    /// Counts the changes of anything but the endpoints.
    pub(super) generation: u64,
    pub(super) digest: [u8; 32],
    pub(super) endpoints: Vec<Endpoint>,
    pub(super) limits: Limits,
    pub(super) deadlines: Deadlines,
    /// Identities by age, the one in force first; each with what of the plugin's is trusted.
    pub(super) tls: tls::Material,
    /// When this generation began.
    pub(super) since: Instant,
}

impl Setup {
    pub(super) fn new(spec: Spec, former: Option<&Self>, tuning: &Tuning) -> Self {
        let digest = spec.digest();
        let Spec { name: _, mut endpoints, server_names, identity, trust, limits, deadlines } = spec;
        endpoints.sort();
        endpoints.dedup();
        endpoints.truncate(MAX_ENDPOINTS);
        let now = Instant::now();
        let same = former.filter(|former| former.digest == digest);
        if let Some(same) = same {
            let tls = same.tls.clone();
            return Self { generation: same.generation, digest, endpoints, limits, deadlines, tls, since: same.since };
        }
        let until = now.checked_add(tuning.overlap).unwrap_or(now);
        let tls = tls::Material::new(&server_names, Arc::clone(&identity), Arc::clone(&trust), former.map(|f| (&f.tls, until)), MAX_FORMER);
        let generation = former.map_or(0, |former| former.generation.saturating_add(1));
        Self { generation, digest, endpoints, limits, deadlines, tls, since: now }
    }
}
