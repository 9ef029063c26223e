//! `REF|FILE`.

use std::path::{Path, PathBuf};

use weir_host::oci::Reference;

/// Where a component is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Source {
    /// A .wasm file, an image layout, or an archive of one.
    File(PathBuf),
    /// A registry.
    Registry(Reference),
}

/// For clap.
pub(super) fn source(text: &str) -> Result<Source, String> {
    let path = Path::new(text);
    let written_as_file = text.starts_with(['.', '/']) || [".wasm", ".tar"].iter().any(|end| text.ends_with(end));
    if written_as_file || path.exists() {
        return Ok(Source::File(path.to_owned()));
    }
    // `policy.wsam` would be a repository of Docker Hub; nobody means that.
    if !text.contains('/') {
        return Err("there is no such file, and a reference is registry/repository:tag".to_owned());
    }
    Reference::parse(text).map(Source::Registry).map_err(|error| error.problem.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_told_from_references() {
        let file = |text: &str| assert_eq!(source(text), Ok(Source::File(text.into())));
        for text in ["./a", "/a/b", "../x:1", "a/b.wasm", "saved.tar", "src"] {
            file(text);
        }
        for text in ["localhost:5000/a:1", "ghcr.io/a/b@sha256:1111111111111111111111111111111111111111111111111111111111111111", "a/b"] {
            assert!(matches!(source(text), Ok(Source::Registry(_))), "{text}");
        }
        assert!(source("policy.wsam").is_err_and(|why| why.contains("no such file")));
        assert!(source("Ghcr.io/A").is_err_and(|why| why.contains("lower case")));
    }
}
