//! `weir migrate check`: what a takeover from Kong's operator would do, in words. Reads a cluster and writes nothing to it.
//!
//! What is there is given to the very code of `weir plan`, as manifests and as observed state.

pub(crate) mod collect;
mod report;
#[cfg(test)]
mod tests;

use std::path::Path;

use clap::Parser;
use kube::Client;
use serde_json::Value;
use weir_host::wasm::Limits;

use self::{collect::Collected, report::Findings};
use crate::{
    args::{self, Cli, Command},
    cluster::{self, Deadline, Flags},
    exit::{Exit, Failure},
    names, plan,
};

/// Shown after the flags.
pub const HELP: &str = "\
No value of a Secret is read: of the Secrets of gateways only names, labels and annotations are.

Exit codes:
  0  nothing stands in the way, and no pod waits for a word
  1  something is held, waits, or is not served by Weir; the lines say what
  5  the API server does not answer, or does not allow it";

/// `weir migrate`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    action: Action,
}

/// `weir migrate …`.
#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Report what would be taken over from Kong's operator, what differs, and what Weir does not serve.
    #[command(after_help = HELP)]
    Check(Check),
}

/// `weir migrate check`.
#[derive(Debug, clap::Args)]
pub struct Check {
    #[command(flatten)]
    cluster: Flags,
    /// Look in this namespace only. Repeatable; in all by default.
    #[arg(short = 'n', long = "namespace", value_name = "NAMESPACE", value_parser = names::namespace)]
    namespaces: Vec<String>,
}

/// Runs the command.
///
/// # Errors
/// There is no cluster, or it does not let us read.
pub fn run(args: &Args) -> anyhow::Result<Exit> {
    let Action::Check(check) = &args.action;
    cluster::run(&check.cluster, |client| run_check(client, check))
}

async fn run_check(client: Client, args: &Check) -> anyhow::Result<Exit> {
    let collected = collect::all(client, &args.namespaces, Deadline::after(args.cluster.timeout)).await?;
    let now = jiff::Timestamp::now();
    let planned = if collected.data_planes().next().is_some() { Some(planned(&collected, now)?) } else { None };
    let findings = report::findings(&collected, planned.as_ref(), now)?;
    let Findings { text, exit } = findings;
    crate::print(text.as_bytes())?;
    Ok(exit)
}

/// The plan of all of it.
fn planned(collected: &Collected, now: jiff::Timestamp) -> anyhow::Result<weir_harness::pass::Report> {
    let dir = tempfile::tempdir()?;
    let (wanted, observed) = (dir.path().join("wanted"), dir.path().join("observed"));
    write(&wanted, collected.of_users().map(as_manifest))?;
    write(&observed, collected.objects().cloned())?;
    let words = ["weir".into(), "plan".into(), "-f".into(), wanted.into_os_string(), "--observed".into(), observed.into_os_string()];
    let time = [std::ffi::OsString::from("--now"), now.to_string().into()];
    let cli =
        Cli::try_parse_from(words.into_iter().chain(time)).map_err(|error| anyhow::anyhow!("weir plan does not understand us: {error}"))?;
    let Command::Plan(args) = cli.command else { anyhow::bail!("weir plan is not weir plan") };
    let args: &args::Plan = &args;
    let host = plan::policies::host(&args.cache_dir)?;
    let loaded = plan::policies::load(&host, &[], &[], Limits::default())?;
    plan::plan(args, &loaded.policies)
}

fn write(dir: &Path, objects: impl Iterator<Item = Value>) -> anyhow::Result<()> {
    std::fs::create_dir_all(dir)?;
    for (number, object) in objects.enumerate() {
        if number >= collect::MOST {
            return Err(
                Failure::usage(format!("more than {} objects: look at fewer namespaces at once, with --namespace", collect::MOST)).into()
            );
        }
        std::fs::write(dir.join(format!("{number:05}.json")), object.to_string())?;
    }
    Ok(())
}

/// What a user has written: without what the server and the operators added.
pub(crate) fn as_manifest(live: &Value) -> Value {
    let mut metadata = serde_json::Map::new();
    for key in ["name", "namespace", "labels", "annotations"] {
        if let Some(value) = live.pointer(&format!("/metadata/{key}")) {
            metadata.insert(key.to_owned(), value.clone());
        }
    }
    let mut manifest = serde_json::Map::from_iter([("metadata".to_owned(), Value::Object(metadata))]);
    for key in ["apiVersion", "kind", "spec"] {
        if let Some(value) = live.get(key) {
            manifest.insert(key.to_owned(), value.clone());
        }
    }
    Value::Object(manifest)
}
