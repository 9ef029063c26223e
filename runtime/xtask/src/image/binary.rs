//! The binary, and what it is for.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::{guests, process, ui, workspace::Workspace};

/// A program for Linux.
pub(super) struct Binary {
    pub(super) path: PathBuf,
    pub(super) bytes: Vec<u8>,
    /// As images call it.
    pub(super) architecture: &'static str,
    /// Whether it needs a dynamic linker, and with it libraries of the machine it was linked on.
    pub(super) is_dynamic: bool,
    /// Target triple, for the list of what was compiled into it.
    pub(super) triple: String,
}

impl Binary {
    /// Compiles it with the profile of releases: in a directory of its own, since no path of this machine may be in it, which is another build
    /// to cargo.
    pub(super) fn build(workspace: &Workspace, target: Option<&str>) -> Result<Self> {
        guests::run(workspace)?;
        let triple = target.map_or_else(|| host(workspace), |target| Ok(target.to_owned()))?;
        let dir = workspace.target().join("image/build");
        ui::progress(super::TASK, &format!("compiling weir for {triple} (many minutes, the first time) …"));
        let mut cargo = process::cargo(workspace);
        cargo.args(["build", "--release", "--locked", "--package", "weir-cli", "--bin", "weir", "--target", &triple]);
        cargo.env("CARGO_TARGET_DIR", &dir).env("CARGO_ENCODED_RUSTFLAGS", remapped(workspace).join("\x1f"));
        cargo.env("CARGO_PROFILE_RELEASE_DEBUG", "0").env("CARGO_PROFILE_RELEASE_STRIP", "debuginfo").env("CARGO_INCREMENTAL", "0");
        process::run(&mut cargo)?;
        let mut binary = Self::read(&dir.join(&triple).join("release/weir"))?;
        binary.triple = triple;
        Ok(binary)
    }

    /// Looks at one that is there.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let bytes = std::fs::read(path).with_context(|| format!("cannot read the binary {}", path.display()))?;
        let architecture = architecture(&bytes).with_context(|| format!("{} is no program for Linux on amd64 or arm64", path.display()))?;
        let is_dynamic = is_dynamic(&bytes).with_context(|| format!("the program headers of {} cannot be read", path.display()))?;
        let triple = format!("{}-unknown-linux-gnu", if architecture == "amd64" { "x86_64" } else { "aarch64" });
        Ok(Self { path: path.to_owned(), bytes, architecture, is_dynamic, triple })
    }

    /// Whether it runs on the machine that builds the image.
    pub(super) fn is_native(&self) -> bool {
        let own = if cfg!(target_arch = "x86_64") { "amd64" } else { "arm64" };
        cfg!(target_os = "linux") && self.architecture == own
    }
}

/// The target of the compiler that is used.
fn host(workspace: &Workspace) -> Result<String> {
    let said = process::stdout(process::command(workspace, "rustc").arg("-vV"))?;
    match said.lines().find_map(|line| line.strip_prefix("host: ")) {
        Some(host) => Ok(host.to_owned()),
        None => bail!("`rustc -vV` names no host; name a --target"),
    }
}

/// Messages of panics name source files; they are called by where they belong, not by where this machine keeps them.
fn remapped(workspace: &Workspace) -> Vec<String> {
    let cargo_home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let cargo_home = cargo_home.or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo")));
    let places = [(Some(workspace.root().to_owned()), "/weir"), (cargo_home, "/cargo")];
    places.into_iter().filter_map(|(from, to)| Some(format!("--remap-path-prefix={}={to}", from?.display()))).collect()
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

/// By the header of ELF: 64 bits, little-endian.
pub(super) fn architecture(bytes: &[u8]) -> Option<&'static str> {
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
pub(super) fn is_dynamic(bytes: &[u8]) -> Option<bool> {
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
