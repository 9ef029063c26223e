//! One YAML file that says how registries are reached, for the operator and for the command line:
//!
//! ```yaml
//! apiVersion: weir.dev/v1alpha1
//! kind: Registries
//! allowed: [ghcr.io/acme]        # prefixes of what may be asked for; left out: everything
//! registries:
//!   - prefix: docker.io/library  # the longest prefix wins, and it alone; it ends at a slash or the end
//!     mirrors:                   # asked in order, before the registry itself
//!       - location: mirror.corp:5000/dockerhub
//!         insecure: false
//!     mirrorOnly: false          # the registry itself is never asked
//!     insecure: false            # plain HTTP, for the whole host
//!     caFile: corp.pem           # or `ca: |` and the PEM itself
//! proxies:
//!   https: http://proxy.corp:3128
//!   http: http://proxy.corp:3128
//!   noProxy: .corp,10.0.0.0/8
//! dial:
//!   listed: [10.0.0.0/8]         # hosts, addresses and ranges that are dialled whatever they are
//!   refused: [10.96.0.0/12]      # addresses and ranges that are not, unless they are listed
//!   private: true
//!   loopback: false
//! authFile: docker/config.json
//! ```
//!
//! Paths are relative to the file. Nothing is read from an `authFile` here: whoever uses it reads it again when it changes. What a field
//! means is said at the field of [`Registries`](super::Registries) and [`Rule`](super::Rule) that it sets.

mod check;
mod document;

use std::path::{Path, PathBuf};

pub use super::yaml_file::{FileError, Problem};
use super::{Proxies, Registries, Rule, yaml_file};

/// A file that was read and checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    allowed: Vec<String>,
    rules: Vec<Rule>,
    /// `host[:port]` that are spoken to in plain HTTP.
    insecure: Vec<String>,
    /// `host[:port]` that are named and not insecure.
    secure: Vec<String>,
    /// Hosts that are named.
    hosts: Vec<String>,
    proxies: Proxies,
    dial: Dial,
    auth_file: Option<PathBuf>,
    /// Further files that were read.
    files: Vec<PathBuf>,
}

/// What the file says of addresses.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Dial {
    listed: Vec<String>,
    refused: Vec<String>,
    private: Option<bool>,
    loopback: Option<bool>,
}

/// Reads the file at `path`, and the CAs that it names. Blocks on the file system.
///
/// # Errors
/// Names the file, the field, and what to write instead.
pub fn read(path: &Path) -> Result<File, FileError> {
    yaml_file::read(path, check::file)
}

impl File {
    /// The docker config with credentials for registries and mirrors.
    #[must_use]
    pub fn auth_file(&self) -> Option<&Path> {
        self.auth_file.as_deref()
    }

    /// Files that were read beside the file itself: those of CAs.
    #[must_use]
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// `base` with what the file says: lists grow, and what is one value is replaced where the file has it. A host that the file names is
    /// spoken to in TLS unless it is insecure, and is dialled whatever its address: an administrator has named it.
    #[must_use]
    pub fn registries(&self, base: Registries) -> Registries {
        let mut all = base;
        all.allowed.extend(self.allowed.iter().cloned());
        all.rules.extend(self.rules.iter().cloned());
        all.insecure.extend(self.insecure.iter().cloned());
        all.loopback_tls.extend(self.secure.iter().cloned());
        let own = self.proxies.clone();
        all.proxies = Proxies {
            https: own.https.or(all.proxies.https),
            http: own.http.or(all.proxies.http),
            no_proxy: own.no_proxy.or(all.proxies.no_proxy),
        };
        all.dial.listed.extend(self.dial.listed.iter().chain(&self.hosts).cloned());
        all.dial.refused.extend(self.dial.refused.iter().cloned());
        all.dial.private = self.dial.private.unwrap_or(all.dial.private);
        all.dial.loopback = self.dial.loopback.unwrap_or(all.dial.loopback);
        all
    }
}
