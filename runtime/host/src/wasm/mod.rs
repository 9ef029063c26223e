//! Policies as WebAssembly components (design section 5).
//!
//! [`Wasm`] is the host: one engine, one pool of threads, one ticker. [`Wasm::load`] makes a [`WasmPolicy`] of a component's
//! bytes. Components are sealed: they can log and compute, nothing else. Those that import WASI get stubs of it, which give nothing.

mod aot;
mod builtin;
mod cache;
mod call;
mod check;
mod child;
mod compile;
mod engine;
pub mod inspect;
mod limits;
mod load;
mod log;
mod policy;
mod pool;
pub mod producers;
pub(crate) mod settings;
mod slot;
pub(crate) mod sniff;
mod task;
mod text;
mod ticker;
mod wasi;
pub(crate) mod watchdog;

use std::{
    num::NonZeroUsize,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

pub use self::{
    builtin::{Builtin, SOURCE as BUILTIN_SOURCE},
    cache::Error as CacheError,
    call::Usage,
    check::{Check, Step, Verdict},
    child::{COMPILE_CHILD_ARG, compile_child_main},
    engine::{Allocation, SLOT_MEMORY},
    limits::{Error as LimitsError, Limits, MAX_TIMEOUT, MIN_MEMORY},
    load::LoadError,
    log::{Line, LineLevel},
    policy::WasmPolicy,
    settings::MAX_SETTINGS,
    slot::WasmSlot,
    sniff::Foreign,
};

/// Most threads by default: calls are short, and each thread reserves address space for its instances.
const MAX_THREADS: NonZeroUsize = NonZeroUsize::MIN.saturating_add(15);

/// Largest component by default, bytes.
pub const MAX_COMPONENT: usize = 32 << 20;

/// How the host is set up. The defaults are those of the design; nothing is read from the environment.
#[derive(Debug, Clone)]
pub struct Config {
    /// Threads that run Wasm. By default the available parallelism, at most 16.
    pub threads: NonZeroUsize,
    /// Calls that may wait for a thread; more are `Unavailable`.
    pub queue: usize,
    /// Largest component, bytes.
    pub max_component: usize,
    /// Longest compilation.
    pub compile_timeout: Duration,
    /// The program to start for components over 2 MiB, with [`COMPILE_CHILD_ARG`] as its first argument: this executable, if its
    /// `main` calls [`compile_child_main`]. Without it they compile on a thread, where time is bounded but memory is not.
    pub compile_program: Option<PathBuf>,
    /// Address space of that program, bytes.
    pub compile_address_space: u64,
    /// Where compiled code is kept between runs: a directory of this user's own, mode 0700, made if it is not there. A mounted
    /// volume itself is usually writable by a group; name a folder in it.
    pub cache_dir: Option<PathBuf>,
    /// Most bytes kept there.
    pub cache_bytes: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            threads: thread::available_parallelism().unwrap_or(NonZeroUsize::MIN).min(MAX_THREADS),
            queue: 1_024,
            max_component: MAX_COMPONENT,
            compile_timeout: Duration::from_secs(60),
            compile_program: None,
            compile_address_space: 768 << 20,
            cache_dir: None,
            cache_bytes: 512 << 20,
        }
    }
}

/// No host could be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No engine on this machine.
    #[error(transparent)]
    Engine(#[from] engine::Error),
    /// The imports could not be linked.
    #[error("the host's imports do not link: {0}")]
    Link(String),
    /// No thread.
    #[error("no thread for Wasm: {0}")]
    Thread(#[from] std::io::Error),
}

/// The Wasm host. Cloning it is cheap and shares everything. One per process: engines do not share code or pool, and types of two
/// engines must never meet (GHSA-hgjw). It ends when the last clone and the last policy are gone.
#[derive(Clone)]
pub struct Wasm(Arc<Inner>);

struct Inner {
    engine: wasmtime::Engine,
    allocation: Allocation,
    cache: Result<Option<PathBuf>, CacheError>,
    pool: pool::Pool,
    loader: load::Loader,
    max_component: usize,
    lanes: AtomicU64,
}

impl Wasm {
    /// Starts the host: engine, threads, ticker. A cache that cannot be used only costs speed; [`Wasm::cache`] says why.
    ///
    /// # Errors
    /// When the engine does not start or the operating system grants no thread.
    pub fn new(config: Config) -> Result<Self, Error> {
        let (engine, allocation) = engine::start(config.threads)?;
        let pool = pool::Pool::start(config.threads, config.queue)?;
        let watch = pool.watch();
        ticker::start(engine.weak(), move |now| watch.upgrade().map(|pool| pool.sweep(now)).is_some())?;
        let opened = config.cache_dir.as_deref().map(|dir| {
            let cache = cache::Cache::open(dir, &engine::compatibility(&engine), config.cache_bytes);
            cache.inspect_err(|reason| tracing::warn!(target: "weir::host", %reason, "compiled code is kept in memory only"))
        });
        let (opened, cache) = match opened.transpose() {
            Ok(opened) => {
                let root = opened.as_ref().map(|cache| cache.root().to_owned());
                (opened, Ok(root))
            }
            Err(error) => (None, Err(error)),
        };
        let address_space = config.compile_address_space;
        let child = config.compile_program.map(|path| child::Program { path, address_space });
        let compiler = compile::Compiler::new(engine.clone(), config.compile_timeout, child);
        let loader = load::Loader::new(engine.clone(), compiler, opened).map_err(|e| Error::Link(text::chain(&e)))?;
        let max_component = config.max_component;
        Ok(Self(Arc::new(Inner { engine, allocation, cache, pool, loader, max_component, lanes: AtomicU64::new(0) })))
    }

    /// Where instances live, and why not in a pool.
    #[must_use]
    pub fn allocation(&self) -> &Allocation {
        &self.0.allocation
    }

    /// Where compiled code is kept; `None` when no directory was given.
    ///
    /// # Errors
    /// Why the directory that was given is not used.
    pub fn cache(&self) -> Result<Option<&std::path::Path>, &CacheError> {
        self.0.cache.as_ref().map(Option::as_deref)
    }

    /// Compilations that were begun since the start, those that failed included. What is found compiled, in memory or in the cache, is none.
    #[must_use]
    pub fn compilations(&self) -> u64 {
        self.loader().compiled()
    }

    fn engine(&self) -> &wasmtime::Engine {
        &self.0.engine
    }

    fn pool(&self) -> &pool::Pool {
        &self.0.pool
    }

    fn loader(&self) -> &load::Loader {
        &self.0.loader
    }

    fn max_component(&self) -> usize {
        self.0.max_component
    }

    /// A name for one more policy.
    fn lane(&self) -> pool::Lane {
        self.0.lanes.fetch_add(1, Ordering::Relaxed)
    }
}

impl std::fmt::Debug for Wasm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Wasm").field("allocation", &self.0.allocation).field("cache", &self.0.cache).finish_non_exhaustive()
    }
}
