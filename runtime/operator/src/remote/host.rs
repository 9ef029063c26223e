//! Between the core's words and the host's.

use std::sync::Arc;

use weir_core::remote::{Facts, Reason, Report, Spec, decide::Endpoints};
use weir_host::remote::{self as host, Capabilities, Deadlines, Endpoint, Event, Limits, Metadata, Observer, Status, service_names};

use super::materials::Pair;
use crate::metrics::Metrics;

/// Name of the cluster's DNS domain, as almost every cluster has it. A plugin in another one has the shorter names too.
const CLUSTER_DOMAIN: &str = "cluster.local";

/// What the host dials.
pub(super) fn spec(spec: &Spec, pair: &Pair) -> host::Spec {
    let (namespace, service) = &spec.service;
    let endpoints = match &spec.endpoints {
        Endpoints::Pods(pods) => pods.iter().map(|(address, port)| Endpoint { host: address.to_string(), port: *port }).collect(),
        Endpoints::Dns => vec![Endpoint { host: format!("{service}.{namespace}.svc"), port: spec.port }],
    };
    host::Spec {
        name: spec.name.clone(),
        endpoints,
        server_names: spec.server_name.clone().map_or_else(|| service_names(service, namespace, CLUSTER_DOMAIN), |name| vec![name]),
        identity: Arc::clone(&pair.identity),
        trust: Arc::clone(&pair.trust),
        limits: Limits::default(),
        deadlines: Deadlines::default(),
    }
}

/// What the core is told.
pub(super) fn report(status: &Status) -> Report {
    match (status.reason.map(reason), &status.metadata) {
        (None, Some(metadata)) => Report::Ready(facts(metadata, status.capabilities.as_deref())),
        (None, None) | (Some(Reason::Connecting), _) => Report::Connecting,
        (Some(reason), _) => Report::Failing { reason, message: status.message.clone() },
    }
}

fn facts(metadata: &Metadata, capabilities: Option<&Capabilities>) -> Facts {
    let slots = capabilities.map_or_else(|| metadata.slots(), |offered| offered.slots.clone());
    Facts { name: metadata.name.clone(), version: metadata.version.clone(), digest: metadata.digest(), slots }
}

fn reason(reason: host::Reason) -> Reason {
    match reason {
        // One that was taken out and is asked for again is about to be dialled.
        host::Reason::Connecting | host::Reason::Closed => Reason::Connecting,
        host::Reason::NoEndpoints => Reason::NoEndpoints,
        host::Reason::Unreachable => Reason::Unreachable,
        host::Reason::TlsFailed => Reason::TLSFailed,
        host::Reason::ServerNotTrusted => Reason::ServerNotTrusted,
        host::Reason::ServerNameInvalid => Reason::ServerNameInvalid,
        host::Reason::ServerCertExpired => Reason::ServerCertExpired,
        host::Reason::ServerCertUnusable => Reason::ServerCertUnusable,
        host::Reason::ClientCertRejected => Reason::ClientCertRejected,
        host::Reason::NameMismatch => Reason::NameMismatch,
        host::Reason::BadMetadata => Reason::BadMetadata,
        host::Reason::ProbeFailed => Reason::ProbeFailed,
        host::Reason::NotReady => Reason::NotReady,
        host::Reason::CircuitOpen => Reason::CircuitOpen,
    }
}

/// Counts what pools tell. What a plugin is comes with [`Registry::changes`](host::Registry::changes).
pub struct Told(pub Arc<Metrics>);

impl Observer for Told {
    fn event(&self, _plugin: &str, event: Event) {
        let remote = &self.0.remote;
        match event {
            Event::Acquired(after) => remote.acquired("Acquired", Some(after)),
            Event::NotAcquired(reason) => remote.acquired(reason, None),
            Event::Called { method, failed, took } => remote.called(method, failed.map_or("Answered", host::Class::as_str), took),
            Event::Connected => remote.connected("Connected"),
            Event::NotConnected(reason) => remote.connected(reason.as_str()),
            Event::Evicted(reason) => remote.evicted(reason),
            Event::State(..) | Event::Breaker { .. } | Event::NewMetadata => {}
        }
    }
}
