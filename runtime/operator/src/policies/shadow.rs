//! Policies that are asked beside the one in force. They can neither change nor delay a pass: what they are asked waits in a queue of their
//! own, and is dropped where that is full.

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{
        Semaphore,
        mpsc::{Receiver, Sender, UnboundedSender, channel},
    },
    task::JoinHandle,
    time::Instant,
};
use weir_core::{
    hash,
    policy::{
        BoxFuture, ConflictResolution, Identity, KonnectEnv, ObjectHook, PluginPackaging, Policy, PolicyError, Slot, SlotName,
        difference::{self, Difference, Grade},
    },
    reconcile_policy::snapshot::{Compared, Sample},
};

use super::{any::Served, revisions::Revision};
use crate::{
    cache::Key,
    metrics::{ShadowOutcome, Shadows},
};

/// Questions that wait.
const QUEUE: usize = 64;
/// Questions that are not asked again.
const SEEN: usize = 4_096;
/// Its policy is looked at this often, at most: a status that counts must not be written for each question.
const TOLD: Duration = Duration::from_secs(10);

/// What all shadows share.
#[derive(Clone)]
pub struct Beside {
    /// Given the policy when there is something to report of it.
    told: UnboundedSender<Key>,
    counted: Shadows,
    /// One question at a time, of all shadows: they never take more than one thread from the policies in force.
    turn: Arc<Semaphore>,
}

impl Beside {
    /// `told` is given each policy whose comparison has changed.
    #[must_use]
    pub fn new(told: UnboundedSender<Key>, counted: Shadows) -> Self {
        Self { told, counted, turn: Arc::new(Semaphore::new(1)) }
    }
}

/// A shadow at work. It ends with its last clone.
pub struct Shadow {
    compared: Arc<Mutex<Compared>>,
    queue: AnyQueue,
    task: JoinHandle<()>,
    counted: Shadows,
}

impl Drop for Shadow {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Questions of any slot.
pub(super) enum AnyQueue {
    /// Slot konnect-env.
    KonnectEnv(Sender<Question<KonnectEnv>>),
    /// Slot conflict-resolution.
    ConflictResolution(Sender<Question<ConflictResolution>>),
    /// Slot plugin-packaging.
    PluginPackaging(Sender<Question<PluginPackaging>>),
    /// Slot object-hook.
    ObjectHook(Sender<Question<ObjectHook>>),
}

/// A slot whose questions have a queue.
pub(super) trait Queued: Served + Sized {
    /// Into the one type.
    fn wrap(queue: Sender<Question<Self>>) -> AnyQueue;
    /// Out of it, where it is of this slot.
    fn pick(any: &AnyQueue) -> Option<&Sender<Question<Self>>>;
}

macro_rules! queued {
    ($($slot:ident),*) => {$(
        impl Queued for $slot {
            fn wrap(queue: Sender<Question<Self>>) -> AnyQueue {
                AnyQueue::$slot(queue)
            }

            fn pick(any: &AnyQueue) -> Option<&Sender<Question<Self>>> {
                if let AnyQueue::$slot(queue) = any { Some(queue) } else { None }
            }
        }
    )*};
}

queued!(KonnectEnv, ConflictResolution, PluginPackaging, ObjectHook);

/// What was asked, and what the policy in force said.
pub(super) struct Question<S: Slot> {
    input: S::Input,
    answer: Result<S::Answer, PolicyError>,
}

impl Shadow {
    /// Begins.
    #[must_use]
    pub fn of(revision: &Revision, beside: &Beside) -> Option<Self> {
        match revision.id.slot {
            SlotName::KonnectEnv => Self::start::<KonnectEnv>(revision, beside),
            SlotName::ConflictResolution => Self::start::<ConflictResolution>(revision, beside),
            SlotName::PluginPackaging => Self::start::<PluginPackaging>(revision, beside),
            SlotName::ObjectHook => Self::start::<ObjectHook>(revision, beside),
        }
    }

    fn start<S: Queued>(revision: &Revision, beside: &Beside) -> Option<Self> {
        Some(Self::begin::<S>(<S as Served>::pick(&revision.bare)?, revision.id.policy.clone(), beside))
    }

    fn begin<S: Queued>(policy: Arc<dyn Policy<S>>, key: Key, beside: &Beside) -> Self {
        let (sender, receiver) = channel(QUEUE);
        let compared = Arc::<Mutex<Compared>>::default();
        let worker = Worker { policy, compared: Arc::clone(&compared), key, beside: beside.clone() };
        let task = tokio::spawn(worker.work(receiver));
        Self { compared, queue: <S as Queued>::wrap(sender), task, counted: beside.counted.clone() }
    }

    /// How it compares.
    #[must_use]
    pub fn compared(&self) -> Compared {
        lock(&self.compared).clone()
    }

    fn offer<S: Queued>(&self, input: &S::Input, answer: &Result<S::Answer, PolicyError>) {
        let Some(queue) = <S as Queued>::pick(&self.queue) else { return };
        match queue.try_reserve() {
            Ok(place) => place.send(Question { input: input.clone(), answer: answer.clone() }),
            Err(_) => dropped::<S>(&self.compared, &self.counted),
        }
    }
}

fn lock(compared: &Mutex<Compared>) -> MutexGuard<'_, Compared> {
    compared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A question that it was not asked.
fn dropped<S: Slot>(compared: &Mutex<Compared>, counted: &Shadows) {
    counted.ended(S::NAME, ShadowOutcome::Dropped);
    let mut compared = lock(compared);
    compared.counts.dropped = compared.counts.dropped.saturating_add(1);
}

/// Asks what waits, one question after the other.
struct Worker<S: Slot> {
    policy: Arc<dyn Policy<S>>,
    compared: Arc<Mutex<Compared>>,
    key: Key,
    beside: Beside,
}

impl<S: Queued> Worker<S> {
    async fn work(self, mut questions: Receiver<Question<S>>) {
        let mut seen = Seen::default();
        let mut last: Option<Instant> = None;
        while let Some(Question { input, answer }) = questions.recv().await {
            let digest = hash::digest_json(&input);
            if !seen.first(&digest) {
                continue;
            }
            let said = {
                // Never closed.
                let _turn = self.beside.turn.acquire().await;
                self.policy.evaluate(&input).await
            };
            if let Err(PolicyError::Unavailable(_)) = &said {
                // The host had no thread for it: that says nothing about the policy, and it may be asked again.
                seen.forget(&digest);
                dropped::<S>(&self.compared, &self.beside.counted);
            } else {
                self.count(&input, difference::between::<S>(&input, &said, &answer));
            }
            if last.is_none_or(|last| last.elapsed() >= TOLD) {
                last = Some(Instant::now());
                // The receiver lives as long as passes do.
                let _ = self.beside.told.send(self.key.clone());
            }
        }
    }

    fn count(&self, input: &S::Input, found: Option<Difference>) {
        let grade = found.as_ref().map(Difference::grade);
        let outcome = match grade {
            None => ShadowOutcome::Same,
            Some(Grade::Differs) => ShadowOutcome::Differs,
            Some(Grade::Refuses) => ShadowOutcome::Refuses,
            Some(Grade::Fails) => ShadowOutcome::Fails,
        };
        self.beside.counted.ended(S::NAME, outcome);
        let mut compared = lock(&self.compared);
        let counts = &mut compared.counts;
        counts.evaluated = counts.evaluated.saturating_add(1);
        match grade {
            None => {}
            Some(Grade::Differs | Grade::Refuses) => counts.differing = counts.differing.saturating_add(1),
            Some(Grade::Fails) => counts.failed = counts.failed.saturating_add(1),
        }
        if let Some(difference) = found {
            let object = &S::context(input).object;
            let object = format!("{} {}/{}", object.kind, object.namespace, object.name);
            compared.differs(Sample { object, difference });
        }
    }
}

/// Questions that were asked already; the oldest are forgotten.
#[derive(Default)]
struct Seen {
    known: BTreeSet<String>,
    order: VecDeque<String>,
}

impl Seen {
    fn forget(&mut self, digest: &str) {
        self.known.remove(digest);
    }

    fn first(&mut self, digest: &str) -> bool {
        if !self.known.insert(digest.to_owned()) {
            return false;
        }
        self.order.push_back(digest.to_owned());
        if self.order.len() > SEEN
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        true
    }
}

/// The policy in force, whose questions are passed on to shadows.
pub(super) struct Shadowed<S: Slot> {
    inner: Arc<dyn Policy<S>>,
    shadows: Vec<Arc<Shadow>>,
}

impl<S: Queued> Shadowed<S> {
    /// `inner` answers; what it was asked and said goes to `shadows`.
    pub(super) fn new(inner: Arc<dyn Policy<S>>, shadows: Vec<Arc<Shadow>>) -> Self {
        Self { inner, shadows }
    }
}

impl<S: Queued> Policy<S> for Shadowed<S> {
    fn identity(&self) -> &Identity {
        self.inner.identity()
    }

    fn evaluate<'a>(&'a self, input: &'a S::Input) -> BoxFuture<'a, Result<S::Answer, PolicyError>> {
        Box::pin(async move {
            let answer = self.inner.evaluate(input).await;
            self.shadows.iter().for_each(|shadow| shadow.offer::<S>(input, &answer));
            answer
        })
    }
}
