//! Slot konnect-env: conversions between the core's types and `proto/weir/policy.proto`.

use std::time::Duration;

use weir_core::policy::{KonnectEnv, konnect_env as core};
use weir_proto::policy::{
    self as wire, konnect_env_answer as answer, konnect_env_client::KonnectEnvClient, konnect_env_input as input,
    konnect_env_response::Result as Outcome,
};

use super::{RemoteSlot, Reply, context, env_vars, findings, unknown};
use crate::remote::{CallError, Lease, calls::Caps, wire::origin};

impl RemoteSlot for KonnectEnv {
    type Question = wire::KonnectEnvRequest;

    fn question(input: &core::Input, settings: &str) -> Self::Question {
        wire::KonnectEnvRequest { input: Some(question(input)), settings: settings.to_owned() }
    }

    async fn send(lease: &Lease, caps: Caps, within: Duration, question: Self::Question) -> Result<Reply<core::Answer>, CallError> {
        let client = KonnectEnvClient::with_origin(lease.wire(), origin());
        let mut client = client.max_decoding_message_size(caps.answer).max_encoding_message_size(caps.question);
        let reply = lease.call("KonnectEnv/Evaluate", within, question, |request| async move { client.evaluate(request).await });
        Ok(match reply.await?.result {
            Some(Outcome::Answer(answer)) => Reply::Answer(answer_to_core(answer)),
            Some(Outcome::Refusal(refusal)) => Reply::Refusal { code: refusal.code, message: refusal.message },
            None => Reply::Nothing,
        })
    }
}

fn question(input: &core::Input) -> wire::KonnectEnvInput {
    let cluster_type = match input.cluster_type {
        core::ClusterType::ControlPlane => input::ClusterType::ControlPlane,
        core::ClusterType::ControlPlaneGroup => input::ClusterType::ControlPlaneGroup,
        core::ClusterType::K8SIngressController => input::ClusterType::K8sIngressController,
    };
    wire::KonnectEnvInput {
        context: Some(context(&input.context)),
        control_plane_id: input.control_plane_id.clone(),
        cluster_type: cluster_type.into(),
        endpoints: Some(input::Endpoints {
            control_plane: input.endpoints.control_plane.clone(),
            telemetry: input.endpoints.telemetry.clone(),
        }),
        region: input.region.clone(),
        certificate: Some(input::Certificate {
            secret_name: input.certificate.secret_name.clone(),
            mount_path: input.certificate.mount_path.clone(),
        }),
        data_plane_labels: input.data_plane_labels.clone(),
        image: input.image.clone(),
    }
}

fn answer_to_core(answer: wire::KonnectEnvAnswer) -> Result<core::Answer, String> {
    Ok(core::Answer {
        env: env_vars(answer.env),
        volumes: answer.volumes.into_iter().map(volume).collect::<Result<_, _>>()?,
        mounts: answer.mounts.into_iter().map(mount).collect(),
        readiness_path: answer.readiness_path,
        findings: findings(answer.findings),
    })
}

fn volume(volume: answer::Volume) -> Result<core::Volume, String> {
    let source = match volume.source {
        Some(answer::volume::Source::Secret(secret)) => {
            core::VolumeSource::Secret { secret_name: secret.secret_name, default_mode: secret.default_mode }
        }
        Some(answer::volume::Source::EmptyDir(dir)) => core::VolumeSource::EmptyDir { medium: dir.medium, size_limit: dir.size_limit },
        None => return Err(unknown("the source of the volume", &volume.name)),
    };
    Ok(core::Volume { name: volume.name, source })
}

fn mount(mount: answer::Mount) -> core::Mount {
    core::Mount { volume: mount.volume, mount_path: mount.mount_path, sub_path: mount.sub_path, read_only: mount.read_only }
}
