//! Slot konnect-env: conversions between the core's types and `wit/konnect-env.wit`.

use wasmtime::{Store, component::InstancePre};
use weir_core::policy::{KonnectEnv, konnect_env as core};

use super::{Export, WasmSlot, context, env_vars, extensions, findings, pairs, unknown};
use crate::wasm::call::State;

pub(super) mod bindings {
    #![allow(missing_docs, unreachable_pub, clippy::all, reason = "generated; the WIT files document it")]
    wasmtime::component::bindgen!({ world: "konnect-env-policy", path: "../../wit" });
}

use bindings::{KonnectEnvPolicyPre, exports::weir::policy::konnect_env as wit};

impl WasmSlot for KonnectEnv {
    type Pre = KonnectEnvPolicyPre<State>;
    type Question = wit::Input;

    fn prepare(pre: InstancePre<State>) -> wasmtime::Result<Self::Pre> {
        KonnectEnvPolicyPre::new(pre)
    }

    fn question(input: &core::Input) -> wit::Input {
        wit::Input {
            context: context(&input.context),
            control_plane_id: input.control_plane_id.clone(),
            cluster_type: match input.cluster_type {
                core::ClusterType::ControlPlane => wit::ClusterType::ControlPlane,
                core::ClusterType::ControlPlaneGroup => wit::ClusterType::ControlPlaneGroup,
                core::ClusterType::K8SIngressController => wit::ClusterType::K8sIngressController,
            },
            endpoints: wit::Endpoints {
                control_plane: input.endpoints.control_plane.clone(),
                telemetry: input.endpoints.telemetry.clone(),
                extensions: extensions(),
            },
            region: input.region.clone(),
            certificate: wit::Certificate {
                secret_name: input.certificate.secret_name.clone(),
                mount_path: input.certificate.mount_path.clone(),
                extensions: extensions(),
            },
            data_plane_labels: pairs(&input.data_plane_labels),
            image: input.image.clone(),
            extensions: extensions(),
        }
    }

    fn evaluate(pre: &Self::Pre, store: &mut Store<State>, input: &wit::Input, settings: &str) -> Export<Self> {
        let policy = pre.instantiate(&mut *store)?;
        store.data_mut().enter();
        let answer = policy.weir_policy_konnect_env().call_evaluate(store, input, settings)?;
        Ok(answer.map(answer_to_core).map_err(|refusal| (refusal.code, refusal.message)))
    }

    fn schema(pre: &Self::Pre, store: &mut Store<State>) -> wasmtime::Result<String> {
        let policy = pre.instantiate(&mut *store)?;
        store.data_mut().enter();
        policy.weir_policy_settings().call_schema(store)
    }

    fn validate(pre: &Self::Pre, store: &mut Store<State>, settings: &str) -> wasmtime::Result<Vec<super::WitFinding>> {
        let policy = pre.instantiate(&mut *store)?;
        store.data_mut().enter();
        policy.weir_policy_settings().call_validate(store, settings)
    }
}

fn answer_to_core(answer: wit::Answer) -> Result<core::Answer, String> {
    Ok(core::Answer {
        env: env_vars(answer.env),
        volumes: answer.volumes.into_iter().map(volume).collect::<Result<_, _>>()?,
        mounts: answer.mounts.into_iter().map(mount).collect(),
        readiness_path: answer.readiness_path,
        findings: findings(answer.findings),
    })
}

fn volume(volume: wit::Volume) -> Result<core::Volume, String> {
    let source = match volume.source {
        wit::VolumeSource::Secret(secret) => {
            core::VolumeSource::Secret { secret_name: secret.secret_name, default_mode: secret.default_mode }
        }
        wit::VolumeSource::EmptyDir(dir) => core::VolumeSource::EmptyDir { medium: dir.medium, size_limit: dir.size_limit },
        wit::VolumeSource::Other(case) => return Err(unknown("volume-source", &case)),
    };
    Ok(core::Volume { name: volume.name, source })
}

fn mount(mount: wit::Mount) -> core::Mount {
    core::Mount { volume: mount.volume, mount_path: mount.mount_path, sub_path: mount.sub_path, read_only: mount.read_only }
}
