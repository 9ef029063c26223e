//! Signatures into a registry, beside those that are there.

use serde_json::{Value, json};

use super::{
    super::{Error, ManifestError, Upload, bounded, call::Call, digest, manifest::OCI_INDEX, referrers::tag, verify::find::LIMITS},
    Form, Signature,
};

impl Call<'_> {
    pub(super) async fn lay(mut self, signatures: &[Signature]) -> Result<(), Error> {
        for signature in signatures {
            self.give(&signature.upload).await?;
            match signature.form {
                Form::Simple => self.simple(signature).await?,
                Form::Bundle => self.bundle(signature).await?,
            }
        }
        Ok(())
    }

    /// One tag holds all signatures of this form: those that are there stay, and ours are added.
    async fn simple(&mut self, signature: &Signature) -> Result<(), Error> {
        let Some(tag) = tag(&signature.of, ".sig") else { return Ok(()) };
        let there = self.there(&tag).await?;
        let upload = match &there {
            Some(there) if digest::of(there) == signature.upload.digest => return Ok(()),
            Some(there) => joined(there, &signature.upload).map_err(|e| self.useless(e))?,
            None => signature.upload.clone(),
        };
        let session = &self.session;
        self.patience.attempt(|| session.put(&tag, &upload)).await.map(drop)
    }

    /// A registry that does not say that it knows the subject lists it nowhere: then the tag that stands in for the list is written.
    async fn bundle(&mut self, signature: &Signature) -> Result<(), Error> {
        let session = &self.session;
        if self.patience.attempt(|| session.put(&signature.upload.digest, &signature.upload)).await? {
            return Ok(());
        }
        let Some(tag) = tag(&signature.of, "") else { return Ok(()) };
        let there = self.there(&tag).await?;
        let Some(list) = listed(there.as_deref(), signature).map_err(|e| self.useless(e))? else { return Ok(()) };
        let upload = Upload::new(OCI_INDEX, list.to_string().into_bytes(), Vec::new());
        let session = &self.session;
        self.patience.attempt(|| session.put(&tag, &upload)).await.map(drop)
    }

    async fn there(&mut self, tag: &str) -> Result<Option<Vec<u8>>, Error> {
        match self.manifest(tag, &LIMITS).await {
            Ok(fetched) => Ok(Some(fetched.bytes)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn parse(bytes: &[u8]) -> Result<Value, ManifestError> {
    serde_json::from_slice(bytes).map_err(|error| ManifestError::Malformed(error.to_string()))
}

fn list<'a>(document: &'a mut Value, key: &str) -> Result<&'a mut Vec<Value>, ManifestError> {
    let list = document.get_mut(key).and_then(Value::as_array_mut);
    list.ok_or_else(|| ManifestError::Malformed(format!("what is there already has no list {key}; delete it")))
}

fn fits(what: &'static str, list: &[Value]) -> Result<(), ManifestError> {
    if list.len() > bounded::MAX_ITEMS {
        return Err(ManifestError::Many { what, found: list.len(), most: bounded::MAX_ITEMS });
    }
    Ok(())
}

/// The signatures of both manifests, those that are there first.
fn joined(there: &[u8], ours: &Upload) -> Result<Upload, ManifestError> {
    let (mut there, mut new) = (parse(there)?, parse(&ours.manifest)?);
    let layers = list(&mut there, "layers")?;
    for layer in list(&mut new, "layers")?.drain(..) {
        if !layers.contains(&layer) {
            layers.push(layer);
        }
    }
    fits("signatures", layers)?;
    Ok(Upload::new(&ours.media_type, there.to_string().into_bytes(), Vec::new()))
}

/// The list with the signature; none where it is there already.
fn listed(there: Option<&[u8]>, signature: &Signature) -> Result<Option<Value>, ManifestError> {
    let empty = || json!({"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": []});
    let mut there = there.map_or_else(|| Ok(empty()), parse)?;
    let upload = &signature.upload;
    let manifests = list(&mut there, "manifests")?;
    if manifests.iter().any(|entry| entry.get("digest").and_then(Value::as_str) == Some(upload.digest.as_str())) {
        return Ok(None);
    }
    let manifest = parse(&upload.manifest)?;
    let mut entry = json!({"mediaType": upload.media_type, "digest": upload.digest, "size": upload.manifest.len()});
    let named = signature.artifact_type.as_ref().map(|kind| json!(kind));
    let fields =
        [("artifactType", named.or_else(|| manifest.get("artifactType").cloned())), ("annotations", manifest.get("annotations").cloned())];
    if let Value::Object(entry) = &mut entry {
        entry.extend(fields.into_iter().filter_map(|(key, value)| value.map(|value| (key.to_owned(), value))));
    }
    manifests.push(entry);
    fits("referrers", manifests)?;
    Ok(Some(there))
}
