use std::{fs, path::PathBuf};

use clap::Parser;

use super::*;
use crate::args::{Cli, Command};
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

    fn artifacts(&self, references: &[&str]) -> anyhow::Result<Artifacts> {
        self.artifacts_with(references, &[])
    }

    fn artifacts_with(&self, references: &[&str], more: &[&str]) -> anyhow::Result<Artifacts> {
        let mut line = vec!["weir".to_owned(), "plan".into(), "-f".into(), "-".into()];
        line.extend(more.iter().map(ToString::to_string));
        line.extend(references.iter().flat_map(|r| ["--artifact".to_owned(), format!("{r}={}", self.0.join("plugin").display())]));
        let Command::Plan(args) = Cli::parse_from(line).command else { panic!("not a plan") };
        Artifacts::new(&args)
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
    let usage = |error: anyhow::Error| error.downcast::<Failure>().unwrap();
    assert_eq!(usage(folder.artifacts(&[IMAGE]).err().unwrap()).exit, Exit::Usage);
    fs::write(folder.0.join("plugin"), "no archive").unwrap();
    let failure = usage(folder.artifacts(&[IMAGE]).err().unwrap());
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

const LIST: &str = "apiVersion: weir.dev/v1alpha1\nkind: Verification\nentries:\n";

#[test]
fn what_has_to_be_signed_is_not_taken_unseen() {
    let folder = Folder::new("signed");
    let list = folder.0.join("verification.yaml");
    let with = |entries: &str| {
        fs::write(&list, format!("{LIST}{entries}")).unwrap();
        folder.artifacts_with(&[IMAGE], &["--verification-file", list.to_str().unwrap()])
    };
    let key = "anyOf: [{publicKey: {pem: \"-----BEGIN PUBLIC KEY-----\\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEaxfR8uEsQkf4vOblY6RA8ncDfYEt\\n6zOg9KE5RdiYwpZP40Li/hp/m47n60p8D54WK84zV2sxXs7LtkBoN79R9Q==\\n-----END PUBLIC KEY-----\"}}]";
    let artifacts = with(&format!("- prefix: registry.example/p\n  {key}\n")).unwrap();
    let Fetch::Failed { message, transient: false, digest: None } = artifacts.of(IMAGE) else { panic!("it is taken") };
    assert!(message.contains("the verification list") && message.contains(IMAGE) && message.contains("--pull"), "{message}");
    assert!(artifacts.wanted(IMAGE).is_some() && artifacts.wanted("registry.example/other:1").is_none());
    // Nothing is asked of what no entry is for.
    let Fetch::Fetched(artifact) = with(&format!("- prefix: ghcr.io\n  {key}\n")).unwrap().of(IMAGE) else { panic!("it is not taken") };
    assert!(artifact.signers.is_empty() && artifact.verification.is_none());
    let usage = |entries: &str| with(entries).err().unwrap().downcast::<Failure>().unwrap();
    let failure = usage("- {anyOf: [{keyless: {issuer: i, subject: s}}]}\n");
    assert!(failure.exit == Exit::Usage && failure.message.contains("--trust-root"), "{failure}");
    let failure = usage("- {}\n");
    assert!(failure.message.starts_with("--verification-file ") && failure.message.contains("entries[0]"), "{failure}");
}
