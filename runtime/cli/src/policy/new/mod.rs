//! `weir policy new`: a project that builds, tests and pushes at once.

mod files;
mod project;

use std::{fs, io::Write, path::PathBuf};

use clap::ValueEnum;
use weir_core::policy::SlotName;

use crate::exit::{Exit, Failure};

pub(super) const HELP: &str = "\
The project stands on its own: the contract (wit/), the SDK and the default policy of the slot are copied into it, so that it builds from
crates.io alone and the policy starts from what the default does.

It needs `rustup target add wasm32-unknown-unknown`. Then `make` builds the component, `make test` runs its suite, `make push REF=…` publishes it.

Examples:
  weir policy new eu-only --slot konnect-env
  cd eu-only && make test";

/// Languages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Language {
    /// A component of about 150 KiB; a call takes some 50 µs.
    Rust,
}

/// `weir policy new`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Name of the policy: lower-case letters, digits and `-`.
    #[arg(value_name = "NAME", value_parser = crate::names::project)]
    name: String,
    /// What it decides.
    #[arg(long, value_name = "SLOT", value_parser = super::check::slot)]
    slot: SlotName,
    /// What it is written in.
    #[arg(long, value_name = "LANGUAGE", value_enum, default_value_t = Language::Rust)]
    lang: Language,
    /// Where the project is made; a folder of the policy's name by default.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let dir = args.dir.clone().unwrap_or_else(|| PathBuf::from(&args.name));
    if dir.read_dir().is_ok_and(|mut entries| entries.next().is_some()) || dir.is_file() {
        return Err(Failure::usage(format!("{}: is there already, and not empty", dir.display())).into());
    }
    let files = match args.lang {
        Language::Rust => project::rust(&args.name, args.slot),
    };
    for (name, text) in &files {
        let path = dir.join(name);
        let written = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&path, text));
        written.map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
    }
    let _ = writeln!(std::io::stderr(), "weir policy: {} files; next: cd {} && make test", files.len(), dir.display());
    crate::print(dir.display().to_string().as_bytes())
}
