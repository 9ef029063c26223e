//! `weir policy verify`.

use std::path::{Path, PathBuf};

use serde::Serialize;
use weir_host::oci::{MAX_TRUST_ROOT, Reference, Requirement, Signer, TrustRoot, VerifyError};

use super::{Common, files, pinned, reference, report::Output};
use crate::{
    exit::{Exit, Failure},
    registry,
};

/// Largest public key, bytes.
const MAX_KEY: u64 = 16 << 10;

pub(super) const HELP: &str = "\
Looks for signatures of cosign: tags that end in .sig, and bundles that refer to the artifact. Any of the signers that are named is enough, all of
them with --all. Exit code 6 when they have not signed.

Examples:
  weir policy verify registry.example/policies/konnect-env:1.0 --key cosign.pub
  weir policy verify registry.example/policies/konnect-env:1.0 --trust-root trusted_root.json \\
    --identity https://token.actions.githubusercontent.com=https://github.com/acme/policies/.github/workflows/release.yml@refs/heads/main";

/// `weir policy verify`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What to look at.
    #[arg(value_name = "REF", value_parser = reference)]
    reference: Reference,
    /// Public key of a signer, a PEM file. Repeatable.
    #[arg(long = "key", value_name = "FILE", required_unless_present = "identities")]
    keys: Vec<PathBuf>,
    /// Issuer and subject of a signer's certificate (keyless). Repeatable.
    #[arg(long = "identity", value_name = "ISSUER=SUBJECT", value_parser = identity, requires = "trust_root")]
    identities: Vec<(String, String)>,
    /// Whose certificates and logs count: a trusted_root.json of sigstore.
    #[arg(long, value_name = "FILE")]
    trust_root: Option<PathBuf>,
    /// Every signer has to have signed.
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    common: Common,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    reference: String,
    signers: Vec<String>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let requirement = requirement(args)?;
    let trust = args.trust_root.as_deref().map(trust_root).transpose()?;
    let registry = args.common.open()?;
    let credentials = registry.credentials(&args.reference)?;
    let component = args.common.pull(&args.reference)?.map_err(|error| registry::pull(&error))?;
    // The manifest names the component, and an index names the manifest: a signature of either is one of the component.
    let digests: Vec<&str> = std::iter::once(component.manifest_digest.as_str()).chain(component.index_digest.as_deref()).collect();
    let asked = registry.puller().verify(&args.reference, &credentials, &digests, std::slice::from_ref(&requirement), trust.as_ref());
    let verified = registry.wait(asked).map_err(|error| failure(&error))?;
    let pinned = pinned(&args.reference, component.index_digest.as_deref().unwrap_or(&component.manifest_digest))?.to_string();
    let report = Report { reference: pinned, signers: verified.signers };
    args.output.print(&report, || format!("{}\n  signed by {}\n", report.reference, report.signers.join("\n  signed by ")))
}

fn requirement(args: &Args) -> anyhow::Result<Requirement> {
    let mut signers = Vec::new();
    for path in &args.keys {
        let pem = files::whole(path, MAX_KEY)?;
        signers.push(Signer::Key { name: path.display().to_string(), pem });
    }
    signers.extend(args.identities.iter().map(|(issuer, subject)| Signer::Identity { issuer: issuer.clone(), subject: subject.clone() }));
    Ok(if args.all {
        Requirement { all_of: signers, ..Requirement::default() }
    } else {
        Requirement { any_of: signers, ..Requirement::default() }
    })
}

fn trust_root(path: &Path) -> anyhow::Result<TrustRoot> {
    let json = files::whole(path, MAX_TRUST_ROOT as u64)?;
    Ok(TrustRoot::parse(&json).map_err(|error| Failure::usage(format!("--trust-root {}: {error}", path.display())))?)
}

fn failure(error: &VerifyError) -> Failure {
    let exit = match error {
        VerifyError::Fetch(error) => return registry::pull(error),
        VerifyError::Key { .. } | VerifyError::NoTrustRoot { .. } | VerifyError::Nobody => Exit::Usage,
        VerifyError::NotSigned { .. } | VerifyError::NotBy { .. } | VerifyError::Malformed { .. } => Exit::Unverified,
    };
    Failure { exit, message: error.to_string() }
}

fn identity(text: &str) -> Result<(String, String), String> {
    // Subjects may have the sign too, issuers are URLs without a query.
    let (issuer, subject) = text.split_once('=').ok_or("write ISSUER=SUBJECT")?;
    if issuer.is_empty() || subject.is_empty() {
        return Err("write ISSUER=SUBJECT".into());
    }
    Ok((issuer.to_owned(), subject.to_owned()))
}
