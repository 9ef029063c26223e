//! A server of ours on one port, with a directory of its own: started, found to answer, stopped, and started again.

use std::io::{Read, Seek, SeekFrom};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::component::Component;
use crate::http::{self, Request};
use crate::log;
use crate::port::free_port;
use crate::watchdog::Watchdog;

/// Such servers start within a second; a machine may be busy.
const LIMIT: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(10);
const ATTEMPTS: usize = 5;

/// What is asked until the server answers with one of the statuses.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ready {
    pub(crate) target: &'static str,
    pub(crate) statuses: &'static [u16],
}

/// Dropping it kills the server and removes its directory. The server goes first, or it would write into what is being removed.
#[derive(Debug)]
pub(crate) struct Server {
    name: &'static str,
    component: Option<Component>,
    watchdog: Watchdog,
    ready: Ready,
    port: u16,
    dir: tempfile::TempDir,
}

impl Server {
    /// Starts a server on a free port. `command` gets the directory and the port, writes what the server reads, and says how to run
    /// it; it is asked again when another process was faster to take the port.
    pub(crate) fn start(name: &'static str, ready: Ready, command: &mut dyn FnMut(&Path, u16) -> Result<Command>) -> Result<Self> {
        let dir = tempfile::Builder::new().prefix("weir-").tempdir()?;
        let watchdog = Watchdog::start(Some(dir.path()), None)?;
        let mut server = Self { name, component: None, watchdog, ready, port: 0, dir };
        for _ in 0..ATTEMPTS {
            server.port = free_port()?;
            let command = command(server.dir.path(), server.port)?;
            if server.run(command)? {
                return Ok(server);
            }
        }
        bail!("{name} lost its port to another process {ATTEMPTS} times")
    }

    /// Starts a stopped server on the port it had, which may be somebody's outgoing connection for a moment.
    pub(crate) fn resume(&mut self, command: &mut dyn FnMut(&Path, u16) -> Result<Command>) -> Result<()> {
        if self.component.is_some() {
            bail!("{} was not stopped", self.name);
        }
        let end = Instant::now() + LIMIT;
        loop {
            let free = TcpListener::bind((Ipv4Addr::LOCALHOST, self.port)).is_ok();
            if free && self.run(command(self.dir.path(), self.port)?)? {
                return Ok(());
            }
            if Instant::now() >= end {
                bail!("{} does not get its port {} back", self.name, self.port);
            }
            std::thread::sleep(POLL);
        }
    }

    /// Runs it until it answers; `false` if it has lost its port.
    fn run(&mut self, mut command: Command) -> Result<bool> {
        let before = std::fs::metadata(self.log()).map_or(0, |log| log.len());
        let mut component = Component::spawn(self.name, &mut command, self.log(), &mut self.watchdog)?;
        let end = Instant::now() + LIMIT;
        loop {
            if let Some(status) = component.ended(&mut self.watchdog)? {
                if self.said_since(before)?.to_ascii_lowercase().contains("address already in use") {
                    return Ok(false);
                }
                bail!("{} has ended ({status}):\n{}", self.name, log::last_lines(&self.log(), 20));
            }
            let request = Request { method: "GET", target: self.ready.target, ..Request::default() };
            let answer = http::ask(&self.host(), &request).map(|answer| answer.status);
            match answer {
                Ok(status) if self.ready.statuses.contains(&status) => break,
                _ if Instant::now() < end => std::thread::sleep(POLL),
                answer => {
                    component.kill(&mut self.watchdog);
                    bail!("{} does not get ready ({answer:?}):\n{}", self.name, log::last_lines(&self.log(), 20));
                }
            }
        }
        self.component = Some(component);
        Ok(true)
    }

    /// What it wrote after its log had a length.
    fn said_since(&self, length: u64) -> Result<String> {
        let mut log = std::fs::File::open(self.log())?;
        log.seek(SeekFrom::Start(length))?;
        let mut bytes = Vec::new();
        log.read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// SIGKILL. Harmless when it is stopped.
    pub(crate) fn stop(&mut self) {
        if let Some(mut component) = self.component.take() {
            component.kill(&mut self.watchdog);
        }
    }

    /// Address and port.
    pub(crate) fn host(&self) -> String {
        format!("{}:{}", Ipv4Addr::LOCALHOST, self.port)
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Where its output goes, of all its runs.
    pub(crate) fn log(&self) -> PathBuf {
        self.dir().join("server.log")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}
