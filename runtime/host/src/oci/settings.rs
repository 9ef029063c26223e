//! What the operator allows and how registries are reached.

use std::{fmt, time::Duration};

use super::{
    Reference,
    reference::{below, canonical_host},
};

/// How registries are reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registries {
    /// Hosts (`host` or `host:port`) that are spoken to in plain HTTP. Loopback hosts are without being listed.
    pub insecure: Vec<String>,
    /// Loopback hosts (`host` or `host:port`) that speak TLS nevertheless.
    pub loopback_tls: Vec<String>,
    /// PEM bundles of CAs that are trusted beside the system's, for every registry.
    pub ca_bundles: Vec<Vec<u8>>,
    /// Proxies.
    pub proxies: Proxies,
    /// Time limits.
    pub timeouts: Timeouts,
    /// Retries inside one call.
    pub retries: Retries,
    /// `User-Agent`.
    pub user_agent: String,
    /// Prefixes of `registry/repository` that may be pulled from, ending at a slash or the end. Empty: all.
    pub allowed: Vec<String>,
    /// Which addresses may be dialled.
    pub dial: DialPolicy,
    /// What is different for some registries or repositories. The rule with the longest prefix holds, and it alone.
    pub rules: Vec<Rule>,
}

/// What is different for a registry, or for some of its repositories. Whether a host is spoken to in plain HTTP is no part of it: that
/// is a matter of the host ([`Registries::insecure`]), mirrors included.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rule {
    /// `registry` or `registry/repository`, or the beginning of it up to a slash. No wildcards.
    pub prefix: String,
    /// Asked before the registry, in order; each stands for the prefix: `mirror.corp:5000/dockerhub` for `docker.io` makes
    /// `mirror.corp:5000/dockerhub/library/busybox` of `docker.io/library/busybox`. [`Registries::allowed`] is about what is asked for,
    /// not about mirrors, since whoever sets mirrors sets both. Mirrors of a mirror are not looked for.
    pub mirrors: Vec<String>,
    /// The registry itself is never asked.
    pub mirror_only: bool,
    /// PEM bundle of CAs that are trusted beside the others when what matches the prefix is asked, for all connections that this
    /// takes: the registry, its token service, and where it redirects to. A mirror is not reached by the CA of what it stands for, but
    /// by that of a rule for itself.
    pub ca: Option<Vec<u8>>,
}

impl Default for Registries {
    fn default() -> Self {
        Self {
            insecure: Vec::new(),
            loopback_tls: Vec::new(),
            ca_bundles: Vec::new(),
            proxies: Proxies::default(),
            timeouts: Timeouts::default(),
            retries: Retries::default(),
            user_agent: concat!("weir/", env!("CARGO_PKG_VERSION")).to_owned(),
            allowed: Vec::new(),
            dial: DialPolicy::default(),
            rules: Vec::new(),
        }
    }
}

/// Proxies, as the caller read them from its environment. They are dialled whatever [`DialPolicy`] says; names behind them are
/// resolved by them, so that only addresses written as such are checked.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Proxies {
    /// For HTTPS: URL, which may carry a password.
    pub https: Option<String>,
    /// For HTTP: URL, which may carry a password.
    pub http: Option<String>,
    /// Hosts that are reached without one, comma separated.
    pub no_proxy: Option<String>,
}

impl fmt::Debug for Proxies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hidden = |url: &Option<String>| url.as_ref().map(|_| "<redacted>");
        f.debug_struct("Proxies")
            .field("https", &hidden(&self.https))
            .field("http", &hidden(&self.http))
            .field("no_proxy", &self.no_proxy)
            .finish()
    }
}

/// Time limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// Until a connection stands, TLS included.
    pub connect: Duration,
    /// Without a byte from the registry.
    pub read: Duration,
    /// For one call with its retries.
    pub total: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { connect: Duration::from_secs(10), read: Duration::from_secs(30), total: Duration::from_secs(300) }
    }
}

/// Retries inside one call; what lasts longer is for the caller to try again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retries {
    /// Attempts per request, the first included.
    pub tries: u32,
    /// Longest pause before the second attempt; it doubles after that.
    pub pause: Duration,
    /// All pauses of one call.
    pub total: Duration,
}

impl Default for Retries {
    fn default() -> Self {
        Self { tries: 3, pause: Duration::from_secs(1), total: Duration::from_secs(10) }
    }
}

/// Which addresses may be dialled: by the first request, by redirects and for tokens, after names are resolved. Link-local
/// addresses, those of cloud metadata services, and multicast are dialled only when listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DialPolicy {
    /// Whether loopback addresses are allowed.
    pub loopback: bool,
    /// Whether private ranges (RFC 1918, RFC 6598, unique local) are allowed.
    pub private: bool,
    /// Exceptions: host names, addresses, or ranges such as `10.0.0.0/8`.
    pub listed: Vec<String>,
    /// Addresses and ranges that are dialled only when listed, such as those of a cluster's Services and pods.
    pub refused: Vec<String>,
}

impl Default for DialPolicy {
    fn default() -> Self {
        Self { loopback: true, private: true, listed: Vec::new(), refused: Vec::new() }
    }
}

impl Registries {
    /// Whether `host`, with `authority` its form with a port, is spoken to in plain HTTP.
    pub(super) fn plain(&self, host: &str, authority: &str) -> bool {
        let listed = |list: &[String]| list.iter().any(|entry| entry.eq_ignore_ascii_case(authority) || entry.eq_ignore_ascii_case(host));
        listed(&self.insecure) || (loopback(host) && !listed(&self.loopback_tls))
    }

    /// Whether `reference` may be pulled at all.
    pub(super) fn permits(&self, reference: &Reference) -> bool {
        let place = reference.place();
        self.allowed.is_empty()
            || self.allowed.iter().any(|prefix| {
                let prefix = prefix.trim_end_matches('/');
                let (host, path) = prefix.split_once('/').map_or((prefix, None), |(host, path)| (host, Some(path)));
                let prefix = path.map_or_else(|| canonical_host(host), |path| format!("{}/{path}", canonical_host(host)));
                below(&place, &prefix).is_some()
            })
    }
}

/// Names and addresses of this machine, by their text.
fn loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
    host == "localhost" || host.ends_with(".localhost") || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}
