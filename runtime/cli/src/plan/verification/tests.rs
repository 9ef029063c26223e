use std::{fs, path::PathBuf};

use clap::Parser;
use weir_core::plugin_installation::snapshot::Fetch;
use weir_harness::pass::Artifacts;

use super::*;
use crate::{
    args::{Cli, Command},
    exit::Exit,
};

const IMAGE: &str = "registry.example/p:1";

/// A folder of a test's own, which goes with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("weir-verification-{}-{name}", std::process::id()));
        fs::create_dir_all(path.join("plugin")).unwrap();
        fs::write(path.join("plugin/handler.lua"), "return {}").unwrap();
        Self(path)
    }

    fn artifacts_with(&self, references: &[&str], more: &[&str]) -> anyhow::Result<Artifacts> {
        let mut line = vec!["weir".to_owned(), "plan".into(), "-f".into(), "-".into()];
        line.extend(more.iter().map(ToString::to_string));
        line.extend(references.iter().flat_map(|r| ["--artifact".to_owned(), format!("{r}={}", self.0.join("plugin").display())]));
        let Command::Plan(args) = Cli::parse_from(line).command else { panic!("not a plan") };
        crate::plan::artifacts(&args)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
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
