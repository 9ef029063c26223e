//! `bench`: the benchmarks of the command line's crate; `bench policy`: one decision, made in every way; `bench harness`: a thousand cases of
//! suites; `bench kube`: the operator on a real control plane. Optimised.

use anyhow::Result;

use crate::workspace::Workspace;
use crate::{guests, process};

/// What the benchmarks are told.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// `kube` for the operator on a real control plane, with its own flags (`kube --counts 100`); `policy` for one decision made natively, by a
    /// component and by a remote plugin (`policy -o json`); `harness` for the time of 1,000 cases of suites; anything else is passed on to the
    /// benchmarks of planning and policies
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<String>,
}

/// Builds the guests in and runs.
pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    guests::run(workspace)?;
    if let Some((_, more)) = args.args.split_first().filter(|(first, _)| *first == "kube") {
        return kube(workspace, more);
    }
    let (package, example, rest) = match args.args.split_first() {
        Some((first, rest)) if *first == "policy" => ("weir-host", "policy_bench", rest),
        Some((first, rest)) if *first == "harness" => ("weir-cli", "bench_harness", rest),
        _ => ("weir-cli", "bench", args.args.as_slice()),
    };
    let mut cargo = process::cargo(workspace);
    cargo.args(["run", "--quiet", "--release", "--package", package, "--example", example, "--"]).args(rest);
    process::run(&mut cargo)
}

/// The operator is optimised; what measures it need not be.
fn kube(workspace: &Workspace, more: &[String]) -> Result<()> {
    process::run(process::cargo(workspace).args(["build", "--quiet", "--release", "--package", "weir-cli"]))?;
    let weir = workspace.target().join("release").join(format!("weir{}", std::env::consts::EXE_SUFFIX));
    let mut cargo = process::cargo(workspace);
    cargo.args(["run", "--quiet", "--package", "weir-testkit", "--bin", "weir-kube-bench", "--", "--weir"]).arg(weir).args(more);
    process::run(&mut cargo)
}
