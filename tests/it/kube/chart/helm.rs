//! The real helm.

use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::atomic::{AtomicU32, Ordering},
};

use serde_json::Value;
use weir_testkit::binaries;

use crate::support::root;

/// What `lint` and `template` take the cluster for; a helm built from source calls itself a friend of old ones.
const KUBERNETES: &str = "1.36.0";

/// helm, with directories of its own.
pub(super) struct Helm {
    program: PathBuf,
    home: PathBuf,
    kubeconfig: Option<PathBuf>,
}

impl Helm {
    pub(super) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let program = binaries::helm(&mut |line| eprintln!("     {line}")).unwrap();
        let home = std::env::temp_dir().join(format!("weir-helm-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed)));
        std::fs::create_dir_all(&home).unwrap();
        Self { program, home, kubeconfig: None }
    }

    /// The same for a cluster.
    pub(super) fn with(mut self, kubeconfig: &Path) -> Self {
        self.kubeconfig = Some(kubeconfig.to_owned());
        self
    }

    pub(super) fn run(&self, args: &[&str]) -> Output {
        let mut command = Command::new(&self.program);
        for (name, _) in std::env::vars_os() {
            if name.to_str().is_some_and(|name| name.starts_with("HELM_") || name.starts_with("KUBE")) {
                command.env_remove(&name);
            }
        }
        for (variable, dir) in [("HELM_CACHE_HOME", "cache"), ("HELM_CONFIG_HOME", "config"), ("HELM_DATA_HOME", "data")] {
            command.env(variable, self.home.join(dir));
        }
        match &self.kubeconfig {
            Some(file) => command.env("KUBECONFIG", file),
            // Nothing that needs a cluster can find one.
            None => command.env("KUBECONFIG", "/dev/null"),
        };
        command.args(args).output().unwrap()
    }

    /// It has to work; what it printed.
    pub(super) fn ok(&self, args: &[&str]) -> String {
        let output = self.run(args);
        let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "helm {}\n{out}\n{error}", args.join(" "));
        out.into_owned()
    }

    /// It has to fail; what it said.
    pub(super) fn fails(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert!(!output.status.success(), "helm {} worked", args.join(" "));
        String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout)
    }

    pub(super) fn lint(&self, values: &Path) {
        self.ok(&["lint", "--strict", "--kube-version", KUBERNETES, "-f", &text(values), &text(&chart())]);
    }

    /// Every manifest, hooks and tests among them, without the CRDs.
    pub(super) fn template(&self, values: &Path, more: &[&str]) -> Vec<Value> {
        let (chart, values) = (text(&chart()), text(values));
        let mut args = vec!["template", super::RELEASE, &chart, "-n", super::NAMESPACE, "--kube-version", KUBERNETES, "-f", &values];
        args.extend(more);
        documents(&self.ok(&args))
    }
}

impl Drop for Helm {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.home);
    }
}

/// The chart.
pub(super) fn chart() -> PathBuf {
    root().join("charts/weir")
}

/// Every file of values in `ci/`.
pub(super) fn values() -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(chart().join("ci")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 6, "{files:?}");
    files
}

/// One of them.
pub(super) fn values_of(name: &str) -> PathBuf {
    chart().join("ci").join(format!("{name}-values.yaml"))
}

pub(super) fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

/// Documents of a stream; empty ones are none.
pub(super) fn documents(stream: &str) -> Vec<Value> {
    let parts = stream.split("\n---").map(|part| part.trim_start_matches("---"));
    parts
        .filter(|part| part.lines().any(|line| !line.trim().is_empty() && !line.starts_with('#')))
        .map(|part| serde_saphyr::from_str(part).unwrap_or_else(|error| panic!("{error}\n{part}")))
        .collect()
}

/// Documents of a kind.
pub(super) fn of_kind<'a>(documents: &'a [Value], kind: &str) -> Vec<&'a Value> {
    documents.iter().filter(|document| document["kind"] == kind).collect()
}
