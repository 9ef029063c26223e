//! What lies beside an artifact, byte for byte.

use std::collections::BTreeSet;

use super::{
    super::{
        Error, ManifestError, Upload,
        call::Call,
        referrers::tag,
        text,
        verify::find::{LIMITS, MAX_BYTES, fetched, is_signature, likely, note},
        whole::{Links, Room},
    },
    Form, MOST, Signature, Signatures,
};

/// What was found so far.
struct Found {
    signatures: Signatures,
    room: Room,
    opened: BTreeSet<String>,
}

/// Where a signature is said to be.
struct Said<'a> {
    of: &'a str,
    form: Form,
    artifact_type: Option<String>,
}

impl Call<'_> {
    pub(super) async fn beside(mut self, digests: Vec<String>, most: u64) -> Result<Signatures, Error> {
        let mut found = Found { signatures: Signatures::default(), room: Room::new(most), opened: BTreeSet::new() };
        for of in &digests {
            if let Some(tag) = tag(of, ".sig") {
                self.take(&tag, Said { of, form: Form::Simple, artifact_type: None }, &mut found).await?;
            }
            let referrers = self.referrers(of, &LIMITS).await;
            for referrer in fetched(&mut found.signatures.problems, referrers)?.map(likely).unwrap_or_default() {
                let said = Said { of, form: Form::Bundle, artifact_type: referrer.artifact_type };
                self.take(&referrer.digest, said, &mut found).await?;
            }
        }
        Ok(found.signatures)
    }

    async fn take(&mut self, version: &str, said: Said<'_>, found: &mut Found) -> Result<(), Error> {
        if !found.opened.insert(version.to_owned()) {
            return Ok(());
        }
        if found.opened.len() > MOST.saturating_mul(2) || found.signatures.all.len() >= MOST {
            note(&mut found.signatures.problems, format!("only the first {MOST} signatures are carried; delete old ones"));
            return Ok(());
        }
        let manifest = match (self.manifest(version, &LIMITS).await, said.form) {
            // Most artifacts have signatures of one form only; what is listed should be there.
            (Err(Error::NotFound { .. }), Form::Simple) => return Ok(()),
            (fetched, Form::Simple | Form::Bundle) => fetched,
        };
        let Some(manifest) = fetched(&mut found.signatures.problems, manifest)? else { return Ok(()) };
        let links = match Links::parse(&manifest.bytes, &LIMITS) {
            Ok(links) if links.blobs().any(|blob| is_signature(&blob.media_type)) => links,
            Ok(_) => return Ok(()),
            Err(error) => {
                note(&mut found.signatures.problems, format!("{version}: {error}"));
                return Ok(());
            }
        };
        if let Some(large) = links.blobs().find(|blob| blob.size > MAX_BYTES) {
            let (size, most) = (text::bytes(large.size), text::bytes(MAX_BYTES));
            note(&mut found.signatures.problems, format!("{version}: a blob of {size}; at most {most} are carried"));
            return Ok(());
        }
        let blobs = self.blobs(&links, &mut found.room).await;
        let Some(blobs) = fetched(&mut found.signatures.problems, blobs)? else { return Ok(()) };
        let media_type = links.media_type(&manifest.media_type);
        let upload = Upload { media_type, digest: manifest.digest, manifest: manifest.bytes, blobs, images: Vec::new() };
        let Said { of, form, artifact_type } = said;
        found.signatures.all.push(Signature { of: of.to_owned(), form, artifact_type, upload });
        Ok(())
    }
}

/// Checks that this may be a signature, wherever it comes from.
pub(in super::super) fn check(links: &Links) -> Result<(), ManifestError> {
    match links.blobs().find(|blob| blob.size > MAX_BYTES) {
        Some(large) => Err(ManifestError::Large { what: "a signature".into(), found: large.size, most: MAX_BYTES }),
        None if links.images().next().is_some() => Err(ManifestError::Nested),
        None => Ok(()),
    }
}
