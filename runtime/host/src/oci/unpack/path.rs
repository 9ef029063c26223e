//! Names of entries. What passes here can be joined to a directory without leaving it, and printed.

use super::{EntryProblem, Limits};
use crate::oci::text;

/// The path in its normal form: parts joined by `/`, no `.`, nothing empty. `None` is the root itself.
pub(in crate::oci) fn clean(name: &[u8], limits: &Limits) -> Result<Option<String>, EntryProblem> {
    // Before anything is copied: a long name may have megabytes.
    if name.len() > limits.path_bytes {
        return Err(EntryProblem::Long { found: name.len(), most: limits.path_bytes });
    }
    let name = std::str::from_utf8(name).map_err(|_| EntryProblem::NotUtf8)?;
    if name.chars().any(text::odd) {
        return Err(EntryProblem::Odd);
    }
    // Slashes alone are the root, which some tools write down.
    if name.starts_with('/') && name.chars().any(|c| c != '/') {
        return Err(EntryProblem::Absolute);
    }
    let parts: Vec<&str> = name.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    if parts.contains(&"..") {
        return Err(EntryProblem::Traversal);
    }
    if parts.len() > limits.path_depth {
        return Err(EntryProblem::Deep { found: parts.len(), most: limits.path_depth });
    }
    Ok((!parts.is_empty()).then(|| parts.join("/")))
}

/// The directories above `path`, nearest first.
pub(super) fn parents(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(path.rsplit_once('/').map(|(parent, _)| parent), |path| path.rsplit_once('/').map(|(parent, _)| parent))
}
