//! Signatures that go along with an artifact.

use serde::Serialize;
use weir_host::oci::{Credentials, Error, Reference, Signature, Signatures, Upload};

use super::{Common, MOST};
use crate::{
    exit::Failure,
    registry::{self, Registry},
};

/// The flag of commands that carry signatures.
#[derive(Debug, clap::Args)]
pub(super) struct Carry {
    /// Leave signatures behind.
    #[arg(long)]
    no_signatures: bool,
}

/// A signature that went along.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Carried {
    /// Digest of what is signed.
    of: String,
    /// `simple` or `bundle`.
    form: String,
    /// Digest of its manifest.
    digest: String,
}

impl Carry {
    /// Whether signatures go along.
    pub(super) fn wanted(&self) -> bool {
        !self.no_signatures
    }

    /// What lies beside an artifact in a registry.
    pub(super) fn fetch(
        &self,
        registry: &Registry,
        (reference, credentials): (&Reference, &Credentials),
        artifact: &Upload,
        common: &Common,
    ) -> anyhow::Result<Vec<Signature>> {
        if !self.wanted() {
            return Ok(Vec::new());
        }
        let digests = artifact.digests();
        let asked = registry.puller().signatures(reference, credentials, &digests, MOST);
        let Signatures { all, problems } = registry.wait(asked).map_err(|error| unfetched(&error))?;
        for problem in problems {
            common.say(&format!("not carried: {problem}"));
        }
        Ok(all)
    }
}

fn unfetched(error: &Error) -> Failure {
    let Failure { exit, message } = registry::pull(error);
    Failure { exit, message: format!("signatures: {message}; --no-signatures leaves them behind") }
}

/// Lays signatures beside the artifact that is pushed next: whoever sees its tag finds them.
pub(super) fn push(registry: &Registry, (reference, credentials): (&Reference, &Credentials), all: &[Signature]) -> anyhow::Result<()> {
    Ok(registry.wait(registry.puller().push_signatures(reference, credentials, all)).map_err(|error| registry::push(&error))?)
}

/// For reports.
pub(super) fn carried(all: &[Signature]) -> Vec<Carried> {
    let one = |s: &Signature| Carried { of: s.of.clone(), form: s.form.to_string(), digest: s.upload.digest.clone() };
    all.iter().map(one).collect()
}

/// For people.
pub(super) fn say(all: &[Carried], common: &Common) {
    for Carried { of, form, digest } in all {
        common.say(&format!("signature carried: {form} {digest} of {of}"));
    }
}
