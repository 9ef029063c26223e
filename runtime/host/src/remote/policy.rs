//! A slot that a remote plugin serves. A caller cannot tell it from a component: the same question, the same limits on the answer, the same
//! seven ways to fail.

mod fail;
mod load;
mod memo;

use std::{sync::Arc, time::Instant};

use weir_core::policy::{BoxFuture, Finding, Identity, Policy, PolicyError, Refusal, limits as bounds};

use super::{
    Class, Plugin,
    calls::Caps,
    slot::{RemoteSlot, Reply},
};
use crate::wasm::Limits;

pub use self::memo::RemoteMemo;

/// A policy of slot `S` that a remote plugin answers. Made by [`RemotePolicy::load`], for what the plugin says it is at that time: its
/// [`Identity::digest`] is that of the [`Metadata`](super::Metadata), and a plugin of another version is another policy.
pub struct RemotePolicy<S: RemoteSlot> {
    asked: Asked,
    identity: Identity,
    findings: Vec<Finding>,
    slot: std::marker::PhantomData<fn() -> S>,
}

/// What a call takes to the pool's runtime.
#[derive(Clone)]
struct Asked {
    plugin: Arc<Plugin>,
    settings: Arc<str>,
    limits: Limits,
}

impl<S: RemoteSlot> RemotePolicy<S> {
    /// The limits of each call. Memory bounds the answer, as it does for components.
    #[must_use]
    pub fn limits(&self) -> Limits {
        self.asked.limits
    }

    /// What the plugin said about its settings that does not make them invalid.
    #[must_use]
    pub fn settings_findings(&self) -> &[Finding] {
        &self.findings
    }

    /// The plugin behind it.
    #[must_use]
    pub fn plugin(&self) -> &Arc<Plugin> {
        &self.asked.plugin
    }
}

impl<S: RemoteSlot> Policy<S> for RemotePolicy<S> {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn evaluate<'a>(&'a self, input: &'a S::Input) -> BoxFuture<'a, Result<S::Answer, PolicyError>> {
        Box::pin(async move {
            let (asked, question) = (self.asked.clone(), S::question(input, &self.asked.settings));
            // On the pool's runtime: the caller may have none, and its thread must not do our work.
            let runtime = asked.plugin.runtime().clone();
            let answer = OnDrop(runtime.spawn(async move { ask::<S>(&asked, question).await })).wait().await??;
            S::check(input, &answer).map_err(PolicyError::BadOutput)?;
            Ok(answer)
        })
    }
}

impl<S: RemoteSlot> std::fmt::Debug for RemotePolicy<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RemotePolicy").field("slot", &S::NAME).field("identity", &self.identity).finish_non_exhaustive()
    }
}

/// Waits for a connection and an answer within one time. A question changes nothing, so one that was lost with its connection is asked once
/// more on another.
async fn ask<S: RemoteSlot>(asked: &Asked, question: S::Question) -> Result<S::Answer, PolicyError> {
    let began = Instant::now();
    let timeout = asked.limits.timeout();
    let left = || timeout.saturating_sub(began.elapsed());
    let mut again = true;
    loop {
        let lease = asked.plugin.acquire(left()).await.map_err(|error| fail::not_acquired(error, asked.limits))?;
        if !lease.capabilities().slots.contains(&S::NAME) {
            return Err(fail::not_served(asked.plugin.name(), S::NAME));
        }
        let cap = lease.limits().message;
        let caps = Caps { question: cap, answer: cap.min(asked.limits.answer()) };
        match S::send(&lease, caps, left(), question.clone()).await {
            Ok(reply) => return accept::<S>(reply),
            Err(error) if again && error.class == Class::Connection && !left().is_zero() => again = false,
            Err(error) => return Err(fail::call(&error, asked.limits)),
        }
    }
}

/// A refusal counts only if it can be shown: its code becomes an event's reason and a metric label.
fn accept<S: RemoteSlot>(reply: Reply<S::Answer>) -> Result<S::Answer, PolicyError> {
    match reply {
        Reply::Answer(answer) => answer.map_err(PolicyError::BadOutput),
        Reply::Refusal { code, message } => {
            bounds::code("refusal", &code).and_then(|()| bounds::message("refusal", &message)).map_err(PolicyError::BadOutput)?;
            Err(PolicyError::Refused(Refusal { code, message }))
        }
        Reply::Nothing => Err(PolicyError::BadOutput("the plugin answered with neither an answer nor a refusal".into())),
    }
}

/// A task that ends when nobody waits for it.
struct OnDrop<T>(tokio::task::JoinHandle<T>);

impl<T> OnDrop<T> {
    async fn wait(mut self) -> Result<T, PolicyError> {
        (&mut self.0).await.map_err(|_| PolicyError::Unavailable("the host stops".into()))
    }
}

impl<T> Drop for OnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
