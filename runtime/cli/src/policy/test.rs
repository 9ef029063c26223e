//! `weir policy test`: suites.

use std::{num::NonZeroUsize, path::PathBuf};

use clap::ValueEnum;
use regex::Regex;
use weir_harness::{
    pass::Kinds,
    report::{self, Format, Verbosity},
    run::{self, Plan, Runner, Shard, Status},
    stock::Components,
    suite::{self, Case},
};
use weir_host::oci::Reference;

use super::Common;
use crate::{
    args::default_cache,
    exit::{Exit, Failure},
    plan::policies,
};

pub(super) const HELP: &str = "\
A suite is a YAML file of kind PolicyTest (docs/policy-tests.md; `weir policy schema` prints its JSON Schema). Folders are searched for suites
to the bottom, `./...` too. Cases run through the operator's own reconcile path, in its own host, within its own limits.

Exit codes: 0 all passed, 1 a case failed, 2 usage, a suite that cannot be read or a case that cannot be judged, 5 and 6 when a component
cannot be fetched, 8 internal error, 10 no tests found.

Examples:
  weir policy test
  weir policy test suites/ --run 'eu|us' -v
  weir policy test ./... --report junit=report.xml --report json=report.json
  weir policy test suites/eu.test.yaml -u        write the snapshots anew, then read the change";

/// Formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    /// For people.
    Text,
    /// One JSON document.
    Json,
    /// TAP 14.
    Tap,
    /// JUnit's XML.
    Junit,
}

/// `weir policy test`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Suites: files, folders, `FOLDER/...`.
    #[arg(value_name = "PATH", default_value = ".")]
    paths: Vec<PathBuf>,
    /// Where components are that suites call by a name: NAME.wasm in this folder.
    #[arg(long, value_name = "DIR")]
    components: Option<PathBuf>,
    /// Run the cases whose file and name (`FILE: NAME`) this regular expression matches.
    #[arg(long, value_name = "REGEX")]
    run: Option<Regex>,
    /// Write snapshots of cases that are otherwise as expected.
    #[arg(short, long)]
    update: bool,
    /// Begin nothing more after the first case that does not pass.
    #[arg(long)]
    fail_fast: bool,
    /// Run one part of all cases: `2/4` is the second of four.
    #[arg(long, value_name = "I/N")]
    shard: Option<Shard>,
    /// Cases at once. By default one per processor, at most 16.
    #[arg(short, long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// Name the cases that pass, too, with their cost.
    #[arg(short, long)]
    verbose: bool,
    /// Output format.
    #[arg(short, long, value_enum, default_value_t = Form::Text)]
    output: Form,
    /// Write a report into a file, beside the output. Repeatable.
    #[arg(long = "report", value_name = "text|json|tap|junit=FILE", value_parser = report_file)]
    reports: Vec<(Form, PathBuf)>,
    /// Where compiled components are kept; empty keeps none.
    #[arg(long, env = "WEIR_CACHE_DIR", value_name = "DIR", default_value_os_t = default_cache(),
          value_parser = clap::builder::TypedValueParser::map(clap::builder::OsStringValueParser::new(), PathBuf::from))]
    cache_dir: PathBuf,
    #[command(flatten)]
    common: Common,
}

fn report_file(text: &str) -> Result<(Form, PathBuf), String> {
    let (form, path) = text.split_once('=').filter(|(_, path)| !path.is_empty()).ok_or("write FORMAT=FILE")?;
    Ok((Form::from_str(form, false).map_err(|_| format!("no format {form:?}; there are text, json, tap and junit"))?, path.into()))
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let cases = cases(args)?;
    if cases.is_empty() {
        let paths: Vec<String> = args.paths.iter().map(|path| path.display().to_string()).collect();
        let message = format!("No tests found in {} (kind: PolicyTest, and what --run and --shard leave of them)", paths.join(", "));
        return Err(Failure { exit: Exit::NoTests, message }.into());
    }
    let mut registry = None;
    let components = Components::read(&cases, args.components.as_deref(), &mut |text| {
        let reference = Reference::parse(text).map_err(|error| Failure::usage(format!("policies: {text:?}: {}", error.problem)))?;
        fetch(&reference, &mut registry, args)
    })?;
    let host = policies::host(&args.cache_dir)?;
    let runner = Runner { kinds: Kinds::new()?, update: args.update };
    let jobs = args
        .jobs
        .unwrap_or_else(|| std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN))
        .min(NonZeroUsize::MIN.saturating_add(15));
    let totals = run::run(&runner, &host, &components, &cases, Plan { jobs, fail_fast: args.fail_fast });
    let verbosity = if args.verbose { Verbosity::All } else { Verbosity::Failures };
    for (form, path) in &args.reports {
        let text = report::write(&totals, format(*form, Verbosity::All));
        super::files::write(path, |out| out.write_all(text.as_bytes()))?;
    }
    let exit = match totals.worst() {
        Status::Passed => Exit::Done,
        Status::Failed => Exit::Held,
        Status::Error => Exit::Usage,
    };
    Ok(crate::print(report::write(&totals, format(args.output, verbosity)).as_bytes())?.max(exit))
}

fn format(form: Form, verbosity: Verbosity) -> Format {
    match form {
        Form::Text => Format::Text(verbosity),
        Form::Json => Format::Json,
        Form::Tap => Format::Tap,
        Form::Junit => Format::Junit,
    }
}

/// The cases that are to run. Every suite that is wrong is named.
fn cases(args: &Args) -> Result<Vec<Case>, Failure> {
    let mut all = Vec::new();
    let mut wrong = Vec::new();
    for path in suite::find(&args.paths)? {
        match suite::read(&path) {
            Ok(cases) => all.extend(cases),
            Err(failure) => wrong.push(failure.message),
        }
    }
    if !wrong.is_empty() {
        return Err(Failure::usage(wrong.join("\nweir: ")));
    }
    let chosen = |case: &Case| args.run.as_ref().is_none_or(|run| run.is_match(&case.origin.to_string()));
    let mut place = 0;
    let mut in_shard = |_: &Case| {
        place += 1;
        args.shard.is_none_or(|shard| shard.has(place - 1))
    };
    Ok(all.into_iter().filter(|case| chosen(case) && in_shard(case)).collect())
}

/// The registry is opened for the first component that needs it.
fn fetch(reference: &Reference, registry: &mut Option<crate::registry::Registry>, args: &Args) -> Result<Vec<u8>, Failure> {
    let failed = |error: anyhow::Error| match error.downcast::<Failure>() {
        Ok(failure) => failure,
        Err(error) => Failure { exit: Exit::Internal, message: format!("{error:#}") },
    };
    if registry.is_none() {
        *registry = Some(args.common.open().map_err(failed)?);
    }
    let Some(registry) = registry else { return Err(Failure { exit: Exit::Internal, message: "no registry client".into() }) };
    let credentials = registry.credentials(reference)?;
    let pulled = registry.wait(registry.puller().component(reference, &credentials, super::MOST_COMPONENT));
    Ok(pulled.map_err(|error| crate::registry::pull(&error))?.bytes)
}
