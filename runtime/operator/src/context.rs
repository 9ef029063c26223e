//! What every pass has at hand.

use std::sync::{Arc, OnceLock};

use tokio::sync::Notify;
use weir_core::{decisions::Sealing, policy::Pairs};

use crate::{
    apply::Writer, authority::Authority, clock::Clock, dataplane::Renewals, events::Publisher, konnect_extension::Users, memory::Memory,
    metrics::Metrics, plugin_installation, queue::Queue, reconcile_policy, record::Recording, registries::Live, remote::Remote,
    secrets::Secrets, world::World,
};

/// Settings that passes read.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The operator's own namespace.
    pub namespace: String,
    /// Policies of other namespaces count.
    pub tenant_policies: bool,
    /// Name of the cluster, for policies.
    pub cluster_name: String,
    /// Labels of the cluster, for policies.
    pub cluster_labels: Pairs,
    /// Refuse images known to be below Kong 3.0.0.
    pub validate_images: bool,
    /// Label key that marks Secrets for Kong's own tools.
    pub secret_label: String,
    /// Lifetime of an admin certificate, seconds.
    pub certificate_ttl_seconds: i64,
    /// How long before its end a certificate is renewed, seconds.
    pub certificate_margin_seconds: i64,
    /// Installations are served; otherwise nobody watches them.
    pub plugin_installations: bool,
    /// A DataPlane may use installations of any namespace, without a grant.
    pub cross_namespace_plugins: bool,
}

/// Queue and memory of one kind.
#[derive(Default)]
pub struct Controller {
    /// What is looked at next.
    pub queue: Queue,
    /// What is remembered between passes.
    pub memory: Memory,
}

/// The shared state of the process.
pub struct Context {
    /// The caches.
    pub world: Arc<World>,
    /// The only writer.
    pub writer: Writer,
    /// The cluster CA.
    pub authority: Arc<Authority>,
    /// Digests of users' Secrets.
    pub secrets: Secrets,
    /// How registries are reached, and whose signatures count.
    pub registries: Arc<Live>,
    /// Policies, and who answers.
    pub policies: reconcile_policy::Shared,
    /// Seals last answers; set once, before the first pass.
    pub sealing: OnceLock<Sealing>,
    /// Settings.
    pub settings: Settings,
    /// The clock.
    pub clock: Clock,
    /// Metrics.
    pub metrics: Arc<Metrics>,
    /// Events.
    pub events: Publisher,
    /// DataPlanes.
    pub data_planes: Controller,
    /// Token-free KonnectExtensions.
    pub extensions: Controller,
    /// Which DataPlanes name which extension.
    pub users: Users,
    /// Plugin installations.
    pub installations: Controller,
    /// What passes over them and over DataPlanes share.
    pub plugins: plugin_installation::Shared,
    /// Remote plugins.
    pub remote: Arc<Remote>,
    /// When certificates have to be renewed.
    pub renewals: Renewals,
    /// The CA's Secret changed.
    pub authority_changed: Notify,
    /// Keeps what passes see.
    pub recorder: Option<Recording>,
}

impl Context {
    /// Every DataPlane is looked at: something that all of them depend on changed.
    pub fn all_data_planes(&self) {
        self.world.data_planes.keys().into_iter().for_each(|key| self.data_planes.queue.changed(key));
    }

    /// Every installation is looked at.
    pub fn all_installations(&self) {
        self.world.installations.keys().into_iter().for_each(|key| self.installations.queue.changed(key));
    }
}
