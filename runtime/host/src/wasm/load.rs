//! From bytes to a policy: inspect, compile (or find compiled), link, check the settings.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
};

use serde_json::Value;
use sha2::{Digest, Sha256};
use wasmtime::{
    Engine, Store,
    component::{Component, HasSelf, InstancePre, Linker},
};
use weir_core::policy::{Finding, Identity, PolicyError};

use super::{
    Wasm,
    cache::Cache,
    call::{self, State},
    compile::{self, Compiler},
    inspect,
    limits::Limits,
    log::{Author, Keep},
    policy::{Parts, WasmPolicy},
    settings::{self, Settings},
    slot::{self, WasmSlot},
    text, wasi,
    watchdog::Watchdog,
};

/// Rejected digests remembered, so that a bad component is compiled once and not on every retry.
const MAX_REJECTED: usize = 64;

/// Why there is no policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// The component cannot serve, or cannot be asked.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The component is fine, its settings are not; at least one finding is an error.
    #[error("the settings are not valid: {}", .0.iter().map(|f| f.message.as_str()).collect::<Vec<_>>().join("; "))]
    Settings(Vec<Finding>),
}

/// A component, linked. Shared by all policies of one digest and gone with the last of them.
pub(super) struct Linked {
    pub(super) pre: InstancePre<State>,
}

/// What loads share.
pub(super) struct Loader {
    engine: Engine,
    linker: Linker<State>,
    compiler: Compiler,
    cache: Option<Cache>,
    known: Mutex<Known>,
    pub(super) schemas: Watchdog,
    /// One compilation at a time: each may take hundreds of megabytes.
    gate: Mutex<()>,
    /// Components that were compiled, and not found compiled.
    compiled: AtomicU64,
}

#[derive(Default)]
struct Known {
    linked: HashMap<String, Weak<Linked>>,
    rejected: HashMap<String, String>,
}

impl Loader {
    pub(super) fn new(engine: Engine, compiler: Compiler, cache: Option<Cache>) -> wasmtime::Result<Self> {
        let mut linker = Linker::new(&engine);
        slot::wit::add_to_linker::<State, HasSelf<State>>(&mut linker, |state| state)?;
        slot::log::add_to_linker::<State, HasSelf<State>>(&mut linker, |state| state)?;
        Ok(Self {
            engine,
            linker,
            compiler,
            cache,
            known: Mutex::default(),
            schemas: settings::watchdog(),
            gate: Mutex::default(),
            compiled: AtomicU64::new(0),
        })
    }

    pub(super) fn compiled(&self) -> u64 {
        self.compiled.load(Ordering::Relaxed)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The linked component of `digest` (64 hexadecimal digits of the bytes' SHA-256).
    pub(super) fn linked(&self, wasm: &[u8], digest: &str) -> Result<Arc<Linked>, PolicyError> {
        if let Some(found) = self.find(digest) {
            return found;
        }
        let _gate = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        // Somebody else may have compiled it while this load waited.
        if let Some(found) = self.find(digest) {
            return found;
        }
        let outcome = self.component(wasm, digest).and_then(|component| self.link(&component));
        let mut known = self.known();
        match &outcome {
            Ok(linked) => {
                known.linked.retain(|_, linked| linked.strong_count() > 0);
                known.linked.insert(digest.to_owned(), Arc::downgrade(linked));
            }
            Err(compile::Error::Component(reason)) => {
                if known.rejected.len() >= MAX_REJECTED {
                    known.rejected.clear();
                }
                known.rejected.insert(digest.to_owned(), reason.clone());
            }
            Err(compile::Error::Host(_)) => {}
        }
        outcome.map_err(PolicyError::from)
    }

    fn find(&self, digest: &str) -> Option<Result<Arc<Linked>, PolicyError>> {
        let known = self.known();
        if let Some(reason) = known.rejected.get(digest) {
            return Some(Err(compile::Error::Component(reason.clone()).into()));
        }
        known.linked.get(digest).and_then(Weak::upgrade).map(Ok)
    }

    fn component(&self, wasm: &[u8], digest: &str) -> Result<Component, compile::Error> {
        if let Some(component) = self.cache.as_ref().and_then(|cache| cache.load(&self.engine, digest)) {
            return Ok(component);
        }
        self.compiled.fetch_add(1, Ordering::Relaxed);
        let compiled = self.compiler.compile(wasm)?;
        if let Some(cache) = &self.cache {
            cache.store(digest, &compiled.code);
        }
        Ok(compiled.component)
    }

    fn link(&self, component: &Component) -> Result<Arc<Linked>, compile::Error> {
        let failed = |e: wasmtime::Error| compile::Error::Component(text::chain(&e));
        let mut linker = self.linker.clone();
        wasi::define(&mut linker, component).map_err(failed)?;
        let pre = linker.instantiate_pre(component).map_err(failed)?;
        Ok(Arc::new(Linked { pre }))
    }
}

impl Wasm {
    /// Loads a component as a policy of slot `S`. Blocks while it compiles and asks the guest: call it from a thread that may wait.
    ///
    /// `source` is shown to people (`builtin`, `file:…`, an OCI reference). `settings` of JSON `null` are `{}`.
    ///
    /// # Errors
    /// [`LoadError::Policy`] with `Incompatible` when the bytes are no component for `S`, with any other failure when the guest's
    /// own `schema` or `validate` ends so, with `Unavailable` when this process cannot compile; [`LoadError::Settings`] when the
    /// component refuses the settings.
    pub fn load<S: WasmSlot>(
        &self,
        bytes: &[u8],
        source: String,
        settings: Value,
        limits: Limits,
    ) -> Result<Arc<WasmPolicy<S>>, LoadError> {
        let interfaces = inspect::interfaces(bytes, self.max_component()).map_err(PolicyError::from)?;
        interfaces.check(S::NAME).map_err(PolicyError::from)?;
        let settings = Settings::new(settings).map_err(LoadError::Settings)?;
        let mut policy = self.unasked::<S>(bytes, source, &settings, limits)?;
        let findings = check_settings(&self.loader().schemas, &policy, &settings)?;
        if settings::invalid(&findings) {
            return Err(LoadError::Settings(findings));
        }
        policy.set_findings(findings);
        Ok(Arc::new(policy))
    }

    /// Compiles and links; nothing of the guest has run yet.
    pub(super) fn unasked<S: WasmSlot>(
        &self,
        bytes: &[u8],
        source: String,
        settings: &Settings,
        limits: Limits,
    ) -> Result<WasmPolicy<S>, PolicyError> {
        let digest = hex::encode(Sha256::digest(bytes));
        let linked = self.loader().linked(bytes, &digest)?;
        let pre = S::prepare(linked.pre.clone())
            .map_err(|e| PolicyError::Incompatible(format!("an export of the contract is missing: {}", text::chain(&e))))?;
        let author = Arc::new(Author { source: source.clone(), slot: S::NAME.as_str() });
        let identity = Identity { source, digest: format!("sha256:{digest}"), settings_digest: settings.digest.clone() };
        Ok(WasmPolicy::new(self.clone(), Parts { identity, limits, pre, linked, author, settings: settings.json.clone() }))
    }
}

/// The schema first: `validate` may rely on it.
fn check_settings<S: WasmSlot>(schemas: &Watchdog, policy: &WasmPolicy<S>, settings: &Settings) -> Result<Vec<Finding>, PolicyError> {
    let findings = settings.check(schemas, schema(policy)?)?;
    if settings::invalid(&findings) { Ok(findings) } else { validate(policy) }
}

/// The guest's schema of its settings.
pub(super) fn schema<S: WasmSlot>(policy: &WasmPolicy<S>) -> Result<String, PolicyError> {
    policy.blocking(policy.limits().for_settings(), |pre, store: &mut Store<State>, _| S::schema(pre, store))
}

/// What the guest says of its settings.
pub(super) fn validate<S: WasmSlot>(policy: &WasmPolicy<S>) -> Result<Vec<Finding>, PolicyError> {
    let findings = policy.blocking(policy.limits().for_settings(), |pre, store, settings| S::validate(pre, store, settings))?;
    settings::bounded(slot::findings(findings))
}

/// Runs one export on the calling thread's behalf.
pub(super) fn run<T>(
    engine: &Engine,
    limits: Limits,
    author: Arc<Author>,
    ask: impl FnOnce(&mut Store<State>) -> wasmtime::Result<T>,
) -> Result<T, PolicyError> {
    let mut store = call::store(engine, limits, author, Keep::Nothing);
    let outcome = ask(&mut store);
    call::end(store, limits, outcome).0
}
