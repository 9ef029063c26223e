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
        let mut line = vec!["weir".to_owned(), "plan".into(), "-f".into(), "-".into()];
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
