//! Slot konnect-env: how a DataPlane's Konnect settings become environment, volumes and mounts of the proxy container.

use crate::{Policy, Refusal, bindings::konnect_env::exports::weir::policy::konnect_env as wit, policy::settings_for_evaluate};

pub use wit::{Answer, Certificate, ClusterType, EmptyDirSource, Endpoints, Input, Mount, SecretSource, Volume, VolumeSource};

/// Answers the slot.
pub trait KonnectEnv: Policy {
    /// Must depend on its arguments only: the operator remembers answers.
    ///
    /// # Errors
    /// A refusal keeps the last accepted answer in force; [`crate::refuse`] makes one.
    fn evaluate(input: Input, settings: Self::Settings) -> Result<Answer, Refusal>;
}

impl<P: KonnectEnv> wit::Guest for P {
    fn evaluate(input: Input, settings: String) -> Result<Answer, Refusal> {
        <P as KonnectEnv>::evaluate(input, settings_for_evaluate::<P>(&settings)?)
    }
}

/// The answer that changes nothing.
impl Default for Answer {
    fn default() -> Self {
        Self {
            env: Vec::new(),
            volumes: Vec::new(),
            mounts: Vec::new(),
            readiness_path: None,
            findings: Vec::new(),
            extensions: Vec::new(),
        }
    }
}

/// A volume with a Secret's content. The host accepts the input's certificate Secret only.
///
/// ```
/// use weir_policy_sdk::konnect_env::{read_only, secret_volume};
/// let volume = secret_volume("kong-cluster-cert", "konnect-cert", 0o644);
/// let mount = read_only(&volume, "/etc/secrets/kong-cluster-cert");
/// assert_eq!(mount.volume, "kong-cluster-cert");
/// ```
pub fn secret_volume(name: impl Into<String>, secret_name: impl Into<String>, default_mode: u32) -> Volume {
    let source = SecretSource { secret_name: secret_name.into(), default_mode: Some(default_mode), extensions: Vec::new() };
    Volume { name: name.into(), source: VolumeSource::Secret(source), extensions: Vec::new() }
}

/// A read-only mount of a whole volume.
pub fn read_only(volume: &Volume, mount_path: impl Into<String>) -> Mount {
    Mount { volume: volume.name.clone(), mount_path: mount_path.into(), sub_path: None, read_only: true, extensions: Vec::new() }
}
