//! Requests to registries, in the background: a pass never waits for one. What an installation asked for is kept until it asks for
//! something else; who asks the same at the same time shares a request, and an artifact is fetched once for all who may read it. Registries and
//! namespaces have their share of the few requests that are made at once.

mod demand;
pub mod registry;
mod shelf;
mod table;
#[cfg(test)]
mod tests;
mod turns;

use std::{
    collections::BTreeSet,
    panic::AssertUnwindSafe,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures::FutureExt;
use tokio::{
    sync::{Notify, watch},
    task::JoinSet,
    time::Instant,
};
use weir_core::plugin_installation::snapshot::Fetch;
use weir_host::oci::{Credentials, Reference};

pub use self::demand::Question;
use self::{
    demand::Failure,
    registry::{Problem, Registry},
    shelf::MOST_BYTES,
    table::{Begun, Good, Job, JobKind, Table, Told},
    turns::Turns,
};
use crate::{
    cache::Key,
    metrics::{Metrics, PullOutcome},
    plugin_installation::Anew,
};

/// Requests at once: each may have some 20 MiB in memory, and one of a registry that hangs waits for its time limit.
const AT_ONCE: usize = 8;
/// Of one registry, so that others get theirs while it hangs.
const AT_ONCE_OF_HOST: usize = 4;

/// What a pass is told.
#[derive(Debug)]
pub struct Step {
    /// For the snapshot.
    pub fetch: Fetch,
    /// When to ask again, where nobody will say.
    pub after: Option<Duration>,
}

/// Asks registries.
pub struct Pulls {
    registry: Arc<dyn Registry>,
    metrics: Arc<Metrics>,
    table: Mutex<Table>,
    /// Somebody asked for something.
    asked: Notify,
    /// Somebody makes the requests.
    works: AtomicBool,
}

impl Pulls {
    /// Nothing is asked yet.
    #[must_use]
    pub fn new(registry: Arc<dyn Registry>, metrics: Arc<Metrics>) -> Self {
        let table = Mutex::new(Table::new(MOST_BYTES, Turns::new(AT_ONCE, AT_ONCE_OF_HOST)));
        Self { registry, metrics, table, asked: Notify::new(), works: AtomicBool::new(false) }
    }

    /// Nothing panics under the lock besides an allocation.
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An installation has a question.
    pub fn begin(&self, key: &Key, question: Question, anew: Anew) {
        self.table().begin(key, question, anew, Instant::now());
    }

    /// Registries are reached in another way, or other signatures are wanted: everything is asked again when somebody needs it.
    pub fn anew(&self) {
        let mut table = self.table();
        table.anew(Instant::now());
        self.metrics.pulls.kept(table.shelf.bytes());
    }

    /// It wants nothing any more, or is gone.
    pub fn forget(&self, key: &Key) {
        self.table().forget(key);
    }

    /// Where a reference leads to.
    ///
    /// # Errors
    /// What to say until that is known.
    pub fn digest(&self, key: &Key, reference: &Reference) -> Result<String, Step> {
        match self.ask(key, JobKind::Resolve, reference) {
            Told::Digest(digest) => Ok(digest),
            Told::Failed(failure) => Err(failed(failure)),
            Told::Queued => Err(Step { fetch: Fetch::Queued, after: None }),
            Told::Artifact { .. } | Told::Pending => Err(Step { fetch: Fetch::Pending, after: None }),
        }
    }

    /// The content of a reference with a digest.
    pub fn content(&self, key: &Key, reference: &Reference) -> Step {
        match self.ask(key, JobKind::Pull, reference) {
            Told::Artifact { artifact, cached } => {
                if cached {
                    self.metrics.pulls.ended(PullOutcome::Cached);
                }
                Step { fetch: Fetch::Fetched(artifact), after: None }
            }
            Told::Failed(failure) => failed(failure),
            Told::Queued => Step { fetch: Fetch::Queued, after: None },
            Told::Digest(_) | Told::Pending => Step { fetch: Fetch::Pending, after: None },
        }
    }

    /// A digest was all that an installation wanted.
    pub fn settle(&self, key: &Key) {
        self.table().settle(key);
    }

    fn ask(&self, key: &Key, kind: JobKind, reference: &Reference) -> Told {
        let told = self.table().ask(key, kind, reference, Instant::now());
        self.asked.notify_one();
        told
    }

    /// Makes the requests until `stop` says so; what is on its way then is dropped. `ended` is told of each installation whose request
    /// ended. Only the first call does anything.
    pub async fn work(&self, mut stop: watch::Receiver<bool>, ended: impl Fn(Key)) {
        if self.works.swap(true, Ordering::Relaxed) {
            return;
        }
        let mut tasks: JoinSet<(Job, Result<Good, Problem>)> = JoinSet::new();
        loop {
            self.start(&mut tasks, &ended);
            let woken = tokio::select! {
                _ = stop.wait_for(|stop| *stop) => return,
                Some(done) = tasks.join_next(), if !tasks.is_empty() => match done {
                    Ok((job, result)) => self.ended(&job, result),
                    // Cut off with its runtime.
                    Err(_) => BTreeSet::new(),
                },
                () = self.asked.notified() => BTreeSet::new(),
            };
            woken.into_iter().for_each(&ended);
        }
    }

    /// Makes every request whose turn has come.
    fn start(&self, tasks: &mut JoinSet<(Job, Result<Good, Problem>)>, ended: &impl Fn(Key)) {
        loop {
            let Some(Begun { job, credentials }) = self.table().begun() else { return };
            match credentials {
                Ok(credentials) => {
                    tasks.spawn(run(Arc::clone(&self.registry), Arc::clone(&self.metrics), job, credentials));
                }
                Err(waiting) => waiting.into_iter().for_each(ended),
            }
        }
    }

    fn ended(&self, job: &Job, result: Result<Good, Problem>) -> BTreeSet<Key> {
        self.metrics.pulls.ended(match &result {
            Ok(Good::Digest(_)) => PullOutcome::Resolved,
            Ok(Good::Artifact(_)) => PullOutcome::Fetched,
            Err(problem) => problem.outcome,
        });
        if let Err(problem) = &result {
            tracing::warn!(image = %job.reference, message = %problem.message, transient = problem.transient, "a registry was of no use");
        }
        let mut table = self.table();
        let waited = table.ended(job, result, Instant::now());
        self.metrics.pulls.kept(table.shelf.bytes());
        waited
    }
}

fn failed(failure: Failure) -> Step {
    let Failure { message, transient, digest, again, .. } = failure;
    let after = again.saturating_duration_since(Instant::now());
    // One whose time has come is on its way: its end wakes the installation.
    Step { fetch: Fetch::Failed { message, transient, digest }, after: (!after.is_zero()).then_some(after) }
}

async fn run(registry: Arc<dyn Registry>, metrics: Arc<Metrics>, job: Job, credentials: Credentials) -> (Job, Result<Good, Problem>) {
    let begun = Instant::now();
    let request = async {
        match job.kind {
            JobKind::Resolve => registry.resolve(&job.reference, &credentials).await.map(Good::Digest),
            JobKind::Pull => registry.pull(&job.reference, &credentials).await.map(|artifact| Good::Artifact(Arc::new(artifact))),
        }
    };
    // A panic is a fault of ours; nobody must wait for ever for it.
    let result = AssertUnwindSafe(request).catch_unwind().await.unwrap_or_else(|_| {
        let message = format!("image {}: reading it failed inside of the operator; its log says more", job.reference);
        Err(Problem { message, transient: false, retry_after: None, outcome: PullOutcome::Refused })
    });
    match job.kind {
        JobKind::Pull => metrics.pulls.took(begun.elapsed()),
        JobKind::Resolve => {}
    }
    (job, result)
}
