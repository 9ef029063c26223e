//! Slot plugin-packaging: conversions between the core's types and `proto/weir/policy.proto`.

use std::time::Duration;

use weir_core::policy::{PluginPackaging, plugin_packaging as core};
use weir_proto::policy::{
    self as wire, plugin_packaging_answer as answer, plugin_packaging_client::PluginPackagingClient, plugin_packaging_input as input,
    plugin_packaging_response::Result as Outcome,
};

use super::{RemoteSlot, Reply, context, env_vars, findings};
use crate::remote::{CallError, Lease, calls::Caps, wire::origin};

impl RemoteSlot for PluginPackaging {
    type Question = wire::PluginPackagingRequest;

    fn question(input: &core::Input, settings: &str) -> Self::Question {
        let input = wire::PluginPackagingInput {
            context: Some(context(&input.context)),
            reference: input.reference.clone(),
            digest: input.digest.clone(),
            annotations: input.annotations.clone(),
            signers: input.signers.clone(),
            files: input.files.iter().map(file).collect(),
            bundled: input.bundled.clone(),
        };
        wire::PluginPackagingRequest { input: Some(input), settings: settings.to_owned() }
    }

    async fn send(lease: &Lease, caps: Caps, within: Duration, question: Self::Question) -> Result<Reply<core::Answer>, CallError> {
        let client = PluginPackagingClient::with_origin(lease.wire(), origin());
        let mut client = client.max_decoding_message_size(caps.answer).max_encoding_message_size(caps.question);
        let reply = lease.call("PluginPackaging/Evaluate", within, question, |request| async move { client.evaluate(request).await });
        Ok(match reply.await?.result {
            Some(Outcome::Answer(answer)) => Reply::Answer(Ok(answer_to_core(answer))),
            Some(Outcome::Refusal(refusal)) => Reply::Refusal { code: refusal.code, message: refusal.message },
            None => Reply::Nothing,
        })
    }
}

fn file(file: &core::File) -> input::File {
    input::File { path: file.path.clone(), size: file.size, digest: file.digest.clone(), text: file.text.clone() }
}

fn answer_to_core(answer: wire::PluginPackagingAnswer) -> core::Answer {
    core::Answer {
        plugins: answer.plugins.into_iter().map(plugin).collect(),
        lua_package_path: answer.lua_package_path,
        env: env_vars(answer.env),
        findings: findings(answer.findings),
    }
}

fn plugin(plugin: answer::Plugin) -> core::Plugin {
    let placement = |p: answer::Placement| core::Placement { source: p.source, target: p.target };
    core::Plugin {
        name: plugin.name,
        version: plugin.version,
        priority: plugin.priority,
        placements: plugin.placements.into_iter().map(placement).collect(),
    }
}
