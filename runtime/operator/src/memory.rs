//! What is remembered between passes. All of it may be lost: a restart costs one apply per child that changes nothing.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;
use weir_core::{
    events::{Event, EventType},
    hash,
    plan::ChildKind,
};

use crate::cache::Key;

/// Repairs of one child after which somebody is taken to fight over it.
const FIGHT: u32 = 3;
/// A fight is over when nothing was repaired for so long.
const PEACE: Duration = Duration::from_secs(600);
const LONGEST_REST: Duration = Duration::from_secs(60);
/// Names held by strangers are asked for again after so long.
const FOREIGN_FOR: Duration = Duration::from_secs(30);
const MOST_FOREIGN: usize = 10_000;

/// Memory of all objects of a kind.
#[derive(Default)]
pub struct Memory(Mutex<HashMap<Key, Arc<Mutex<Remembered>>>>);

impl Memory {
    /// What is remembered of an object; a new UID begins anew.
    #[must_use]
    pub fn of(&self, key: &Key) -> Arc<Mutex<Remembered>> {
        Arc::clone(self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(key.clone()).or_default())
    }

    /// The object is gone.
    pub fn forget(&self, key: &Key) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}

/// What is remembered of one object.
#[derive(Debug, Default, Clone)]
pub struct Remembered {
    uid: String,
    /// Digest of the answer to the last apply, by child.
    answers: BTreeMap<(ChildKind, String), String>,
    repairs: BTreeMap<(ChildKind, String), Repairs>,
    /// Children that admission changed on their way in.
    altered: BTreeSet<(ChildKind, String)>,
    /// Digests of warnings that stand.
    said: BTreeSet<String>,
}

#[derive(Debug, Clone, Copy)]
struct Repairs {
    times: u32,
    last: Instant,
}

impl Remembered {
    /// Forgets what belongs to a former object of the name.
    pub fn begin(&mut self, uid: &str) {
        if self.uid != uid {
            *self = Self { uid: uid.to_owned(), ..Self::default() };
        }
    }

    /// Digest of the answer to the last apply of a child.
    #[must_use]
    pub fn answer(&self, kind: ChildKind, name: &str) -> Option<String> {
        self.answers.get(&(kind, name.to_owned())).cloned()
    }

    /// A child was applied; `repair`: the same was sent as the time before.
    pub fn answered(&mut self, kind: ChildKind, name: &str, digest: String, repair: bool) {
        let child = (kind, name.to_owned());
        // The first apply after a restart is no repair: nobody knows what was answered before.
        let known = self.answers.insert(child.clone(), digest).is_some();
        if !(repair && known) {
            return;
        }
        let repairs = self.repairs.entry(child).or_insert(Repairs { times: 0, last: Instant::now() });
        let times = if repairs.last.elapsed() > PEACE { 1 } else { repairs.times.saturating_add(1) };
        *repairs = Repairs { times, last: Instant::now() };
    }

    /// Whether the answer to the last apply says something else than what was sent.
    pub fn altered(&mut self, kind: ChildKind, name: &str, altered: bool) {
        let child = (kind, name.to_owned());
        if altered {
            self.altered.insert(child);
        } else {
            self.altered.remove(&child);
        }
    }

    /// Children that admission changed.
    #[must_use]
    pub fn alterations(&self) -> Vec<String> {
        self.altered.iter().map(|(kind, name)| format!("{} {name}", kind.api().1)).collect()
    }

    /// A child is gone.
    pub fn forget(&mut self, kind: ChildKind, name: &str) {
        let child = (kind, name.to_owned());
        self.altered.remove(&child);
        self.answers.remove(&child);
        self.repairs.remove(&child);
    }

    /// Children that somebody else keeps changing, and how long to leave them before the next repair.
    #[must_use]
    pub fn fights(&self) -> Option<(Vec<String>, Duration)> {
        let fought = self.repairs.iter().filter(|(_, r)| r.times >= FIGHT && r.last.elapsed() < PEACE);
        let (names, most) = fought.fold((Vec::new(), 0), |(mut names, most), ((kind, name), r)| {
            names.push(format!("{} {name}", kind.api().1));
            (names, most.max(r.times))
        });
        let rest = Duration::from_millis(250).saturating_mul(1_u32.checked_shl((most - most.min(FIGHT)).min(16)).unwrap_or(u32::MAX));
        (!names.is_empty()).then(|| (names, rest.min(LONGEST_REST)))
    }

    /// Events that are news: a warning that stands is said once, and again when it comes back.
    #[must_use]
    pub fn news(&mut self, events: Vec<Event>) -> Vec<Event> {
        let mut standing = BTreeSet::new();
        let mut news = Vec::new();
        for event in events {
            match event.type_ {
                EventType::Normal => news.push(event),
                EventType::Warning => {
                    let digest = hash::digest_json(&(&event.reason, &event.data));
                    if !self.said.contains(&digest) && !standing.contains(&digest) {
                        news.push(event);
                    }
                    standing.insert(digest);
                }
            }
        }
        self.said = standing;
        news
    }
}

/// Names held by objects that are not watched, learned from refused writes.
#[derive(Debug, Default)]
pub struct Foreign(HashMap<(ChildKind, Key), (bool, Instant)>);

impl Foreign {
    /// A name turned out to be held.
    pub fn learn(&mut self, kind: ChildKind, key: Key, leaving: bool) {
        self.0.retain(|_, (_, at)| at.elapsed() < FOREIGN_FOR);
        if self.0.len() < MOST_FOREIGN {
            self.0.insert((kind, key), (leaving, Instant::now()));
        }
    }

    /// Names of a kind in a namespace that are held.
    #[must_use]
    pub fn names(&self, kind: ChildKind, namespace: &str) -> Vec<String> {
        let of = |(held, key): &&(ChildKind, Key)| *held == kind && key.namespace == namespace;
        self.0
            .iter()
            .filter(|(_, (_, at))| at.elapsed() < FOREIGN_FOR)
            .map(|(held, _)| held)
            .filter(of)
            .map(|(_, key)| key.name.clone())
            .collect()
    }

    /// Whether a name is held, and whether its holder is leaving.
    #[must_use]
    pub fn holds(&self, kind: ChildKind, key: &Key) -> Option<bool> {
        let (leaving, at) = self.0.get(&(kind, key.clone()))?;
        (at.elapsed() < FOREIGN_FOR).then_some(*leaving)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fight_is_noticed_and_rests_get_longer() {
        let mut remembered = Remembered::default();
        remembered.begin("u");
        let repair = |r: &mut Remembered| r.answered(ChildKind::Service, "s", "d".into(), true);
        for _ in 0..3 {
            repair(&mut remembered);
            assert_eq!(remembered.fights(), None);
        }
        repair(&mut remembered);
        let (names, first) = remembered.fights().unwrap();
        assert_eq!(names, ["Service s"]);
        repair(&mut remembered);
        assert!(remembered.fights().unwrap().1 > first);
        remembered.begin("other");
        assert_eq!(remembered.fights(), None);
    }

    #[test]
    fn a_standing_warning_is_said_once() {
        let mut remembered = Remembered::default();
        let warning = || Event::warning("R", "m", "d");
        assert_eq!(remembered.news(vec![warning(), warning()]).len(), 1);
        assert_eq!(remembered.news(vec![warning(), Event::normal("Created", "m", "d")]).len(), 1);
        assert!(remembered.news(vec![]).is_empty());
        assert_eq!(remembered.news(vec![warning()]).len(), 1);
    }
}
