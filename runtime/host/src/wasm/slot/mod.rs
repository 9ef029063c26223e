//! One adapter per slot: the core's types to WIT and back. Nothing here judges an answer; `Slot::check` does.

mod conflict_resolution;
mod konnect_env;
mod object_hook;
mod plugin_packaging;

use wasmtime::{Store, component::InstancePre};
use weir_core::policy::{self as core, Pairs, Slot};

use super::call::State;

pub(super) use konnect_env::bindings::weir::policy::{
    log,
    types::{self as wit, Finding as WitFinding},
};

/// What a slot's `evaluate` brought: the outer error is wasmtime's (trap, limit, bad value at the boundary), then the refusal
/// as code and message, then what is wrong with an answer that has no counterpart in the core (an `other` case).
pub(super) type Export<S> = wasmtime::Result<Result<Result<<S as Slot>::Answer, String>, (String, String)>>;

/// A slot that a Wasm component can serve. Sealed in effect: the types are generated from `wit/`.
pub trait WasmSlot: Slot<Answer: 'static> {
    /// The linked component with the slot's exports looked up.
    type Pre: Send + Sync + 'static;
    /// The input as WIT has it; owned, because it goes to another thread.
    type Question: Send + 'static;

    /// Looks the slot's exports up. Their types are checked by every instantiation, the first of which is part of the load.
    ///
    /// # Errors
    /// wasmtime's, naming the export.
    fn prepare(pre: InstancePre<State>) -> wasmtime::Result<Self::Pre>;

    /// The input as WIT has it.
    fn question(input: &Self::Input) -> Self::Question;

    /// Instantiates and asks.
    ///
    /// # Errors
    /// wasmtime's; `call::judge` sorts them.
    fn evaluate(pre: &Self::Pre, store: &mut Store<State>, input: &Self::Question, settings: &str) -> Export<Self>
    where
        Self: Sized;

    /// Instantiates and asks for the settings' JSON Schema.
    ///
    /// # Errors
    /// As [`WasmSlot::evaluate`].
    fn schema(pre: &Self::Pre, store: &mut Store<State>) -> wasmtime::Result<String>;

    /// Instantiates and lets the guest check its settings.
    ///
    /// # Errors
    /// As [`WasmSlot::evaluate`].
    fn validate(pre: &Self::Pre, store: &mut Store<State>, settings: &str) -> wasmtime::Result<Vec<WitFinding>>;
}

/// This host defines no extension yet.
fn extensions() -> Vec<(String, String)> {
    Vec::new()
}

fn pairs(pairs: &Pairs) -> Vec<(String, String)> {
    pairs.iter().map(|(k, v)| (k.clone(), v.clone())).collect()
}

fn context(context: &core::Context) -> wit::Context {
    wit::Context {
        contract_version: context.contract_version.clone(),
        operator_version: context.operator_version.clone(),
        cluster_name: context.cluster_name.clone(),
        cluster_labels: pairs(&context.cluster_labels),
        object: wit::ObjectMeta {
            kind: context.object.kind.clone(),
            namespace: context.object.namespace.clone(),
            name: context.object.name.clone(),
            labels: pairs(&context.object.labels),
            annotations: pairs(&context.object.annotations),
            extensions: extensions(),
        },
        namespace_labels: pairs(&context.namespace_labels),
        extensions: extensions(),
    }
}

fn env_vars(env: Vec<wit::EnvVar>) -> Vec<core::EnvVar> {
    env.into_iter().map(|e| core::EnvVar { name: e.name, value: e.value }).collect()
}

/// Findings as the core has them. A severity this host does not know is a later contract's way to say something gentler or
/// more special; it must not make the answer unusable, so it counts as `Info`.
pub(super) fn findings(findings: Vec<WitFinding>) -> Vec<core::Finding> {
    let severity = |severity| match severity {
        wit::Severity::Info | wit::Severity::Other(_) => core::Severity::Info,
        wit::Severity::Warning => core::Severity::Warning,
        wit::Severity::Error => core::Severity::Error,
    };
    let finding = |f: WitFinding| core::Finding { severity: severity(f.severity), code: f.code, path: f.path, message: f.message };
    findings.into_iter().map(finding).collect()
}

/// Says that an answer uses an `other` case: this host cannot act on what it does not know.
fn unknown(what: &str, case: &str) -> String {
    format!("{what} `other({})` is not known to this host", super::text::cut(case))
}
