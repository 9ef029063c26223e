//! Both sides of a connection to a plugin, as flags give them.

use std::{path::Path, sync::Arc};

use weir_host::remote::{ClientIdentity, Deadlines, Endpoint, Limits, PemError, Reason, ServerTrust, Spec};

use crate::{
    exit::{Exit, Failure},
    policy::files,
};

/// Largest PEM file, bytes.
const MAX_PEM: u64 = 256 << 10;

/// Who trusts whom, and the flags that said so.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sides<'a> {
    /// Certificates the plugin is trusted by.
    pub(crate) ca: &'a Path,
    /// Certificate of the operator.
    pub(crate) cert: &'a Path,
    /// Its key.
    pub(crate) key: &'a Path,
    /// Before `ca`, `cert` and `key` in the names of the flags: `--`, `--remote-`.
    pub(crate) prefix: &'static str,
}

impl Sides<'_> {
    /// A plugin called `name` (empty: any) at `endpoint`. Without server names its certificate must be for the host.
    ///
    /// # Errors
    /// Files that cannot be read or are no certificates; the flag is named, and never what is in the file.
    pub(crate) fn spec(&self, name: &str, endpoint: &Endpoint, server_names: &[String]) -> Result<Spec, Failure> {
        let read = |path: &Path| files::whole(path, MAX_PEM);
        let prefix = self.prefix;
        let bad = |flags: String, error: &PemError| Failure::usage(format!("{flags}: {error}"));
        let identity = ClientIdentity::parse(&read(self.cert)?, &read(self.key)?);
        let identity = identity.map_err(|error| bad(format!("{prefix}cert, {prefix}key"), &error))?;
        let trust = ServerTrust::parse(&read(self.ca)?, None).map_err(|error| bad(format!("{prefix}ca"), &error))?;
        let server_names = if server_names.is_empty() { vec![endpoint.host.clone()] } else { server_names.to_vec() };
        Ok(Spec {
            name: name.to_owned(),
            endpoints: vec![endpoint.clone()],
            server_names,
            identity: Arc::new(identity),
            trust: Arc::new(trust),
            limits: Limits::default(),
            deadlines: Deadlines::default(),
        })
    }
}

/// How a command ends when a plugin cannot be used for this reason.
pub(crate) fn exit(reason: Reason) -> Exit {
    match reason {
        Reason::NotReady | Reason::CircuitOpen => Exit::Held,
        Reason::ProbeFailed => Exit::Exhausted,
        Reason::Connecting | Reason::NoEndpoints | Reason::Unreachable | Reason::Closed => Exit::Unavailable,
        Reason::TlsFailed
        | Reason::ServerNotTrusted
        | Reason::ServerNameInvalid
        | Reason::ServerCertExpired
        | Reason::ServerCertUnusable
        | Reason::ClientCertRejected => Exit::Unverified,
        Reason::NameMismatch | Reason::BadMetadata => Exit::Incompatible,
    }
}

/// `HOST:PORT`, with brackets around an IPv6 address.
pub(crate) fn endpoint(text: &str) -> Result<Endpoint, String> {
    let (host, port) = text.rsplit_once(':').ok_or("write HOST:PORT")?;
    let port = port.parse().ok().filter(|port| *port != 0).ok_or_else(|| format!("{port:?} is no port"))?;
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    if host.is_empty() { Err("write HOST:PORT".into()) } else { Ok(Endpoint { host: host.to_owned(), port }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_names_and_addresses_with_a_port() {
        let parsed = |text| endpoint(text).map(|of| (of.host, of.port));
        assert_eq!(parsed("plugin.ns.svc:9090"), Ok(("plugin.ns.svc".into(), 9090)));
        assert_eq!(parsed("[::1]:9090"), Ok(("::1".into(), 9090)));
        for bad in ["plugin", ":9090", "plugin:", "plugin:0", "plugin:70000"] {
            assert!(endpoint(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn every_reason_has_an_exit_code_of_its_kind() {
        for reason in Reason::ALL {
            assert_eq!(exit(reason) == Exit::Unverified, reason.is_tls(), "{reason}");
            assert_ne!(exit(reason), Exit::Done, "{reason}");
        }
    }
}
