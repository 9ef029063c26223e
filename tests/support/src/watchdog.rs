//! Nothing outlives its owner, not even one that was killed.

use std::fs::File;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use anyhow::{Context, Result};

const SCRIPT: &str = include_str!("watchdog.sh");

/// A shell that reads from a pipe only we hold. When the pipe closes without a farewell, it kills what it was told to watch and
/// removes a directory. In a process group of its own, so that Ctrl-C ends the owner and not the one who cleans up after it.
#[derive(Debug)]
pub(crate) struct Watchdog {
    shell: Child,
    pipe: Option<ChildStdin>,
}

impl Watchdog {
    /// `held` stays open as long as the shell lives: a lock on it ends only when the cleaning is over.
    pub(crate) fn start(remove: Option<&Path>, held: Option<File>) -> Result<Self> {
        let mut command = Command::new("sh");
        command.arg("-c").arg(SCRIPT).arg("weir-watchdog").arg(remove.unwrap_or(Path::new("")));
        command.current_dir("/").process_group(0).stdin(Stdio::piped()).stderr(Stdio::null());
        command.stdout(held.map_or_else(Stdio::null, Stdio::from));
        let mut shell = command.spawn().context("cannot run `sh`, which cleans up after a killed process")?;
        let pipe = shell.stdin.take();
        Ok(Self { shell, pipe })
    }

    /// From now on this process dies with us.
    pub(crate) fn watch(&mut self, pid: u32) -> Result<()> {
        self.say(&format!("watch {pid}")).context("the process that cleans up after us is gone")
    }

    /// A process that is about to be reaped: its id may belong to somebody else soon. A watchdog that is gone kills nobody.
    pub(crate) fn forget(&mut self, pid: u32) {
        let _ = self.say(&format!("forget {pid}"));
    }

    fn say(&mut self, line: &str) -> std::io::Result<()> {
        match &mut self.pipe {
            Some(pipe) => writeln!(pipe, "{line}"),
            None => Ok(()),
        }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        let _ = self.say("done");
        self.pipe = None;
        let _ = self.shell.wait();
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    fn sleeper() -> Child {
        Command::new("sleep").arg("60").spawn().unwrap()
    }

    fn within_5_s(mut done: impl FnMut() -> bool) -> bool {
        let end = Instant::now() + Duration::from_secs(5);
        while Instant::now() < end {
            if done() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        false
    }

    #[test]
    fn a_lost_owner_takes_its_processes_and_its_directory_along() {
        let dir = tempfile::tempdir().unwrap().keep();
        let (mut watched, mut forgotten) = (sleeper(), sleeper());
        let mut watchdog = Watchdog::start(Some(&dir), None).unwrap();
        watchdog.watch(watched.id()).unwrap();
        watchdog.watch(forgotten.id()).unwrap();
        watchdog.forget(forgotten.id());
        // What the kernel does with the pipe of a process that was killed.
        watchdog.pipe = None;
        assert!(within_5_s(|| watched.try_wait().unwrap().is_some()));
        assert!(within_5_s(|| !dir.exists()));
        assert!(forgotten.try_wait().unwrap().is_none());
        forgotten.kill().unwrap();
        forgotten.wait().unwrap();
    }

    #[test]
    fn a_farewell_leaves_everything_alone() {
        let dir = tempfile::tempdir().unwrap();
        let mut watched = sleeper();
        let mut watchdog = Watchdog::start(Some(dir.path()), None).unwrap();
        watchdog.watch(watched.id()).unwrap();
        drop(watchdog);
        assert!(dir.path().exists() && watched.try_wait().unwrap().is_none());
        watched.kill().unwrap();
        watched.wait().unwrap();
    }
}
