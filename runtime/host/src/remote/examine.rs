//! One look at a plugin, step by step, for a person: outside of any pool.

use std::{
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant, SystemTime},
};

use super::{
    Capabilities, Metadata, Reason, Spec, Tuning, Validity, calls,
    connect::{self, Trace},
    setup::Setup,
    tls::Failure,
};

/// Most probes of one look.
const MAX_PROBES: usize = 1_000;

/// What one look found. Steps that were not reached are absent.
#[derive(Debug, Clone, Default)]
pub struct Examination {
    /// Time to a TCP connection.
    pub tcp: Option<Duration>,
    /// Time of the TLS handshake.
    pub tls: Option<Duration>,
    /// Time to read metadata and capabilities.
    pub metadata: Option<Duration>,
    /// Times of the probes, in order.
    pub probes: Vec<Duration>,
    /// When the plugin's certificate is valid.
    pub certificate: Option<Validity>,
    /// Who it says it is.
    pub who: Option<Arc<Metadata>>,
    /// What it offers.
    pub offers: Option<Arc<Capabilities>>,
    /// What its probe answers.
    pub ready: Option<bool>,
    /// Where it ended, and why.
    pub failure: Option<(Reason, String)>,
}

impl Examination {
    /// When the plugin's certificate ends.
    #[must_use]
    pub fn not_after(&self) -> Option<SystemTime> {
        self.certificate.map(|validity| validity.not_after)
    }
}

/// Looks at the first endpoint of `spec`, whose name may be empty to take any, and probes it `probes` times (1 to 1,000).
pub async fn examine(spec: Spec, probes: usize) -> Examination {
    let tuning = Tuning::default();
    let name = spec.name.clone();
    let Some(endpoint) = spec.endpoints.first().cloned() else {
        return Examination { failure: Some((Reason::NoEndpoints, "no address is given".into())), ..Examination::default() };
    };
    let setup = Setup::new(spec, None, &tuning);
    let mut trace = Trace::default();
    let name = (!name.is_empty()).then_some(name.as_str());
    let outcome = connect::once(name, &endpoint, &setup, &tuning, 0, &mut trace, &Arc::default()).await;
    let mut found = Examination {
        tcp: trace.tcp,
        tls: trace.tls,
        metadata: trace.metadata,
        probes: trace.probe.into_iter().collect(),
        certificate: trace.chain.first().and_then(Validity::of),
        ..Examination::default()
    };
    let transport = match outcome {
        Ok(transport) => transport,
        Err(Failure { reason, message }) => {
            found.failure = Some((reason, message));
            return found;
        }
    };
    found.who = Some(Arc::clone(&transport.peer.metadata));
    found.offers = Some(Arc::clone(&transport.peer.capabilities));
    found.ready = Some(transport.ready.load(Ordering::Relaxed));
    while found.probes.len() < probes.min(MAX_PROBES) {
        let since = Instant::now();
        match calls::probe(&transport.wire, transport.deadlines.probe).await {
            Ok(ready) => found.ready = Some(ready),
            Err(error) => {
                found.failure = Some((Reason::ProbeFailed, error.to_string()));
                return found;
            }
        }
        found.probes.push(since.elapsed());
    }
    if found.ready == Some(false) {
        found.failure = Some((Reason::NotReady, "the plugin says that it is not ready".into()));
    }
    found
}
