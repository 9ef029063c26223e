//! What pools tell whoever counts: metrics of an operator, tests.

use std::time::Duration;

use super::{Class, Reason, State};

/// Something that happened to a plugin. Every name in it is from a finite set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A connection was lent after this long.
    Acquired(Duration),
    /// None was; [`AcquireError::reason`](super::AcquireError::reason).
    NotAcquired(&'static str),
    /// A call ended. `Service/Method`; none is an answer.
    Called {
        /// One of our methods.
        method: &'static str,
        /// How it failed.
        failed: Option<Class>,
        /// How long it took.
        took: Duration,
    },
    /// A connection was made.
    Connected,
    /// A connection could not be made.
    NotConnected(Reason),
    /// A connection left the pool: `idle`, `age`, `endpoint`, `certificates`, `probe`, `call`, `closed`.
    Evicted(&'static str),
    /// The state or its reason changed. Exactly one log line goes with it.
    State(State, Option<Reason>),
    /// The breaker opened or closed.
    Breaker {
        /// Whether it is open.
        open: bool,
    },
    /// The plugin says something else about itself than before: answers that were remembered are void.
    NewMetadata,
}

/// Listens. Called on the pool's tasks: it must not block.
pub trait Observer: Send + Sync {
    /// Something happened to the plugin of this name.
    fn event(&self, plugin: &str, event: Event);
}

/// Nobody listens.
impl Observer for () {
    fn event(&self, _plugin: &str, _event: Event) {}
}
