//! `bench`: the benchmarks of the command line's crate, optimised.

use anyhow::Result;

use crate::workspace::Workspace;
use crate::{guests, process};

/// What the benchmarks are told.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Passed on; `--help` after `--` lists the benchmarks
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<String>,
}

/// Builds the guests in and runs.
pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    guests::run(workspace)?;
    let mut cargo = process::cargo(workspace);
    cargo.args(["run", "--quiet", "--release", "--package", "weir-cli", "--example", "bench", "--"]).args(&args.args);
    process::run(&mut cargo)
}
