//! Who is at the other end and what it offers. Read with every connection: a plugin that was upgraded is another one.

use weir_core::policy::SlotName;
use weir_proto::{
    identity as id,
    lifecycle::{self as lc, operator_lifecycle_client::OperatorLifecycleClient},
    operator::{self as op, operator_client::OperatorClient},
    reconciler::{self as rc, reconciler_hooks_client::ReconcilerHooksClient},
};

use crate::remote::{
    CallError, Capabilities, Class, Deadlines, Metadata, Reason, Service,
    calls::{Call, Caps, identity},
    tls::Failure,
    wire::{Wire, origin},
};

/// Reads both, and refuses a plugin that is not `name`, if one is given.
pub(super) async fn introduce(name: Option<&str>, wire: &Wire, deadlines: &Deadlines) -> Result<(Metadata, Capabilities), Failure> {
    let mut client = identity(wire);
    let call = Call { method: "Identity/GetPluginMetadata", within: deadlines.metadata };
    let metadata = call.ask(id::GetPluginMetadataRequest {}, |request| async move { client.get_plugin_metadata(request).await });
    let metadata = Metadata::read(metadata.await.map_err(failed)?).map_err(unusable)?;
    if name.is_some_and(|name| metadata.name != name) {
        let message = format!("it says that it is {:?}: the label of its Service must say the same", metadata.name);
        return Err(Failure::new(Reason::NameMismatch, message));
    }
    let mut capabilities = Capabilities { slots: metadata.slots(), ..Capabilities::default() };
    let mut client = identity(wire);
    let call = Call { method: "Identity/GetPluginCapabilities", within: deadlines.metadata };
    let listed = call.ask(id::GetPluginCapabilitiesRequest {}, |request| async move { client.get_plugin_capabilities(request).await });
    capabilities.services = Capabilities::services(&listed.await.map_err(failed)?).map_err(unusable)?;
    for service in capabilities.services.clone() {
        of_service(&mut capabilities, service, wire, deadlines).await?;
    }
    // This slot is CNPG-I's own, so nothing in the manifest tells of it.
    if capabilities.services.contains(&Service::Lifecycle) {
        capabilities.slots.insert(SlotName::ObjectHook);
    }
    Ok((metadata, capabilities))
}

async fn of_service(capabilities: &mut Capabilities, service: Service, wire: &Wire, deadlines: &Deadlines) -> Result<(), Failure> {
    let within = deadlines.metadata;
    match service {
        Service::Operator => {
            let client = OperatorClient::with_origin(wire.clone(), origin());
            let mut client = client.max_decoding_message_size(Caps::METADATA.answer);
            let call = Call { method: "Operator/GetCapabilities", within };
            let answer = call.ask(op::OperatorCapabilitiesRequest {}, |request| async move { client.get_capabilities(request).await });
            capabilities.operator = Capabilities::operator(&answer.await.map_err(failed)?).map_err(unusable)?;
        }
        Service::Lifecycle => {
            let client = OperatorLifecycleClient::with_origin(wire.clone(), origin());
            let mut client = client.max_decoding_message_size(Caps::METADATA.answer);
            let call = Call { method: "OperatorLifecycle/GetCapabilities", within };
            let answer =
                call.ask(lc::OperatorLifecycleCapabilitiesRequest {}, |request| async move { client.get_capabilities(request).await });
            capabilities.lifecycle = Capabilities::lifecycle(answer.await.map_err(failed)?).map_err(unusable)?;
        }
        Service::Reconciler => {
            let client = ReconcilerHooksClient::with_origin(wire.clone(), origin());
            let mut client = client.max_decoding_message_size(Caps::METADATA.answer);
            let call = Call { method: "ReconcilerHooks/GetCapabilities", within };
            let answer =
                call.ask(rc::ReconcilerHooksCapabilitiesRequest {}, |request| async move { client.get_capabilities(request).await });
            capabilities.reconciler = Capabilities::reconciler(&answer.await.map_err(failed)?).map_err(unusable)?;
        }
    }
    Ok(())
}

fn unusable(problem: String) -> Failure {
    Failure::new(Reason::BadMetadata, problem)
}

fn failed(error: CallError) -> Failure {
    let reason = match error.class {
        Class::Connection => Reason::Unreachable,
        Class::Deadline | Class::Later => Reason::ProbeFailed,
        Class::Unimplemented | Class::TooLarge | Class::Garbage | Class::Permanent | Class::Failed => Reason::BadMetadata,
    };
    Failure::new(reason, error.to_string())
}
