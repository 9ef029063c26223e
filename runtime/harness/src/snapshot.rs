//! Outputs that a person has read once, and that may not change unseen.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};
use weir_api::keys;
use weir_core::policy::{Identity, Policies};

use crate::suite::Origin;

/// What happened to a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Compared {
    Same,
    Written(PathBuf),
    Differs(String),
}

/// Where the snapshot of a case stands: `expected.yaml` beside a document of one case, else a file below `snapshots/`.
pub(crate) fn path(origin: &Origin, step: Option<usize>) -> PathBuf {
    let folder = origin.suite.parent().unwrap_or(Path::new(""));
    let step = step.map(|step| format!("-step-{step}")).unwrap_or_default();
    if origin.case.is_empty() {
        return folder.join(format!("expected{step}.yaml"));
    }
    let stem = origin.suite.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let slug: String =
        origin.case.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).take(100).collect();
    // Two names may have one slug.
    let hash: String = weir_core::hash::digest(origin.case.as_bytes()).trim_start_matches("sha256:").chars().take(8).collect();
    folder.join("snapshots").join(stem).join(format!("{slug}-{hash}{step}.yaml"))
}

/// Compares, or writes with `update`.
pub(crate) fn compare(path: &Path, output: &Value, update: bool) -> Result<Compared, String> {
    let text = serde_saphyr::to_string(output).map_err(|error| error.to_string())?;
    let known = match fs::read_to_string(path) {
        Ok(known) => Some(known),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(format!("{}: {error}", path.display())),
    };
    if known.as_deref() == Some(text.as_str()) {
        return Ok(Compared::Same);
    }
    if update {
        let written = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(path, &text));
        return written.map(|()| Compared::Written(path.to_owned())).map_err(|error| format!("{}: {error}", path.display()));
    }
    let Some(known) = known else {
        return Ok(Compared::Differs(format!("{} is not there: write it with -u, and read it", path.display())));
    };
    let diff = similar::TextDiff::from_lines(&known, &text);
    let diff = diff.unified_diff().context_radius(3).to_string();
    Ok(Compared::Differs(format!("{} differs (write it with -u, and read the change):\n{diff}", path.display())))
}

/// The output without what changes with every build of a component: digests of policies by their names, and hashes that cover those.
pub(crate) fn steady(output: &Value, policies: &Policies) -> Value {
    let each = [policies.konnect_env.identity(), policies.conflict_resolution.identity(), policies.plugin_packaging.identity()];
    let identities: Vec<&Identity> = each.into_iter().chain(policies.object_hooks.identities()).collect();
    let mut value = output.clone();
    walk(&mut value, &identities);
    value
}

fn walk(value: &mut Value, identities: &[&Identity]) {
    match value {
        Value::Object(map) => {
            for (key, inner) in map.iter_mut() {
                if key == keys::APPLIED {
                    *inner = json!("<hash>");
                } else {
                    walk(inner, identities);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| walk(item, identities)),
        Value::String(text) => {
            for identity in identities.iter().filter(|identity| !identity.digest.is_empty()) {
                if text.contains(&identity.digest) {
                    *text = text.replace(&identity.digest, &format!("sha256:<{}>", identity.source));
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(case: &str) -> Origin {
        Origin { suite: "s/eu.test.yaml".into(), case: case.into() }
    }

    #[test]
    fn every_case_has_a_file_of_its_own() {
        assert_eq!(path(&origin(""), None), Path::new("s/expected.yaml"));
        let (a, b) = (path(&origin("A b"), None), path(&origin("a-b"), None));
        assert!(a != b && a.starts_with("s/snapshots/eu.test"), "{a:?} {b:?}");
        assert_ne!(path(&origin("A b"), Some(1)), a);
    }

    #[test]
    fn a_snapshot_is_written_once_and_then_compared() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x/y.yaml");
        let one = json!({"a": 1});
        assert!(matches!(compare(&path, &one, false), Ok(Compared::Differs(why)) if why.contains("is not there")));
        assert_eq!(compare(&path, &one, true), Ok(Compared::Written(path.clone())));
        assert_eq!(compare(&path, &one, false), Ok(Compared::Same));
        let Ok(Compared::Differs(diff)) = compare(&path, &json!({"a": 2}), false) else { panic!("it differs") };
        assert!(diff.contains("-a: 1\n+a: 2"), "{diff}");
    }
}
