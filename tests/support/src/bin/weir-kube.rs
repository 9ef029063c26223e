//! `weir-kube`: a control plane on this machine for a person. `cargo xtask kube` runs it.

use std::io::{BufRead, BufReader, IsTerminal, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::{Args, Parser, Subcommand};
use rustix::process::{Pid, Signal, kill_process};
use tokio::signal::unix::{SignalKind, signal};
use weir_testkit::{ControlPlane, Options, give_addresses, running};

/// How long a control plane may take to stop before it is killed, and after that for its watchdog to clean up.
const STOP: Duration = Duration::from_secs(15);

/// A local Kubernetes control plane: API server, controllers, scheduler and fake nodes, without containers.
#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Start it; it stops with Ctrl-C
    Up {
        #[command(flatten)]
        place: Place,
        /// Return when it is ready; it runs until `down`
        #[arg(long)]
        detach: bool,
        /// Number of fake nodes
        #[arg(long, default_value_t = 1)]
        nodes: usize,
    },
    /// Stop it and remove its directory
    Down(Place),
    /// Print the line that points kubectl to it
    Env(Place),
}

#[derive(Args)]
struct Place {
    /// Where its data, logs and kubeconfig are
    #[arg(long, value_name = "DIR", default_value = "target/kube")]
    dir: PathBuf,
}

fn main() -> ExitCode {
    let done = match Cli::parse().action {
        Action::Up { place, detach, nodes } => up(&place.dir, detach, nodes),
        Action::Down(place) => down(&place.dir),
        Action::Env(place) => env(&place.dir),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn up(dir: &Path, detach: bool, nodes: usize) -> Result<()> {
    let dir = std::path::absolute(dir)?;
    if let Some(pid) = running(&dir)? {
        say(&format!("is running already in {} (process {pid})", dir.display()));
        return print_env(&dir);
    }
    if detach {
        return up_detached(&dir, nodes);
    }
    let options = Options { run_dir: Some(dir.clone()), nodes, ..Options::default() };
    let mut plane = ControlPlane::start(&options, &mut say)?;
    print_env(&dir)?;
    if std::io::stdin().is_terminal() {
        say("stops with Ctrl-C, or with `down` from another terminal");
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let ended = runtime.block_on(attend(&mut plane));
    say("stopping …");
    ended
}

/// Until somebody asks for the end, or a component ends by itself.
async fn attend(plane: &mut ControlPlane) -> Result<()> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let mut addresses = std::pin::pin!(give_addresses(plane.client()?));
    let mut look = tokio::time::interval(Duration::from_secs(1));
    loop {
        tokio::select! {
            _ = interrupt.recv() => return Ok(()),
            _ = terminate.recv() => return Ok(()),
            () = &mut addresses => {}
            _ = look.tick() => plane.check()?,
        }
    }
}

/// The same program once more, in the background. It is ready when it says where its kubeconfig is; then nobody reads what it
/// says any more, and its pipes break harmlessly.
fn up_detached(dir: &Path, nodes: usize) -> Result<()> {
    let mut command = Command::new(std::env::current_exe().context("cannot find this program again")?);
    command.arg("up").arg("--dir").arg(dir).args(["--nodes", &nodes.to_string()]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn().context("cannot start this program again")?;
    let (out, err) = (child.stdout.take().context("no output")?, child.stderr.take().context("no output")?);
    // Its progress, already in the form in which it is shown.
    std::thread::spawn(move || BufReader::new(err).lines().map_while(Result::ok).for_each(|line| write_line(&line)));
    match BufReader::new(out).lines().next() {
        Some(line) => {
            // Its last words of progress came by the other pipe, just before.
            std::thread::sleep(Duration::from_millis(50));
            writeln!(std::io::stdout(), "{}", line?)?;
            Ok(())
        }
        None => bail!("the control plane did not start ({}); what it said is above", child.wait()?),
    }
}

fn down(dir: &Path) -> Result<()> {
    let Some(pid) = running(dir)? else {
        say(&format!("no control plane is running in {}", dir.display()));
        return Ok(());
    };
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).with_context(|| format!("{pid} is not a process id"))?;
    for how in [Signal::TERM, Signal::KILL] {
        // It may end by itself at this moment; whether it did is what counts.
        let _ = kill_process(pid, how);
        let end = Instant::now() + STOP;
        while Instant::now() < end {
            if running(dir)?.is_none() {
                say("stopped");
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    bail!("the control plane in {} does not stop", dir.display())
}

fn env(dir: &Path) -> Result<()> {
    if running(dir)?.is_none() {
        bail!("no control plane is running in {}; start one with `up`", dir.display());
    }
    print_env(&std::path::absolute(dir)?)
}

fn print_env(dir: &Path) -> Result<()> {
    let kubeconfig = dir.join("kubeconfig").display().to_string();
    Ok(writeln!(std::io::stdout(), "export KUBECONFIG='{}'", kubeconfig.replace('\'', "'\\''"))?)
}

fn say(text: &str) {
    let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    write_line(&if colour { format!("\u{1b}[1mkube:\u{1b}[0m {text}") } else { format!("kube: {text}") });
}

/// A reader that has gone is no error.
fn write_line(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
