//! `weir policy check`: what the operator would do with a component before it asks it anything.

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;
use weir_core::{
    plan::Outcome,
    policy::{ConflictResolution, Finding, KonnectEnv, ObjectHook, PluginPackaging, PolicyError, SlotName},
};
use weir_host::{
    oci::{self, Component, ComponentError, local},
    wasm::{
        Check, Limits, MAX_COMPONENT, Step, Verdict, Wasm,
        inspect::{self, Interfaces, Profile},
    },
};

use super::{
    Common, MOST_COMPONENT,
    report::{Lines, Output},
    source::{Source, source},
};
use crate::{
    exit::{Exit, Failure},
    plan::policies,
    registry,
};

pub(super) const HELP: &str = "\
Without --slot every slot is checked whose interface it exports. The policy is asked for its schema and for what it thinks of the settings, and
nothing else: run `weir plan --policy SLOT=FILE` to see it decide.

Exit codes: 0 the operator would take it, 1 it refuses the settings, 3 or 4 it failed when it was asked about them, 7 it does not fit; 5 and 6
when a reference cannot be fetched.

Examples:
  weir policy check my-policy.wasm
  weir policy check registry.example/policies/konnect-env:1.0 --slot konnect-env --settings eu.yaml";

/// Steps before there is a component.
const ARTIFACT: &str = "artifact";
const SIZE: &str = "size";
const COMPONENT: &str = "component";
const SLOT: &str = "slot";

/// `weir policy check`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What to check.
    #[arg(value_name = "REF|FILE", value_parser = source)]
    source: Source,
    /// The slot that it is for.
    #[arg(long, value_name = "SLOT", value_parser = slot)]
    slot: Option<SlotName>,
    /// Its settings: a YAML or JSON file.
    #[arg(long, value_name = "FILE")]
    settings: Option<PathBuf>,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    common: Common,
}

/// How a step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Ended {
    Ok,
    Failed,
    Skipped,
}

#[derive(Debug, Serialize)]
struct Line {
    #[serde(skip_serializing_if = "Option::is_none")]
    slot: Option<SlotName>,
    step: &'static str,
    result: Ended,
    #[serde(skip_serializing_if = "String::is_empty")]
    message: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    findings: Vec<Finding>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    #[serde(skip_serializing_if = "Option::is_none")]
    component_digest: Option<String>,
    accepted: bool,
    steps: Vec<Line>,
    #[serde(skip)]
    exit: Exit,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let settings = args.settings.as_deref().map_or(Ok(Value::Null), settings)?;
    let mut report = Report { component_digest: None, accepted: false, steps: Vec::new(), exit: Exit::Done };
    if let Some(component) = report.fetch(args)?
        && let Some(interfaces) = report.interfaces(&component)
    {
        let host = policies::host(Path::new(""))?;
        let slots = args.slot.map_or_else(|| interfaces.slots(), |slot| vec![slot]);
        report.slots(&slots, &interfaces);
        for slot in slots {
            report.slot(slot, interfaces.profile(), check(&host, slot, &component.bytes, &interfaces, &settings));
        }
    }
    report.accepted = report.exit == Exit::Done;
    Ok(args.output.print(&report, || report.text())?.max(report.exit))
}

fn check(host: &Wasm, slot: SlotName, bytes: &[u8], interfaces: &Interfaces, settings: &Value) -> Vec<Check> {
    let (settings, limits) = (settings.clone(), Limits::default());
    match slot {
        SlotName::KonnectEnv => host.check::<KonnectEnv>(bytes, interfaces, settings, limits),
        SlotName::ConflictResolution => host.check::<ConflictResolution>(bytes, interfaces, settings, limits),
        SlotName::PluginPackaging => host.check::<PluginPackaging>(bytes, interfaces, settings, limits),
        SlotName::ObjectHook => host.check::<ObjectHook>(bytes, interfaces, settings, limits),
    }
}

impl Report {
    /// The component; `None` when there is none in what was found.
    fn fetch(&mut self, args: &Args) -> anyhow::Result<Option<Component>> {
        let refused = match &args.source {
            Source::Registry(reference) => match args.common.pull(reference)? {
                Ok(component) => return Ok(Some(self.found(component))),
                Err(oci::Error::Component { source, .. }) => source,
                Err(error) => return Err(registry::pull(&error).into()),
            },
            Source::File(path) => match local::component(path, MOST_COMPONENT) {
                Ok(component) => return Ok(Some(self.found(component))),
                Err(local::Error::Component { source, .. }) => source,
                Err(error) => return Err(registry::local(&error).into()),
            },
        };
        let failed = match *refused {
            ComponentError::NoLayers
            | ComponentError::Several(_)
            | ComponentError::NoneKnown(_)
            | ComponentError::Archive { .. }
            | ComponentError::NoFile { .. }
            | ComponentError::Files { .. } => ARTIFACT,
            ComponentError::Large { .. } => SIZE,
            ComponentError::Foreign { .. } => COMPONENT,
        };
        self.before(failed, &refused.to_string());
        Ok(None)
    }

    fn found(&mut self, component: Component) -> Component {
        let place = component.index_digest.as_ref().unwrap_or(&component.manifest_digest);
        self.line(None, ARTIFACT, Ended::Ok, format!("{} {place}", component.layout.as_str()));
        self.component_digest = Some(component.layer_digest.clone());
        component
    }

    fn interfaces(&mut self, component: &Component) -> Option<Interfaces> {
        match inspect::interfaces(&component.bytes, MAX_COMPONENT) {
            Ok(interfaces) => {
                self.line(None, SIZE, Ended::Ok, format!("{} bytes, at most {MAX_COMPONENT}", component.bytes.len()));
                self.line(None, COMPONENT, Ended::Ok, component.layer_digest.clone());
                Some(interfaces)
            }
            Err(error @ inspect::Error::Size { .. }) => {
                self.before(SIZE, &error.to_string());
                None
            }
            Err(error @ (inspect::Error::NotComponent(_) | inspect::Error::Malformed(_) | inspect::Error::World(_))) => {
                self.before(COMPONENT, &error.to_string());
                None
            }
        }
    }

    /// The steps before there is a component, of which `failed` did.
    fn before(&mut self, failed: &'static str, message: &str) {
        self.exit = self.exit.max(Exit::Incompatible);
        let known = self.steps.len();
        let mut result = Ended::Ok;
        for step in [ARTIFACT, SIZE, COMPONENT].into_iter().skip(known) {
            let this = if step == failed { Ended::Failed } else { result };
            self.line(None, step, this, if step == failed { message.to_owned() } else { String::new() });
            if this != Ended::Ok {
                result = Ended::Skipped;
            }
        }
    }

    /// Which slots it is for.
    fn slots(&mut self, slots: &[SlotName], interfaces: &Interfaces) {
        let list = |slots: &[SlotName]| slots.iter().map(|slot| slot.as_str()).collect::<Vec<_>>().join(", ");
        if !slots.is_empty() {
            return self.line(None, SLOT, Ended::Ok, list(slots));
        }
        self.exit = self.exit.max(Exit::Incompatible);
        let exports = if interfaces.exports.is_empty() { "nothing".to_owned() } else { interfaces.exports.join(", ") };
        self.line(
            None,
            SLOT,
            Ended::Failed,
            format!("it exports the interface of no slot ({}); it exports {exports}", list(&SlotName::ALL)),
        );
    }

    fn slot(&mut self, slot: SlotName, profile: Profile, checks: Vec<Check>) {
        for step in Step::ALL {
            let Some(check) = checks.iter().find(|check| check.step == step) else {
                self.line(Some(slot), step.as_str(), Ended::Skipped, String::new());
                continue;
            };
            let (result, message, findings) = match &check.verdict {
                Verdict::Passed(findings) => (Ended::Ok, passed(check.step, profile), findings.clone()),
                Verdict::Failed(error) => (Ended::Failed, why(error), Vec::new()),
                Verdict::Refused(findings) => (Ended::Failed, String::new(), findings.clone()),
            };
            self.exit = self.exit.max(exit(&check.verdict));
            self.steps.push(Line { slot: Some(slot), step: step.as_str(), result, message, findings });
        }
    }

    fn line(&mut self, slot: Option<SlotName>, step: &'static str, result: Ended, message: String) {
        self.steps.push(Line { slot, step, result, message, findings: Vec::new() });
    }

    fn text(&self) -> String {
        let mut lines = Lines::default();
        for line in &self.steps {
            let result = match line.result {
                Ended::Ok => "ok",
                Ended::Failed => "failed",
                Ended::Skipped => "skipped",
            };
            let slot = line.slot.map(|slot| format!("{slot} ")).unwrap_or_default();
            let about = |finding: &Finding| [finding.path.as_str(), finding.message.as_str()].join(" ").trim_start().to_owned();
            let said: Vec<String> =
                std::iter::once(line.message.clone()).filter(|m| !m.is_empty()).chain(line.findings.iter().map(about)).collect();
            let said = if said.is_empty() { String::new() } else { format!(": {}", said.join("; ")) };
            lines.add(result, &format!("{slot}{}{said}", line.step));
        }
        lines.text()
    }
}

/// What is worth knowing of a step that passed.
fn passed(step: Step, profile: Profile) -> String {
    match (step, profile) {
        (Step::Imports, Profile::StubWasi) => format!("wasi: {}", profile.wasi()),
        (Step::Exports | Step::Imports | Step::Compiles | Step::Schema | Step::Settings | Step::Validate, _) => String::new(),
    }
}

/// Without the words that every step would begin with.
fn why(error: &PolicyError) -> String {
    match error {
        PolicyError::Incompatible(why) => why.clone(),
        PolicyError::Refused(_)
        | PolicyError::Deadline { .. }
        | PolicyError::Memory(_)
        | PolicyError::Trap(_)
        | PolicyError::Unavailable(_)
        | PolicyError::BadOutput(_) => error.to_string(),
    }
}

fn exit(verdict: &Verdict) -> Exit {
    match verdict {
        Verdict::Passed(_) => Exit::Done,
        Verdict::Refused(_) => Exit::Held,
        Verdict::Failed(error) => Outcome::from(error).into(),
    }
}

pub(super) fn settings(path: &Path) -> Result<Value, Failure> {
    weir_host::files::settings(path).map_err(|error| Failure::usage(format!("--settings {error}")))
}

pub(super) fn slot(text: &str) -> Result<SlotName, String> {
    let slots = || SlotName::ALL.map(SlotName::as_str).join(", ");
    SlotName::parse(text).ok_or_else(|| format!("there is no such slot; there are {}", slots()))
}
