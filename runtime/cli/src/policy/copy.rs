//! `weir policy cp`.

use serde::Serialize;
use weir_host::oci::{Pushed, Reference};

use super::{
    Common, MOST,
    carried::{self, Carried, Carry},
    reference,
    report::Output,
    target,
};
use crate::{exit::Exit, registry};

pub(super) const HELP: &str = "\
Manifests and blobs stay what they are, and so do all digests; of an index every image is copied. Signatures of cosign go along, those that
are there already stay. Credentials are looked up for each of the two registries.

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
    carry: Carry,
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
    /// Signatures that went along; a push has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    signatures: Option<Vec<Carried>>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let registry = args.common.open()?;
    let (from, to) = (registry.credentials(&args.from)?, registry.credentials(&args.to)?);
    let whole = registry.wait(registry.puller().whole(&args.from, &from, MOST)).map_err(|error| registry::pull(&error))?;
    let signatures = args.carry.fetch(&registry, (&args.from, &from), &whole, &args.common)?;
    carried::push(&registry, (&args.to, &to), &signatures)?;
    let copied = registry.wait(registry.puller().push(&args.to, &to, &whole)).map_err(|error| registry::push(&error))?;
    done(copied, Some(carried::carried(&signatures)), &args.common, &args.output)
}

/// Says what was pushed, and which signatures went along where some could.
pub(super) fn done(pushed: Pushed, signatures: Option<Vec<Carried>>, common: &Common, output: &Output) -> anyhow::Result<Exit> {
    let Pushed { reference, digest, sent, present } = pushed;
    common.say(&format!("{sent} blob(s) sent, {present} there already"));
    carried::say(signatures.as_deref().unwrap_or_default(), common);
    let report = Report { reference: reference.to_string(), digest, blobs_sent: sent, blobs_present: present, signatures };
    output.print(&report, || report.reference.clone())
}
