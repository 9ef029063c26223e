//! Slot conflict-resolution: conversions between the core's types and `proto/weir/policy.proto`.

use std::time::Duration;

use weir_core::policy::{ConflictResolution, conflict_resolution as core};
use weir_proto::policy::{
    self as wire, conflict_resolution_answer as answer, conflict_resolution_client::ConflictResolutionClient,
    conflict_resolution_input as input, conflict_resolution_response::Result as Outcome,
};

use super::{RemoteSlot, Reply, context, findings};
use crate::remote::{CallError, Lease, calls::Caps, wire::origin};

impl RemoteSlot for ConflictResolution {
    type Question = wire::ConflictResolutionRequest;

    fn question(input: &core::Input, settings: &str) -> Self::Question {
        let conflicts = input.conflicts.iter().map(conflict).collect();
        let input = wire::ConflictResolutionInput { context: Some(context(&input.context)), conflicts };
        wire::ConflictResolutionRequest { input: Some(input), settings: settings.to_owned() }
    }

    async fn send(lease: &Lease, caps: Caps, within: Duration, question: Self::Question) -> Result<Reply<core::Answer>, CallError> {
        let client = ConflictResolutionClient::with_origin(lease.wire(), origin());
        let mut client = client.max_decoding_message_size(caps.answer).max_encoding_message_size(caps.question);
        let reply = lease.call("ConflictResolution/Evaluate", within, question, |request| async move { client.evaluate(request).await });
        Ok(match reply.await?.result {
            Some(Outcome::Answer(answer)) => Reply::Answer(answer_to_core(answer)),
            Some(Outcome::Refusal(refusal)) => Reply::Refusal { code: refusal.code, message: refusal.message },
            None => Reply::Nothing,
        })
    }
}

fn conflict(conflict: &core::Conflict) -> input::Conflict {
    let kind = match conflict.kind {
        core::SubjectKind::EnvVar => input::SubjectKind::EnvVar,
        core::SubjectKind::PluginName => input::SubjectKind::PluginName,
        core::SubjectKind::BundledPlugin => input::SubjectKind::BundledPlugin,
        core::SubjectKind::PluginInstallation => input::SubjectKind::PluginInstallation,
        core::SubjectKind::Volume => input::SubjectKind::Volume,
        core::SubjectKind::VolumeMount => input::SubjectKind::VolumeMount,
    };
    input::Conflict { kind: kind.into(), subject: conflict.subject.clone(), claims: conflict.claims.iter().map(claim).collect() }
}

fn claim(claim: &core::Claim) -> input::Claim {
    let origin = match claim.origin {
        core::Origin::User => input::Origin::User,
        core::Origin::Policy => input::Origin::Policy,
        core::Origin::Generated => input::Origin::Generated,
        core::Origin::Default => input::Origin::Default,
    };
    let value = match &claim.value {
        core::ClaimValue::Text(text) => input::claim::Value::Text(text.clone()),
        core::ClaimValue::Object(json) => input::claim::Value::Object(json.clone()),
    };
    input::Claim { who: claim.who.clone(), since: claim.since.clone(), origin: origin.into(), value: Some(value) }
}

fn answer_to_core(answer: wire::ConflictResolutionAnswer) -> Result<core::Answer, String> {
    let resolutions = answer.resolutions.into_iter().enumerate().map(resolution).collect::<Result<_, _>>()?;
    Ok(core::Answer { resolutions })
}

fn resolution((at, resolution): (usize, answer::Resolution)) -> Result<core::Resolution, String> {
    use answer::resolution::Verdict;
    let verdict = match resolution.verdict {
        Some(Verdict::Keep(index)) => core::Verdict::Keep(index),
        Some(Verdict::KeepSome(some)) => core::Verdict::KeepSome(some.indices),
        Some(Verdict::Merge(value)) => core::Verdict::Merge(value),
        Some(Verdict::Reject(message)) => core::Verdict::Reject(message),
        Some(Verdict::Hold(message)) => core::Verdict::Hold(message),
        None => return Err(format!("the verdict of resolution {at} is absent or not known to this host")),
    };
    Ok(core::Resolution { verdict, findings: findings(resolution.findings) })
}
