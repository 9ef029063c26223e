//! Who waits for what, what runs, and what is known. No registry is asked here, and nothing waits.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

use tokio::time::Instant;
use weir_core::plugin_installation::snapshot::Artifact;
use weir_host::oci::{Credentials, Reference};

use super::{
    registry::Problem,
    shelf::{Place, Shelf},
};
use crate::{cache::Key, plugin_installation::Anew};

/// First and longest wait after a failure that may pass by itself; in between it doubles.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(300);
/// No registry is asked again sooner, whatever the dice say.
const SHORTEST_WAIT: Duration = Duration::from_millis(250);
/// What needs somebody is tried again so often: he may mend the registry, of which no watch tells.
const PERMANENT_WAIT: Duration = Duration::from_secs(600);
/// The longest wait that a registry may ask for.
const MOST_PATIENCE: Duration = Duration::from_secs(3_600);
/// Where a tag leads to is known for so long, while an installation makes up its mind.
const RESOLVED_FOR: Duration = Duration::from_secs(600);

/// What an installation wants to know. When any of it changes, what failed before does not count. Has no Debug.
#[derive(Clone, PartialEq)]
pub struct Question {
    /// `spec.image`.
    pub reference: Reference,
    /// What the registry is shown.
    pub credentials: Credentials,
    /// Version of the pull Secret.
    pub version: String,
}

/// One request to a registry.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Job {
    pub(super) kind: JobKind,
    pub(super) reference: Reference,
    /// Digest of the credentials; never shown.
    pub(super) identity: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum JobKind {
    Resolve,
    Pull,
}

/// What a request brought.
pub(super) enum Good {
    Digest(String),
    Artifact(Arc<Artifact>),
}

/// What an installation is told.
pub(super) enum Told {
    Digest(String),
    Artifact {
        artifact: Arc<Artifact>,
        /// Nobody fetched it for this installation.
        cached: bool,
    },
    Pending,
    Failed(Failure),
}

/// A failure that stands.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Failure {
    pub(super) message: String,
    pub(super) transient: bool,
    /// Digest of the manifest it is about.
    pub(super) digest: Option<String>,
    /// When it is tried again.
    pub(super) again: Instant,
    times: u32,
}

struct Demand {
    question: Question,
    identity: String,
    resolved: HashMap<Reference, (String, Instant)>,
    failed: Option<Failure>,
    /// It has waited for a pull.
    pulled: bool,
}

pub(super) struct Table {
    demands: HashMap<Key, Demand>,
    /// Requests on their way, and who waits for them.
    running: HashMap<Job, BTreeSet<Key>>,
    pub(super) shelf: Shelf,
}

impl Table {
    pub(super) fn new(most_bytes: usize) -> Self {
        Self { demands: HashMap::new(), running: HashMap::new(), shelf: Shelf::new(most_bytes) }
    }

    /// An installation has a question.
    pub(super) fn begin(&mut self, key: &Key, question: Question, anew: Anew, now: Instant) {
        match self.demands.get_mut(key) {
            Some(demand) if demand.question == question => demand.again(anew, now),
            Some(_) | None => {
                self.forget(key);
                let identity = question.credentials.identity();
                let demand = Demand { question, identity, resolved: HashMap::new(), failed: None, pulled: false };
                self.demands.insert(key.clone(), demand);
            }
        }
    }

    /// It wants nothing any more.
    pub(super) fn forget(&mut self, key: &Key) {
        if self.demands.remove(key).is_some() {
            self.running.values_mut().for_each(|waiting| {
                waiting.remove(key);
            });
        }
    }

    /// What an installation asked for is there: whatever failed on the way is over.
    pub(super) fn settle(&mut self, key: &Key) {
        if let Some(demand) = self.demands.get_mut(key) {
            demand.failed = None;
        }
    }

    /// The answer to one request of an installation, and the request itself where nobody has made it yet.
    pub(super) fn ask(&mut self, key: &Key, kind: JobKind, reference: &Reference, now: Instant) -> (Told, Option<Job>) {
        let Some(demand) = self.demands.get_mut(key) else { return (Told::Pending, None) };
        if let Some(failure) = demand.failed.as_ref().filter(|failure| now < failure.again) {
            return (Told::Failed(failure.clone()), None);
        }
        match kind {
            JobKind::Resolve => {
                let fresh = demand.resolved.get(reference).filter(|(_, at)| now.saturating_duration_since(*at) < RESOLVED_FOR);
                if let Some((digest, _)) = fresh {
                    return (Told::Digest(digest.clone()), None);
                }
            }
            JobKind::Pull => {
                if let Some(artifact) = self.shelf.get(&Place::of(reference)) {
                    let cached = !std::mem::replace(&mut demand.pulled, true);
                    demand.failed = None;
                    return (Told::Artifact { artifact, cached }, None);
                }
                demand.pulled = true;
            }
        }
        // A failure that is being tried again still stands: otherwise a status would go to and fro.
        let told = demand.failed.clone().map_or(Told::Pending, Told::Failed);
        let job = Job { kind, reference: reference.clone(), identity: demand.identity.clone() };
        if let Some(running) = self.running_like(&job) {
            self.running.entry(running).or_default().insert(key.clone());
            return (told, None);
        }
        self.running.insert(job.clone(), BTreeSet::from([key.clone()]));
        (told, Some(job))
    }

    /// A request on its way whose result is as good: for a pull, whoever asked.
    fn running_like(&self, job: &Job) -> Option<Job> {
        match job.kind {
            JobKind::Resolve => self.running.contains_key(job).then(|| job.clone()),
            JobKind::Pull => {
                let place = Place::of(&job.reference);
                self.running.keys().find(|other| other.kind == JobKind::Pull && Place::of(&other.reference) == place).cloned()
            }
        }
    }

    /// What to show for a request whose turn has come.
    ///
    /// # Errors
    /// Those who joined it, when the one who asked for it does not wait any more: they have to ask themselves.
    pub(super) fn start(&mut self, job: &Job) -> Result<Credentials, BTreeSet<Key>> {
        let waiting = self.running.get(job).cloned().unwrap_or_default();
        let mut demands = waiting.iter().filter_map(|key| self.demands.get(key));
        match demands.find(|demand| demand.identity == job.identity) {
            Some(demand) => Ok(demand.question.credentials.clone()),
            None => {
                self.running.remove(job);
                Err(waiting)
            }
        }
    }

    /// A request ended. Tells who has waited.
    pub(super) fn ended(&mut self, job: &Job, result: Result<Good, Problem>, now: Instant) -> BTreeSet<Key> {
        let waited = self.running.remove(job).unwrap_or_default();
        if let Ok(Good::Artifact(artifact)) = &result {
            self.shelf.put(Place::of(&job.reference), Arc::clone(artifact));
        }
        for key in &waited {
            let Some(demand) = self.demands.get_mut(key) else { continue };
            match &result {
                Ok(Good::Artifact(_)) => {}
                Ok(Good::Digest(digest)) => demand.resolve(&job.reference, digest, now),
                // What others may not read says nothing about this one.
                Err(problem) if demand.identity == job.identity => demand.fail(problem, job.reference.digest(), now),
                Err(_) => {}
            }
        }
        waited
    }
}

impl Demand {
    /// What failed is tried again now. It stands until something else is known: a status must not go to and fro.
    fn again(&mut self, anew: Anew, now: Instant) {
        match anew {
            Anew::No => return,
            // What may pass by itself is waited for as before: a registry in trouble is not asked more often.
            Anew::Due => self.failed.iter_mut().filter(|failed| !failed.transient).for_each(|failed| failed.again = now),
            Anew::Asked => self.failed.iter_mut().for_each(|failed| {
                failed.again = now;
                failed.times = 0;
            }),
        }
        self.resolved.clear();
    }

    fn resolve(&mut self, reference: &Reference, digest: &str, now: Instant) {
        // What failed of another version is of no interest any more.
        if self.failed.as_ref().and_then(|failed| failed.digest.as_deref()).is_some_and(|failed| failed != digest) {
            self.failed = None;
        }
        self.resolved.insert(reference.clone(), (digest.to_owned(), now));
    }

    fn fail(&mut self, problem: &Problem, digest: Option<&str>, now: Instant) {
        let times = self.failed.as_ref().map_or(0, |failure| failure.times);
        let wait = if problem.transient {
            random(FIRST_WAIT.saturating_mul(1_u32.checked_shl(times.min(16)).unwrap_or(u32::MAX)).min(LONGEST_WAIT)).max(SHORTEST_WAIT)
        } else {
            PERMANENT_WAIT + random(PERMANENT_WAIT / 10)
        };
        let wait = problem.retry_after.map_or(wait, |asked| asked.min(MOST_PATIENCE).max(wait));
        self.resolved.clear();
        self.failed = Some(Failure {
            message: problem.message.clone(),
            transient: problem.transient,
            digest: digest.map(String::from),
            again: now + wait,
            times: times.saturating_add(1),
        });
    }
}

/// A part of `full`, another one each time: those who fail together do not come back together.
fn random(full: Duration) -> Duration {
    // Seeded by the operating system.
    let dice = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), full);
    full.saturating_mul(u32::try_from(dice % 1_001).unwrap_or(1_000)) / 1_000
}
