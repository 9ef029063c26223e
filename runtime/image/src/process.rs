//! The few questions to programs of the machine.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// What a program prints; an error when it fails.
pub(crate) fn stdout(command: &mut Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot run {program}; is it installed and in PATH?"))?;
    if !output.status.success() {
        bail!("{program} failed ({}): {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    String::from_utf8(output.stdout).with_context(|| format!("{program} printed something that is not UTF-8"))
}
