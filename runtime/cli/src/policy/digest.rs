//! `weir policy digest`.

use serde::Serialize;
use weir_host::oci::Reference;

use super::{
    Common, pinned,
    report::Output,
    source::{Source, source},
};
use crate::{exit::Exit, registry};

pub(super) const HELP: &str = "\
Of a reference only the name is looked up, which costs no pull. Of a file it is the digest of the component, which `weir policy inspect` shows
for an artifact too, whatever its layout is.

Examples:
  weir policy digest registry.example/policies/konnect-env:1.0
  weir policy digest my-policy.wasm";

/// `weir policy digest`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What to look at.
    #[arg(value_name = "REF|FILE", value_parser = source)]
    source: Source,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    common: Common,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    reference: String,
    digest: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    media_type: Option<String>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    match &args.source {
        Source::Registry(reference) => {
            let report = of_reference(args, reference)?;
            args.output.print(&report, || report.reference.clone())
        }
        Source::File(_) => {
            let component = args.common.component(&args.source)?;
            let report = Report { reference: component.reference, digest: component.layer_digest, media_type: None };
            args.output.print(&report, || report.digest.clone())
        }
    }
}

fn of_reference(args: &Args, reference: &Reference) -> anyhow::Result<Report> {
    let registry = args.common.open()?;
    let credentials = registry.credentials(reference)?;
    let resolved = registry.wait(registry.puller().resolve(reference, &credentials)).map_err(|error| registry::pull(&error))?;
    let reference = pinned(reference, &resolved.digest)?.to_string();
    Ok(Report { reference, digest: resolved.digest, media_type: Some(resolved.media_type) })
}
