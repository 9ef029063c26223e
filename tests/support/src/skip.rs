//! Tests that a machine cannot run.

use std::io::Write;

/// Says that a test was left out and why: on stderr, and as a line of the file that `WEIR_SKIP_LOG` names, because the test harness
/// shows no output of a test that passes.
pub fn skipped(test: &str, reason: &str) -> anyhow::Result<()> {
    let line = format!("{test}: {reason}\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
    if let Some(file) = std::env::var_os("WEIR_SKIP_LOG") {
        std::fs::OpenOptions::new().create(true).append(true).open(file)?.write_all(line.as_bytes())?;
    }
    Ok(())
}
