//! Requests to registries of plugin artifacts.

use std::{fmt, time::Duration};

use prometheus_client::{
    encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};

/// A small plugin takes a fraction of a second; a slow registry is given minutes.
const SECONDS: [f64; 11] = [0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0];

/// How a request to a registry ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PullOutcome {
    /// An artifact was fetched.
    Fetched,
    /// A tag was resolved.
    Resolved,
    /// No request was needed: somebody else's was as good.
    Cached,
    /// The registry does not know who asks, or does not let him.
    Unauthorized,
    /// There is no such artifact.
    NotFound,
    /// Not allowed, or content that is not taken.
    Refused,
    /// It may pass by itself.
    Transient,
    /// Not signed as it has to be, or nobody can tell.
    Unverified,
}

impl PullOutcome {
    /// All outcomes.
    pub const ALL: [Self; 8] =
        [Self::Fetched, Self::Resolved, Self::Cached, Self::Unauthorized, Self::NotFound, Self::Refused, Self::Transient, Self::Unverified];

    /// Label value.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fetched => "fetched",
            Self::Resolved => "resolved",
            Self::Cached => "cached",
            Self::Unauthorized => "unauthorized",
            Self::NotFound => "not_found",
            Self::Refused => "refused",
            Self::Transient => "transient",
            Self::Unverified => "unverified",
        }
    }
}

impl EncodeLabelValue for PullOutcome {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), fmt::Error> {
        EncodeLabelValue::encode(&self.as_str(), encoder)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfOutcome {
    outcome: PullOutcome,
}

/// Counters of requests to registries.
#[derive(Debug)]
pub struct Pulls {
    pulls: Family<OfOutcome, Counter>,
    seconds: Histogram,
    bytes: Gauge,
}

impl Default for Pulls {
    fn default() -> Self {
        Self { pulls: Family::default(), seconds: Histogram::new(SECONDS), bytes: Gauge::default() }
    }
}

impl Pulls {
    pub(super) fn register(&self, registry: &mut Registry) {
        for outcome in PullOutcome::ALL {
            drop(self.pulls.get_or_create(&OfOutcome { outcome }));
        }
        registry.register("weir_plugin_pulls", "Requests for plugin artifacts, by how they ended", self.pulls.clone());
        registry.register("weir_plugin_pull_duration_seconds", "Time of fetching one plugin artifact", self.seconds.clone());
        registry.register("weir_plugin_cache_bytes", "Bytes of plugin artifacts in memory", self.bytes.clone());
    }

    /// A request ended, or was not needed.
    pub fn ended(&self, outcome: PullOutcome) {
        self.pulls.get_or_create(&OfOutcome { outcome }).inc();
    }

    /// How long fetching took, whatever came of it.
    pub fn took(&self, duration: Duration) {
        self.seconds.observe(duration.as_secs_f64());
    }

    /// Bytes that are kept now.
    pub fn kept(&self, bytes: usize) {
        self.bytes.set(i64::try_from(bytes).unwrap_or(i64::MAX));
    }
}
