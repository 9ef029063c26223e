//! A loaded component as a policy: asks on the pool's threads, checks on the caller's.

use std::sync::Arc;

use wasmtime::Store;
use weir_core::policy::{BoxFuture, Finding, Identity, Policy, PolicyError};

use super::{
    Wasm,
    call::{self, State},
    limits::Limits,
    load::{self, Linked},
    log::Author,
    pool::Lane,
    slot::WasmSlot,
};

/// A policy of slot `S` that is a Wasm component.
pub struct WasmPolicy<S: WasmSlot> {
    host: Wasm,
    lane: Lane,
    identity: Identity,
    limits: Limits,
    findings: Vec<Finding>,
    guest: Arc<Guest<S>>,
}

/// What a call takes to the thread it runs on.
struct Guest<S: WasmSlot> {
    pre: S::Pre,
    settings: String,
    author: Arc<Author>,
    /// Keeps the digest known to the loader as long as a policy runs it.
    _linked: Arc<Linked>,
}

/// What a policy is made of.
pub(super) struct Parts<S: WasmSlot> {
    pub(super) identity: Identity,
    pub(super) limits: Limits,
    pub(super) pre: S::Pre,
    pub(super) linked: Arc<Linked>,
    pub(super) author: Arc<Author>,
    pub(super) settings: String,
}

impl<S: WasmSlot> WasmPolicy<S> {
    pub(super) fn new(host: Wasm, parts: Parts<S>) -> Self {
        let Parts { identity, limits, pre, linked, author, settings } = parts;
        let guest = Arc::new(Guest { pre, settings, author, _linked: linked });
        Self { lane: host.lane(), host, identity, limits, findings: Vec::new(), guest }
    }

    pub(super) fn set_findings(&mut self, findings: Vec<Finding>) {
        self.findings = findings;
    }

    /// The limits of each call.
    #[must_use]
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// What the policy said about its settings that does not make them invalid.
    #[must_use]
    pub fn settings_findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Asks something other than `evaluate` and waits for it.
    pub(super) fn blocking<T: Send + 'static>(
        &self,
        limits: Limits,
        ask: impl FnOnce(&S::Pre, &mut Store<State>, &str) -> wasmtime::Result<T> + Send + 'static,
    ) -> Result<T, PolicyError> {
        let (guest, engine) = (Arc::clone(&self.guest), self.host.engine().clone());
        let work = move || {
            let author = Arc::clone(&guest.author);
            load::run(&engine, limits, author, |store| ask(&guest.pre, store, &guest.settings))
        };
        let answer = self.host.pool().submit(self.lane, limits.timeout(), work);
        futures::executor::block_on(answer).unwrap_or_else(|_| Err(stopped()))
    }
}

impl<S: WasmSlot> Policy<S> for WasmPolicy<S> {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn evaluate<'a>(&'a self, input: &'a S::Input) -> BoxFuture<'a, Result<S::Answer, PolicyError>> {
        Box::pin(async move {
            let question = S::question(input);
            let (guest, engine, limits) = (Arc::clone(&self.guest), self.host.engine().clone(), self.limits);
            let work = move || {
                let mut store = call::store(&engine, limits, Arc::clone(&guest.author));
                let outcome = S::evaluate(&guest.pre, &mut store, &question, &guest.settings);
                call::finish::<S>(store, limits, outcome)
            };
            let answer = self.host.pool().submit(self.lane, limits.timeout(), work);
            let answer = answer.await.unwrap_or_else(|_| Err(stopped()))?;
            S::check(input, &answer).map_err(PolicyError::BadOutput)?;
            Ok(answer)
        })
    }
}

impl<S: WasmSlot> std::fmt::Debug for WasmPolicy<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WasmPolicy").field("slot", &S::NAME).field("identity", &self.identity).finish_non_exhaustive()
    }
}

fn stopped() -> PolicyError {
    PolicyError::Unavailable("the Wasm host stops".into())
}
