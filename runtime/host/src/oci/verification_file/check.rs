//! Whether the values of a file can be used. A list that is read wrongly asks for less than its author wanted, so nothing is passed over.

use std::path::{Path, PathBuf};

use super::{
    Entry, File,
    document::{self, Document, KIND},
};
use crate::oci::{
    Requirement, Signer,
    reference::prefix,
    text,
    verify::check_key,
    yaml_file::{self, Problem, wrong},
};

/// Entries are looked through for every artifact.
const MAX_ENTRIES: usize = 256;
/// Signers of one list.
const MAX_SIGNERS: usize = 32;
/// Longest issuer or subject, bytes.
const MAX_WORD: usize = 2_048;

/// Checks the values, and reads keys. Paths are relative to `directory`.
pub(super) fn file(document: Document, directory: &Path) -> Result<File, Problem> {
    yaml_file::kind(&document.api_version, &document.kind, KIND)?;
    if document.entries.is_empty() {
        return Err(wrong("entries", "it is empty, so that nothing would be verified; add an entry, or leave the flag out"));
    }
    if document.entries.len() > MAX_ENTRIES {
        return Err(wrong("entries", format!("there are more than {MAX_ENTRIES}; merge those of one registry")));
    }
    let (mut entries, mut files): (Vec<Entry>, _) = (Vec::new(), Vec::new());
    for (index, written) in document.entries.into_iter().enumerate() {
        let field = format!("entries[{index}]");
        let entry = entry(&field, written, directory, &mut files)?;
        if let Some(other) = entries.iter().position(|other| other.prefix == entry.prefix) {
            return Err(wrong(format!("{field}.prefix"), format!("entries[{other}] is for the same; merge the two")));
        }
        entries.push(entry);
    }
    Ok(File { entries, files })
}

fn entry(field: &str, written: document::Entry, directory: &Path, files: &mut Vec<PathBuf>) -> Result<Entry, Problem> {
    let prefix = match &written.prefix {
        Some(text) => prefix(text).map_err(|problem| wrong(format!("{field}.prefix"), format!("\"{}\": {problem}", text::name(text))))?,
        None => String::new(),
    };
    let any_of = signers(&format!("{field}.anyOf"), written.any_of, directory, files)?;
    let all_of = signers(&format!("{field}.allOf"), written.all_of, directory, files)?;
    let requirement = match (any_of.is_empty() && all_of.is_empty(), written.unsigned) {
        (true, true) => None,
        (true, false) => return Err(wrong(field, "it asks for nobody; name a signer in anyOf or allOf, or write unsigned: true")),
        (false, true) => return Err(wrong(format!("{field}.unsigned"), "there are signers too; leave one of the two")),
        (false, false) => Some(Requirement { any_of, all_of }),
    };
    Ok(Entry { prefix, requirement })
}

fn signers(field: &str, written: Vec<document::Verifier>, directory: &Path, files: &mut Vec<PathBuf>) -> Result<Vec<Signer>, Problem> {
    if written.len() > MAX_SIGNERS {
        return Err(wrong(field, format!("it has more than {MAX_SIGNERS} signers; leave some out")));
    }
    let signer = |(index, verifier): (usize, document::Verifier)| {
        let field = format!("{field}[{index}]");
        match (verifier.public_key, verifier.keyless) {
            (Some(key), None) => public_key(&format!("{field}.publicKey"), key, directory, files),
            (None, Some(identity)) => {
                word(&format!("{field}.keyless.issuer"), &identity.issuer)?;
                word(&format!("{field}.keyless.subject"), &identity.subject)?;
                Ok(Signer::Identity { issuer: identity.issuer, subject: identity.subject })
            }
            (Some(_), Some(_)) => Err(wrong(field, "it is publicKey and keyless; make two of it")),
            (None, None) => Err(wrong(field, "it is nobody; write publicKey or keyless")),
        }
    };
    written.into_iter().enumerate().map(signer).collect()
}

fn public_key(field: &str, key: document::PublicKey, directory: &Path, files: &mut Vec<PathBuf>) -> Result<Signer, Problem> {
    let (name, pem) = match (key.pem, key.file) {
        (Some(pem), None) => (format!("{field}.pem"), pem.into_bytes()),
        (None, Some(file)) => {
            let path = directory.join(&file);
            let pem = yaml_file::named(&format!("{field}.file"), &path)?;
            files.push(path);
            // As it is written: a status is the same wherever the file is mounted.
            (file.display().to_string(), pem)
        }
        (Some(_), Some(_)) => return Err(wrong(field, "there are pem and file; leave one of them")),
        (None, None) => return Err(wrong(field, "it is empty; write pem or file")),
    };
    check_key(&pem).map_err(|problem| wrong(field, problem))?;
    Ok(Signer::Key { name, pem })
}

fn word(field: &str, text: &str) -> Result<(), Problem> {
    if text.is_empty() || text.len() > MAX_WORD {
        return Err(wrong(field, format!("it has 1 to {MAX_WORD} bytes, and is compared as it is")));
    }
    Ok(())
}
