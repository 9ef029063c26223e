//! Everything that can be set. The command line fills it, and sees to it that names can be names; nothing else reads flags or the environment.

use std::{path::PathBuf, time::Duration};

use weir_core::{
    plan::KeyAlgorithm,
    policy::{Pairs, SlotName, object_hook::Word},
};

use crate::record::Recording;

/// Name of the operator's Lease, and part of the names of its RBAC objects.
pub const INSTALL: &str = "weir";

/// Settings of the operator.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where the cluster is; the usual places when not given.
    pub kubeconfig: Option<PathBuf>,
    /// The operator's own namespace.
    pub namespace: String,
    /// Namespaces to watch; empty for all.
    pub watch_namespaces: Vec<String>,
    /// Name of this process among its replicas.
    pub identity: String,
    /// Components instead of the built-in policies.
    pub policies: Vec<(SlotName, PathBuf)>,
    /// Settings of policies.
    pub settings: Vec<(SlotName, PathBuf)>,
    /// Where compiled components are kept; none keeps them in memory.
    pub cache_dir: Option<PathBuf>,
    /// Name of the cluster, for policies.
    pub cluster_name: String,
    /// Labels of the cluster, for policies.
    pub cluster_labels: Pairs,
    /// Refuse images known to be below Kong 3.0.0.
    pub validate_images: bool,
    /// Label key that marks Secrets for Kong's own tools.
    pub secret_label: String,
    /// Secret of the cluster CA, in the operator's namespace.
    pub ca_secret: String,
    /// Key of a CA that has to be made.
    pub ca_key: KeyAlgorithm,
    /// Lifetime of an admin certificate.
    pub certificate_ttl: Duration,
    /// How long before its end a certificate is renewed.
    pub certificate_margin: Duration,
    /// Address of `/metrics`; "0" for none.
    pub metrics_address: String,
    /// Address of `/healthz` and `/readyz`; "0" for none.
    pub probes_address: String,
    /// Leader election; none to lead at once.
    pub leader: Option<crate::leader::Config>,
    /// Passes over objects of one kind at once.
    pub concurrency: usize,
    /// Serve KongPluginInstallations.
    pub plugin_installations: bool,
    /// Let a DataPlane use installations of any namespace, without a ReferenceGrant.
    pub cross_namespace_plugins: bool,
    /// Registries, `host` or `host:port`, that are spoken to in plain HTTP.
    pub insecure_registries: Vec<String>,
    /// PEM files of CAs that are trusted for registries beside the system's.
    pub registry_cas: Vec<PathBuf>,
    /// Prefixes of `registry/repository` that may be pulled from; empty for all.
    pub allowed_registries: Vec<String>,
    /// Addresses and ranges that are dialled only for registries that are named: those of the cluster's Services and pods.
    pub cluster_ranges: Vec<String>,
    /// How registries are reached: mirrors, CAs, proxies. Read again when it changes.
    pub registries_file: Option<PathBuf>,
    /// Docker config with credentials for what names none. Read again when it changes.
    pub registry_auth_file: Option<PathBuf>,
    /// Prefixes of `registry/repository` for which credential helpers of that file are run.
    pub credential_helpers: Vec<String>,
    /// Whose signatures policies and plugins need. Read again when it changes.
    pub verification_file: Option<PathBuf>,
    /// Whose certificates count for keyless signatures. Read again when it changes.
    pub trust_root: Option<PathBuf>,
    /// Policies of namespaces other than the operator's count, for objects of their own namespace.
    pub tenant_policies: bool,
    /// What hooks may change, beside or in the place of the default.
    pub hook_paths: Vec<Word>,
    /// Namespaces with Services of remote plugins, beside the operator's own.
    pub plugin_namespaces: Vec<String>,
    /// Services with labels `cnpg.io/*` are remote plugins too.
    pub cnpg_plugins: bool,
    /// Proxies on the way to registries.
    pub proxies: weir_host::oci::Proxies,
    /// For tests: a file with seconds that are added to the clock.
    pub clock_offset_file: Option<PathBuf>,
    /// Keeps what passes see, as cases; none keeps nothing.
    pub recorder: Option<Recording>,
    /// Address of snapshots of one object, on loopback; "0" for none.
    pub snapshots_address: String,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Settings of which a test changes some.
    pub(crate) fn config() -> Config {
        let none = String::new;
        Config {
            kubeconfig: None,
            namespace: "weir-system".into(),
            watch_namespaces: Vec::new(),
            identity: "test".into(),
            policies: Vec::new(),
            settings: Vec::new(),
            cache_dir: None,
            cluster_name: none(),
            cluster_labels: Pairs::new(),
            validate_images: true,
            secret_label: none(),
            ca_secret: "ca".into(),
            ca_key: KeyAlgorithm::EcdsaP256,
            certificate_ttl: Duration::from_secs(3_600),
            certificate_margin: Duration::from_secs(60),
            metrics_address: "0".into(),
            probes_address: "0".into(),
            leader: None,
            concurrency: 1,
            plugin_installations: true,
            cross_namespace_plugins: false,
            insecure_registries: Vec::new(),
            registry_cas: Vec::new(),
            plugin_namespaces: Vec::new(),
            cnpg_plugins: false,
            allowed_registries: Vec::new(),
            cluster_ranges: Vec::new(),
            registries_file: None,
            registry_auth_file: None,
            credential_helpers: Vec::new(),
            verification_file: None,
            trust_root: None,
            tenant_policies: false,
            hook_paths: Vec::new(),
            proxies: weir_host::oci::Proxies::default(),
            clock_offset_file: None,
            recorder: None,
            snapshots_address: "0".into(),
        }
    }
}
