//! A process of ours with a log.

use std::fs::OpenOptions;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};

use crate::watchdog::Watchdog;

/// A running child. Its output is appended to a log; whoever holds it must [`kill`](Self::kill) it, or the watchdog does.
#[derive(Debug)]
pub(crate) struct Component {
    name: &'static str,
    child: Child,
    log: PathBuf,
}

impl Component {
    /// Starts it in a process group of its own: Ctrl-C reaches the owner, and the owner or the watchdog ends this one.
    pub(crate) fn spawn(name: &'static str, command: &mut Command, log: PathBuf, watchdog: &mut Watchdog) -> Result<Self> {
        let out = OpenOptions::new().create(true).append(true).open(&log).with_context(|| format!("cannot write {}", log.display()))?;
        command.stdin(Stdio::null()).stdout(out.try_clone()?).stderr(out).process_group(0);
        let program = command.get_program().to_string_lossy().into_owned();
        let child = command.spawn().with_context(|| format!("cannot run {program} ({name})"))?;
        let mut component = Self { name, child, log };
        if let Err(error) = watchdog.watch(component.pid()) {
            component.kill(watchdog);
            return Err(error);
        }
        Ok(component)
    }

    /// How it is called in messages.
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Where its output goes.
    pub(crate) fn log(&self) -> &Path {
        &self.log
    }

    /// How it ended, or `None` while it runs.
    pub(crate) fn ended(&mut self, watchdog: &mut Watchdog) -> Result<Option<ExitStatus>> {
        let status = self.child.try_wait().with_context(|| format!("cannot ask after {}", self.name))?;
        if status.is_some() {
            watchdog.forget(self.pid());
        }
        Ok(status)
    }

    /// Asks it to end, without waiting.
    pub(crate) fn terminate(&self) -> Result<()> {
        kill_process(id(self.pid())?, Signal::TERM).with_context(|| format!("cannot ask {} to end", self.name))
    }

    /// SIGKILL, and the wait that frees its id. An error means that it has ended already.
    pub(crate) fn kill(&mut self, watchdog: &mut Watchdog) {
        let _ = self.child.kill();
        watchdog.forget(self.pid());
        let _ = self.child.wait();
    }
}

/// Whether a process runs, ours or not. One that has ended keeps its id until somebody reaps it, which Linux tells.
pub(crate) fn alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let ended = stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('Z'));
    !ended && id(pid).is_ok_and(|pid| rustix::process::test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
}

fn id(pid: u32) -> Result<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw).with_context(|| format!("{pid} is not a process id"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_has_ended_is_not_alive_even_before_it_is_reaped() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        assert!(alive(child.id()));
        kill_process(id(child.id()).unwrap(), Signal::KILL).unwrap();
        let end = std::time::Instant::now() + std::time::Duration::from_secs(5);
        while cfg!(target_os = "linux") && alive(child.id()) {
            assert!(std::time::Instant::now() < end);
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        child.wait().unwrap();
        assert!(!alive(child.id()));
    }
}
