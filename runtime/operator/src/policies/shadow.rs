//! Policies that are asked beside the one in force. They can neither change nor delay a pass: what they are asked waits in a queue of their
//! own, and is dropped where that is full.

use std::{
    collections::{BTreeSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::mpsc::{Receiver, Sender, UnboundedSender, channel},
    task::JoinHandle,
    time::Instant,
};
use weir_api::reconcile_policy::Shadow as Counts;
use weir_core::{
    hash,
    policy::{BoxFuture, ConflictResolution, Identity, KonnectEnv, PluginPackaging, Policy, PolicyError, Slot, SlotName},
};

use super::{any::Served, revisions::Revision};
use crate::cache::Key;

/// Questions that wait.
const QUEUE: usize = 64;
/// Questions that are not asked again.
const SEEN: usize = 4_096;
/// Its policy is looked at this often, at most: a status that counts must not be written for each question.
const TOLD: Duration = Duration::from_secs(10);

/// How a shadow compares.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Compared {
    /// Numbers.
    pub counts: Counts,
    /// An object about which it differs, and how it ended.
    pub sample: Option<String>,
}

/// A shadow at work. It ends with its last clone.
pub struct Shadow {
    compared: Arc<Mutex<Compared>>,
    queue: AnyQueue,
    task: JoinHandle<()>,
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

queued!(KonnectEnv, ConflictResolution, PluginPackaging);

/// What was asked, and what the policy in force said.
pub(super) struct Question<S: Slot> {
    input: S::Input,
    answer: Result<S::Answer, PolicyError>,
}

impl Shadow {
    /// Begins. `told` is given the policy when its counts have changed.
    #[must_use]
    pub fn of(revision: &Revision, told: UnboundedSender<Key>) -> Option<Self> {
        match revision.id.slot {
            SlotName::KonnectEnv => Self::start::<KonnectEnv>(revision, told),
            SlotName::ConflictResolution => Self::start::<ConflictResolution>(revision, told),
            SlotName::PluginPackaging => Self::start::<PluginPackaging>(revision, told),
        }
    }

    fn start<S: Queued>(revision: &Revision, told: UnboundedSender<Key>) -> Option<Self> {
        let policy = <S as Served>::pick(&revision.bare)?;
        let (sender, receiver) = channel(QUEUE);
        let compared = Arc::<Mutex<Compared>>::default();
        let task = tokio::spawn(work::<S>(policy, receiver, Arc::clone(&compared), revision.id.policy.clone(), told));
        Some(Self { compared, queue: <S as Queued>::wrap(sender), task })
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
            Err(_) => {
                let mut compared = lock(&self.compared);
                compared.counts.dropped = compared.counts.dropped.saturating_add(1);
            }
        }
    }
}

fn lock(compared: &Mutex<Compared>) -> MutexGuard<'_, Compared> {
    compared.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn work<S: Queued>(
    policy: Arc<dyn Policy<S>>,
    mut questions: Receiver<Question<S>>,
    compared: Arc<Mutex<Compared>>,
    key: Key,
    told: UnboundedSender<Key>,
) {
    let mut seen = Seen::default();
    let mut last: Option<Instant> = None;
    while let Some(Question { input, answer }) = questions.recv().await {
        if !seen.first(hash::digest_json(&input)) {
            continue;
        }
        let said = policy.evaluate(&input).await;
        let object = &S::context(&input).object;
        let at = || format!("{} {}/{}", object.kind, object.namespace, object.name);
        {
            let mut compared = lock(&compared);
            let counts = &mut compared.counts;
            counts.evaluated = counts.evaluated.saturating_add(1);
            let sample = match (&said, &answer) {
                (Ok(new), Ok(now)) if new == now => None,
                (Err(PolicyError::Refused(_)), Err(PolicyError::Refused(_))) => None,
                (Ok(_), _) => {
                    counts.differing = counts.differing.saturating_add(1);
                    Some(format!("{}: another answer", at()))
                }
                (Err(error @ PolicyError::Refused(_)), _) => {
                    counts.differing = counts.differing.saturating_add(1);
                    Some(format!("{}: {error}", at()))
                }
                (Err(error), _) => {
                    counts.failed = counts.failed.saturating_add(1);
                    Some(format!("{}: {error}", at()))
                }
            };
            // The first one stays: a status must not change with every object.
            if compared.sample.is_none() {
                compared.sample = sample;
            }
        }
        if last.is_none_or(|last| last.elapsed() >= TOLD) {
            last = Some(Instant::now());
            // The receiver lives as long as passes do.
            let _ = told.send(key.clone());
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
    fn first(&mut self, digest: String) -> bool {
        if !self.known.insert(digest.clone()) {
            return false;
        }
        self.order.push_back(digest);
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
