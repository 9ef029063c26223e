//! `REF|FILE|CR.yaml`: the policy of commands that run one.

use std::path::{Path, PathBuf};

use serde_json::Value;
use weir_api::{
    manifest,
    reconcile_policy::{OciSource, ReconcilePolicy},
};
use weir_core::policy::{ConflictResolution, KonnectEnv, ObjectHook, PluginPackaging, SlotName};
use weir_harness::{ask::Subject, pass::Kinds, sources, stock, suite};
use weir_host::{
    oci::Reference,
    wasm::{BUILTIN_SOURCE, Builtin, MAX_COMPONENT, inspect},
};

use super::{
    Common,
    source::{Source, source},
};
use crate::exit::{Exit, Failure};

/// What is named at the command line.
#[derive(Debug, Clone)]
pub(super) enum Named {
    /// A component.
    Component(Source),
    /// A manifest with a ReconcilePolicy.
    Manifest(PathBuf),
}

/// For clap.
pub(super) fn named(text: &str) -> Result<Named, String> {
    if [".yaml", ".yml", ".json"].iter().any(|end| text.ends_with(end)) {
        return Ok(Named::Manifest(text.into()));
    }
    source(text).map(Named::Component)
}

/// The flags that go with it.
#[derive(Debug, clap::Args)]
pub(super) struct SubjectFlags {
    /// The slot, where the component is for several.
    #[arg(long, value_name = "SLOT", value_parser = super::check::slot)]
    slot: Option<SlotName>,
    /// Its settings: a YAML or JSON file. Without it those of the ReconcilePolicy.
    #[arg(long, value_name = "FILE")]
    settings: Option<PathBuf>,
    /// Time of one call, `1ms` to `10s`. Without it that of the ReconcilePolicy, else the operator's default.
    #[arg(long, value_name = "TIME")]
    timeout: Option<String>,
    /// Memory of one call, `1Mi` to `64Mi`.
    #[arg(long, value_name = "SIZE")]
    memory: Option<String>,
}

/// Finds the component and what it runs with.
pub(super) fn subject(named: &Named, flags: &SubjectFlags, common: &Common) -> anyhow::Result<Subject> {
    let (mut subject, policy_limits) = match named {
        Named::Component(source) => {
            let component = component(source, common)?;
            let slot = slot_of(&component.bytes, flags.slot)?;
            (Subject { slot, component, settings: Value::Null, limits: weir_host::wasm::Limits::default() }, (None, None))
        }
        Named::Manifest(path) => of_manifest(path, flags, common)?,
    };
    if let Some(path) = &flags.settings {
        subject.settings = super::check::settings(path)?;
    }
    let (timeout, memory) = (flags.timeout.clone().or(policy_limits.0), flags.memory.clone().or(policy_limits.1));
    subject.limits = suite::limits_of(timeout.as_deref(), memory.as_deref()).map_err(Failure::usage)?;
    Ok(subject)
}

type Words = (Option<String>, Option<String>);

fn component(source: &Source, common: &Common) -> anyhow::Result<stock::Bytes> {
    let name = match source {
        Source::Registry(reference) => reference.to_string(),
        Source::File(path) => format!("file:{}", path.file_name().unwrap_or_default().to_string_lossy()),
    };
    Ok(stock::Bytes { source: name, bytes: common.component(source)?.bytes.into() })
}

/// The one slot that it is for.
fn slot_of(bytes: &[u8], wanted: Option<SlotName>) -> Result<SlotName, Failure> {
    if let Some(slot) = wanted {
        return Ok(slot);
    }
    let interfaces = inspect::interfaces(bytes, MAX_COMPONENT);
    let interfaces = interfaces.map_err(|error| Failure { exit: Exit::Incompatible, message: error.to_string() })?;
    match interfaces.slots().as_slice() {
        [one] => Ok(*one),
        [] => {
            Err(Failure { exit: Exit::Incompatible, message: "it exports the interface of no slot; `weir policy check` says more".into() })
        }
        several => {
            let names: Vec<&str> = several.iter().map(|slot| slot.as_str()).collect();
            Err(Failure::usage(format!("it is for several slots; choose with --slot one of {}", names.join(", "))))
        }
    }
}

fn of_manifest(path: &Path, flags: &SubjectFlags, common: &Common) -> anyhow::Result<(Subject, Words)> {
    let wrong = |why: String| Failure::usage(format!("{}: {why}", path.display()));
    let kinds = Kinds::new()?;
    let loaded = manifest::load(sources::read(&[path.to_owned()])?, kinds.schemas(), "default");
    if let Some(problem) = loaded.problems.first() {
        return Err(Failure::usage(problem.to_string()).into());
    }
    let of_kind = |object: &&Value| object.get("kind").and_then(Value::as_str) == Some("ReconcilePolicy");
    let found: Vec<&Value> = loaded.objects.others.iter().map(|sourced| &sourced.object).filter(of_kind).collect();
    let [one] = found.as_slice() else {
        return Err(wrong(format!("it has {} ReconcilePolicies; one is needed", found.len())).into());
    };
    let policy: ReconcilePolicy = serde_json::from_value((*one).clone()).map_err(|error| wrong(error.to_string()))?;
    let spec = &policy.spec;
    let slot = SlotName::of(spec.slot);
    if flags.slot.is_some_and(|wanted| wanted != slot) {
        return Err(wrong(format!("spec.slot is {slot}: leave --slot out")).into());
    }
    let component = match (&spec.source.oci, &spec.source.builtin) {
        (Some(oci), _) => component(&Source::Registry(image(oci).map_err(wrong)?), common)?,
        (None, Some(_)) => stock::Bytes { source: BUILTIN_SOURCE.to_owned(), bytes: builtin(slot).into() },
        (None, None) => return Err(wrong("spec.source: a remote plugin does not run here; it needs an operator".into()).into()),
    };
    let limits = spec.limits.clone().unwrap_or_default();
    let settings = spec.settings.clone().unwrap_or(Value::Null);
    Ok((Subject { slot, component, settings, limits: weir_host::wasm::Limits::default() }, (limits.timeout, limits.memory)))
}

fn image(oci: &OciSource) -> Result<Reference, String> {
    if oci.semver.is_some() {
        return Err("spec.source.oci.semver: which tag it takes is the registry's to say; name the artifact instead of the manifest".into());
    }
    Reference::parse(&oci.image).map_err(|error| format!("spec.source.oci.image: {}", error.problem))
}

fn builtin(slot: SlotName) -> &'static [u8] {
    match slot {
        SlotName::KonnectEnv => KonnectEnv::COMPONENT,
        SlotName::ConflictResolution => ConflictResolution::COMPONENT,
        SlotName::PluginPackaging => PluginPackaging::COMPONENT,
        SlotName::ObjectHook => ObjectHook::COMPONENT,
    }
}
