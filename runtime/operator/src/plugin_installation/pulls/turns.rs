//! Whose request is next. A registry that hangs holds no more than its share of the places, and namespaces take turns: hundreds of
//! installations of one never stand before the single one of another. In a namespace what was begun is finished first: where a tag leads to is
//! not known for ever.

use std::collections::{BTreeMap, HashMap, VecDeque};

/// What a request is to who asked for it. Of a namespace the first of these goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    /// It ends what an installation has waited for.
    Ends,
    /// More requests follow it.
    Begins,
}

/// Requests that wait for a place, and how many places are taken.
pub(super) struct Turns<J> {
    most: usize,
    most_of_host: usize,
    /// Places that are taken, by host of the registry.
    taken: HashMap<String, usize>,
    /// Namespaces that wait. The first one has the next turn, then it goes to the end.
    lines: VecDeque<Line<J>>,
    /// Order of arrival.
    clock: u64,
}

/// What waits on behalf of a namespace.
struct Line<J> {
    namespace: String,
    /// By host, so that one without a free place is passed over at once.
    waiting: BTreeMap<String, BTreeMap<Order, J>>,
}

/// Rank, then arrival.
type Order = (Rank, u64);

impl<J: PartialEq> Turns<J> {
    /// Nobody waits; there are `most` places, `most_of_host` of them for any one host.
    pub(super) fn new(most: usize, most_of_host: usize) -> Self {
        Self { most, most_of_host, taken: HashMap::new(), lines: VecDeque::new(), clock: 0 }
    }

    /// A request to a host waits on behalf of a namespace. It may wait on behalf of several, and begins once.
    pub(super) fn wait(&mut self, namespace: &str, host: &str, rank: Rank, job: J) {
        self.clock += 1;
        let order = (rank, self.clock);
        if let Some(line) = self.lines.iter_mut().find(|line| line.namespace == namespace) {
            line.waiting.entry(host.to_owned()).or_default().insert(order, job);
            return;
        }
        let waiting = BTreeMap::from([(host.to_owned(), BTreeMap::from([(order, job)]))]);
        self.lines.push_back(Line { namespace: namespace.to_owned(), waiting });
    }

    /// A request that has not begun is not wanted any more.
    pub(super) fn leave(&mut self, host: &str, job: &J) {
        for line in &mut self.lines {
            let Some(waiting) = line.waiting.get_mut(host) else { continue };
            waiting.retain(|_, other| other != job);
            if waiting.is_empty() {
                line.waiting.remove(host);
            }
        }
        self.lines.retain(|line| !line.waiting.is_empty());
    }

    /// The request whose turn it is. It has a place from now on. A namespace that waits for a full host keeps its turn.
    pub(super) fn take(&mut self) -> Option<J> {
        if self.taken.values().sum::<usize>() >= self.most {
            return None;
        }
        let is_free = |host: &str| self.taken.get(host).is_none_or(|taken| *taken < self.most_of_host);
        let index = self.lines.iter().position(|line| line.first(is_free).is_some())?;
        let host = self.lines.get(index)?.first(is_free)?;
        let mut line = self.lines.remove(index)?;
        let (_, job) = line.waiting.get_mut(&host)?.pop_first()?;
        self.lines.push_back(line);
        self.leave(&host, &job);
        *self.taken.entry(host).or_default() += 1;
        Some(job)
    }

    /// A request to a host is over: its place is free.
    pub(super) fn ended(&mut self, host: &str) {
        if let Some(taken) = self.taken.get_mut(host) {
            *taken = taken.saturating_sub(1);
            if *taken == 0 {
                self.taken.remove(host);
            }
        }
    }
}

impl<J> Line<J> {
    /// The host, of those with a free place, for which the first one waits.
    fn first(&self, is_free: impl Fn(&str) -> bool) -> Option<String> {
        let free = self.waiting.iter().filter(|(host, _)| is_free(host));
        let first = free.filter_map(|(host, waiting)| Some((waiting.first_key_value()?.0, host))).min();
        first.map(|(_, host)| host.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Everything that gets a place now.
    fn all(turns: &mut Turns<String>) -> Vec<String> {
        std::iter::from_fn(|| turns.take()).collect()
    }

    fn wait(turns: &mut Turns<String>, namespace: &str, host: &str, count: usize) {
        (0..count).for_each(|n| turns.wait(namespace, host, Rank::Begins, format!("{namespace} {host} {n}")));
    }

    #[test]
    fn a_host_that_never_answers_has_its_share_and_no_more() {
        let mut turns = Turns::new(8, 4);
        wait(&mut turns, "a", "hangs", 100);
        assert_eq!(all(&mut turns).len(), 4);
        // The same namespace and others go on elsewhere.
        wait(&mut turns, "a", "good", 2);
        wait(&mut turns, "b", "good", 1);
        wait(&mut turns, "b", "hangs", 1);
        for expected in ["a good 0", "b good 0", "a good 1"] {
            assert_eq!(turns.take().as_deref(), Some(expected));
            turns.ended("good");
        }
        assert_eq!(turns.take(), None);
    }

    #[test]
    fn all_hosts_together_have_no_more_than_all_places() {
        let mut turns = Turns::new(8, 4);
        (0..20).for_each(|n| wait(&mut turns, "a", &format!("h{n:02}"), 1));
        assert_eq!(all(&mut turns).len(), 8);
        turns.ended("h03");
        // One that was freed twice is one place.
        turns.ended("h03");
        assert_eq!(all(&mut turns), ["a h08 0"]);
    }

    #[test]
    fn hundreds_of_one_namespace_delay_another_by_one_turn() {
        let mut turns = Turns::new(8, 4);
        wait(&mut turns, "many", "r", 500);
        assert_eq!(all(&mut turns).len(), 4);
        wait(&mut turns, "one", "r", 1);
        wait(&mut turns, "two", "r", 2);
        let mut order = Vec::new();
        for _ in 0..6 {
            turns.ended("r");
            order.extend(all(&mut turns));
        }
        assert_eq!(order, ["many r 4", "one r 0", "two r 0", "many r 5", "two r 1", "many r 6"]);
    }

    #[test]
    fn what_was_begun_is_finished_first_and_only_in_its_own_namespace() {
        let mut turns = Turns::new(8, 1);
        wait(&mut turns, "many", "r", 3);
        wait(&mut turns, "one", "r", 1);
        assert_eq!(all(&mut turns), ["many r 0"]);
        turns.wait("many", "r", Rank::Ends, "many r 0, its content".into());
        let mut order = Vec::new();
        for _ in 0..4 {
            turns.ended("r");
            order.extend(all(&mut turns));
        }
        assert_eq!(order, ["one r 0", "many r 0, its content", "many r 1", "many r 2"]);
    }

    #[test]
    fn what_was_passed_over_keeps_its_turn() {
        let mut turns = Turns::new(2, 1);
        wait(&mut turns, "a", "x", 2);
        assert_eq!(all(&mut turns), ["a x 0"]);
        wait(&mut turns, "b", "y", 1);
        assert_eq!(all(&mut turns), ["b y 0"]);
        wait(&mut turns, "c", "x", 1);
        turns.ended("x");
        assert_eq!(all(&mut turns), ["a x 1"]);
        turns.ended("x");
        assert_eq!(all(&mut turns), ["c x 0"]);
    }

    #[test]
    fn what_several_namespaces_want_begins_once_and_what_nobody_wants_never() {
        let mut turns = Turns::new(8, 4);
        wait(&mut turns, "many", "r", 500);
        all(&mut turns);
        // Far behind in one line, first in the other.
        turns.wait("one", "r", Rank::Begins, "many r 400".into());
        turns.leave("r", &"many r 4".to_owned());
        turns.ended("r");
        turns.ended("r");
        assert_eq!(all(&mut turns), ["many r 5", "many r 400"]);
        (0..4).for_each(|_| turns.ended("r"));
        let mut rest = Vec::new();
        while let Some(job) = turns.take() {
            turns.ended("r");
            rest.push(job);
        }
        assert_eq!((rest.len(), rest.contains(&"many r 400".to_owned()), turns.lines.len()), (500 - 7, false, 0));
    }
}
