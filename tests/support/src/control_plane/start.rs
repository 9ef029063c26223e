//! From nothing to a ready control plane.

use std::process::Command;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};

use super::probe::Probe;
use super::{API_SERVER, ControlPlane, Files, LostPort, Options, Ports, RunDir, files, flags, nodes};
use crate::binaries::{self, Binaries, Progress};
use crate::component::Component;
use crate::log;
use crate::watchdog::Watchdog;

/// For every step. They take seconds; a machine may be busy.
const LIMIT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(50);
const ATTEMPTS: usize = 5;

/// Works on a thread of its own, because whoever calls may be inside a runtime, where blocking on another one is refused.
pub(super) fn start(options: &Options, progress: &mut Progress<'_>) -> Result<ControlPlane> {
    let (say, said) = mpsc::channel::<String>();
    std::thread::scope(|scope| {
        let worker = scope.spawn(move || attempts(options, &mut |line| drop(say.send(line.to_owned()))));
        for line in said {
            progress(&line);
        }
        worker.join().map_err(|_| anyhow!("a bug ended the start of the control plane; the panic is above"))?
    })
}

/// A killed API server again. Its port may be somebody's outgoing connection for a moment, so it is tried until the limit.
pub(super) fn restart_api_server(plane: &mut ControlPlane) -> Result<()> {
    if plane.components.iter().any(|component| component.name() == API_SERVER) {
        bail!("the API server was not killed");
    }
    std::thread::scope(|scope| {
        let worker = scope.spawn(move || {
            let end = Instant::now() + LIMIT;
            loop {
                match plane.launch_api_server(end) {
                    Err(error) if error.is::<LostPort>() && Instant::now() < end => {
                        plane.kill_api_server()?;
                        std::thread::sleep(POLL);
                    }
                    Err(error) => return Err(error),
                    Ok(_) => return Ok(()),
                }
            }
        });
        worker.join().map_err(|_| anyhow!("a bug ended the start of the API server; the panic is above"))?
    })
}

fn attempts(options: &Options, progress: &mut Progress<'_>) -> Result<ControlPlane> {
    let binaries = binaries::ensure(progress)?;
    let mut attempt = 1;
    loop {
        match launch(options, &binaries, progress) {
            Err(error) if error.is::<LostPort>() && attempt < ATTEMPTS => {
                attempt += 1;
                progress("another process took a port; starting again with other ports …");
            }
            result => return result,
        }
    }
}

fn launch(options: &Options, binaries: &Binaries, progress: &mut Progress<'_>) -> Result<ControlPlane> {
    let begin = Instant::now();
    let run_dir = RunDir::open(options.run_dir.as_deref())?;
    let watchdog = Watchdog::start((!options.keep).then_some(run_dir.path()), Some(run_dir.lock()?))?;
    let ports = Ports::choose()?;
    let files = Files::write(run_dir.path(), &ports.url(), &options.users)?;
    let mut plane = ControlPlane {
        components: Vec::new(),
        watchdog,
        binaries: binaries.clone(),
        url: ports.url(),
        kubeconfig: files.kubeconfig(files::ADMIN)?.to_owned(),
        audit_log: files.audit_log(),
        files,
        ports,
        keep: options.keep,
        run_dir,
    };

    progress("starting etcd and kube-apiserver …");
    plane.spawn("etcd", flags::etcd(binaries, &plane.files, ports))?;
    let probe = plane.launch_api_server(begin + LIMIT)?;

    progress("starting kube-controller-manager, kube-scheduler and kwok …");
    plane.spawn("kube-controller-manager", flags::controller_manager(binaries, &plane.files, options.stock_limits)?)?;
    plane.spawn("kube-scheduler", flags::scheduler(binaries, &plane.files, options.stock_limits)?)?;
    plane.spawn("kwok", flags::kwok(binaries, &plane.files)?)?;
    probe.with(|client| async move { nodes::create(&client, options.nodes).await })?;
    plane.wait_for("nodes are not ready", "kwok", Instant::now() + LIMIT, |_| {
        probe.with(|client| async move { nodes::ready(&client, options.nodes).await })
    })?;
    progress(&format!("ready after {:.1} s in {}", begin.elapsed().as_secs_f64(), plane.run_dir().display()));
    Ok(plane)
}

impl ControlPlane {
    fn spawn(&mut self, name: &'static str, mut command: Command) -> Result<()> {
        let component = Component::spawn(name, &mut command, self.files.log(name), &mut self.watchdog)?;
        self.components.push(component);
        Ok(())
    }

    fn launch_api_server(&mut self, end: Instant) -> Result<Probe> {
        self.spawn(API_SERVER, flags::api_server(&self.binaries, &self.files, self.ports))?;
        let mut probe = Probe::new()?;
        self.wait_for("the API server is not ready", API_SERVER, end, |plane| probe.ready(plane.config()))?;
        Ok(probe)
    }

    /// Polls until `step` succeeds; its last error is the reason when it never does. A component that ended is a better reason.
    fn wait_for(&mut self, problem: &str, who: &str, end: Instant, mut step: impl FnMut(&Self) -> Result<()>) -> Result<()> {
        loop {
            self.check()?;
            let Err(error) = step(self) else { return Ok(()) };
            if Instant::now() >= end {
                let end_of_log = log::last_lines(&self.files.log(who), 12);
                return Err(error).with_context(|| format!("{problem}; the end of the log of {who}:\n{end_of_log}"));
            }
            std::thread::sleep(POLL);
        }
    }
}
