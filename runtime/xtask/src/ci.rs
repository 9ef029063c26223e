//! `ci`: everything a change must pass, in the order that fails soonest. The same on a laptop and on the CI machine.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::workspace::Workspace;
use crate::{codegen, guests, layers, process, test, ui};

const TASK: &str = "ci";

/// A name for the summary and what it does.
type Step = (&'static str, fn(&Workspace) -> Result<()>);

/// Guests before clippy: weir-host embeds them while it is compiled. Tests last: they are what takes long.
const STEPS: [Step; 7] = [
    ("fmt", fmt),
    ("guests", guests::run),
    ("clippy", clippy),
    ("layers", layers::run),
    ("codegen --check", |workspace| codegen::run(workspace, true)),
    ("deny", deny),
    ("test", |workspace| test::run(workspace, &test::Args::default())),
];

/// Runs the steps and stops at the first that fails.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let start = Instant::now();
    let mut times: Vec<(&str, Duration)> = Vec::new();
    for (name, step) in STEPS {
        ui::progress(TASK, &format!("{name} …"));
        let start = Instant::now();
        step(workspace).with_context(|| {
            format!("the step `{name}` failed after {}; `cargo xtask ci` stops at the first", ui::time(start.elapsed()))
        })?;
        times.push((name, start.elapsed()));
    }
    for (name, time) in times {
        ui::progress(TASK, &format!("{:>8}  {name}", ui::time(time)));
    }
    ui::progress(TASK, &format!("{:>8}  in all; everything passed", ui::time(start.elapsed())));
    Ok(())
}

fn fmt(workspace: &Workspace) -> Result<()> {
    let check = ["fmt", "--all", "--check"];
    process::run(process::cargo(workspace).args(check))
        .and_then(|()| process::run(process::cargo(workspace).current_dir(workspace.guest_plugins()).args(check)))
        .context("run `cargo fmt --all`, here and in guest-plugins/")
}

fn clippy(workspace: &Workspace) -> Result<()> {
    let args = ["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"];
    process::run(process::cargo(workspace).args(args))?;
    let guests = workspace.guest_plugins();
    process::run(process::cargo(workspace).current_dir(&guests).env("CARGO_TARGET_DIR", guests.join("target")).args(args))
}

/// Not a skip in the sense of `WEIR_REQUIRE_ALL`: it judges what the dependencies are, not what this tree does, and installing
/// cargo-deny takes longer than all other steps together.
fn deny(workspace: &Workspace) -> Result<()> {
    if process::ask(process::cargo(workspace).args(["deny", "--version"])).is_none() {
        ui::skipped(TASK, "cargo-deny is not installed");
        return Ok(());
    }
    process::run(process::cargo(workspace).args(["deny", "--workspace", "check"]))?;
    process::run(process::cargo(workspace).args([
        "deny",
        "--manifest-path",
        "guest-plugins/Cargo.toml",
        "--workspace",
        "check",
        "--config",
        "deny.toml",
    ]))
}
