//! A control plane: five processes in one run directory.

mod files;
mod flags;
mod nodes;
mod probe;
mod run_dir;
mod start;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use kube::{Client, Config};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde_json::json;

pub use run_dir::running;

use crate::binaries::{Binaries, Progress};
use crate::component::Component;
use crate::log;
use crate::watchdog::Watchdog;
use files::Files;
use flags::Ports;
use run_dir::RunDir;

const API_SERVER: &str = "kube-apiserver";

/// What a control plane is started with.
#[derive(Debug, Clone)]
pub struct Options {
    /// Users besides the administrator, with what RBAC gives their names and groups.
    pub users: Vec<User>,
    /// Where everything is kept; `None` is a new temporary directory.
    pub run_dir: Option<PathBuf>,
    /// Leaves the run directory behind when the control plane is dropped, to look at its logs.
    pub keep: bool,
    /// How many fake nodes there are.
    pub nodes: usize,
    /// Kubernetes' own components with the limits they have by default, instead of as fast as they can. For measurements: a controller manager
    /// that takes the machine's processors for itself hides what the operator does.
    pub stock_limits: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { users: Vec::new(), run_dir: None, keep: false, nodes: 1, stock_limits: false }
    }
}

/// Somebody the API server knows by a token. The user of a ServiceAccount is `system:serviceaccount:NAMESPACE:NAME`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// As it appears in role bindings and in the audit log.
    pub name: String,
    /// All groups but those the API server adds itself.
    pub groups: Vec<String>,
}

/// A running control plane. Dropping it kills its processes and removes its directory; so does the death of this process.
#[derive(Debug)]
pub struct ControlPlane {
    // Fields are dropped in order: the lock of the run directory last.
    components: Vec<Component>,
    watchdog: Watchdog,
    binaries: Binaries,
    files: Files,
    ports: Ports,
    url: String,
    kubeconfig: PathBuf,
    audit_log: PathBuf,
    keep: bool,
    run_dir: RunDir,
}

impl ControlPlane {
    /// Starts everything and returns when pods can run. Blocks; may be called inside a runtime and without one.
    pub fn start(options: &Options, progress: &mut Progress<'_>) -> Result<Self> {
        start::start(options, progress)
    }

    /// The kubeconfig of an administrator.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// The kubeconfig of a user that was given at the start.
    pub fn kubeconfig_of(&self, user: &str) -> Result<PathBuf> {
        self.files.kubeconfig(user).map(Path::to_owned)
    }

    /// The API server.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Where logs, data and keys are.
    pub fn run_dir(&self) -> &Path {
        self.run_dir.path()
    }

    /// An administrator's client configuration, without a rate limit.
    pub fn config(&self) -> Result<Config> {
        let certificate = self.files.certificate();
        let trusted = CertificateDer::pem_file_iter(&certificate)
            .and_then(Iterator::collect::<std::result::Result<Vec<_>, _>>)
            .with_context(|| format!("cannot read certificates from {}", certificate.display()))?;
        let mut config = Config::new(self.url.parse().context("the API server's address is not a URL")?);
        config.root_cert = Some(trusted.into_iter().map(|certificate| certificate.to_vec()).collect());
        config.auth_info = serde_json::from_value(json!({ "token": self.files.admin_token() }))?;
        Ok(config)
    }

    /// An administrator's client. It lives on the runtime it was made in, so this is an error outside of one.
    pub fn client(&self) -> Result<Client> {
        tokio::runtime::Handle::try_current().context("a client is made inside a runtime")?;
        Ok(Client::try_from(self.config()?)?)
    }

    /// SIGKILL to the API server. What was acknowledged is kept; watches break.
    pub fn kill_api_server(&mut self) -> Result<()> {
        let index = self.components.iter().position(|component| component.name() == API_SERVER).context("the API server does not run")?;
        self.components.remove(index).kill(&mut self.watchdog);
        Ok(())
    }

    /// Starts a killed API server with the same port and data, and returns when it is ready.
    pub fn start_api_server(&mut self) -> Result<()> {
        start::restart_api_server(self)
    }

    /// JSON lines, one `audit.k8s.io/v1` Event at level Metadata per request that has ended, with user, user agent, verb and
    /// resource. A request's line is there when its answer is. A watch has its line only once it is closed, and none if the API
    /// server was killed.
    pub fn audit_log(&self) -> &Path {
        &self.audit_log
    }

    /// Name and process id of everything that was started and not killed since.
    pub fn components(&self) -> Vec<(&'static str, u32)> {
        self.components.iter().map(|component| (component.name(), component.pid())).collect()
    }

    /// An error, with the end of its log, when a component has ended by itself.
    pub fn check(&mut self) -> Result<()> {
        for component in &mut self.components {
            if let Some(status) = component.ended(&mut self.watchdog)? {
                let ended = format!("{} ended by itself ({status}):\n{}", component.name(), log::last_lines(component.log(), 12));
                if log::lost_a_port(component.log()) {
                    return Err(anyhow::Error::new(LostPort).context(ended));
                }
                bail!("{ended}");
            }
        }
        Ok(())
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        // The API server first: it complains when its store goes away. None is asked politely, because it would drain for 30 s.
        for component in self.components.iter_mut().rev() {
            component.kill(&mut self.watchdog);
        }
        if !self.keep {
            run_dir::remove(self.run_dir.path());
        }
    }
}

/// A port was free when it was chosen and taken when it was used.
#[derive(Debug)]
struct LostPort;

impl std::fmt::Display for LostPort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("another process took a port that was free")
    }
}

impl std::error::Error for LostPort {}
