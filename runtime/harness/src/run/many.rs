//! Many cases at once.

use std::{
    num::NonZeroUsize,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use weir_host::wasm::Wasm;

use super::{Ran, Runner, Status};
use crate::{
    stock::{Components, Stock},
    suite::Case,
};

/// A part of all cases: `3/8` is the third of eight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    index: usize,
    of: usize,
}

impl std::str::FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('/').and_then(|(index, of)| Some((index.parse().ok()?, of.parse().ok()?)));
        match parts {
            Some((index, of)) if (1..=of).contains(&index) => Ok(Self { index, of }),
            Some(_) | None => Err("write I/N, such as 1/4, with I from 1 to N".into()),
        }
    }
}

impl Shard {
    /// Whether the case at this place is in it.
    #[must_use]
    pub fn has(self, place: usize) -> bool {
        place % self.of == self.index - 1
    }
}

/// How cases are run.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Cases at once.
    pub jobs: NonZeroUsize,
    /// Whether nothing is begun after the first case that does not pass.
    pub fail_fast: bool,
}

/// All that ran.
#[derive(Debug, Clone)]
pub struct Totals {
    /// In the order of the cases.
    pub ran: Vec<Ran>,
    /// Cases that were not begun.
    pub left: usize,
    /// From begin to end.
    pub time: Duration,
}

impl Totals {
    /// How many ended so.
    #[must_use]
    pub fn count(&self, status: Status) -> usize {
        self.ran.iter().filter(|ran| ran.status == status).count()
    }

    /// The worst end.
    #[must_use]
    pub fn worst(&self) -> Status {
        self.ran.iter().map(|ran| ran.status).max().unwrap_or(Status::Passed)
    }
}

/// Runs cases, several at once; each of `jobs` workers has policies of its own.
#[must_use]
pub fn run(runner: &Runner, host: &Wasm, components: &Components, cases: &[Case], plan: Plan) -> Totals {
    let since = Instant::now();
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let done: Mutex<Vec<(usize, Ran)>> = Mutex::new(Vec::with_capacity(cases.len()));
    let work = || {
        let mut stock = Stock::new(host, components);
        while !stop.load(Ordering::Relaxed) {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(case) = cases.get(place) else { break };
            let ran = runner.run(case, &mut stock);
            if plan.fail_fast && ran.status != Status::Passed {
                stop.store(true, Ordering::Relaxed);
            }
            done.lock().unwrap_or_else(PoisonError::into_inner).push((place, ran));
        }
    };
    thread::scope(|scope| {
        for _ in 1..plan.jobs.get().min(cases.len()) {
            scope.spawn(work);
        }
        work();
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(place, _)| *place);
    let ran: Vec<Ran> = done.into_iter().map(|(_, ran)| ran).collect();
    Totals { left: cases.len() - ran.len(), ran, time: since.elapsed() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_have_every_case_once() {
        let shards: Vec<Shard> = (1..=3).map(|i| format!("{i}/3").parse().unwrap()).collect();
        for place in 0..10 {
            assert_eq!(shards.iter().filter(|shard| shard.has(place)).count(), 1);
        }
        for bad in ["0/3", "4/3", "1", "a/b", "1/0"] {
            assert!(bad.parse::<Shard>().is_err(), "{bad}");
        }
    }
}
