//! A program for Linux, by its ELF header.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// A program, and what it is for.
pub struct Program {
    /// Where it is on this machine.
    pub path: PathBuf,
    /// All of it.
    pub bytes: Vec<u8>,
    /// As images call it: `amd64` or `arm64`.
    pub architecture: &'static str,
    /// Whether it needs a dynamic linker, and with it libraries of the machine it was linked on.
    pub is_dynamic: bool,
}

impl Program {
    /// Looks at one that is there.
    ///
    /// # Errors
    /// A file that cannot be read, or is no program for Linux.
    pub fn read(path: &Path) -> Result<Self> {
        let bytes = std::fs::read(path).with_context(|| format!("cannot read the binary {}", path.display()))?;
        let architecture = architecture(&bytes).with_context(|| format!("{} is no program for Linux on amd64 or arm64", path.display()))?;
        let is_dynamic = is_dynamic(&bytes).with_context(|| format!("the program headers of {} cannot be read", path.display()))?;
        Ok(Self { path: path.to_owned(), bytes, architecture, is_dynamic })
    }

    /// Whether it runs on the machine that builds the image.
    pub fn is_native(&self) -> bool {
        let own = if cfg!(target_arch = "x86_64") { "amd64" } else { "arm64" };
        cfg!(target_os = "linux") && self.architecture == own
    }
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

/// By the header of ELF: 64 bits, little-endian.
pub(crate) fn architecture(bytes: &[u8]) -> Option<&'static str> {
    if bytes.get(..6)? != b"\x7fELF\x02\x01" {
        return None;
    }
    match u16::from_le_bytes(number(bytes, 18)?) {
        0x3e => Some("amd64"),
        0xb7 => Some("arm64"),
        _ => None,
    }
}

/// Whether one of the program headers names an interpreter.
pub(crate) fn is_dynamic(bytes: &[u8]) -> Option<bool> {
    const INTERPRETER: u32 = 3;
    let table = usize::try_from(u64::from_le_bytes(number(bytes, 32)?)).ok()?;
    let size = usize::from(u16::from_le_bytes(number(bytes, 54)?));
    let count = usize::from(u16::from_le_bytes(number(bytes, 56)?));
    let mut found = false;
    for index in 0..count {
        found |= u32::from_le_bytes(number(bytes, table.checked_add(index.checked_mul(size)?)?)?) == INTERPRETER;
    }
    Some(found)
}
