//! A loaded component as a policy: asks on the pool's threads, checks on the caller's.

use std::{sync::Arc, time::Instant};

use wasmtime::Store;
use weir_core::policy::{BoxFuture, Finding, Identity, Policy, PolicyError};

use super::{
    Wasm,
    call::{self, State, Usage},
    limits::Limits,
    load::{self, Linked},
    log::{Author, Keep},
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

    /// Asks as [`Policy::evaluate`] does, and says what it cost. A call that the watchdog had to give up has no figures but the time.
    pub async fn measured(&self, input: &S::Input) -> (Result<S::Answer, PolicyError>, Usage) {
        self.ask(input, Keep::Lines).await
    }

    async fn ask(&self, input: &S::Input, keep: Keep) -> (Result<S::Answer, PolicyError>, Usage) {
        let since = Instant::now();
        let question = S::question(input);
        let (guest, engine, limits) = (Arc::clone(&self.guest), self.host.engine().clone(), self.limits);
        let work = move || {
            let mut store = call::store(&engine, limits, Arc::clone(&guest.author), keep);
            let outcome = S::evaluate(&guest.pre, &mut store, &question, &guest.settings);
            Ok(call::finish::<S>(store, limits, outcome))
        };
        let answer = self.host.pool().submit(self.lane, limits.timeout(), work);
        let given_up = || Usage { time: since.elapsed(), ..Usage::default() };
        match answer.await.unwrap_or_else(|_| Err(stopped())) {
            Ok((answer, usage)) => {
                let checked = answer.and_then(|answer| S::check(input, &answer).map(|()| answer).map_err(PolicyError::BadOutput));
                (checked, usage)
            }
            Err(error) => (Err(error), given_up()),
        }
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
        Box::pin(async move { self.ask(input, Keep::Nothing).await.0 })
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
