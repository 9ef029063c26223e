//! `weir policy bench`: what a policy costs on this machine.

use std::{io::Write, path::PathBuf};

use serde_json::{Value, json};
use weir_core::policy::{ConflictResolution, KonnectEnv, ObjectHook, PluginPackaging, SlotName};
use weir_harness::{
    ask::{self, Input},
    bench::{self, FailIf, Figures},
    pass::{Kinds, Options},
};
use weir_host::wasm::Config;

use super::{
    Common,
    report::{Lines, Output},
    subject::{Named, SubjectFlags, named, subject},
};
use crate::exit::{Exit, Failure};

pub(super) const HELP: &str = "\
Each figure is of this machine, this build of weir and a process that does nothing else. A call makes a fresh instance, as the operator's do.

Figures for --fail-if: size, cold (load without compiled code), cached (load with it), instantiate, p50, p99, memory.
Units: us, ms, s; Ki, Mi; % is more than the --baseline.

Exit codes: as `weir policy run`; 1 also when a --fail-if holds.

Examples:
  weir policy bench my-policy.wasm --input question.yaml
  weir policy bench my-policy.wasm --input question.yaml -o json > before.json
  weir policy bench my-policy.wasm --input question.yaml --baseline before.json --fail-if 'p99>20%' --fail-if 'memory>4Mi'";

/// `weir policy bench`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What to measure.
    #[arg(value_name = "REF|FILE|CR.yaml", value_parser = named)]
    policy: Named,
    /// What to ask: the slot's input, or manifests, of which the first question is taken.
    #[arg(long, value_name = "FILE|DIR|-")]
    input: PathBuf,
    /// Calls that are measured.
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    samples: u32,
    /// Figures of an earlier run, as `-o json` prints them.
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// A figure that must not be over a limit. Repeatable.
    #[arg(long = "fail-if", value_name = "FIGURE>LIMIT")]
    fail_if: Vec<FailIf>,
    #[command(flatten)]
    flags: SubjectFlags,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    common: Common,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let subject = subject(&args.policy, &args.flags, &args.common)?;
    let baseline = args.baseline.as_deref().map(baseline).transpose()?;
    let input = match Input::read(&args.input)? {
        Input::Question(question) => question,
        manifests @ Input::Manifests(_) => {
            let host = crate::plan::policies::host(std::path::Path::new(""))?;
            let asked = ask::ask(&host, &Kinds::new()?, &Options::default(), &subject, &manifests)?;
            let first = asked.calls.into_iter().next();
            first.ok_or_else(|| Failure::usage(format!("nothing in the manifests asks slot {} anything", subject.slot)))?.input
        }
    };
    let cache = tempfile::tempdir()?;
    let compile_program = std::env::current_exe().ok().filter(|exe| exe.file_stem().is_some_and(|name| name == "weir"));
    let config = Config { cache_dir: Some(cache.path().join("aot")), compile_program, ..Config::default() };
    let subject_of = bench::Subject {
        bytes: &subject.component.bytes,
        settings: &subject.settings,
        limits: subject.limits,
        input,
        samples: usize::try_from(args.samples)?,
        config,
    };
    let figures = match subject.slot {
        SlotName::KonnectEnv => bench::measure::<KonnectEnv>(&subject_of),
        SlotName::ConflictResolution => bench::measure::<ConflictResolution>(&subject_of),
        SlotName::PluginPackaging => bench::measure::<PluginPackaging>(&subject_of),
        SlotName::ObjectHook => bench::measure::<ObjectHook>(&subject_of),
    }?;
    let over: Vec<String> =
        args.fail_if.iter().filter_map(|limit| limit.judge(&figures, baseline.as_ref()).transpose()).collect::<Result<_, _>>()?;
    args.output.print(&document(&figures, baseline.as_ref()), || text(&figures, baseline.as_ref()))?;
    for line in &over {
        let _ = writeln!(std::io::stderr(), "weir policy: {line}");
    }
    Ok(if over.is_empty() { Exit::Done } else { Exit::Held })
}

fn document(figures: &Figures, baseline: Option<&Figures>) -> Value {
    match baseline {
        None => json!({"schemaVersion": 1, "figures": figures}),
        Some(before) => json!({"schemaVersion": 1, "figures": figures, "baseline": before}),
    }
}

/// What `-o json` printed.
fn baseline(path: &std::path::Path) -> Result<Figures, Failure> {
    let wrong = |why: String| Failure::usage(format!("--baseline {}: {why}", path.display()));
    let value: Value = serde_json::from_slice(&super::files::whole(path, 1 << 20)?).map_err(|error| wrong(error.to_string()))?;
    serde_json::from_value(value.get("figures").cloned().unwrap_or_default()).map_err(|error| wrong(format!("no figures: {error}")))
}

fn text(figures: &Figures, baseline: Option<&Figures>) -> String {
    let mut lines = Lines::default();
    for name in bench::NAMES {
        let value = figures.named(name).unwrap_or_default();
        let before = baseline.and_then(|before| before.named(name)).filter(|before| *before > 0);
        let change = before.map(|before| format!("  {:+.0} % of {}", (value as f64 / before as f64 - 1.0) * 100.0, shown(name, before)));
        lines.add(name, &format!("{}{}", shown(name, value), change.unwrap_or_default()));
    }
    lines.add("samples", &figures.samples.to_string());
    lines.text()
}

fn shown(name: &str, value: u64) -> String {
    match name {
        "size" | "memory" => format!("{} KiB", value.div_ceil(1 << 10)),
        _ => format!("{value} µs"),
    }
}
