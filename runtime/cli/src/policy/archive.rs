//! `weir policy save` and `weir policy load`: artifacts for where no registry can be reached.

use std::path::PathBuf;

use serde::Serialize;
use weir_host::oci::{self, Reference, local};

use super::{
    Common, MOST,
    carried::{self, Carried, Carry},
    copy::done,
    files, pinned, reference,
    report::Output,
    target,
};
use crate::{exit::Exit, registry};

pub(super) const SAVE_HELP: &str = "\
The archive is the same for the same artifact. Signatures of cosign are in it, in a file of their own (weir-signatures.json). skopeo (`oci-archive:`) and oras (`--from-oci-layout`) read it too, and so does
`weir policy check`.

Examples:
  weir policy save registry.example/policies/konnect-env:1.0 konnect-env.tar
  weir policy save registry.example/policies/konnect-env@sha256:… konnect-env.tar";

pub(super) const LOAD_HELP: &str = "\
All digests stay what they were where the archive was saved. A directory with an image layout is taken too.

Example:
  weir policy load konnect-env.tar registry.corp.example/policies/konnect-env:1.0";

/// `weir policy save`.
#[derive(Debug, clap::Args)]
pub struct SaveArgs {
    /// What to save.
    #[arg(value_name = "REF", value_parser = reference)]
    reference: Reference,
    /// Where it goes.
    #[arg(value_name = "FILE.tar")]
    file: PathBuf,
    #[command(flatten)]
    carry: Carry,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    common: Common,
}

/// `weir policy load`.
#[derive(Debug, clap::Args)]
pub struct LoadArgs {
    /// What `save` wrote, or another image layout.
    #[arg(value_name = "FILE.tar")]
    file: PathBuf,
    /// Where it goes: registry/repository:tag.
    #[arg(value_name = "REF", value_parser = target)]
    reference: Reference,
    #[command(flatten)]
    carry: Carry,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    common: Common,
}

pub(super) fn save(args: &SaveArgs) -> anyhow::Result<Exit> {
    let registry = args.common.open()?;
    let credentials = registry.credentials(&args.reference)?;
    let whole = registry.wait(registry.puller().whole(&args.reference, &credentials, MOST)).map_err(|error| registry::pull(&error))?;
    let signatures = args.carry.fetch(&registry, (&args.reference, &credentials), &whole, &args.common)?;
    files::write(&args.file, |out| oci::save(&whole, args.reference.tag(), &signatures, out))?;
    args.common.say(&format!("{} bytes of blobs written to {}", whole.size(), args.file.display()));
    let signatures = carried::carried(&signatures);
    carried::say(&signatures, &args.common);
    let reference = pinned(&args.reference, &whole.digest)?.to_string();
    let report = Saved { reference, digest: whole.digest, signatures };
    args.output.print(&report, || report.reference.clone())
}

/// What was saved.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Saved {
    reference: String,
    digest: String,
    signatures: Vec<Carried>,
}

pub(super) fn load(args: &LoadArgs) -> anyhow::Result<Exit> {
    let whole = local::whole(&args.file, MOST).map_err(|error| registry::local(&error))?;
    let registry = args.common.open()?;
    let credentials = registry.credentials(&args.reference)?;
    let saved =
        if args.carry.wanted() { local::signatures(&args.file, MOST).map_err(|error| registry::local(&error))? } else { Vec::new() };
    // Others may have put the file together: what signs something else has no business here.
    let digests = whole.digests();
    let (signatures, others): (Vec<_>, Vec<_>) = saved.into_iter().partition(|signature| digests.contains(&signature.of));
    for other in others {
        args.common.say(&format!("not carried: a signature of {}, which is not in the file", other.of));
    }
    carried::push(&registry, (&args.reference, &credentials), &signatures)?;
    let pushed = registry.wait(registry.puller().push(&args.reference, &credentials, &whole)).map_err(|error| registry::push(&error))?;
    done(pushed, Some(carried::carried(&signatures)), &args.common, &args.output)
}
