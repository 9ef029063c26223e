//! What plugin-packaging is asked, and the digest of it that a record keeps.

use crate::{
    hash,
    policy::plugin_packaging::{File, Input, REQUIRED},
};

use super::{bundled::BUNDLED, snapshot::Artifact, validate::Validated};

/// Longest file whose text a policy sees, bytes.
pub(super) const MAX_TEXT: usize = 64 * 1024;
/// Most text of all files together, bytes.
pub(super) const MAX_TEXTS: usize = 1024 * 1024;

/// The question about an artifact.
pub(super) fn input(installation: &Validated<'_>, artifact: &Artifact) -> Input {
    Input {
        context: installation.context(),
        reference: installation.image.to_owned(),
        digest: artifact.digest.clone(),
        annotations: artifact.annotations.clone(),
        signers: artifact.signers.clone(),
        files: files(artifact),
        bundled: BUNDLED.iter().map(|name| (*name).to_owned()).collect(),
    }
}

/// Digest of the question without what the artifact's digest determines: it can be told before anything is fetched. `verification`: digest of the signatures that are wanted, or were looked for.
pub(super) fn digest(installation: &Validated<'_>, artifact: &str, verification: Option<&str>) -> String {
    let (context, image) = (installation.context(), installation.image);
    match verification {
        // As records have it that are older than signatures: nobody is asked again for want of them.
        None => hash::digest_json(&(context, image, artifact, BUNDLED)),
        // Who signed is no part of the artifact: whose signatures are wanted stands for it.
        Some(wanted) => hash::digest_json(&(context, image, artifact, BUNDLED, wanted)),
    }
}

/// All files by path. Where all texts together would be too long, those that say name and version come first.
fn files(artifact: &Artifact) -> Vec<File> {
    let is_required = |path: &str| path.rsplit('/').next().is_some_and(|name| REQUIRED.contains(&name));
    let mut room = MAX_TEXTS;
    let mut files = Vec::with_capacity(artifact.files.len());
    for required in [true, false] {
        for (path, bytes) in artifact.files.iter().filter(|(path, _)| is_required(path) == required) {
            let text = text(path, bytes).filter(|text| text.len() <= room).map(str::to_owned);
            room -= text.as_ref().map_or(0, String::len);
            files.push(File {
                path: path.clone(),
                size: u64::try_from(bytes.len()).unwrap_or(u64::MAX),
                digest: hash::digest(bytes),
                text,
            });
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}

fn text<'a>(path: &str, bytes: &'a [u8]) -> Option<&'a str> {
    (path.ends_with(".lua") && bytes.len() <= MAX_TEXT).then(|| std::str::from_utf8(bytes).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_bounded_and_the_required_files_come_first() {
        let mut artifact = Artifact::default();
        for index in 0..17 {
            artifact.files.insert(format!("a/{index:02}.lua"), vec![b'x'; MAX_TEXT]);
        }
        artifact.files.insert("z/handler.lua".into(), b"return {}".to_vec());
        artifact.files.insert("big.lua".into(), vec![b'x'; MAX_TEXT + 1]);
        artifact.files.insert("binary.lua".into(), vec![0xff]);
        artifact.files.insert("README.md".into(), b"text".to_vec());
        let files = files(&artifact);
        assert!(files.is_sorted_by_key(|f| f.path.clone()));
        let with_text: Vec<&str> = files.iter().filter(|f| f.text.is_some()).map(|f| f.path.as_str()).collect();
        assert_eq!(with_text.len(), 16, "{with_text:?}");
        assert!(with_text.contains(&"z/handler.lua") && with_text.contains(&"a/14.lua") && !with_text.contains(&"a/15.lua"));
        assert_eq!(files.iter().map(|f| f.text.as_ref().map_or(0, String::len)).sum::<usize>(), 15 * MAX_TEXT + 9);
    }
}
