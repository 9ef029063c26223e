//! What the plugin does; it may change while it runs.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tonic::Status;
use weir_proto::policy::{KonnectEnvAnswer, KonnectEnvInput};

/// One way to misbehave, in every call but those of `Identity` unless it says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fault {
    /// None.
    #[default]
    None,
    /// Takes calls and never answers.
    Hang,
    /// As `Hang`, and the calls of `Identity` hang too.
    HangAll,
    /// Answers after this long.
    Slow(Duration),
    /// An answer of 5 MiB.
    Huge,
    /// Bytes that are no message. (An answer that says nothing is `Empty`.)
    Empty,
    /// Fails with a stack trace in its message, as a recovered panic of a Go server.
    Panic,
    /// Says that it is not available.
    Unavailable,
    /// Says "not yet".
    NotYet,
    /// Does not have the call.
    Unimplemented,
    /// Refuses the question.
    Invalid,
    /// Capabilities with an entry that has nothing in it.
    NilCapability,
}

/// All that can be set.
#[derive(Debug, Clone)]
pub struct Behavior {
    /// Name in the metadata.
    pub name: String,
    /// Version in the metadata.
    pub version: String,
    /// Answer of the probe.
    pub ready: bool,
    /// Slots in the manifest.
    pub slots: Vec<String>,
    /// What goes wrong.
    pub fault: Fault,
    /// Another answer of konnect-env than the one that shows that the question came over whole.
    pub konnect_env: Option<fn(&KonnectEnvInput) -> KonnectEnvAnswer>,
}

impl Behavior {
    /// A good plugin of this name that serves all slots.
    #[must_use]
    pub fn good(name: &str) -> Self {
        let slots = ["konnect-env", "conflict-resolution", "plugin-packaging"].map(str::to_owned).to_vec();
        Self { name: name.into(), version: "1.0.0".into(), ready: true, slots, fault: Fault::None, konnect_env: None }
    }
}

/// Changes a running plugin and says what it saw.
#[derive(Debug, Clone)]
pub struct Handle {
    behavior: Arc<Mutex<Behavior>>,
    calls: Arc<AtomicUsize>,
    now: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

impl Handle {
    pub(crate) fn new(behavior: Behavior) -> Self {
        Self { behavior: Arc::new(Mutex::new(behavior)), calls: Arc::default(), now: Arc::default(), most: Arc::default() }
    }

    /// Changes it.
    pub fn set(&self, change: impl FnOnce(&mut Behavior)) {
        change(&mut self.lock());
    }

    /// Calls of slots and hooks so far.
    #[must_use]
    pub fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    /// Most of them at once.
    #[must_use]
    pub fn most_at_once(&self) -> usize {
        self.most.load(Ordering::SeqCst)
    }

    pub(crate) fn get(&self) -> Behavior {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Behavior> {
        self.behavior.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a call of a slot or a hook: counts it and does what goes wrong in it.
    pub(crate) async fn enter(&self) -> Result<Inside, Status> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let now = self.now.fetch_add(1, Ordering::SeqCst).saturating_add(1);
        self.most.fetch_max(now, Ordering::SeqCst);
        let inside = Inside(Arc::clone(&self.now));
        match self.get().fault {
            Fault::None | Fault::Huge | Fault::Empty | Fault::NilCapability => Ok(inside),
            Fault::Hang | Fault::HangAll => std::future::pending().await,
            Fault::Slow(time) => {
                tokio::time::sleep(time).await;
                Ok(inside)
            }
            Fault::Panic => Err(Status::unknown(
                "panic triggered: runtime error: invalid memory address\n\ngoroutine 34 [running]:\nruntime/debug.Stack()\n\t/usr/lib/go/debug/stack.go:26 +0x5e",
            )),
            Fault::Unavailable => Err(Status::unavailable("draining")),
            Fault::NotYet => Err(Status::failed_precondition("the backend is not there yet")),
            Fault::Unimplemented => Err(Status::unimplemented("not here")),
            Fault::Invalid => Err(Status::invalid_argument("what is that?")),
        }
    }

    /// As [`Handle::enter`] for `Identity`.
    pub(crate) async fn identify(&self) -> Behavior {
        let behavior = self.get();
        if behavior.fault == Fault::HangAll {
            return std::future::pending().await;
        }
        behavior
    }
}

/// A call under way.
pub(crate) struct Inside(Arc<AtomicUsize>);

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}
