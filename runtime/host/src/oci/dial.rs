//! Which addresses are dialled. Every request passes twice: its URL here, and its name through [`Guard`] as the resolver.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use reqwest::{
    Url,
    dns::{Addrs, Name, Resolve, Resolving},
};

use super::{
    DialPolicy, Proxies,
    address::{Range, embedded, inside, range, width},
    text,
};

/// Their names, for requests through a proxy, which resolves by itself.
const METADATA_NAMES: [&str; 3] = ["metadata", "metadata.google.internal", "instance-data"];

/// An address that is not dialled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} is at {address}, {range}, which is not dialled; an operator can list it", text::name(.host))]
pub struct Refused {
    /// Host as the URL has it.
    pub host: String,
    /// Where it is.
    pub address: String,
    /// What kind of address that is.
    pub range: Range,
}

/// A [`DialPolicy`], read.
#[derive(Debug)]
pub(super) struct Guard {
    loopback: bool,
    private: bool,
    hosts: Vec<String>,
    networks: Vec<(IpAddr, u8)>,
    refused: Vec<(IpAddr, u8)>,
    proxies: Vec<String>,
}

impl Guard {
    /// # Errors
    /// The entry of the list that is neither host, address nor range.
    pub(super) fn new(policy: &DialPolicy, proxies: &Proxies) -> Result<Self, String> {
        let mut guard = Self {
            loopback: policy.loopback,
            private: policy.private,
            hosts: Vec::new(),
            networks: Vec::new(),
            refused: Vec::new(),
            proxies: Vec::new(),
        };
        for entry in &policy.listed {
            match network(entry) {
                Entry::Network(address, bits) => guard.networks.push((address, bits)),
                Entry::Host => guard.hosts.push(entry.to_ascii_lowercase()),
                Entry::Wrong => return Err(entry.clone()),
            }
        }
        for entry in &policy.refused {
            match network(entry) {
                Entry::Network(address, bits) => guard.refused.push((address, bits)),
                // Names are resolved when they are dialled; what is refused is where they lead to.
                Entry::Host | Entry::Wrong => return Err(entry.clone()),
            }
        }
        for proxy in [&proxies.https, &proxies.http].into_iter().flatten() {
            let url = Url::parse(proxy).or_else(|_| Url::parse(&format!("http://{proxy}")));
            guard.proxies.extend(url.ok().and_then(|url| url.host_str().map(str::to_ascii_lowercase)));
        }
        Ok(guard)
    }

    /// Checks what can be seen in a URL: addresses, and names of metadata services.
    pub(super) fn url(&self, url: &Url) -> Result<(), Refused> {
        let host = url.host_str().unwrap_or_default();
        let bare = host.trim_matches(['[', ']']).trim_end_matches('.').to_ascii_lowercase();
        if let Ok(address) = bare.parse::<IpAddr>() {
            return self.address(host, address);
        }
        if METADATA_NAMES.contains(&bare.as_str()) && !self.hosts.contains(&bare) {
            return Err(Refused { host: host.to_owned(), address: bare, range: Range::Metadata });
        }
        Ok(())
    }

    /// Checks one address of `host`.
    pub(super) fn address(&self, host: &str, address: IpAddr) -> Result<(), Refused> {
        let real = embedded(address);
        let within = |networks: &[(IpAddr, u8)]| {
            networks.iter().any(|&(network, bits)| inside(address, network, bits) || inside(real, network, bits))
        };
        let range = if within(&self.refused) { Range::Refused } else { range(real) };
        let listed = || self.hosts.iter().any(|listed| listed.eq_ignore_ascii_case(host)) || within(&self.networks);
        let allowed = match range {
            Range::Public => true,
            Range::Loopback => self.loopback,
            Range::Private => self.private,
            Range::LinkLocal | Range::Metadata | Range::Special | Range::Refused => false,
        };
        if allowed || listed() { Ok(()) } else { Err(Refused { host: host.to_owned(), address: address.to_string(), range }) }
    }
}

/// What an entry of a list is.
enum Entry {
    Network(IpAddr, u8),
    Host,
    Wrong,
}

fn network(entry: &str) -> Entry {
    let (address, bits) = entry.split_once('/').map_or((entry, None), |(address, bits)| (address, Some(bits)));
    match (address.trim_matches(['[', ']']).parse::<IpAddr>(), bits.map(str::parse::<u8>)) {
        (Ok(address), None) => Entry::Network(address, width(address)),
        (Ok(address), Some(Ok(bits))) if bits <= width(address) => Entry::Network(address, bits),
        (Err(_), None) if !entry.is_empty() => Entry::Host,
        (Ok(_) | Err(_), _) => Entry::Wrong,
    }
}

/// The resolver of the HTTP client: what it does not return is not dialled.
pub(super) struct Resolver(pub(super) Arc<Guard>);

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = self.0.clone();
        Box::pin(async move {
            let host = name.as_str();
            let found: Vec<SocketAddr> = tokio::net::lookup_host((host, 0)).await?.collect();
            if guard.proxies.iter().any(|proxy| proxy == host) {
                return Ok(Box::new(found.into_iter()) as Addrs);
            }
            let mut refused = None;
            let mut allowed = Vec::new();
            for address in found {
                match guard.address(host, address.ip()) {
                    Ok(()) => allowed.push(address),
                    Err(error) => refused = Some(error),
                }
            }
            match refused {
                Some(error) if allowed.is_empty() => Err(error.into()),
                Some(_) | None => Ok(Box::new(allowed.into_iter()) as Addrs),
            }
        })
    }
}
