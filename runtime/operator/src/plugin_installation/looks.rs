//! When tags were last looked up. All of it may be lost: the look after a restart comes within one interval, and not for all at once.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;
use weir_core::hash;

use crate::cache::Key;

/// The last look of each installation.
#[derive(Default)]
pub struct Looks(Mutex<HashMap<Key, Look>>);

#[derive(Default)]
struct Look {
    uid: String,
    /// When the last one began, or ended.
    since: Option<Instant>,
    /// One has begun, and nobody knows its result yet.
    looking: bool,
    /// The value of `weir.dev/check-at` that it began for.
    asked: Option<String>,
}

/// Whether a pass has to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    /// It has to, or a look that began earlier is not over.
    pub looking: bool,
    /// Whether it begins with this pass.
    pub anew: Anew,
}

/// Whether what is known from before still counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anew {
    /// It does.
    No,
    /// The interval is over: where a tag leads to is asked again.
    Due,
    /// Somebody asks for it: nothing that failed before counts either.
    Asked,
}

impl Looks {
    /// Whether a pass has to look: `interval` is over, or somebody asks for it by `weir.dev/check-at`.
    #[must_use]
    pub fn due(&self, key: &Key, uid: &str, interval: Option<Duration>, asked: Option<&str>) -> Due {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let look = all.entry(key.clone()).or_default();
        if look.uid != uid {
            *look = Look { uid: uid.to_owned(), ..Look::default() };
        }
        let since = *look.since.get_or_insert_with(|| started(uid, interval.unwrap_or_default()));
        let anew = if asked.is_some() && look.asked.as_deref() != asked {
            look.asked = asked.map(String::from);
            Anew::Asked
        } else if interval.is_some_and(|interval| since.elapsed() >= interval) {
            Anew::Due
        } else {
            Anew::No
        };
        if anew != Anew::No {
            look.looking = true;
            look.since = Some(Instant::now());
        }
        Due { looking: look.looking, anew }
    }

    /// The look is over: its result was given to a pass.
    pub fn ended(&self, key: &Key) {
        if let Some(look) = self.0.lock().unwrap_or_else(PoisonError::into_inner).get_mut(key).filter(|look| look.looking) {
            look.looking = false;
            look.since = Some(Instant::now());
        }
    }

    /// How long until the next look.
    #[must_use]
    pub fn remaining(&self, key: &Key, interval: Duration) -> Option<Duration> {
        let since = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(key)?.since?;
        Some(interval.saturating_sub(since.elapsed()))
    }

    /// The installation is gone.
    pub fn forget(&self, key: &Key) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}

/// As if the last look were a part of the interval ago, another part for each object.
fn started(uid: &str, interval: Duration) -> Instant {
    let spread = u32::from_str_radix(&hash::short(uid.as_bytes(), 2), 16).unwrap_or(128);
    let now = Instant::now();
    now.checked_sub(interval.saturating_mul(spread) / 256).unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn a_look_lasts_until_its_result_is_there() {
        tokio::time::advance(MINUTE * 60).await;
        let (looks, key) = (Looks::default(), Key::new("n", "a"));
        let due = || looks.due(&key, "u", Some(MINUTE), None);
        let mut first = due();
        if first.anew == Anew::No {
            tokio::time::advance(looks.remaining(&key, MINUTE).unwrap()).await;
            first = due();
        }
        assert_eq!(first, Due { looking: true, anew: Anew::Due });
        assert_eq!(due(), Due { looking: true, anew: Anew::No });
        looks.ended(&key);
        assert_eq!(due(), Due { looking: false, anew: Anew::No });
        assert_eq!(looks.remaining(&key, MINUTE), Some(MINUTE));
        tokio::time::advance(MINUTE).await;
        assert_eq!(due().anew, Anew::Due);
        // One that goes on failing is looked at again all the same.
        tokio::time::advance(MINUTE).await;
        assert_eq!(due().anew, Anew::Due);
    }

    #[tokio::test(start_paused = true)]
    async fn a_new_value_of_check_at_begins_a_look_once() {
        let (looks, key) = (Looks::default(), Key::new("n", "a"));
        let due = |asked| looks.due(&key, "u", None, asked);
        assert_eq!(due(None), Due { looking: false, anew: Anew::No });
        assert_eq!(due(Some("1")), Due { looking: true, anew: Anew::Asked });
        // The answer may not have been written yet.
        assert_eq!(due(Some("1")), Due { looking: true, anew: Anew::No });
        assert_eq!(due(Some("2")).anew, Anew::Asked);
        looks.ended(&key);
        assert!(!due(None).looking);
        assert_eq!(looks.due(&key, "another", None, Some("2")).anew, Anew::Asked);
    }
}
