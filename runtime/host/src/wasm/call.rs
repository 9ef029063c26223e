//! One call: a fresh store with every limit set, and what its end means. The store is dropped whatever the outcome
//! (GHSA-2hw9 hits embedders that go on with a store after an interrupt).

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use wasmtime::{Engine, PoolConcurrencyLimitError, Store, Trap};
use weir_core::policy::{PolicyError, Refusal, limits};

use super::{
    limits::{Limiter, Limits},
    log::{Author, Keep, Line, Lines},
    slot::{Export, WasmSlot, wit},
    text,
    wasi::{NotGiven, Stub},
};

/// Resource handles of one store; only the stubs of WASI have any.
const MAX_HANDLES: usize = 1_024;

/// What a store carries.
#[derive(Debug)]
pub struct State {
    limiter: Limiter,
    pub(super) lines: Lines,
    pub(super) stub: Stub,
    since: Instant,
    entered: Option<Instant>,
}

/// What one call cost, and what it logged.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Usage {
    /// From the fresh store to the end.
    pub time: Duration,
    /// The part of it that made the instance.
    pub instantiate: Duration,
    /// Most linear memory it had, bytes, over all its memories; memories never shrink.
    pub memory: usize,
    /// Its log lines, as many and as long as the operator would forward.
    pub lines: Vec<Line>,
}

impl State {
    /// Marks the end of instantiation: the export is called from here on.
    pub(super) fn enter(&mut self) {
        self.entered = Some(Instant::now());
    }

    fn usage(&mut self) -> Usage {
        let made = self.entered.map(|entered| entered.saturating_duration_since(self.since));
        let time = self.since.elapsed();
        Usage { time, instantiate: made.unwrap_or(time), memory: self.limiter.memory(), lines: self.lines.take() }
    }
}

impl wit::Host for State {}

/// A store that cannot do more than `limits` say.
pub(super) fn store(engine: &Engine, limits: Limits, author: Arc<Author>, keep: Keep) -> Store<State> {
    let (limiter, lines) = (Limiter::new(limits.memory()), Lines::new(author, keep));
    let state = State { limiter, lines, stub: Stub::default(), since: Instant::now(), entered: None };
    let mut store = Store::new(engine, state);
    store.limiter(|state| &mut state.limiter);
    store.set_epoch_deadline(limits.ticks());
    store.set_hostcall_fuel(limits.hostcall_fuel());
    store.set_max_component_handles(MAX_HANDLES);
    store
}

/// Ends a call that asked `evaluate`.
pub(super) fn finish<S: WasmSlot>(store: Store<State>, limits: Limits, outcome: Export<S>) -> (Result<S::Answer, PolicyError>, Usage) {
    let (outcome, usage) = end(store, limits, outcome);
    let answer = outcome.and_then(|answer| match answer {
        Ok(answer) => answer.map_err(PolicyError::BadOutput),
        Err((code, message)) => Err(refusal(code, message)),
    });
    (answer, usage)
}

/// Ends a call: drops the store, sorts the error.
pub(super) fn end<T>(store: Store<State>, limits: Limits, outcome: wasmtime::Result<T>) -> (Result<T, PolicyError>, Usage) {
    let mut state = store.into_data();
    state.close_streams();
    state.lines.close();
    let usage = state.usage();
    (outcome.map_err(|error| judge(&error, &state, limits)), usage)
}

/// A refusal counts only if it can be shown: its code becomes an event's reason and a metric label.
fn refusal(code: String, message: String) -> PolicyError {
    let upper_camel = code.starts_with(|c: char| c.is_ascii_uppercase()) && code.chars().all(|c| c.is_ascii_alphanumeric());
    if !upper_camel || code.len() > 64 {
        return PolicyError::BadOutput(format!(
            "refusal code {:?} is not upper camel case of at most 64 letters and digits",
            text::cut(&code)
        ));
    }
    if message.len() > limits::MAX_MESSAGE {
        return PolicyError::BadOutput(format!("refusal message has {} bytes, at most {} are allowed", message.len(), limits::MAX_MESSAGE));
    }
    PolicyError::Refused(Refusal { code, message })
}

/// Says what an error of wasmtime means for the caller.
fn judge(error: &wasmtime::Error, state: &State, limits: Limits) -> PolicyError {
    let trap = error.downcast_ref::<Trap>().copied();
    if trap == Some(Trap::Interrupt) {
        return PolicyError::Deadline { limit_ms: limits.timeout_ms() };
    }
    // A guest whose allocator got no memory traps as it likes; the refusal is the cause.
    if let Some(refused) = state.limiter.refused() {
        return PolicyError::Memory(refused.to_owned());
    }
    if fuel_exhausted(error) {
        return PolicyError::Memory(format!("over {} bytes handed to the host in one call", limits.hostcall_fuel()));
    }
    if let Some(called) = error.downcast_ref::<NotGiven>() {
        return PolicyError::Trap(called.to_string());
    }
    match trap {
        Some(trap) if breaks_the_abi(trap) => PolicyError::BadOutput(trap.to_string()),
        Some(trap) => PolicyError::Trap(trap.to_string()),
        None if error.is::<PoolConcurrencyLimitError>() => PolicyError::Unavailable("busy: no free instance".into()),
        // Without a trap, a call fails over values that cannot be read, and instantiation over what the component is: the types
        // of its exports, the number of its instances.
        None if state.entered.is_some() => PolicyError::BadOutput(text::chain(error)),
        None => PolicyError::Incompatible(format!("it cannot be instantiated: {}", text::chain(error))),
    }
}

/// wasmtime's error type for this is private; `tests/hostile.rs` holds its text.
fn fuel_exhausted(error: &wasmtime::Error) -> bool {
    error.chain().any(|cause| cause.to_string().contains("fuel allocated for hostcalls has been exhausted"))
}

/// Traps that are raised for a value at a component's boundary, not for what its code does.
fn breaks_the_abi(trap: Trap) -> bool {
    matches!(trap, Trap::InvalidChar | Trap::StringOutOfBounds | Trap::ListOutOfBounds | Trap::InvalidDiscriminant | Trap::UnalignedPointer)
}
