//! What one installation wants to know of a registry, and what it has heard so far.

use std::{collections::HashMap, time::Duration};

use tokio::time::Instant;
use weir_host::oci::{Credentials, Reference};

use super::registry::Problem;
use crate::plugin_installation::Anew;

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

pub(super) struct Demand {
    pub(super) question: Question,
    /// Digest of the credentials; never shown.
    pub(super) identity: String,
    resolved: HashMap<Reference, (String, Instant)>,
    pub(super) failed: Option<Failure>,
    /// It has waited for a pull.
    pub(super) pulled: bool,
}

impl Demand {
    /// Nothing is known yet.
    pub(super) fn new(question: Question) -> Self {
        let identity = question.credentials.identity();
        Self { question, identity, resolved: HashMap::new(), failed: None, pulled: false }
    }

    /// Where a reference leads to, as far as that is known and still counts.
    pub(super) fn digest(&self, reference: &Reference, now: Instant) -> Option<&str> {
        let (digest, at) = self.resolved.get(reference)?;
        (now.saturating_duration_since(*at) < RESOLVED_FOR).then_some(digest.as_str())
    }

    /// What failed is tried again now. It stands until something else is known: a status must not go to and fro.
    pub(super) fn again(&mut self, anew: Anew, now: Instant) {
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

    pub(super) fn resolve(&mut self, reference: &Reference, digest: &str, now: Instant) {
        // What failed of another version is of no interest any more.
        if self.failed.as_ref().and_then(|failed| failed.digest.as_deref()).is_some_and(|failed| failed != digest) {
            self.failed = None;
        }
        self.resolved.insert(reference.clone(), (digest.to_owned(), now));
    }

    pub(super) fn fail(&mut self, problem: &Problem, digest: Option<&str>, now: Instant) {
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
