//! Compiling, bounded: denial of service while compiling is no bug for wasmtime, so the host has to hold it off.

use std::time::Duration;

use wasmtime::{Engine, component::Component};
use weir_core::policy::PolicyError;

use super::{
    aot, child, text,
    watchdog::{Stopped, Watchdog},
};

/// Components of more bytes are compiled in a child process, if there is a program for it.
const CHILD_FROM: usize = 2 << 20;
/// Compilations on threads at once, those included that ran into the watchdog and still run.
const MAX_THREADS: usize = 2;
/// The compiler recurses over the shape of the code.
const STACK: usize = 8 << 20;

/// Why there is no compiled component.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The component is at fault: it does not compile, or not within the bounds.
    #[error("it does not compile: {0}")]
    Component(String),
    /// This process is at fault; the same component may compile another time.
    #[error("components cannot be compiled: {0}")]
    Host(String),
}

impl From<Error> for PolicyError {
    fn from(error: Error) -> Self {
        match error {
            Error::Component(_) => Self::Incompatible(error.to_string()),
            Error::Host(_) => Self::Unavailable(error.to_string()),
        }
    }
}

/// How components are compiled.
#[derive(Debug)]
pub(super) struct Compiler {
    engine: Engine,
    timeout: Duration,
    child: Option<child::Program>,
    watchdog: Watchdog,
}

/// A compiled component and, when it is not cheap to make again, its native code.
pub(super) struct Compiled {
    pub(super) component: Component,
    pub(super) code: Vec<u8>,
}

impl Compiler {
    pub(super) fn new(engine: Engine, timeout: Duration, child: Option<child::Program>) -> Self {
        Self { engine, timeout, child, watchdog: Watchdog::new("weir-compile", MAX_THREADS, STACK) }
    }

    pub(super) fn compile(&self, wasm: &[u8]) -> Result<Compiled, Error> {
        match &self.child {
            Some(program) if wasm.len() > CHILD_FROM => self.in_child(program, wasm),
            _ => self.in_thread(wasm),
        }
    }

    fn in_child(&self, program: &child::Program, wasm: &[u8]) -> Result<Compiled, Error> {
        let code = program.compile(wasm, self.timeout)?;
        // The child is this program; code that does not load means the executable was replaced under a running process.
        let component = aot::load(&self.engine, &code).map_err(|e| Error::Host(text::chain(&e)))?;
        Ok(Compiled { component, code })
    }

    /// On a thread of its own, so that a compilation without end only costs that thread.
    fn in_thread(&self, wasm: &[u8]) -> Result<Compiled, Error> {
        let (engine, wasm) = (self.engine.clone(), wasm.to_vec());
        match self.watchdog.run(self.timeout, move || compile(&engine, &wasm)) {
            Ok(outcome) => outcome,
            Err(Stopped::Host(reason)) => Err(Error::Host(reason)),
            Err(stopped @ (Stopped::Time(_) | Stopped::Panic(_))) => Err(Error::Component(stopped.to_string())),
        }
    }
}

fn compile(engine: &Engine, wasm: &[u8]) -> Result<Compiled, Error> {
    let failed = |e: wasmtime::Error| Error::Component(text::chain(&e));
    let component = Component::from_binary(engine, wasm).map_err(failed)?;
    let code = component.serialize().map_err(failed)?;
    Ok(Compiled { component, code })
}
