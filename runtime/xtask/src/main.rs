//! The project's tasks, as `cargo xtask <task>`. One file per task; each returns `Err` with what to do about it.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod bench;
mod ci;
mod codegen;
mod contract;
mod demo;
mod files;
mod guests;
mod image;
mod kube;
mod layers;
mod process;
mod slots;
mod test;
mod ui;
mod workspace;

use workspace::Workspace;

/// The tasks of the Weir project.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Args {
    #[command(subcommand)]
    task: Task,
}

/// One task.
#[derive(Subcommand)]
enum Task {
    /// Build guest-plugins/ and write components to target/guests/
    Guests,
    /// Write CRDs and roles, here and in the chart, from the API types, and docs/slots from the contract
    Codegen {
        /// Write nothing; fail with a diff when what is checked in differs
        #[arg(long)]
        check: bool,
    },
    /// Check that api and core stay pure and that crates depend in one direction only
    Layers,
    /// Build the guests, then run every test
    Test(test::Args),
    /// Plan an example with two policies; then run the operator on a real control plane and swap its policy
    Demo(demo::Args),
    /// A real Kubernetes control plane on this machine, without containers
    #[command(subcommand)]
    Kube(kube::Action),
    /// Build the operator's container image as an OCI archive, without a daemon
    Image(image::Args),
    /// Build the guests, then run the benchmarks in release mode
    Bench(bench::Args),
    /// Everything a change must pass, in order, with timings
    Ci,
}

fn main() -> ExitCode {
    let args = Args::parse();
    match Workspace::find().and_then(|workspace| run(&workspace, args.task)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            ui::failure(&error);
            ExitCode::FAILURE
        }
    }
}

fn run(workspace: &Workspace, task: Task) -> anyhow::Result<()> {
    match task {
        Task::Guests => guests::run(workspace),
        Task::Codegen { check } => codegen::run(workspace, check),
        Task::Layers => layers::run(workspace),
        Task::Test(args) => test::run(workspace, &args),
        Task::Demo(args) => demo::run(workspace, &args),
        Task::Kube(action) => kube::run(workspace, &action),
        Task::Image(args) => image::run(workspace, &args),
        Task::Bench(args) => bench::run(workspace, &args),
        Task::Ci => ci::run(workspace),
    }
}
