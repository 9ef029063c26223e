//! `test`: the guests, the workspace's tests, then the guests' own tests on this machine.
//!
//! A test that cannot run here for want of a program writes one line to the file that `WEIR_SKIP_LOG` names, because the test
//! harness swallows what it prints. The lines are shown at the end; under `WEIR_REQUIRE_ALL=1` they are failures.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use crate::workspace::Workspace;
use crate::{files, guests, process, ui};

const TASK: &str = "test";

/// What the tests are told.
#[derive(clap::Args, Default)]
pub(crate) struct Args {
    /// Write expected files from what is observed, instead of failing
    #[arg(long)]
    bless: bool,
    /// Passed to every test binary: a part of a test's name, or `--nocapture`
    #[arg(last = true)]
    args: Vec<String>,
}

/// Runs everything; fails at the first test binary that fails.
pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    guests::run(workspace)?;
    let log = fresh_log(workspace)?;
    ui::progress(TASK, "workspace …");
    tests(process::cargo(workspace), args, &log)?;
    ui::progress(TASK, "guests …");
    let mut cargo = process::cargo(workspace);
    cargo.current_dir(workspace.guest_plugins()).env("CARGO_TARGET_DIR", workspace.guest_plugins().join("target"));
    tests(cargo, args, &log)?;
    report(&skips(&log), required())
}

fn tests(mut cargo: Command, args: &Args, log: &Path) -> Result<()> {
    cargo.args(["test", "--quiet", "--workspace"]).env("WEIR_SKIP_LOG", log);
    if args.bless {
        cargo.env("WEIR_BLESS", "1");
    }
    if !args.args.is_empty() {
        cargo.arg("--").args(&args.args);
    }
    process::run(&mut cargo)
}

/// An empty log; what an earlier run skipped is no news.
fn fresh_log(workspace: &Workspace) -> Result<PathBuf> {
    let log = workspace.target().join("xtask/skipped.log");
    files::write_atomic(&log, b"")?;
    Ok(log)
}

/// One line per reason, however many tests share it.
fn skips(log: &Path) -> BTreeSet<String> {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

fn required() -> bool {
    std::env::var("WEIR_REQUIRE_ALL").is_ok_and(|value| value == "1")
}

fn report(skips: &BTreeSet<String>, required: bool) -> Result<()> {
    for skip in skips {
        ui::skipped(TASK, skip);
    }
    if required && !skips.is_empty() {
        bail!("{} skips, and WEIR_REQUIRE_ALL=1 wants none; install what the lines above name", skips.len());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skip_fails_only_when_all_is_required() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        std::fs::write(&log, "no helm in PATH\n\nno helm in PATH\n").unwrap();
        let skips = skips(&log);
        assert_eq!(skips.len(), 1);
        assert!(report(&skips, false).is_ok());
        assert!(report(&skips, true).unwrap_err().to_string().starts_with("1 skips"));
        assert!(report(&BTreeSet::new(), true).is_ok());
    }
}
