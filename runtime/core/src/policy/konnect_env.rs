//! Slot konnect-env: Konnect settings to environment, volumes and mounts. Contract: `wit/konnect-env.wit`.

use serde::{Deserialize, Serialize};

use super::{Context, EnvVar, Finding, Pairs, Slot, SlotName, limits};

/// The slot.
#[derive(Debug, Clone, Copy)]
pub struct KonnectEnv;

/// Kind of the Konnect control plane (facts/kong-operator.md 3.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClusterType {
    /// A hybrid control plane.
    ControlPlane,
    /// A group of control planes.
    ControlPlaneGroup,
    /// A control plane fed by an ingress controller.
    K8SIngressController,
}

/// Host names without scheme and port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Endpoints {
    /// Configuration endpoint.
    pub control_plane: String,
    /// Telemetry endpoint.
    pub telemetry: String,
}

/// The client certificate, by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Certificate {
    /// Secret of type kubernetes.io/tls in the DataPlane's namespace.
    pub secret_name: String,
    /// Where it is expected in the container.
    pub mount_path: String,
}

/// The question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Input {
    /// Where and for whom.
    pub context: Context,
    /// Konnect's id of the control plane.
    pub control_plane_id: String,
    /// Kind of the control plane.
    pub cluster_type: ClusterType,
    /// Where it is reached.
    pub endpoints: Endpoints,
    /// Konnect region, where known.
    pub region: Option<String>,
    /// The client certificate.
    pub certificate: Certificate,
    /// Labels the data plane reports to Konnect.
    pub data_plane_labels: Pairs,
    /// Image of the proxy container.
    pub image: String,
}

/// A volume an answer may ask for. Nothing else: a policy must not reach host paths or foreign Secrets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum VolumeSource {
    /// The certificate Secret of the input.
    #[serde(rename_all = "camelCase")]
    Secret {
        /// Must be the input's certificate Secret.
        secret_name: String,
        /// Permission bits, decimal.
        default_mode: Option<u32>,
    },
    /// Scratch space.
    #[serde(rename_all = "camelCase")]
    EmptyDir {
        /// `Memory` or absent.
        medium: Option<String>,
        /// A Kubernetes quantity.
        size_limit: Option<String>,
    },
}

/// A volume.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Volume {
    /// DNS-1123 label.
    pub name: String,
    /// What is in it.
    pub source: VolumeSource,
}

/// A mount in the proxy container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Mount {
    /// Name of a volume of the answer.
    pub volume: String,
    /// Absolute path.
    pub mount_path: String,
    /// Path in the volume.
    pub sub_path: Option<String>,
    /// Whether the mount is read-only.
    pub read_only: bool,
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// Variables of the proxy container.
    pub env: Vec<EnvVar>,
    /// Volumes of the pod.
    pub volumes: Vec<Volume>,
    /// Mounts of the proxy container.
    pub mounts: Vec<Mount>,
    /// Path of the readiness probe; none keeps the default.
    pub readiness_path: Option<String>,
    /// For people.
    pub findings: Vec<Finding>,
}

impl Slot for KonnectEnv {
    const NAME: SlotName = SlotName::KonnectEnv;
    type Input = Input;
    type Answer = Answer;

    fn context(input: &Self::Input) -> &Context {
        &input.context
    }

    fn check(input: &Input, answer: &Answer) -> Result<(), String> {
        limits::env(&answer.env)?;
        limits::findings(&answer.findings)?;
        limits::count("volumes", answer.volumes.len(), limits::MAX_VOLUMES)?;
        limits::count("mounts", answer.mounts.len(), limits::MAX_VOLUMES)?;
        limits::unique("volume", answer.volumes.iter().map(|v| v.name.as_str()))?;
        limits::unique("mount path", answer.mounts.iter().map(|m| m.mount_path.as_str()))?;
        for volume in &answer.volumes {
            check_volume(input, volume)?;
        }
        for mount in &answer.mounts {
            check_mount(answer, mount)?;
        }
        match answer.readiness_path.as_deref() {
            None => Ok(()),
            Some(path) if path.starts_with('/') && limits::printable(path, 1024) => Ok(()),
            Some(_) => Err("readiness-path must start with `/` and be at most 1024 printable characters".into()),
        }
    }
}

fn check_volume(input: &Input, volume: &Volume) -> Result<(), String> {
    if !weir_api::names::is_dns_label(&volume.name) {
        return Err(format!("volume name {:?} is not a DNS label", limits::cut(&volume.name)));
    }
    match &volume.source {
        VolumeSource::Secret { secret_name, default_mode } => {
            if secret_name != &input.certificate.secret_name {
                return Err(format!("volume {:?} names a Secret other than the input's certificate", volume.name));
            }
            if default_mode.is_some_and(|mode| mode > 0o777) {
                return Err(format!("volume {:?} has a default-mode above 511 (0777)", volume.name));
            }
        }
        VolumeSource::EmptyDir { medium, size_limit } => {
            if medium.as_deref().is_some_and(|m| !m.is_empty() && m != "Memory") {
                return Err(format!("volume {:?} has a medium other than Memory", volume.name));
            }
            if size_limit.as_deref().is_some_and(|q| weir_api::quantity::parse(q).is_none()) {
                return Err(format!("volume {:?} has a size-limit that is no quantity", volume.name));
            }
        }
    }
    Ok(())
}

fn check_mount(answer: &Answer, mount: &Mount) -> Result<(), String> {
    if !mount.mount_path.starts_with('/') || mount.mount_path.contains(':') || !limits::printable(&mount.mount_path, 1024) {
        return Err(format!("mount path {:?} is not an absolute path without `:`", limits::cut(&mount.mount_path)));
    }
    if mount.sub_path.as_deref().is_some_and(|p| p.starts_with('/') || p.split('/').any(|part| part == "..")) {
        return Err(format!("mount {:?} has a sub-path that leaves its volume", mount.mount_path));
    }
    if !answer.volumes.iter().any(|v| v.name == mount.volume) {
        return Err(format!("mount {:?} names volume {:?}, which the answer does not have", mount.mount_path, limits::cut(&mount.volume)));
    }
    Ok(())
}
