//! Who waits for what, what runs, and what is known. No registry is asked here, and nothing waits.

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    sync::Arc,
};

use tokio::time::Instant;
use weir_core::plugin_installation::snapshot::Artifact;
use weir_host::oci::{Credentials, Reference};

use super::{
    demand::{Demand, Failure, Question},
    registry::Problem,
    shelf::{Place, Shelf},
    turns::{Rank, Turns},
};
use crate::{cache::Key, plugin_installation::Anew};

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
    /// It is not its turn yet.
    Queued,
    Failed(Failure),
}

/// A request whose turn has come.
pub(super) struct Begun {
    pub(super) job: Job,
    /// What to show. Otherwise those who joined it: the one who asked for it does not wait any more, so they have to ask themselves.
    pub(super) credentials: Result<Credentials, BTreeSet<Key>>,
}

#[derive(Default)]
struct Request {
    /// Who waits for it.
    waiting: BTreeSet<Key>,
    /// Its turn has come.
    begun: bool,
    /// The settings it was begun under.
    settings: u64,
}

pub(super) struct Table {
    demands: HashMap<Key, Demand>,
    /// Requests on their way, and those that wait for their turn.
    requests: HashMap<Job, Request>,
    turns: Turns<Job>,
    /// Requests whose turn has come, and that nobody has made yet.
    ready: VecDeque<Job>,
    pub(super) shelf: Shelf,
    /// Grows when registries are reached in another way, or other signatures are wanted.
    settings: u64,
}

impl Table {
    pub(super) fn new(most_bytes: usize, turns: Turns<Job>) -> Self {
        let shelf = Shelf::new(most_bytes);
        Self { demands: HashMap::new(), requests: HashMap::new(), turns, ready: VecDeque::new(), shelf, settings: 0 }
    }

    /// An installation has a question.
    pub(super) fn begin(&mut self, key: &Key, question: Question, anew: Anew, now: Instant) {
        match self.demands.get_mut(key) {
            Some(demand) if demand.question == question => demand.again(anew, now),
            Some(_) | None => {
                self.forget(key);
                self.demands.insert(key.clone(), Demand::new(question));
            }
        }
    }

    /// Registries are reached in another way, or other signatures are wanted: nothing that is known counts, nor what is on its way.
    pub(super) fn anew(&mut self, now: Instant) {
        self.settings = self.settings.wrapping_add(1);
        self.shelf.clear();
        self.demands.values_mut().for_each(|demand| demand.again(Anew::Asked, now));
    }

    /// It wants nothing any more.
    pub(super) fn forget(&mut self, key: &Key) {
        if self.demands.remove(key).is_none() {
            return;
        }
        let turns = &mut self.turns;
        self.requests.retain(|job, request| {
            let wanted = !request.waiting.remove(key) || request.begun || !request.waiting.is_empty();
            if !wanted {
                turns.leave(job.reference.registry(), job);
            }
            wanted
        });
    }

    /// What an installation asked for is there: whatever failed on the way is over.
    pub(super) fn settle(&mut self, key: &Key) {
        if let Some(demand) = self.demands.get_mut(key) {
            demand.failed = None;
        }
    }

    /// The answer to one request of an installation, which is made as soon as it is its turn.
    pub(super) fn ask(&mut self, key: &Key, kind: JobKind, reference: &Reference, now: Instant) -> Told {
        let Some(demand) = self.demands.get_mut(key) else { return Told::Pending };
        if let Some(failure) = demand.failed.as_ref().filter(|failure| now < failure.again) {
            return Told::Failed(failure.clone());
        }
        match kind {
            JobKind::Resolve => {
                if let Some(digest) = demand.digest(reference, now) {
                    return Told::Digest(digest.to_owned());
                }
            }
            JobKind::Pull => {
                if let Some(artifact) = self.shelf.get(&Place::of(reference)) {
                    let cached = !std::mem::replace(&mut demand.pulled, true);
                    demand.failed = None;
                    return Told::Artifact { artifact, cached };
                }
                demand.pulled = true;
            }
        }
        // A failure that is being tried again still stands: otherwise a status would go to and fro.
        let failed = demand.failed.clone();
        let job = Job { kind, reference: reference.clone(), identity: demand.identity.clone() };
        let begun = self.join(key, job);
        failed.map_or(if begun { Told::Pending } else { Told::Queued }, Told::Failed)
    }

    /// An installation waits for a request, or for another one that is as good. Tells whether it has begun.
    fn join(&mut self, key: &Key, job: Job) -> bool {
        let job = self.same(&job).unwrap_or(job);
        let request = self.requests.entry(job.clone()).or_default();
        // On behalf of each namespace once: what one of them has far behind may be the first of another.
        let known = request.waiting.iter().any(|other| other.namespace == key.namespace);
        request.waiting.insert(key.clone());
        if !request.begun && !known {
            let rank = match job.kind {
                JobKind::Pull => Rank::Ends,
                JobKind::Resolve => Rank::Begins,
            };
            self.turns.wait(&key.namespace, job.reference.registry(), rank, job.clone());
            self.advance();
        }
        self.requests.get(&job).is_some_and(|request| request.begun)
    }

    /// A request that is there already and whose result is as good: for a pull, whoever asked.
    fn same(&self, job: &Job) -> Option<Job> {
        match job.kind {
            JobKind::Resolve => self.requests.contains_key(job).then(|| job.clone()),
            JobKind::Pull => {
                let place = Place::of(&job.reference);
                self.requests.keys().find(|other| other.kind == JobKind::Pull && Place::of(&other.reference) == place).cloned()
            }
        }
    }

    /// Gives free places to those whose turn it is.
    fn advance(&mut self) {
        while let Some(job) = self.turns.take() {
            let request = self.requests.entry(job.clone()).or_default();
            (request.begun, request.settings) = (true, self.settings);
            self.ready.push_back(job);
        }
    }

    /// The next request to make. Whoever is told of one tells when it ended.
    pub(super) fn begun(&mut self) -> Option<Begun> {
        let job = self.ready.pop_front()?;
        let waiting = self.requests.get(&job).map(|request| request.waiting.clone()).unwrap_or_default();
        let mut demands = waiting.iter().filter_map(|key| self.demands.get(key));
        let credentials = match demands.find(|demand| demand.identity == job.identity) {
            Some(demand) => Ok(demand.question.credentials.clone()),
            None => {
                drop(self.over(&job));
                Err(waiting)
            }
        };
        Some(Begun { job, credentials })
    }

    /// A request is over.
    fn over(&mut self, job: &Job) -> Request {
        let request = self.requests.remove(job).unwrap_or_default();
        self.turns.ended(job.reference.registry());
        self.advance();
        request
    }

    /// A request ended. Tells who has waited.
    pub(super) fn ended(&mut self, job: &Job, result: Result<Good, Problem>, now: Instant) -> BTreeSet<Key> {
        let Request { waiting: waited, settings, .. } = self.over(job);
        if settings != self.settings {
            // They ask again, under the settings of now.
            return waited;
        }
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
