//! One policy on one input: a question, or manifests whose pass asks it.

use std::sync::Arc;

use futures::executor::block_on;
use serde::de::DeserializeOwned;
use serde_json::Value;
use weir_api::keys;
use weir_core::dataplane::objects::deployment::TEMPLATE_HASH;
use weir_core::policy::{
    Chosen, ConflictResolution, KonnectEnv, ObjectHook, PluginPackaging, Policies, Policy, Slot, SlotName, object_hook::Hooks,
};
use weir_host::wasm::{Limits, LoadError, Wasm, WasmSlot};

use crate::{
    calls::{Call, Calls, Recorded},
    exit::{Exit, Failure},
    pass::{self, Artifacts, Kinds, Manifests, Options, Report},
    sources,
    stock::Bytes,
};

/// The policy.
#[derive(Debug, Clone)]
pub struct Subject {
    /// The slot that it is for.
    pub slot: SlotName,
    /// The component.
    pub component: Bytes,
    /// Its settings.
    pub settings: Value,
    /// What one call may use.
    pub limits: Limits,
}

/// What it is asked about.
#[derive(Debug, Clone)]
pub enum Input {
    /// The input of the slot, as JSON has it.
    Question(Value),
    /// Manifests: the pass over them asks what it has to.
    Manifests(Manifests),
}

/// What came of it.
pub struct Asked {
    /// The questions that the policy was asked.
    pub calls: Vec<Call>,
    /// The whole pass, for manifests.
    pub report: Option<Report>,
    /// All policies of the pass.
    pub policies: Option<Policies>,
}

impl Input {
    /// Reads a file, a folder, or standard input (`-`): a document without `kind` is a question, everything else are manifests.
    ///
    /// # Errors
    /// What cannot be read.
    pub fn read(path: &std::path::Path) -> Result<Self, Failure> {
        let sources = sources::read(&[path.to_owned()])?;
        if let [source] = sources.as_slice()
            && !path.is_dir()
            && let Ok(value) = serde_saphyr::from_str::<Value>(&source.text)
            && value.is_object()
            && value.get("kind").is_none()
        {
            return Ok(Self::Question(value));
        }
        Ok(Self::Manifests(Manifests { desired: sources, observed: Vec::new() }))
    }
}

/// Asks. The other slots have their built-in policies.
///
/// # Errors
/// A component that does not load, settings that it refuses, a question that is none of its slot.
pub fn ask(host: &Wasm, kinds: &Kinds, options: &Options, subject: &Subject, input: &Input) -> Result<Asked, Failure> {
    match subject.slot {
        SlotName::KonnectEnv => one::<KonnectEnv>(host, kinds, options, subject, input, |policies, own| policies.konnect_env = own),
        SlotName::ConflictResolution => {
            one::<ConflictResolution>(host, kinds, options, subject, input, |policies, own| policies.conflict_resolution = own)
        }
        SlotName::PluginPackaging => {
            one::<PluginPackaging>(host, kinds, options, subject, input, |policies, own| policies.plugin_packaging = own)
        }
        SlotName::ObjectHook => one::<ObjectHook>(host, kinds, options, subject, input, |policies, own| {
            policies.object_hooks = Hooks::one(own.identity().source.clone(), own);
        }),
    }
}

fn one<S>(
    host: &Wasm,
    kinds: &Kinds,
    options: &Options,
    subject: &Subject,
    input: &Input,
    put: fn(&mut Policies, Chosen<S>),
) -> Result<Asked, Failure>
where
    S: WasmSlot,
    S: Slot<Input: DeserializeOwned>,
{
    let Subject { slot: _, component, settings, limits } = subject;
    let loaded = host.load::<S>(&component.bytes, component.source.clone(), settings.clone(), *limits);
    let policy = loaded.map_err(|error| Failure { exit: load_exit(&error), message: format!("{}: {error}", component.source) })?;
    let calls: Arc<Calls> = Arc::default();
    let recorded = Arc::new(Recorded::new(policy, Arc::clone(&calls)));
    match input {
        Input::Question(question) => {
            let question: S::Input = serde_path_to_error::deserialize(question)
                .map_err(|error| Failure::usage(format!("--input: no question of slot {}: {error}", S::NAME)))?;
            // How it ended is in the calls.
            let _ = block_on(recorded.evaluate(&question));
            Ok(Asked { calls: calls.take(), report: None, policies: None })
        }
        Input::Manifests(manifests) => {
            let defaults = host.defaults();
            let mut policies =
                defaults.map_err(|error| Failure { exit: Exit::Internal, message: format!("built-in policies: {error}") })?;
            put(&mut policies, recorded.into());
            let report = pass::pass(manifests, &Artifacts::default(), options, kinds, &policies)?;
            Ok(Asked { calls: calls.take(), report: Some(report), policies: Some(policies) })
        }
    }
}

/// How a command ends whose policy does not load.
#[must_use]
pub fn load_exit(error: &LoadError) -> Exit {
    match error {
        LoadError::Policy(error) => weir_core::plan::Outcome::from(error).into(),
        LoadError::Settings(_) => Exit::Held,
    }
}

/// The output of a pass without what changes with every build of a component, for comparisons.
#[must_use]
pub fn comparable(asked: &Asked) -> Value {
    match (&asked.report, &asked.policies) {
        (Some(report), Some(policies)) => {
            let mut value = crate::snapshot::steady(&serde_json::to_value(report).unwrap_or_default(), policies);
            strip(&mut value);
            value
        }
        _ => serde_json::json!(asked.calls.iter().map(answered).collect::<Vec<_>>()),
    }
}

fn answered(call: &Call) -> Value {
    serde_json::json!({"outcome": call.outcome, "answer": call.answer, "message": call.message})
}

/// Records of Weir's own about the rest: they differ with it.
fn strip(value: &mut Value) {
    match value {
        Value::Object(map) => {
            for key in [keys::APPLIED, keys::DECISIONS, TEMPLATE_HASH, "policies"] {
                map.remove(key);
            }
            map.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
