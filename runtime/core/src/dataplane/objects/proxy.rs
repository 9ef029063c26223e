//! What the operator itself puts into the pod: the base container and its layers of variables, volumes and mounts
//! (facts/kong-operator.md 1.4). Layers are kept apart by origin until conflicts between them are settled.

use k8s_openapi::{
    api::core::v1::{
        Capabilities, Container, ContainerPort, EmptyDirVolumeSource, EnvVar, ExecAction, HTTPGetAction, KeyToPath, Lifecycle,
        LifecycleHandler, Probe, ResourceRequirements, SecretVolumeSource, SecurityContext, Volume, VolumeMount,
    },
    apimachinery::pkg::{api::resource::Quantity, util::intstr::IntOrString},
};
use weir_api::dataplane::Hardened;

use super::{admin_service::ADMIN_PORT, konnect_certificate};
use crate::{
    dataplane::{
        plugins::{self, Used},
        validate::{PROXY, Validated},
    },
    policy::{
        conflict_resolution::Origin,
        konnect_env::{Answer, VolumeSource},
    },
};

/// Volume of the admin certificate.
pub const CLUSTER_CERTIFICATE_VOLUME: &str = "cluster-certificate";
/// Where it is mounted.
pub const CLUSTER_CERTIFICATE_MOUNT: &str = "/var/cluster-certificate";

const STDOUT_LOGS: [&str; 4] =
    ["KONG_ADMIN_ACCESS_LOG", "KONG_ADMIN_GUI_ACCESS_LOG", "KONG_PORTAL_API_ACCESS_LOG", "KONG_PROXY_ACCESS_LOG"];
const STDERR_LOGS: [&str; 4] = ["KONG_ADMIN_ERROR_LOG", "KONG_ADMIN_GUI_ERROR_LOG", "KONG_PORTAL_API_ERROR_LOG", "KONG_PROXY_ERROR_LOG"];

/// Defaults of variables (facts/kong-operator.md 1.4.2, `KongDefaults`).
const DEFAULTS: [(&str, &str); 13] = [
    ("KONG_ADMIN_LISTEN", "0.0.0.0:8444 ssl reuseport backlog=16384"),
    ("KONG_ADMIN_SSL_CERT", "/var/cluster-certificate/tls.crt"),
    ("KONG_ADMIN_SSL_CERT_KEY", "/var/cluster-certificate/tls.key"),
    ("KONG_CLUSTER_LISTEN", "off"),
    ("KONG_DATABASE", "off"),
    ("KONG_NGINX_ADMIN_SSL_CLIENT_CERTIFICATE", "/var/cluster-certificate/ca.crt"),
    ("KONG_NGINX_ADMIN_SSL_VERIFY_CLIENT", "on"),
    ("KONG_NGINX_ADMIN_SSL_VERIFY_DEPTH", "3"),
    ("KONG_NGINX_WORKER_PROCESSES", "2"),
    ("KONG_PLUGINS", "bundled"),
    ("KONG_PORT_MAPS", "80:8000, 443:8443"),
    ("KONG_PROXY_LISTEN", "0.0.0.0:8000 reuseport backlog=16384, 0.0.0.0:8443 http2 ssl reuseport backlog=16384"),
    ("KONG_STATUS_LISTEN", "0.0.0.0:8100"),
];

/// One party's claim on a part of the pod.
#[derive(Debug, Clone, PartialEq)]
pub struct Layer<T> {
    /// Where it comes from.
    pub origin: Origin,
    /// Field path or part of the operator.
    pub who: String,
    /// What is claimed.
    pub item: T,
}

/// Everything that is claimed in the pod, by all parties.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Layers {
    /// Variables of the proxy container.
    pub env: Vec<Layer<EnvVar>>,
    /// Volumes of the pod.
    pub volumes: Vec<Layer<Volume>>,
    /// Mounts of the proxy container.
    pub mounts: Vec<Layer<VolumeMount>>,
}

impl Layers {
    /// Collects the claims: user, policy, generated, default.
    #[must_use]
    pub fn collect(
        dp: &Validated<'_>,
        konnect: Option<&Answer>,
        certificate_secret: &str,
        used: &[Used],
        mounted: &[plugins::Mounted<'_>],
    ) -> Self {
        let mut layers = Self::default();
        layers.user(dp);
        if let Some(answer) = konnect {
            layers.konnect(answer);
        }
        layers.plugins(used, mounted);
        layers.certificate(certificate_secret);
        if konnect_certificate::options(dp).is_some() {
            layers.konnect_certificate(&konnect_certificate::secret_name(dp));
        }
        if hardened(dp) {
            layers.hardened();
        }
        for name in STDOUT_LOGS {
            layers.var(Origin::Default, "Kong defaults", name, "/dev/stdout");
        }
        for name in STDERR_LOGS {
            layers.var(Origin::Default, "Kong defaults", name, "/dev/stderr");
        }
        for (name, value) in DEFAULTS {
            layers.var(Origin::Default, "Kong defaults", name, value);
        }
        layers
    }

    fn var(&mut self, origin: Origin, who: &str, name: &str, value: &str) {
        let item = EnvVar { name: name.into(), value: Some(value.into()), value_from: None };
        self.env.push(Layer { origin, who: who.into(), item });
    }

    fn volume(&mut self, origin: Origin, who: &str, item: Volume) {
        self.volumes.push(Layer { origin, who: who.into(), item });
    }

    fn mount(&mut self, origin: Origin, who: &str, name: &str, path: &str, read_only: bool) {
        let item =
            VolumeMount { name: name.into(), mount_path: path.into(), read_only: read_only.then_some(true), ..VolumeMount::default() };
        self.mounts.push(Layer { origin, who: who.into(), item });
    }

    fn user(&mut self, dp: &Validated<'_>) {
        let path = "spec.deployment.podTemplateSpec.spec";
        let proxy = dp.proxy();
        for var in proxy.and_then(|c| c.env.as_ref()).into_iter().flatten() {
            let who = format!("{path}.containers[name=proxy].env[{}]", var.name);
            self.env.push(Layer { origin: Origin::User, who, item: var.clone() });
        }
        for mount in proxy.and_then(|c| c.volume_mounts.as_ref()).into_iter().flatten() {
            let who = format!("{path}.containers[name=proxy].volumeMounts[{}]", mount.mount_path);
            self.mounts.push(Layer { origin: Origin::User, who, item: mount.clone() });
        }
        for volume in dp.template().and_then(|t| t.spec.as_ref()).and_then(|s| s.volumes.as_ref()).into_iter().flatten() {
            self.volumes.push(Layer { origin: Origin::User, who: format!("{path}.volumes[{}]", volume.name), item: volume.clone() });
        }
    }

    fn konnect(&mut self, answer: &Answer) {
        let who = "policy konnect-env";
        for var in &answer.env {
            self.var(Origin::Policy, who, &var.name, &var.value);
        }
        for volume in &answer.volumes {
            self.volume(Origin::Policy, who, policy_volume(volume));
        }
        for mount in &answer.mounts {
            let item = VolumeMount {
                name: mount.volume.clone(),
                mount_path: mount.mount_path.clone(),
                sub_path: mount.sub_path.clone(),
                read_only: mount.read_only.then_some(true),
                ..VolumeMount::default()
            };
            self.mounts.push(Layer { origin: Origin::Policy, who: who.into(), item });
        }
    }

    fn certificate(&mut self, secret: &str) {
        let who = "admin certificate";
        self.var(Origin::Generated, who, "KONG_CLUSTER_CERT", "/var/cluster-certificate/tls.crt");
        self.var(Origin::Generated, who, "KONG_CLUSTER_CERT_KEY", "/var/cluster-certificate/tls.key");
        let item = |key: &str| KeyToPath { key: key.into(), path: key.into(), mode: None };
        let source = SecretVolumeSource {
            secret_name: Some(secret.into()),
            items: Some(vec![item("tls.crt"), item("tls.key"), item("ca.crt")]),
            ..SecretVolumeSource::default()
        };
        self.volume(Origin::Generated, who, Volume { name: CLUSTER_CERTIFICATE_VOLUME.into(), secret: Some(source), ..Volume::default() });
        self.mount(Origin::Generated, who, CLUSTER_CERTIFICATE_VOLUME, CLUSTER_CERTIFICATE_MOUNT, true);
    }

    /// The certificate of cert-manager replaces the admin certificate towards Konnect (facts/kong-operator.md 1.3.8).
    fn konnect_certificate(&mut self, secret: &str) {
        let who = "spec.network.konnectCertificate";
        self.env.retain(|layer| layer.origin != Origin::Generated || !layer.item.name.starts_with("KONG_CLUSTER_CERT"));
        self.var(Origin::Generated, who, "KONG_CLUSTER_CERT", "/var/konnect-client-certificate/tls.crt");
        self.var(Origin::Generated, who, "KONG_CLUSTER_CERT_KEY", "/var/konnect-client-certificate/tls.key");
        let source = SecretVolumeSource { secret_name: Some(secret.into()), ..SecretVolumeSource::default() };
        self.volume(Origin::Generated, who, Volume { name: konnect_certificate::VOLUME.into(), secret: Some(source), ..Volume::default() });
        self.mount(Origin::Generated, who, konnect_certificate::VOLUME, konnect_certificate::MOUNT, true);
    }

    /// Plugins of installations (facts/kong-operator.md 2.5).
    fn plugins(&mut self, used: &[Used], mounted: &[plugins::Mounted<'_>]) {
        let who = "spec.pluginsToInstall";
        for used in used {
            for var in &used.content.env {
                self.var(Origin::Policy, &format!("KongPluginInstallation {}", used.reference), &var.name, &var.value);
            }
        }
        if mounted.is_empty() {
            return;
        }
        self.var(Origin::Generated, who, "KONG_PLUGINS", &plugins::enabled(mounted));
        self.var(Origin::Generated, who, "KONG_LUA_PACKAGE_PATH", &plugins::package_path(used));
        for plugin in mounted {
            let who = format!("KongPluginInstallation {}", plugin.used.reference);
            let volume = plugins::volume(*plugin);
            let name = volume.name.clone();
            self.volume(Origin::Generated, &who, volume);
            self.mount(Origin::Generated, &who, &name, &plugins::mount_path(&plugin.plugin.name), true);
        }
    }

    fn hardened(&mut self) {
        let who = "spec.deployment.hardened";
        self.var(Origin::Generated, who, "KONG_PREFIX", "/var/kong");
        let scratch = |name: &str, limit: Option<&str>| Volume {
            name: name.into(),
            empty_dir: Some(EmptyDirVolumeSource { medium: None, size_limit: limit.map(|l| Quantity(l.into())) }),
            ..Volume::default()
        };
        self.volume(Origin::Generated, who, scratch("tmp", Some("1Gi")));
        self.volume(Origin::Generated, who, scratch("var-kong", None));
        self.mount(Origin::Generated, who, "tmp", "/tmp", false);
        self.mount(Origin::Generated, who, "var-kong", "/var/kong", false);
    }
}

fn policy_volume(volume: &crate::policy::konnect_env::Volume) -> Volume {
    let mut out = Volume { name: volume.name.clone(), ..Volume::default() };
    match &volume.source {
        VolumeSource::Secret { secret_name, default_mode } => {
            let default_mode = default_mode.and_then(|mode| i32::try_from(mode).ok());
            out.secret = Some(SecretVolumeSource { secret_name: Some(secret_name.clone()), default_mode, ..SecretVolumeSource::default() });
        }
        VolumeSource::EmptyDir { medium, size_limit } => {
            out.empty_dir = Some(EmptyDirVolumeSource { medium: medium.clone(), size_limit: size_limit.clone().map(Quantity) });
        }
    }
    out
}

/// Whether the hardened profile is asked for.
#[must_use]
pub fn hardened(dp: &Validated<'_>) -> bool {
    dp.spec().deployment.as_ref().and_then(|d| d.hardened) == Some(Hardened::Enabled)
}

/// The base of the proxy container, without variables and mounts (facts/kong-operator.md 1.4.1, 1.4.4).
#[must_use]
pub fn container(hardened: bool, readiness_path: &str) -> Container {
    let port = |name: &str, number: i32| ContainerPort {
        name: Some(name.into()),
        container_port: number,
        protocol: Some("TCP".into()),
        ..ContainerPort::default()
    };
    Container {
        name: PROXY.into(),
        ports: Some(vec![port("proxy", 8000), port("proxy-ssl", 8443), port("metrics", 8100), port("admin-ssl", ADMIN_PORT)]),
        lifecycle: Some(Lifecycle {
            pre_stop: Some(LifecycleHandler {
                exec: Some(ExecAction { command: Some(["/bin/sh", "-c", "kong quit"].map(String::from).to_vec()) }),
                ..LifecycleHandler::default()
            }),
            ..Lifecycle::default()
        }),
        readiness_probe: Some(Probe {
            http_get: Some(HTTPGetAction {
                path: Some(readiness_path.into()),
                port: IntOrString::Int(8100),
                scheme: Some("HTTP".into()),
                ..HTTPGetAction::default()
            }),
            initial_delay_seconds: Some(5),
            period_seconds: Some(10),
            timeout_seconds: Some(1),
            success_threshold: Some(1),
            failure_threshold: Some(3),
            ..Probe::default()
        }),
        resources: Some(ResourceRequirements {
            requests: Some(quantities(&[("cpu", "100m"), ("memory", "20Mi")])),
            limits: Some(quantities(&[("cpu", "2000m"), ("memory", "2000Mi")])),
            claims: None,
        }),
        security_context: hardened.then(|| SecurityContext {
            allow_privilege_escalation: Some(false),
            read_only_root_filesystem: Some(true),
            run_as_non_root: Some(true),
            run_as_user: Some(65532),
            run_as_group: Some(65532),
            capabilities: Some(Capabilities { drop: Some(vec!["ALL".into()]), add: Some(vec!["NET_BIND_SERVICE".into()]) }),
            ..SecurityContext::default()
        }),
        ..Container::default()
    }
}

fn quantities(pairs: &[(&str, &str)]) -> std::collections::BTreeMap<String, Quantity> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), Quantity((*value).to_owned()))).collect()
}
