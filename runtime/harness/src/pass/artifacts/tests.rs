use std::{fs, path::PathBuf};

use super::*;
use crate::exit::Exit;

const IMAGE: &str = "registry.example/p:1";

/// A folder of a test's own, which goes with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("weir-artifacts-{}-{name}", std::process::id()));
        fs::create_dir_all(path.join("plugin")).unwrap();
        fs::write(path.join("plugin/handler.lua"), "return {}").unwrap();
        Self(path)
    }

    fn artifacts(&self, references: &[&str]) -> Result<Artifacts, Failure> {
        self.verified(references, None)
    }

    fn verified(&self, references: &[&str], verify: Option<Box<dyn Verify>>) -> Result<Artifacts, Failure> {
        let plugin = self.0.join("plugin");
        Artifacts::new(references.iter().map(|reference| (*reference, plugin.as_path())), None, verify)
    }

    /// Message of the failure that the installation gets.
    fn failure(&self) -> String {
        let fetch = self.artifacts(&[IMAGE]).unwrap().of(IMAGE);
        let Fetch::Failed { message, transient: false, digest: None } = fetch else { panic!("{fetch:?}") };
        message
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn content_that_no_operator_takes_is_the_installations_failure() {
    let folder = Folder::new("content");
    assert!(matches!(folder.artifacts(&[IMAGE]).unwrap().of(IMAGE), Fetch::Fetched(_)));
    std::os::unix::fs::symlink("handler.lua", folder.0.join("plugin/link.lua")).unwrap();
    let expected = "registry.example/p:1: plugin: entry \"link.lua\" is a symbolic link; only files and directories are taken";
    assert_eq!(folder.failure(), expected);
    fs::remove_file(folder.0.join("plugin/link.lua")).unwrap();
    for number in 0..Limits::default().files {
        fs::write(folder.0.join(format!("plugin/{number}.lua")), "").unwrap();
    }
    let message = folder.failure();
    assert!(message.starts_with("registry.example/p:1: plugin: it has more than"), "{message}");
}

#[test]
fn a_path_without_an_artifact_is_a_mistake_of_the_command_line() {
    let folder = Folder::new("path");
    fs::remove_dir_all(folder.0.join("plugin")).unwrap();
    assert_eq!(folder.artifacts(&[IMAGE]).err().unwrap().exit, Exit::Usage);
    fs::write(folder.0.join("plugin"), "no archive").unwrap();
    let failure = folder.artifacts(&[IMAGE]).err().unwrap();
    assert!(failure.exit == Exit::Usage && failure.message.contains("neither a directory nor a tar archive"), "{failure}");
}

#[test]
fn what_nothing_names_is_known() {
    let folder = Folder::new("unused");
    let artifacts = folder.artifacts(&["registry.example/p:2", "nginx", IMAGE]).unwrap();
    // Whatever way a reference is written.
    assert_eq!(artifacts.unused([IMAGE, "docker.io/library/nginx:latest", "no reference"].into_iter()), ["registry.example/p:2"]);
    assert_eq!(artifacts.unused(std::iter::empty()).len(), 3);
}

/// Wants signatures of what is called so, and knows who signed what, if anybody.
struct Signed(&'static str, Result<Vec<String>, Untaken>);

impl Verify for Signed {
    fn wanted(&self, reference: &Reference) -> Option<String> {
        reference.to_string().starts_with(self.0).then(|| "list".to_owned())
    }

    fn signers(&self, reference: &Reference, digests: &[String]) -> Result<Vec<String>, Untaken> {
        assert!(digests.iter().all(|digest| digest.starts_with("sha256:")) && !digests.is_empty(), "{digests:?}");
        if self.wanted(reference).is_some() { self.1.clone() } else { Ok(Vec::new()) }
    }
}

#[test]
fn an_artifact_is_taken_with_the_signers_that_it_has_to_have_or_not_at_all() {
    let folder = Folder::new("signed");
    let with = |signed| folder.verified(&[IMAGE], Some(Box::new(signed))).unwrap();
    let artifacts = with(Signed("registry.example/p", Ok(vec!["someone".into()])));
    let Fetch::Fetched(artifact) = artifacts.of(IMAGE) else { panic!("it is not taken") };
    assert_eq!((artifact.signers.as_slice(), artifact.verification.as_deref()), (["someone".to_owned()].as_slice(), Some("list")));
    assert!(artifacts.wanted(IMAGE).is_some() && artifacts.wanted("registry.example/other:1").is_none());
    let Fetch::Fetched(artifact) = with(Signed("ghcr.io", Ok(Vec::new()))).of(IMAGE) else { panic!("it is not taken") };
    assert!(artifact.signers.is_empty() && artifact.verification.is_none());
    for transient in [false, true] {
        let unsigned = Untaken { message: "nobody signed it".into(), transient };
        let fetch = with(Signed("registry.example/p", Err(unsigned))).of(IMAGE);
        let Fetch::Failed { message, transient: said, digest: None } = fetch else { panic!("it is taken") };
        assert_eq!((message.as_str(), said), ("nobody signed it", transient));
    }
}
