//! Compression, by the programs that everybody uses.

use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::binaries::ZSTD;

/// `gzip`, without the time.
pub fn gzip(bytes: &[u8]) -> Result<Vec<u8>> {
    filter(Command::new("gzip").arg("-nc"), bytes)
}

/// `zstd`. [`ZSTD`] says whether this machine has it.
pub fn zstd(bytes: &[u8]) -> Result<Vec<u8>> {
    filter(Command::new(ZSTD.find()?).arg("-qc"), bytes)
}

/// What `gzip` makes of so many zeros: a small layer that is large when unpacked.
pub fn gzip_zeros(size: u64) -> Result<Vec<u8>> {
    // A file without blocks on the disk, as large as it may be.
    let zeros = tempfile::tempfile()?;
    zeros.set_len(size)?;
    run(Command::new("gzip").arg("-nc"), zeros)
}

/// From a file: whoever writes into a pipe must read from the other one at the same time.
fn filter(command: &mut Command, bytes: &[u8]) -> Result<Vec<u8>> {
    let mut input = tempfile::tempfile()?;
    input.write_all(bytes)?;
    input.seek(SeekFrom::Start(0))?;
    run(command, input)
}

fn run(command: &mut Command, input: std::fs::File) -> Result<Vec<u8>> {
    let program = Path::new(command.get_program()).display().to_string();
    let output = command.stdin(Stdio::from(input)).output().with_context(|| format!("cannot run {program}"))?;
    if !output.status.success() {
        bail!("{program} failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(output.stdout)
}
