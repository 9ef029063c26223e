//! Which compiler builds the guests: the user's own with the wasm target, or Debian's second one where rustup cannot fetch it.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

use crate::workspace::Workspace;
use crate::{process, ui};

/// The target of every guest: no operating system, so nothing to import but what WIT says.
pub(super) const TARGET: &str = "wasm32-unknown-unknown";

/// Where Debian installs; the PATH of a machine with rustup leads elsewhere.
const DEBIAN_CARGO: &str = "/usr/bin/cargo";
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
const DEBIAN_LINKER: &str = "wasm-ld-19";

/// How long a look for the target on the network may take.
const ADD_LIMIT: Duration = Duration::from_secs(60);

const NOTHING_FOUND: &str = "no compiler for WebAssembly; run `rustup target add wasm32-unknown-unknown`, or where that cannot be fetched \
     `apt-get install -y --no-install-recommends rustc-web cargo-web rust-web-src rust-web-llvm lld-19`";

/// A way to compile for [`TARGET`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Method {
    /// The compiler that builds everything else has the target.
    Rustup,
    /// Debian's compiler builds the standard library from source.
    Debian,
}

impl Method {
    /// The value of `WEIR_GUESTS_TOOLCHAIN` that asks for it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Rustup => "rustup",
            Self::Debian => "debian",
        }
    }
}

/// A compiler that was found.
pub(super) struct Toolchain {
    /// How it compiles.
    pub(super) method: Method,
    /// All of `rustc -vV`.
    pub(super) version: String,
}

impl Toolchain {
    /// A compiler with a known version.
    pub(super) fn new(method: Method, version: String) -> Self {
        Self { method, version }
    }

    /// For progress lines.
    pub(super) fn describe(&self) -> String {
        let version = self.version.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
        match self.method {
            Method::Rustup => version,
            Method::Debian => format!("Debian's {version}"),
        }
    }

    /// `cargo build --release` for the guests' target, without packages.
    pub(super) fn cargo_build(&self, workspace: &Workspace) -> Command {
        let mut cargo = match self.method {
            Method::Rustup => process::cargo(workspace),
            Method::Debian => debian(workspace, DEBIAN_CARGO),
        };
        cargo.current_dir(workspace.guest_plugins()).args(["build", "--release", "--target", TARGET]);
        if self.method == Method::Debian {
            cargo.args(["-Z", "build-std=std,panic_abort"]);
        }
        // Flags of the user's shell are meant for the host.
        cargo.env_remove("RUSTFLAGS").env("CARGO_ENCODED_RUSTFLAGS", remap(workspace));
        cargo
    }
}

/// A guest's digest names a policy, so it must depend neither on the directory of the checkout nor on that of the dependencies.
/// In the form of `CARGO_ENCODED_RUSTFLAGS`, which takes directories with spaces.
fn remap(workspace: &Workspace) -> String {
    let home =
        std::env::var_os("CARGO_HOME").map(std::path::PathBuf::from).or_else(|| std::env::home_dir().map(|home| home.join(".cargo")));
    let mut flags = vec![format!("--remap-path-prefix={}=/weir", workspace.root().display())];
    flags.extend(home.map(|home| format!("--remap-path-prefix={}=/cargo", home.display())));
    flags.join("\u{1f}")
}

/// Finds a compiler. `previous` is what the last build used.
pub(super) fn choose(workspace: &Workspace, previous: Option<Method>) -> Result<Toolchain> {
    let forced = std::env::var("WEIR_GUESTS_TOOLCHAIN").ok().filter(|name| !name.is_empty());
    let found = match forced.as_deref() {
        None => automatic(workspace, previous),
        Some("rustup") => rustup(workspace).or_else(|| rustup_after_adding(workspace)),
        Some("debian") => debians(workspace),
        Some(other) => bail!("WEIR_GUESTS_TOOLCHAIN is {other:?}; set it to `rustup` or `debian`, or unset it"),
    };
    match found {
        Some(toolchain) => Ok(toolchain),
        None => bail!(NOTHING_FOUND),
    }
}

fn automatic(workspace: &Workspace, previous: Option<Method>) -> Option<Toolchain> {
    rustup(workspace)
        // Debian's was used last because rustup failed; asking the network again would cost a minute with every change.
        .or_else(|| if previous == Some(Method::Debian) { debians(workspace) } else { None })
        .or_else(|| rustup_after_adding(workspace))
        .or_else(|| debians(workspace))
}

/// The compiler in use, when it has the target. Its target directory is asked for, not rustup: this is quicker, and true of a
/// compiler that rustup did not install.
fn rustup(workspace: &Workspace) -> Option<Toolchain> {
    let rustc = || process::command(workspace, std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    let dir = process::ask(rustc().args(["--print", "target-libdir", "--target", TARGET]))?;
    if !Path::new(dir.trim()).is_dir() {
        return None;
    }
    Some(Toolchain::new(Method::Rustup, process::ask(rustc().arg("-vV"))?))
}

fn rustup_after_adding(workspace: &Workspace) -> Option<Toolchain> {
    ui::progress(super::TASK, &format!("trying `rustup target add {TARGET}` …"));
    if !process::try_within(process::command(workspace, "rustup").args(["target", "add", TARGET]), ADD_LIMIT) {
        return None;
    }
    rustup(workspace)
}

/// Debian's compiler, when it is complete: compiler, sources of the standard library, linker.
fn debians(workspace: &Workspace) -> Option<Toolchain> {
    process::ask(debian(workspace, DEBIAN_CARGO).arg("--version"))?;
    process::ask(debian(workspace, DEBIAN_LINKER).arg("--version"))?;
    let sysroot = process::ask(debian(workspace, DEBIAN_RUSTC).args(["--print", "sysroot"]))?;
    if !Path::new(sysroot.trim()).join("lib/rustlib/src/rust/library/std/Cargo.toml").is_file() {
        return None;
    }
    Some(Toolchain::new(Method::Debian, process::ask(debian(workspace, DEBIAN_RUSTC).arg("-vV"))?))
}

/// A program of Debian's toolchain, free of what rustup set for the other one.
fn debian(workspace: &Workspace, program: &str) -> Command {
    let mut command = process::command(workspace, program);
    for name in ["CARGO", "RUSTUP_TOOLCHAIN", "RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER", "LD_LIBRARY_PATH"] {
        command.env_remove(name);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let dirs = std::iter::once(std::path::PathBuf::from("/usr/bin")).chain(std::env::split_paths(&path));
    if let Ok(path) = std::env::join_paths(dirs) {
        command.env("PATH", path);
    }
    // `-Z build-std` is an unstable option of a stable compiler.
    command.env("RUSTC", DEBIAN_RUSTC).env("RUSTC_BOOTSTRAP", "1").env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", DEBIAN_LINKER);
    command
}
