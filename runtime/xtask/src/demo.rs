//! `demo`: what a policy is, in two runs of `weir plan` on one example; then the operator itself on a real control plane, where the same
//! policy is swapped while it runs.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, bail};

use crate::guests::list::{self, Role};
use crate::workspace::Workspace;
use crate::{guests, process, ui};

const TASK: &str = "demo";
const MANIFESTS: &str = "examples/konnect-hybrid/";
/// The example that takes the place of the built-in konnect-env policy.
const EXAMPLE: &str = "konnect-env-eu-proxy";

/// What the demo is told.
#[derive(clap::Args, Default)]
pub(crate) struct Args {
    /// Leave control plane and operator running at the end, until Ctrl-C
    #[arg(long)]
    keep: bool,
    /// Only the plans: nothing is started
    #[arg(long, conflicts_with = "keep")]
    plan_only: bool,
}

/// Shows the plans, then the operator at work. Leaves nothing but build output, so it can be run again and again.
pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    if !workspace.path(MANIFESTS).is_dir() {
        bail!("{MANIFESTS} is missing; it is checked in, restore it with `git checkout`");
    }
    if !list::read(workspace)?.guests.iter().any(|guest| guest.name == EXAMPLE && guest.role == Role::Example) {
        bail!("guest-plugins/guests.toml has no example {EXAMPLE}; name another one in runtime/xtask/src/demo.rs");
    }
    guests::run(workspace)?;
    let policy = format!("target/guests/{}", list::file_name(EXAMPLE));
    ui::progress(TASK, "building weir …");
    process::run(process::cargo(workspace).args(["build", "--quiet", "--package", "weir-cli"]))?;

    ui::heading(&format!("What the operator would write for {MANIFESTS}, with no cluster and the policy inside the binary"));
    let builtin = plan(workspace, &[])?;
    ui::print(builtin.trim_end());

    let swap = format!("konnect-env={policy}");
    ui::heading("The same manifests, the same binary, another policy: what differs");
    let swapped = plan(workspace, &["--policy", &swap])?;
    if swapped == builtin {
        bail!("the policy {policy} changed nothing; the demo must show a difference, choose another example in runtime/xtask/src/demo.rs");
    }
    ui::print(ui::diff(&builtin, &swapped, "built-in policy", &policy, ui::stdout_colour()).trim_end());

    ui::print(
        "Both runs validated the manifests, asked the policies and planned; only the last step, writing to a cluster, was left out.\n\
         Both policies are WebAssembly components, run sealed, with a deadline and a memory limit. The first is inside the\n\
         binary, the second is a file: nothing was compiled to swap it in.",
    );
    if !args.plan_only {
        operator(workspace, args, &policy)?;
    }
    ui::print("\nRead next: README.md, then ARCHITECTURE.md; the policy that was swapped in is below guest-plugins/examples/.");
    Ok(())
}

/// The second half is a program of weir-testkit: xtask has no client of Kubernetes.
fn operator(workspace: &Workspace, args: &Args, other: &str) -> Result<()> {
    ui::heading("Now the operator, on a real control plane");
    ui::progress(TASK, "building the control plane's starter ... (the first time, the control plane itself is built with Go: minutes)");
    let mut cargo = process::cargo(workspace);
    cargo.args(["run", "--quiet", "--package", "weir-testkit", "--bin", "weir-demo", "--", "--weir"]).arg(binary(workspace));
    cargo.args(["--examples", "examples", "--policy", "target/guests/konnect-env.wasm", "--other", other]);
    cargo.args(["--broken", "target/guests/hostile-trap.wasm"]);
    if args.keep {
        cargo.arg("--keep");
    }
    process::run(&mut cargo)
}

fn plan(workspace: &Workspace, more: &[&str]) -> Result<String> {
    let mut weir = weir(workspace);
    weir.args(["plan", "-f", MANIFESTS]).args(more);
    ui::progress(TASK, &format!("$ {}", process::show(&weir)));
    process::stdout(&mut weir)
}

fn weir(workspace: &Workspace) -> Command {
    process::command(workspace, binary(workspace))
}

fn binary(workspace: &Workspace) -> PathBuf {
    workspace.target().join("debug").join(format!("weir{}", std::env::consts::EXE_SUFFIX))
}
