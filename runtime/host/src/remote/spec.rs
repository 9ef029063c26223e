//! What the discovery gives the pool.

use std::{sync::Arc, time::Duration};

use sha2::{Digest, Sha256};

use super::{ClientIdentity, ServerTrust};

/// One plugin as it was discovered: where it is, who it must be, who we are.
#[derive(Debug, Clone)]
pub struct Spec {
    /// Value of the label; the plugin's metadata must say the same.
    pub name: String,
    /// Where it is reached: the ready pods of its EndpointSlices, or the Service's DNS name as the only one. Empty is
    /// [`Reason::NoEndpoints`](super::Reason::NoEndpoints).
    pub endpoints: Vec<Endpoint>,
    /// Names its certificate may be made for, of which one is enough; the first is sent as SNI. See [`service_names`].
    pub server_names: Vec<String>,
    /// Who the operator is to the plugin.
    pub identity: Arc<ClientIdentity>,
    /// Which certificates the plugin may show.
    pub trust: Arc<ServerTrust>,
    /// How much may be asked at once.
    pub limits: Limits,
    /// How long each kind of call may take.
    pub deadlines: Deadlines,
}

/// An address that is dialled, without any proxy.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint {
    /// An IP address, or a DNS name that is looked up with every connection.
    pub host: String,
    /// Port.
    pub port: u16,
}

impl std::fmt::Display for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.host.contains(':') { write!(f, "[{}]:{}", self.host, self.port) } else { write!(f, "{}:{}", self.host, self.port) }
    }
}

/// Bounds of one plugin's pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Limits {
    /// Leases at once.
    pub in_flight: usize,
    /// Callers that may wait for one; more are refused at once.
    pub waiting: usize,
    /// Connections to each endpoint, 1 or 2.
    pub connections: usize,
    /// Largest message in either direction, bytes. The Go servers' own limit is 4 MiB.
    pub message: usize,
}

impl Default for Limits {
    /// 32 leases, 4,096 waiting, 1 connection per endpoint, 4 MiB.
    fn default() -> Self {
        Self { in_flight: 32, waiting: 4_096, connections: 1, message: 4 << 20 }
    }
}

/// Longest time of a call by kind. Each nests in its caller's: the shorter one counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Deadlines {
    /// The test before a hand-out.
    pub probe: Duration,
    /// Metadata and capabilities, each.
    pub metadata: Duration,
    /// Validation, mutation, status and settings.
    pub operator: Duration,
    /// Lifecycle and reconciler hooks.
    pub hook: Duration,
}

impl Default for Deadlines {
    /// 1 s, 2 s, 5 s, 30 s.
    fn default() -> Self {
        Self {
            probe: Duration::from_secs(1),
            metadata: Duration::from_secs(2),
            operator: Duration::from_secs(5),
            hook: Duration::from_secs(30),
        }
    }
}

/// How pools of one registry behave in time. The defaults are those of the design; tests shorten them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tuning {
    /// Longest TCP connect, and longest TLS handshake.
    pub connect: Duration,
    /// A connection that answered within this time is handed out without a test.
    pub fresh: Duration,
    /// Between looks at a plugin that nobody asks.
    pub health: Duration,
    /// Between looks at a plugin that says it is not ready.
    pub not_ready: Duration,
    /// A further connection that made no call for this long is closed; the first one of a plugin stays.
    pub idle: Duration,
    /// A connection is replaced after this long, up to a fifth earlier.
    pub age: Duration,
    /// What calls on a replaced connection get to end.
    pub drain: Duration,
    /// After a change of certificates the former ones are good for this long, where they are still valid: both sides load new files at
    /// their own time.
    pub overlap: Duration,
    /// First wait of the breaker, before jitter.
    pub backoff: Duration,
    /// Longest wait of the breaker, before jitter.
    pub backoff_most: Duration,
    /// Calls in a row that end as failures of the connection until the breaker opens.
    pub breaker: u32,
}

impl Default for Tuning {
    /// 5 s, 1 s, 30 s, 1 s, 5 min, 30 min, 30 s, 10 min, 1 s to 5 min, 5 calls.
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            fresh: Duration::from_secs(1),
            health: Duration::from_secs(30),
            not_ready: Duration::from_secs(1),
            idle: Duration::from_secs(300),
            age: Duration::from_secs(1_800),
            drain: Duration::from_secs(30),
            overlap: Duration::from_secs(600),
            backoff: Duration::from_secs(1),
            backoff_most: Duration::from_secs(300),
            breaker: 5,
        }
    }
}

/// The names a plugin's certificate may have when its Service has no annotation with another: `svc`, `svc.ns`, `svc.ns.svc` and the full
/// name in `cluster_domain` (usually `cluster.local`). With an annotation it is that name alone.
#[must_use]
pub fn service_names(service: &str, namespace: &str, cluster_domain: &str) -> Vec<String> {
    vec![
        service.to_owned(),
        format!("{service}.{namespace}"),
        format!("{service}.{namespace}.svc"),
        format!("{service}.{namespace}.svc.{cluster_domain}"),
    ]
}

impl Spec {
    /// A hash of everything but the endpoints: two specs with one digest share connections. Keys go into it, and never out of it.
    #[must_use]
    pub fn digest(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        let mut part = |bytes: &[u8]| {
            hash.update(u64::try_from(bytes.len()).unwrap_or(u64::MAX).to_be_bytes());
            hash.update(bytes);
        };
        part(self.name.as_bytes());
        part(&self.identity.digest());
        part(&self.trust.digest());
        part(format!("{:?}{:?}", self.limits, self.deadlines).as_bytes());
        for name in &self.server_names {
            part(name.as_bytes());
        }
        hash.finalize().into()
    }
}
