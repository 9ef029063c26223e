//! `weir policy cp`.

use serde::Serialize;
use weir_host::oci::{Pushed, Reference};

use super::{Common, MOST, reference, report::Output, target};
use crate::{exit::Exit, registry};

pub(super) const HELP: &str = "\
Manifests and blobs stay what they are, and so do all digests; of an index every image is copied. Credentials are looked up for each of the
two registries.

Examples:
  weir policy cp ghcr.io/acme/policy:1.0 registry.corp.example/mirror/policy:1.0
  weir policy cp ghcr.io/acme/policy@sha256:… registry.corp.example/mirror/policy:1.0";

/// `weir policy cp`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What to copy.
    #[arg(value_name = "SRC", value_parser = reference)]
    from: Reference,
    /// Where it goes: registry/repository:tag.
    #[arg(value_name = "DST", value_parser = target)]
    to: Reference,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    common: Common,
}

/// What was copied.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    reference: String,
    digest: String,
    blobs_sent: usize,
    blobs_present: usize,
}

impl From<Pushed> for Report {
    fn from(pushed: Pushed) -> Self {
        let Pushed { reference, digest, sent, present } = pushed;
        Self { reference: reference.to_string(), digest, blobs_sent: sent, blobs_present: present }
    }
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let registry = args.common.open()?;
    let (from, to) = (registry.credentials(&args.from)?, registry.credentials(&args.to)?);
    let copied = registry.wait(registry.puller().copy((&args.from, &from), (&args.to, &to), MOST));
    done(copied.map_err(|error| registry::push(&error))?, &args.common, &args.output)
}

/// Says what was pushed.
pub(super) fn done(pushed: Pushed, common: &Common, output: &Output) -> anyhow::Result<Exit> {
    common.say(&format!("{} blob(s) sent, {} there already", pushed.sent, pushed.present));
    let report = Report::from(pushed);
    output.print(&report, || report.reference.clone())
}
