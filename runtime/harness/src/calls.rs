//! What policies were asked, what they said and what it cost.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use serde_json::Value;
use weir_core::{
    plan::Outcome,
    policy::{BoxFuture, Identity, Policy, PolicyError, Slot, SlotName},
};
use weir_host::wasm::{Usage, WasmPolicy, WasmSlot};

/// Most calls that are kept; of more only the number is known.
const MOST: usize = 10_000;

/// One question and its end.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Call {
    /// The slot.
    pub slot: SlotName,
    /// `Kind namespace/name`.
    pub object: String,
    /// The question, as JSON has it.
    pub input: Value,
    /// How it ended.
    pub outcome: Outcome,
    /// The answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<Value>,
    /// What is said instead of an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Code of a refusal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// What it cost, and what the policy logged.
    #[serde(skip)]
    pub usage: Usage,
}

/// The calls of one case.
#[derive(Debug, Default)]
pub struct Calls(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    calls: Vec<Call>,
    more: usize,
}

impl Calls {
    /// Takes what was kept.
    #[must_use]
    pub fn take(&self) -> Vec<Call> {
        let mut kept = self.lock();
        kept.more = 0;
        std::mem::take(&mut kept.calls)
    }

    fn add(&self, call: Call) {
        let mut kept = self.lock();
        if kept.calls.len() < MOST {
            kept.calls.push(call);
        } else {
            kept.more += 1;
        }
    }

    /// Nothing panics under the lock besides an allocation.
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A policy whose calls are kept.
pub struct Recorded<S: WasmSlot> {
    inner: Arc<WasmPolicy<S>>,
    calls: Arc<Calls>,
}

impl<S: WasmSlot> Recorded<S> {
    /// Keeps the calls of `inner` in `calls`.
    #[must_use]
    pub fn new(inner: Arc<WasmPolicy<S>>, calls: Arc<Calls>) -> Self {
        Self { inner, calls }
    }
}

impl<S: WasmSlot> Policy<S> for Recorded<S> {
    fn identity(&self) -> &Identity {
        self.inner.identity()
    }

    fn evaluate<'a>(&'a self, input: &'a S::Input) -> BoxFuture<'a, Result<S::Answer, PolicyError>> {
        Box::pin(async move {
            let (answer, usage) = self.inner.measured(input).await;
            self.calls.add(call::<S>(input, &answer, usage));
            answer
        })
    }
}

/// A call as it is kept.
pub(crate) fn call<S: Slot>(input: &S::Input, answer: &Result<S::Answer, PolicyError>, usage: Usage) -> Call {
    let object = &S::context(input).object;
    let refusal = match answer {
        Err(PolicyError::Refused(refusal)) => Some(refusal.code.clone()),
        Ok(_)
        | Err(
            PolicyError::Deadline { .. }
            | PolicyError::Memory(_)
            | PolicyError::Trap(_)
            | PolicyError::Unavailable(_)
            | PolicyError::BadOutput(_)
            | PolicyError::Incompatible(_),
        ) => None,
    };
    Call {
        slot: S::NAME,
        object: format!("{} {}/{}", object.kind, object.namespace, object.name),
        // Inputs and answers are plain data.
        input: serde_json::to_value(input).unwrap_or_default(),
        outcome: Outcome::of(answer),
        answer: answer.as_ref().ok().and_then(|answer| serde_json::to_value(answer).ok()),
        message: answer.as_ref().err().map(ToString::to_string),
        code: refusal,
        usage,
    }
}
