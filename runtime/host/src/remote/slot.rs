//! One adapter per slot: the core's types to messages and back. Nothing here judges an answer; `Slot::check` does.

mod conflict_resolution;
mod konnect_env;
mod object_hook;
mod plugin_packaging;

use std::{future::Future, time::Duration};

use weir_core::policy::{self as core, Slot};
use weir_proto::policy as wire;

use super::{CallError, Lease, calls::Caps, text};

/// What came back.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply<A> {
    /// An answer, or what is in it that this host does not know.
    Answer(Result<A, String>),
    /// A refusal.
    Refusal {
        /// Its code, not yet checked.
        code: String,
        /// Its message, not yet checked.
        message: String,
    },
    /// Neither of the two.
    Nothing,
}

/// A slot that a remote plugin can serve. Sealed in effect: the types are generated from `proto/`.
pub trait RemoteSlot: Slot<Answer: 'static> {
    /// The question as a message; owned, because it goes to another thread.
    type Question: Clone + Send + 'static;

    /// Whether plugins that serve it have settings. CNPG-I knows none.
    const HAS_SETTINGS: bool = true;

    /// The question as a message.
    fn question(input: &Self::Input, settings: &str) -> Self::Question;

    /// Asks over a borrowed connection.
    ///
    /// # Errors
    /// [`CallError`].
    fn send(
        lease: &Lease,
        caps: Caps,
        within: Duration,
        question: Self::Question,
    ) -> impl Future<Output = Result<Reply<Self::Answer>, CallError>> + Send;
}

fn context(context: &core::Context) -> wire::Context {
    wire::Context {
        contract_version: context.contract_version.clone(),
        operator_version: context.operator_version.clone(),
        cluster_name: context.cluster_name.clone(),
        cluster_labels: context.cluster_labels.clone(),
        object: Some(wire::ObjectMeta {
            kind: context.object.kind.clone(),
            namespace: context.object.namespace.clone(),
            name: context.object.name.clone(),
            labels: context.object.labels.clone(),
            annotations: context.object.annotations.clone(),
        }),
        namespace_labels: context.namespace_labels.clone(),
    }
}

fn env_vars(env: Vec<wire::EnvVar>) -> Vec<core::EnvVar> {
    env.into_iter().map(|e| core::EnvVar { name: e.name, value: e.value }).collect()
}

/// Findings as the core has them. A severity this host does not know counts as `Info`, as for components.
pub(super) fn findings(findings: Vec<wire::Finding>) -> Vec<core::Finding> {
    let severity = |number: i32| match wire::Severity::try_from(number) {
        Ok(wire::Severity::Warning) => core::Severity::Warning,
        Ok(wire::Severity::Error) => core::Severity::Error,
        Ok(wire::Severity::Unspecified | wire::Severity::Info) | Err(_) => core::Severity::Info,
    };
    let finding = |f: wire::Finding| core::Finding { severity: severity(f.severity), code: f.code, path: f.path, message: f.message };
    findings.into_iter().map(finding).collect()
}

/// Says that an answer has a part that is absent, or of a kind that a later contract brought: this host cannot act on what it does not know.
fn unknown(what: &str, of: &str) -> String {
    format!("{what} of {:?} is absent or not known to this host", text::line(of, 80))
}
