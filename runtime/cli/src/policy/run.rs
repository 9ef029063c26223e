//! `weir policy run`: one evaluation, with its cost.

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;
use weir_core::{plan::Outcome, policy::SlotName};
use weir_harness::{
    ask::{self, Input},
    calls::Call,
    pass::{Kinds, Options},
};
use weir_host::wasm::Line;

use super::{
    Common,
    report::{Lines, Output},
    subject::{Named, SubjectFlags, named, subject},
};
use crate::{
    exit::{Exit, Failure},
    plan::policies,
};

pub(super) const HELP: &str = "\
The policy is a registry reference, a file, or a manifest with a ReconcilePolicy, whose slot, settings and limits then hold. It runs in the
operator's own host, within the operator's own limits.

The input is the slot's input as YAML or JSON, or manifests: then every question is asked that an operator would ask about them.

Exit codes: 0 it answered, 1 it refused (or refuses its settings), 3 it trapped or its answer breaks the rules, 4 it ran out of time or
memory, 5 and 6 when a reference cannot be fetched, 7 it does not fit; 2 usage, also when nothing in the manifests asks it anything.

Examples:
  weir policy run my-policy.wasm --input question.yaml
  weir policy run reconcile-policy.yaml --input manifests/
  kubectl get dataplanes,konnectextensions -A -o yaml | weir policy run my-policy.wasm --input - -o json";

/// `weir policy run`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What to run.
    #[arg(value_name = "REF|FILE|CR.yaml", value_parser = named)]
    policy: Named,
    /// What to ask: the slot's input, or manifests; a file, a folder, or `-`.
    #[arg(long, value_name = "FILE|DIR|-")]
    input: PathBuf,
    #[command(flatten)]
    flags: SubjectFlags,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    common: Common,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    schema_version: u32,
    source: String,
    slot: SlotName,
    timeout_ms: u64,
    memory_limit_bytes: usize,
    calls: Vec<Evaluation>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Evaluation {
    object: String,
    outcome: Outcome,
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    logs: Vec<Line>,
    time_us: u128,
    instantiate_us: u128,
    peak_memory_bytes: usize,
}

impl From<Call> for Evaluation {
    fn from(call: Call) -> Self {
        Self {
            object: call.object,
            outcome: call.outcome,
            answer: call.answer,
            code: call.code,
            message: call.message,
            time_us: call.usage.time.as_micros(),
            instantiate_us: call.usage.instantiate.as_micros(),
            peak_memory_bytes: call.usage.memory,
            logs: call.usage.lines,
        }
    }
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let subject = subject(&args.policy, &args.flags, &args.common)?;
    let input = Input::read(&args.input)?;
    let host = policies::host(Path::new(""))?;
    let asked = ask::ask(&host, &Kinds::new()?, &Options::default(), &subject, &input)?;
    if asked.calls.is_empty() {
        let why = asked.report.as_ref().and_then(|report| report.held.first()).map(|why| format!("; {why}")).unwrap_or_default();
        let message = format!("nothing in the manifests asks slot {} anything{why}", subject.slot);
        return Err(Failure::usage(message).into());
    }
    let report = Report {
        schema_version: 1,
        source: subject.component.source.clone(),
        slot: subject.slot,
        timeout_ms: u64::try_from(subject.limits.timeout().as_millis()).unwrap_or(u64::MAX),
        memory_limit_bytes: subject.limits.memory(),
        calls: asked.calls.into_iter().map(Evaluation::from).collect(),
    };
    let exit = report.calls.iter().map(|call| Exit::from(call.outcome)).max().unwrap_or(Exit::Done);
    Ok(args.output.print(&report, || text(&report))?.max(exit))
}

fn text(report: &Report) -> String {
    let mut text = String::new();
    for call in &report.calls {
        let mut lines = Lines::default();
        lines.add("object", &call.object);
        lines.add("outcome", call.outcome.as_str());
        lines.all("code", &call.code);
        lines.all("message", &call.message);
        for line in &call.logs {
            lines.add("log", &format!("{:?}: {}", line.level, line.text).to_lowercase());
        }
        lines.add("time", &format!("{} µs of {} ms, {} µs of them for the instance", call.time_us, report.timeout_ms, call.instantiate_us));
        lines.add("memory", &format!("{} KiB of {} KiB", call.peak_memory_bytes >> 10, report.memory_limit_bytes >> 10));
        text.push_str(&lines.text());
        if let Some(answer) = &call.answer {
            let yaml = serde_saphyr::to_string(answer).unwrap_or_default();
            text.push_str("answer\n");
            yaml.lines().for_each(|line| text.push_str(&format!("  {line}\n")));
        }
        text.push('\n');
    }
    text.trim_end().to_owned()
}
