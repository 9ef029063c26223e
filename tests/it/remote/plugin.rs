//! The plugin on CloudNativePG's server stack, as a process: certificates in files, answers in a file.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::Value;
use weir_remote_plugin::Files;

/// Longest start; a machine may be busy.
const START: Duration = Duration::from_secs(30);
/// What it calls itself unless it is told otherwise.
pub(crate) const NAME: &str = "cnpg.example.com";

/// Dropping it kills it.
pub(crate) struct Plugin {
    program: PathBuf,
    pub(crate) dir: tempfile::TempDir,
    pub(crate) address: SocketAddr,
    child: Option<Child>,
}

impl Plugin {
    /// One that is good, on this machine alone.
    pub(crate) fn start(program: &Path, files: &Files) -> Self {
        Self::start_at(program, files, IpAddr::V4(Ipv4Addr::LOCALHOST))
    }

    /// One that is good, at this address of the machine.
    pub(crate) fn start_at(program: &Path, files: &Files, ip: IpAddr) -> Self {
        let port = TcpListener::bind((ip, 0)).and_then(|listener| listener.local_addr()).unwrap().port();
        let (dir, address) = (tempfile::tempdir().unwrap(), SocketAddr::new(ip, port));
        let mut plugin = Self { program: program.to_owned(), dir, address, child: None };
        plugin.renew(files);
        plugin.answer(&serde_json::json!({}));
        plugin.resume();
        plugin
    }

    /// New certificates, from the next handshake on. A handshake between two writes fails, and the next one does not.
    pub(crate) fn renew(&self, files: &Files) {
        for (name, text) in [("server.key", &files.key), ("server.crt", &files.cert), ("client.crt", &files.clients)] {
            self.write(name, text);
        }
    }

    /// How to answer from now on (`answers.go`).
    pub(crate) fn answer(&self, answer: &Value) {
        self.write("answers.json", &answer.to_string());
    }

    /// Kills it: that is how these plugins end.
    pub(crate) fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            drop(child.kill());
            drop(child.wait());
        }
    }

    /// Starts it again at its address.
    pub(crate) fn resume(&mut self) {
        let file = |name: &str| self.dir.path().join(name);
        let log = std::fs::File::options().create(true).append(true).open(file("log")).unwrap();
        let mut command = Command::new(&self.program);
        command.arg("--server-address").arg(self.address.to_string());
        let files = [("--server-cert", "server.crt"), ("--server-key", "server.key"), ("--client-cert", "client.crt")];
        for (flag, name) in files.into_iter().chain([("--answers", "answers.json")]) {
            command.arg(flag).arg(file(name));
        }
        let child = command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
        self.child = Some(child);
        let began = Instant::now();
        while TcpStream::connect(self.address).is_err() {
            let ended = self.child.as_mut().is_none_or(|child| child.try_wait().unwrap().is_some());
            let log = || std::fs::read_to_string(file("log")).unwrap_or_default();
            assert!(!ended && began.elapsed() < START, "the plugin does not listen: {}", log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Whole or as it was: the plugin reads with every handshake and every call.
    fn write(&self, name: &str, text: &str) {
        let beside = self.dir.path().join(format!(".{name}"));
        std::fs::write(&beside, text).unwrap();
        std::fs::rename(beside, self.dir.path().join(name)).unwrap();
    }
}

impl Drop for Plugin {
    fn drop(&mut self) {
        self.stop();
    }
}
