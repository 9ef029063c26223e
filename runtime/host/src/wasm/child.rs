//! Compiling large components in a child process: the same executable, started with a hidden first argument, held by rlimits.

use std::{
    ffi::OsString,
    fs,
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    process::{Child, Command, ExitCode, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Resource, Rlimit, Signal, setrlimit};

use super::{compile::Error, engine, text, watchdog::panic_text};

/// The hidden first argument; the program's `main` hands everything after it to [`compile_child_main`].
pub const COMPILE_CHILD_ARG: &str = "__compile-component";

/// Largest file the child may write, bytes: compiled code is about twice the wasm.
const MAX_FILE: u64 = 512 << 20;
/// Exit code for a component that does not compile. Not 1, 2 or 101, which a program has for reasons of its own.
const REJECTED: u8 = 75;
/// Exit code for a child that cannot do its work.
const FAILED: u8 = 74;
/// A compilation has so many seconds of processor time, and so many times that on the clock: how busy the machine is says nothing about the
/// component.
const PATIENCE: u32 = 4;
/// How often the parent looks.
const POLL: Duration = Duration::from_millis(10);

/// The program that is started, and the address space its compilations may use, bytes.
#[derive(Debug, Clone)]
pub(super) struct Program {
    pub(super) path: PathBuf,
    pub(super) address_space: u64,
}

impl Program {
    /// Compiles `wasm` within `timeout` of processor time. The files are in a directory of mode 0700 that ends with the compilation.
    pub(super) fn compile(&self, wasm: &[u8], timeout: Duration) -> Result<Vec<u8>, Error> {
        let host = |what: &'static str| move |e: std::io::Error| Error::Host(format!("{what}: {e}"));
        let dir = tempfile::Builder::new().prefix("weir-compile-").tempdir().map_err(host("temporary directory"))?;
        let (input, output, errors) = (dir.path().join("in.wasm"), dir.path().join("out.cwasm"), dir.path().join("stderr"));
        fs::write(&input, wasm).map_err(host("temporary file"))?;
        let stderr = fs::File::create(&errors).map_err(host("temporary file"))?;
        let child = Command::new(&self.path)
            .arg(COMPILE_CHILD_ARG)
            .args([&input, &output])
            .args([self.address_space.to_string(), timeout.as_secs().max(1).to_string()])
            .env_clear()
            // Each thread and each of glibc's arenas costs address space, which is limited.
            .env("RAYON_NUM_THREADS", "2")
            .env("MALLOC_ARENA_MAX", "2")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(stderr)
            .spawn()
            .map_err(host("compile child"))?;
        match wait(Guard(child), timeout.saturating_mul(PATIENCE)).map_err(host("compile child"))? {
            Some(status) if status.success() => fs::read(&output).map_err(host("compiled code")),
            Some(status) => Err(ended(status, &errors)),
            None => Err(Error::Host(format!("this machine had less than {} s for it in {PATIENCE} times as long", timeout.as_secs()))),
        }
    }
}

/// A child that does not outlive the wait, whatever way it ends.
struct Guard(Child);

impl Drop for Guard {
    fn drop(&mut self) {
        // Both fail when the child has ended, which is all that is wanted.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// `None` when time is up.
fn wait(mut child: Guard, timeout: Duration) -> std::io::Result<Option<ExitStatus>> {
    let end = Instant::now() + timeout;
    loop {
        if let Some(status) = child.0.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= end {
            return Ok(None);
        }
        thread::sleep(POLL);
    }
}

fn ended(status: ExitStatus, errors: &Path) -> Error {
    let said = fs::read(errors).unwrap_or_default();
    let said = String::from_utf8_lossy(&said);
    // Of a panic of the compiler's threads or the allocator's last word, the line that says what, not how to get a backtrace.
    let mut lines = said.lines().filter(|line| !line.is_empty() && !line.starts_with("note:"));
    let said: String = lines.next_back().unwrap_or_default().chars().filter(|c| !c.is_control()).take(300).collect();
    match status.code().map(u8::try_from) {
        Some(Ok(REJECTED)) => Error::Component(said),
        Some(Ok(FAILED)) => Error::Host(said),
        // Out of memory ends as an abort. A program that is not ours ends in its own way.
        Some(_) => Error::Host(format!("the compile child ended with {status}: {said}")),
        None if out_of_time(status) => Error::Component("it takes over its time".to_owned()),
        None => Error::Component(format!("the compiler ended with {status}: {said}")),
    }
}

/// The limit of processor time is soft and hard in one, so that one of these signals ends the child.
fn out_of_time(status: ExitStatus) -> bool {
    [Signal::XCPU, Signal::KILL].iter().any(|signal| status.signal() == Some(signal.as_raw()))
}

/// The child: `IN OUT ADDRESS_SPACE CPU_SECONDS`, after [`COMPILE_CHILD_ARG`]. Sets its own rlimits, compiles, writes.
pub fn compile_child_main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    // One line for the parent; the default hook would add where and a backtrace.
    std::panic::set_hook(Box::new(|_| {}));
    let args: Vec<OsString> = args.into_iter().collect();
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(&args)));
    let (line, code) = match outcome {
        Ok(Ok(())) => return ExitCode::SUCCESS,
        Ok(Err(Error::Component(line))) => (line, REJECTED),
        Ok(Err(Error::Host(line))) => (line, FAILED),
        Err(panic) => (format!("the compiler gave up: {}", panic_text(panic.as_ref())), REJECTED),
    };
    // stderr is the way to the parent.
    drop(std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes()));
    ExitCode::from(code)
}

fn run(args: &[OsString]) -> Result<(), Error> {
    let host = |e: &dyn std::fmt::Display| Error::Host(e.to_string());
    let [input, output, address_space, cpu] = args else {
        return Err(host(&"the compile child needs IN OUT ADDRESS_SPACE CPU_SECONDS"));
    };
    let number = |arg: &OsString| arg.to_str().and_then(|a| a.parse::<u64>().ok()).ok_or_else(|| host(&"a limit is no number"));
    for (resource, most) in
        [(Resource::As, number(address_space)?), (Resource::Cpu, number(cpu)?), (Resource::Fsize, MAX_FILE), (Resource::Core, 0)]
    {
        let limit = Rlimit { current: Some(most), maximum: Some(most) };
        setrlimit(resource, limit).map_err(|e| host(&e))?;
    }
    let engine = engine::compile_only().map_err(|e| host(&e))?;
    let wasm = fs::read(input).map_err(|e| host(&e))?;
    let code = engine.precompile_component(&wasm).map_err(|e| Error::Component(text::chain(&e)))?;
    fs::write(output, code).map_err(|e| host(&e))
}
