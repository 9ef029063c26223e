//! Why the operator does not start, or stops.

use std::path::PathBuf;

/// Why the operator does not start, or stops.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kubeconfig cannot be used.
    #[error("kubeconfig {}: {source}", path.display())]
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// Why.
        source: kube::config::KubeconfigError,
    },
    /// No cluster was found.
    #[error("no cluster: {0}: name a kubeconfig with --kubeconfig, or run in a pod")]
    NoCluster(#[source] kube::config::InferConfigError),
    /// The client does not start.
    #[error("the Kubernetes client does not start: {0}")]
    Client(#[source] kube::Error),
    /// A listener does not start.
    #[error(transparent)]
    Listen(#[from] crate::health::Error),
    /// Leader election is set up wrongly.
    #[error("leader election: {0}")]
    Leader(#[from] crate::leader::Error),
    /// The Wasm host does not start.
    #[error("the Wasm host does not start: {0}")]
    Host(#[source] weir_host::wasm::Error),
    /// Policies cannot be loaded.
    #[error(transparent)]
    Policies(#[from] weir_host::files::Error),
    /// A file that says how registries are reached cannot be used.
    #[error("{flag}: {problem}")]
    RegistrySettings {
        /// The flag.
        flag: &'static str,
        /// File, field and cure.
        problem: String,
    },
    /// How registries are reached is set up wrongly.
    #[error("registries: {0}")]
    Registries(#[from] weir_host::oci::PullerError),
    /// Snapshots would be reached from elsewhere.
    #[error(
        "--snapshot-bind-address {address}: snapshots are served on loopback only, and reached by a port-forward; write 127.0.0.1:PORT"
    )]
    Snapshots {
        /// The address.
        address: String,
    },
    /// Another replica leads now.
    #[error("leadership was lost: another replica may lead by now; this one stops so that no object has two writers")]
    LeadershipLost,
}
