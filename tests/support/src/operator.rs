//! `weir operator` as a child process, so that tests can end it in every way a cluster can.

use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::component::Component;
use crate::watchdog::Watchdog;

/// Variables of the developer's shell that would change what is tested: settings of the operator, and proxies that cannot reach
/// a loopback address of this machine.
const NOT_INHERITED: [&str; 8] =
    ["KUBECONFIG", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy", "RUST_LOG"];

/// How to run an operator.
#[derive(Debug, Clone)]
pub struct OperatorOptions {
    /// The `weir` binary.
    pub weir: PathBuf,
    /// Passed as `--kubeconfig`; it decides as whom the operator acts.
    pub kubeconfig: PathBuf,
    /// More arguments after `operator --kubeconfig FILE`.
    pub args: Vec<String>,
    /// Added to the environment. Nothing named `WEIR_…` is inherited.
    pub env: Vec<(String, String)>,
    /// Its output is appended here.
    pub log: PathBuf,
}

/// A running operator. Dropping it kills it.
#[derive(Debug)]
pub struct Operator {
    component: Component,
    watchdog: Watchdog,
}

impl Operator {
    /// Starts it and returns at once; when it is ready is the caller's question to ask.
    pub fn start(options: &OperatorOptions) -> Result<Self> {
        let mut command = Command::new(&options.weir);
        for (name, _) in std::env::vars_os() {
            if name.to_str().is_some_and(|name| name.starts_with("WEIR_") || NOT_INHERITED.contains(&name)) {
                command.env_remove(&name);
            }
        }
        command.arg("operator").arg("--kubeconfig").arg(&options.kubeconfig).args(&options.args);
        command.envs(options.env.iter().map(|(name, value)| (name, value)));
        let mut watchdog = Watchdog::start(None, None)?;
        let component = Component::spawn("weir operator", &mut command, options.log.clone(), &mut watchdog)?;
        Ok(Self { component, watchdog })
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.component.pid()
    }

    /// SIGKILL: what the kernel does to a container that is out of memory. Harmless when it has ended already.
    pub fn kill(&mut self) {
        self.component.kill(&mut self.watchdog);
    }

    /// SIGTERM, and how it ended. One that is still there after `timeout` is killed, and that is an error.
    pub fn stop(&mut self, timeout: Duration) -> Result<ExitStatus> {
        if let Some(status) = self.component.ended(&mut self.watchdog)? {
            return Ok(status);
        }
        self.component.terminate()?;
        let end = Instant::now() + timeout;
        loop {
            if let Some(status) = self.component.ended(&mut self.watchdog)? {
                return Ok(status);
            }
            if Instant::now() >= end {
                self.kill();
                bail!("weir operator did not end within {timeout:?} of SIGTERM:\n{}", crate::log::last_lines(self.component.log(), 20));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Whether it has not ended yet.
    pub fn is_running(&mut self) -> bool {
        matches!(self.component.ended(&mut self.watchdog), Ok(None))
    }

    /// All it has written to its log so far.
    pub fn log(&self) -> String {
        std::fs::read(self.component.log()).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        self.kill();
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    /// A shell script in place of `weir`.
    fn options(dir: &std::path::Path, script: &str) -> OperatorOptions {
        let weir = dir.join("weir");
        std::fs::write(&weir, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&weir, std::fs::Permissions::from_mode(0o755)).unwrap();
        OperatorOptions {
            weir,
            kubeconfig: dir.join("kubeconfig"),
            args: vec!["--namespace".to_owned(), "a".to_owned()],
            env: vec![("WEIR_TEST".to_owned(), "yes".to_owned())],
            log: dir.join("log"),
        }
    }

    fn wait_for_log(operator: &Operator, text: &str) {
        let end = Instant::now() + Duration::from_secs(20);
        while !operator.log().contains(text) {
            assert!(Instant::now() < end, "no {text:?} in {:?}", operator.log());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn it_gets_its_arguments_and_ends_when_asked() {
        let dir = tempfile::tempdir().unwrap();
        let mut operator =
            Operator::start(&options(dir.path(), "trap 'exit 7' TERM; echo $@ $WEIR_TEST\nwhile :; do sleep 0.05; done")).unwrap();
        wait_for_log(&operator, "yes");
        assert!(operator.log().starts_with("operator --kubeconfig "), "{}", operator.log());
        assert!(operator.log().trim_end().ends_with("kubeconfig --namespace a yes"), "{}", operator.log());
        assert!(operator.is_running());
        assert_eq!(operator.stop(Duration::from_secs(20)).unwrap().code(), Some(7));
        assert!(!operator.is_running());
        operator.kill();
    }

    #[test]
    fn one_that_does_not_end_is_killed_and_reported() {
        let dir = tempfile::tempdir().unwrap();
        let mut operator = Operator::start(&options(dir.path(), "trap '' TERM; echo up\nwhile :; do sleep 0.05; done")).unwrap();
        wait_for_log(&operator, "up");
        let error = operator.stop(Duration::from_millis(200)).unwrap_err().to_string();
        assert!(error.contains("did not end") && error.contains("up"), "{error}");
        assert_eq!(operator.stop(Duration::ZERO).unwrap().signal(), Some(9));
    }
}
