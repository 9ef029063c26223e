//! `weir policy pull`.

use std::{io::Write, path::PathBuf};

use weir_host::oci::Reference;

use super::{Common, files, pinned, reference};
use crate::{exit::Exit, registry};

pub(super) const HELP: &str = "\
What is printed pins what was pulled. With `-o -` the component itself goes to standard output.

Examples:
  weir policy pull registry.example/policies/konnect-env:1.0 -o konnect-env.wasm
  weir policy pull ghcr.io/acme/policy@sha256:… -o - | wasm-tools component wit -";

/// `weir policy pull`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What to fetch.
    #[arg(value_name = "REF", value_parser = reference)]
    reference: Reference,
    /// Where it goes; `-` for standard output.
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    common: Common,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let component = args.common.pull(&args.reference)?.map_err(|error| registry::pull(&error))?;
    for note in &component.notes {
        args.common.say(note);
    }
    if args.file.as_os_str() == "-" {
        let mut out = std::io::stdout().lock();
        return match out.write_all(&component.bytes).and_then(|()| out.flush()) {
            Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
            Ok(()) | Err(_) => Ok(Exit::Done),
        };
    }
    files::write(&args.file, |out| out.write_all(&component.bytes))?;
    args.common.say(&format!("{} bytes written to {}", component.bytes.len(), args.file.display()));
    let leads_to = component.index_digest.as_ref().unwrap_or(&component.manifest_digest);
    crate::print(pinned(&args.reference, leads_to)?.to_string().as_bytes())
}
