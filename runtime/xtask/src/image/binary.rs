//! The binary, and what it is for.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use weir_image::Program;

use super::Profile;
use crate::{guests, process, ui, workspace::Workspace};

/// The program, and its target triple for the list of what was compiled into it.
pub(super) struct Binary {
    pub(super) program: Program,
    pub(super) triple: String,
}

impl Binary {
    /// Compiles it: in a directory of its own, since no path of this machine may be in it, which is another build
    /// to cargo.
    pub(super) fn build(workspace: &Workspace, target: Option<&str>, profile: Profile) -> Result<Self> {
        guests::run(workspace)?;
        let triple = target.map_or_else(|| host(workspace), |target| Ok(target.to_owned()))?;
        let dir = workspace.target().join("image/build");
        ui::progress(super::TASK, &format!("compiling weir for {triple} (many minutes, the first time) …"));
        let mut cargo = process::cargo(workspace);
        let (variables, name, out) = profile.names();
        cargo.args(["build", "--profile", name, "--locked", "--package", "weir-cli", "--bin", "weir", "--target", &triple]);
        cargo.env("CARGO_TARGET_DIR", &dir).env("CARGO_ENCODED_RUSTFLAGS", remapped(workspace).join("\x1f"));
        cargo.env(format!("CARGO_PROFILE_{variables}_DEBUG"), "0").env(format!("CARGO_PROFILE_{variables}_STRIP"), "debuginfo");
        cargo.env("CARGO_INCREMENTAL", "0");
        process::run(&mut cargo)?;
        let mut binary = Self::read(&dir.join(&triple).join(out).join("weir"))?;
        binary.triple = triple;
        Ok(binary)
    }

    /// Looks at one that is there.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let program = Program::read(path)?;
        let triple = format!("{}-unknown-linux-gnu", if program.architecture == "amd64" { "x86_64" } else { "aarch64" });
        Ok(Self { program, triple })
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
