//! Running other programs. Every failure names the command as a person would type it.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::workspace::Workspace;

/// The cargo that runs this xtask, in the workspace root.
pub(crate) fn cargo(workspace: &Workspace) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    command(workspace, cargo)
}

/// A program in the workspace root, without what `cargo run` set for xtask alone: an inner cargo must see the environment of the
/// user's shell, or it takes every change of these variables for a reason to build again.
pub(crate) fn command(workspace: &Workspace, program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(workspace.root());
    for (name, _) in std::env::vars_os() {
        let set_by_cargo = name.to_str().is_some_and(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_"));
        if set_by_cargo {
            command.env_remove(&name);
        }
    }
    command
}

/// Runs with output on the terminal.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let shown = show(command);
    let status = command.status().with_context(|| format!("cannot run `{shown}`; is it installed and in PATH?"))?;
    if !status.success() {
        bail!("`{shown}` failed ({status}); its own output above says why");
    }
    Ok(())
}

/// Runs and gives stdout; stderr stays on the terminal.
pub(crate) fn stdout(command: &mut Command) -> Result<String> {
    let shown = show(command);
    let out = command.stderr(Stdio::inherit()).output().with_context(|| format!("cannot run `{shown}`; is it installed and in PATH?"))?;
    if !out.status.success() {
        bail!("`{shown}` failed ({}); its own output above says why", out.status);
    }
    String::from_utf8(out.stdout).with_context(|| format!("`{shown}` printed something that is not UTF-8"))
}

/// Runs quietly; `None` when the program is missing or fails. For questions whose answer may be no.
pub(crate) fn ask(command: &mut Command) -> Option<String> {
    let out = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    if out.status.success() { String::from_utf8(out.stdout).ok() } else { None }
}

/// Runs quietly and gives up after `limit`. Whether it succeeded in time.
pub(crate) fn try_within(command: &mut Command, limit: Duration) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let Ok(mut child) = quiet.spawn() else { return false };
    let end = Instant::now() + limit;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) if Instant::now() < end => std::thread::sleep(Duration::from_millis(50)),
            Ok(None) | Err(_) => {
                // Our own child, by its own handle; a failure here means it has just ended.
                let _ = child.kill();
                let _ = child.wait();
                return false;
            }
        }
    }
}

/// The command line, without the environment.
pub(crate) fn show(command: &Command) -> String {
    let program = std::path::Path::new(command.get_program());
    let name = program.file_name().unwrap_or(program.as_os_str()).to_string_lossy();
    let args = command.get_args().map(|arg| arg.to_string_lossy());
    std::iter::once(name).chain(args).collect::<Vec<_>>().join(" ")
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_slow_program_is_given_up() {
        let start = Instant::now();
        assert!(!try_within(Command::new("sleep").arg("30"), Duration::from_millis(100)));
        assert!(start.elapsed() < Duration::from_secs(10));
    }

    #[test]
    fn a_failure_shows_the_command() {
        let error = run(Command::new("sh").args(["-c", "exit 3"])).unwrap_err().to_string();
        assert!(error.contains("sh -c exit 3") && error.contains('3'), "{error}");
    }

    #[test]
    fn a_missing_program_is_an_answer_to_a_question() {
        assert_eq!(ask(&mut Command::new("weir-no-such-program")), None);
    }
}
