//! Artifacts out of OCI registries: plugins, and whatever else is small.
//!
//! [`Puller`] turns a [`Reference`] into the files of an [`Artifact`]; [`local`] does the same for a path. Nothing is written to
//! disk, and everything that a registry or an archive says is taken for hostile: [`Limits`] hold before memory is reserved, links
//! and odd names are refused, and addresses are checked when they are dialled ([`DialPolicy`]).
//!
//! The HTTP client is used directly, not through `oci-client`: that crate reads manifests, tokens and errors without a cap, hides
//! `Retry-After` and most statuses, exchanges no identity tokens, and takes neither a resolver nor a policy for redirects.

mod address;
mod answer;
mod artifact;
mod auth;
mod bounded;
mod call;
mod component;
mod credentials;
mod dial;
mod digest;
mod docker_config;
mod error;
mod fetch;
mod http;
mod limits;
pub mod local;
pub mod login;
mod manifest;
mod package;
mod puller;
mod push;
mod reference;
mod referrers;
pub mod registries_file;
mod retry;
mod rules;
mod save;
mod settings;
mod signatures;
mod store;
mod tags;
#[cfg(test)]
mod tests;
mod text;
mod unpack;
pub mod verification_file;
mod verify;
mod watch;
mod whole;
mod yaml_file;

pub use address::Range;
pub use artifact::{Artifact, listing};
pub use component::{Component, Error as ComponentError, Layout};
pub use credentials::{Credentials, Secret};
pub use dial::Refused;
pub use docker_config::{CredentialsError, DockerConfig, MAX_CONFIG, docker_config};
pub use error::Error;
pub use limits::Limits;
pub use manifest::Error as ManifestError;
pub use package::{Package, PackageError};
pub use puller::{Puller, PullerError, Resolved};
pub use push::{Blob, PushError, Pushed, Upload};
pub use reference::{Reference, ReferenceError, ReferenceProblem};
pub use save::save;
pub use settings::{DialPolicy, Proxies, Registries, Retries, Rule, Timeouts};
pub use signatures::{Form, Signature, Signatures};
pub use store::{Error as StoreError, Known, Store};
pub use unpack::{EntryProblem, Error as LayerError};
pub use verify::{KeyProblem, MAX_TRUST_ROOT, Requirement, Signer, TrustRoot, TrustRootError, Verified, VerifyError};
pub use watch::Watch;
