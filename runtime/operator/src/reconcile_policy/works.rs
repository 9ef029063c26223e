//! Work for candidates, in the background: a pass never waits long for a registry or a compiler.

use std::{
    collections::HashMap,
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::FutureExt;
use tokio::{
    sync::{Semaphore, mpsc::UnboundedSender, watch},
    task::JoinHandle,
    time::Instant,
};
use weir_core::reconcile_policy::snapshot::{Found, Step, Work};

use super::{
    demand::Demand,
    steps::{Workshop, broken},
};
use crate::{cache::Key, metrics::Swap, plugin_installation::Anew, policies::RevisionId};

/// Candidates that are worked on at once.
const AT_ONCE: usize = 4;
/// First and longest wait after a failure that may pass by itself.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(300);
/// What needs somebody is tried again so often: he may mend a registry, of which no watch tells.
const PERMANENT_WAIT: Duration = Duration::from_secs(600);
/// Longest wait of what may be mended in an object that nobody watches.
const UNWATCHED_WAIT: Duration = Duration::from_secs(30);

/// What is worked on.
pub struct Works {
    /// Tools.
    pub workshop: Arc<Workshop>,
    turns: Semaphore,
    table: Mutex<HashMap<Key, Item>>,
    ended: UnboundedSender<Key>,
}

struct Item {
    demand: Arc<Demand>,
    work: Work,
    task: Option<Task>,
    again: Option<Instant>,
    times: u32,
    /// When it was asked for, or found under its tag.
    since: Instant,
    /// Grows with each end.
    ends: watch::Sender<u64>,
}

/// Ends with its item.
struct Task(JoinHandle<()>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// What a pass is told.
pub struct Asked {
    /// For the snapshot.
    pub work: Work,
    /// When to ask again, where nobody will say.
    pub after: Option<Duration>,
}

impl Works {
    /// Nothing is worked on. `ended` is told of each policy whose work ended.
    pub fn new(workshop: Arc<Workshop>, ended: UnboundedSender<Key>) -> Self {
        Self { workshop, turns: Semaphore::new(AT_ONCE), table: Mutex::default(), ended }
    }

    /// Nothing panics under the lock besides an allocation.
    fn table(&self) -> MutexGuard<'_, HashMap<Key, Item>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known of a demand. Begins to work on it where that has to be.
    pub fn ask(self: &Arc<Self>, demand: Demand, anew: Anew) -> Asked {
        let now = Instant::now();
        let mut table = self.table();
        let key = demand.policy.clone();
        let begins = match table.get_mut(&key) {
            Some(item) if item.demand.is_same(&demand) => {
                // What is in force may have changed, and whom it is for.
                item.demand = Arc::new(demand);
                let due = anew != Anew::No || item.again.is_some_and(|again| again <= now);
                if anew == Anew::Asked {
                    item.times = 0;
                }
                due && item.task.is_none()
            }
            Some(_) | None => {
                let work = Work::Busy { next: Step::Resolved, found: Found::default() };
                let item =
                    Item { demand: Arc::new(demand), work, task: None, again: None, times: 0, since: now, ends: watch::Sender::new(0) };
                table.insert(key.clone(), item);
                true
            }
        };
        let Some(item) = table.get_mut(&key) else { return Asked { work: Work::None, after: None } };
        if begins {
            // A look that finds something else begins anew; one that is tried again goes on.
            if matches!(item.work, Work::Ready { .. }) {
                item.since = now;
            }
            item.again = None;
            let before = if anew == Anew::Asked { Work::None } else { item.work.clone() };
            item.task = Some(Task(tokio::spawn(Arc::clone(self).work(Arc::clone(&item.demand), before))));
        }
        let after = item.again.map(|again| again.saturating_duration_since(now));
        Asked { work: item.work.clone(), after }
    }

    /// Waits a little for work that is about to end: one status says more than two.
    pub async fn soon(&self, key: &Key, most: Duration) -> Option<Work> {
        let mut ends = {
            let table = self.table();
            let item = table.get(key).filter(|item| item.task.is_some())?;
            item.ends.subscribe()
        };
        // A sender that is gone means that nobody asks for it any more.
        let _ = tokio::time::timeout(most, ends.changed()).await;
        self.table().get(key).map(|item| item.work.clone())
    }

    /// Whether something is known, or on its way. What work has come to must be taken by a pass, also when it took longer than the pass
    /// that began it.
    pub fn knows(&self, key: &Key) -> bool {
        self.table().contains_key(key)
    }

    /// Other settings of registries are in force: whatever failed is tried again with the next question.
    pub fn retry_all(&self) {
        for item in self.table().values_mut().filter(|item| item.again.is_some()) {
            (item.again, item.times) = (Some(Instant::now()), 0);
        }
    }

    /// How long ago the candidate was asked for.
    pub fn age(&self, key: &Key) -> Option<Duration> {
        self.table().get(key).map(|item| item.since.elapsed())
    }

    /// Something that it depends on changed: what failed is tried again with the next question.
    pub fn retry(&self, key: &Key) {
        if let Some(item) = self.table().get_mut(key).filter(|item| item.again.is_some()) {
            (item.again, item.times) = (Some(Instant::now()), 0);
        }
    }

    /// The policy wants nothing, or is gone.
    pub fn forget(&self, key: &Key) {
        self.table().remove(key);
    }

    /// The revision that work has come to and that may take over any moment.
    pub fn ready(&self, key: &Key) -> Option<RevisionId> {
        let table = self.table();
        let item = table.get(key)?;
        match &item.work {
            Work::Ready { found, .. } => found.layer_digest.as_deref().map(|layer| item.demand.revision(layer)),
            Work::None | Work::Busy { .. } | Work::Failed { .. } => None,
        }
    }

    async fn work(self: Arc<Self>, demand: Arc<Demand>, before: Work) {
        let work = {
            // Never closed.
            let _turn = self.turns.acquire().await;
            let at = |step, found: &Found| self.at(&demand, step, found);
            let run = AssertUnwindSafe(self.workshop.run(&demand, &before, &at)).catch_unwind().await;
            // A panic is a fault of ours; nobody must wait for ever for it.
            run.unwrap_or_else(|_| Work::Failed { failure: broken(&demand.image), found: Found::default() })
        };
        if let Work::Failed { failure, .. } = &work {
            // The same again is not another candidate that failed.
            if before != work {
                self.workshop.metrics.policies.swapped(demand.slot, Swap::Failed);
            }
            tracing::warn!(policy = %demand.policy, reason = failure.reason, message = failure.message, "a candidate cannot take over");
        }
        let mut table = self.table();
        let Some(item) = table.get_mut(&demand.policy).filter(|item| item.demand.is_same(&demand)) else { return };
        item.again = match &work {
            Work::Failed { failure, .. } => {
                let wait =
                    if failure.transient { FIRST_WAIT.saturating_mul(1 << item.times.min(9)).min(LONGEST_WAIT) } else { PERMANENT_WAIT };
                let wait = if demand.rests_on_unwatched() { wait.min(UNWATCHED_WAIT) } else { wait };
                item.times = item.times.saturating_add(1);
                Some(Instant::now() + wait)
            }
            Work::None | Work::Busy { .. } | Work::Ready { .. } => {
                item.times = 0;
                None
            }
        };
        item.work = work;
        // Dropping the handle of a task that is at its end does nothing to it.
        item.task = None;
        item.ends.send_modify(|ends| *ends = ends.saturating_add(1));
        drop(table);
        // The receiver lives as long as passes do.
        let _ = self.ended.send(demand.policy.clone());
    }

    /// A step begins. What was known before stays until something else is.
    fn at(&self, demand: &Demand, step: Step, found: &Found) {
        if let Some(item) = self.table().get_mut(&demand.policy).filter(|item| item.demand.is_same(demand))
            && matches!(item.work, Work::Busy { .. })
        {
            item.work = Work::Busy { next: step, found: found.clone() };
        }
    }
}
