//! When a revision of a policy has failed too often (semantics "Breaker"). It judges the revision and not one input: what fails for one
//! object, or failed with the revision before as well, is put aside and keeps its last answer.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::PolicyError;

/// Failures that are older do not count.
pub const WINDOW: SignedDuration = SignedDuration::from_mins(5);
/// An input that was put aside is tried again after this: a machine may only have been busy.
pub const ASIDE: SignedDuration = SignedDuration::from_mins(10);
/// Objects that have to fail, where it serves as many.
const OBJECTS: usize = 3;
/// Namespaces that they have to be in, where it serves as many.
const NAMESPACES: usize = 2;
/// Objects and inputs that are remembered. Whoever has more than these has long tripped.
const MOST: usize = 4_096;

/// What a revision serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Serves {
    /// Objects it answers for.
    pub objects: usize,
    /// Namespaces that they are in.
    pub namespaces: usize,
}

/// One question that was not answered.
#[derive(Debug, Clone)]
pub struct Failed<'a> {
    /// Namespace and name of the object.
    pub object: (&'a str, &'a str),
    /// Digest of the input.
    pub input: &'a str,
    /// How it ended.
    pub error: &'a PolicyError,
    /// The revision before fails with this input too.
    pub failed_before: bool,
}

/// Why it opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trip {
    /// Name of the last error.
    pub reason: String,
    /// How many objects, and the last error.
    pub message: String,
}

/// The breaker of one revision.
#[derive(Debug, Default)]
pub struct Breaker {
    /// When each object failed last, of failures that count.
    failures: BTreeMap<(String, String), Timestamp>,
    /// Inputs that are not asked again before this time, and how they failed.
    aside: BTreeMap<String, (Timestamp, String)>,
    /// Name and words of the last error that counts.
    last: Option<(&'static str, String)>,
    tripped: Option<Trip>,
}

/// Whether an error says something about the component. One that could not be asked says nothing, and a refusal is an answer.
#[must_use]
pub fn counts(error: &PolicyError) -> bool {
    match error {
        PolicyError::Refused(_) | PolicyError::Unavailable(_) => false,
        PolicyError::Deadline { .. }
        | PolicyError::Memory(_)
        | PolicyError::Trap(_)
        | PolicyError::BadOutput(_)
        | PolicyError::Incompatible(_) => true,
    }
}

impl Breaker {
    /// Whether any input is put aside: only then inputs have to be digested before they are asked.
    #[must_use]
    pub fn has_aside(&self) -> bool {
        !self.aside.is_empty()
    }

    /// How an input failed that is put aside.
    pub fn aside(&mut self, input: &str, now: Timestamp) -> Option<String> {
        let (until, error) = self.aside.get(input)?;
        if *until > now {
            return Some(error.clone());
        }
        self.aside.remove(input);
        None
    }

    /// A question was not answered. True when this opens the breaker.
    pub fn failed(&mut self, failed: &Failed<'_>, serves: Serves, now: Timestamp) -> bool {
        if self.aside.len() < MOST {
            self.aside.insert(failed.input.to_owned(), (now + ASIDE, failed.error.to_string()));
        }
        if failed.failed_before || self.tripped.is_some() {
            return false;
        }
        if self.failures.len() < MOST {
            self.failures.insert((failed.object.0.to_owned(), failed.object.1.to_owned()), now);
        }
        self.last = Some((failed.error.reason(), failed.error.to_string()));
        self.judge(serves, now)
    }

    /// What it serves was counted anew: whether this opens the breaker. Objects may fail before anybody has counted them.
    pub fn judge(&mut self, serves: Serves, now: Timestamp) -> bool {
        self.failures.retain(|_, at| now.duration_since(*at) <= WINDOW);
        if self.tripped.is_some() || serves.objects == 0 || self.failures.is_empty() {
            return false;
        }
        let Some((reason, error)) = &self.last else { return false };
        let namespaces: std::collections::BTreeSet<&str> = self.failures.keys().map(|(namespace, _)| namespace.as_str()).collect();
        let enough = |found: usize, wanted: usize, served: usize| found >= wanted.min(served.max(1));
        if !enough(self.failures.len(), OBJECTS, serves.objects) || !enough(namespaces.len(), NAMESPACES, serves.namespaces) {
            return false;
        }
        let message = format!("{} of {} objects got no answer within 5 minutes: {error}", self.failures.len(), serves.objects);
        self.tripped = Some(Trip { reason: (*reason).to_owned(), message });
        true
    }

    /// Why it is open.
    #[must_use]
    pub fn tripped(&self) -> Option<&Trip> {
        self.tripped.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn fail(breaker: &mut Breaker, object: (&str, &str), serves: Serves, now: Timestamp) -> bool {
        let error = PolicyError::Trap("unreachable".into());
        breaker.failed(&Failed { object, input: &format!("{object:?}"), error: &error, failed_before: false }, serves, now)
    }

    #[test]
    fn three_objects_of_two_namespaces_open_it_once() {
        let serves = Serves { objects: 10, namespaces: 3 };
        let mut breaker = Breaker::default();
        assert!(!fail(&mut breaker, ("a", "1"), serves, NOW) && !fail(&mut breaker, ("a", "2"), serves, NOW));
        assert!(!fail(&mut breaker, ("a", "3"), serves, NOW), "all are of one namespace");
        assert!(fail(&mut breaker, ("b", "1"), serves, NOW));
        assert!(breaker.tripped().is_some_and(|trip| trip.reason == "Trap" && trip.message.contains("4 of 10")));
        assert!(!fail(&mut breaker, ("c", "1"), serves, NOW), "it is open already");
    }

    #[test]
    fn one_that_serves_fewer_needs_all_of_them() {
        let mut breaker = Breaker::default();
        assert!(!fail(&mut breaker, ("a", "1"), Serves { objects: 2, namespaces: 1 }, NOW));
        assert!(fail(&mut breaker, ("a", "2"), Serves { objects: 2, namespaces: 1 }, NOW));
        assert!(fail(&mut Breaker::default(), ("a", "1"), Serves { objects: 1, namespaces: 1 }, NOW));
        // Nobody has counted yet: it is judged when somebody has.
        let mut early = Breaker::default();
        assert!(!fail(&mut early, ("a", "1"), Serves { objects: 0, namespaces: 0 }, NOW));
        assert!(!early.judge(Serves { objects: 2, namespaces: 1 }, NOW) && early.judge(Serves { objects: 1, namespaces: 1 }, NOW));
    }

    #[test]
    fn failures_are_forgotten_and_one_object_counts_once() {
        let serves = Serves { objects: 10, namespaces: 1 };
        let mut breaker = Breaker::default();
        for _ in 0..5 {
            assert!(!fail(&mut breaker, ("a", "1"), serves, NOW));
        }
        assert!(!fail(&mut breaker, ("a", "2"), serves, NOW));
        let later = NOW + WINDOW + SignedDuration::from_secs(1);
        assert!(!fail(&mut breaker, ("a", "3"), serves, later));
        assert!(!fail(&mut breaker, ("a", "4"), serves, later));
        assert!(fail(&mut breaker, ("a", "5"), serves, later));
    }

    #[test]
    fn what_failed_before_is_put_aside_and_judges_nothing() {
        let mut breaker = Breaker::default();
        let error = PolicyError::Deadline { limit_ms: 200 };
        let failed = Failed { object: ("a", "1"), input: "x", error: &error, failed_before: true };
        assert!(!breaker.failed(&failed, Serves { objects: 1, namespaces: 1 }, NOW));
        assert!(breaker.tripped().is_none() && breaker.has_aside());
        assert!(breaker.aside("x", NOW).is_some_and(|error| error.contains("200 ms")));
        assert_eq!(breaker.aside("x", NOW + ASIDE), None, "it is tried again");
        assert!(!breaker.has_aside());
    }
}
