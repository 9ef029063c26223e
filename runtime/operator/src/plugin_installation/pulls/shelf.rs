//! Artifacts that were fetched, by repository and digest. What was used longest ago goes first.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use weir_core::plugin_installation::snapshot::Artifact;
use weir_host::oci::Reference;

/// Bytes of files that are kept.
pub(super) const MOST_BYTES: usize = 64 << 20;
/// What an artifact costs beside its files, and a file beside its bytes.
const OVERHEAD: usize = 512;

/// Repository and digest. The repository is part of it: whoever may not read it must not get what another one fetched from it, and a
/// registry may claim any digest for its own tags.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Place {
    repository: String,
    digest: String,
}

impl Place {
    /// The place of a reference with a digest.
    pub(super) fn of(reference: &Reference) -> Self {
        let repository = format!("{}/{}", reference.registry(), reference.repository());
        Self { repository, digest: reference.digest().unwrap_or_default().to_owned() }
    }
}

#[derive(Debug)]
pub(super) struct Shelf {
    most: usize,
    items: HashMap<Place, Item>,
    /// Last use to place; the smallest is the oldest.
    order: BTreeMap<u64, Place>,
    clock: u64,
    bytes: usize,
}

#[derive(Debug)]
struct Item {
    used: u64,
    bytes: usize,
    artifact: Arc<Artifact>,
}

impl Shelf {
    pub(super) fn new(most: usize) -> Self {
        Self { most, items: HashMap::new(), order: BTreeMap::new(), clock: 0, bytes: 0 }
    }

    /// Bytes that are kept.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn get(&mut self, place: &Place) -> Option<Arc<Artifact>> {
        let item = self.items.get_mut(place)?;
        self.order.remove(&item.used);
        self.clock += 1;
        item.used = self.clock;
        self.order.insert(self.clock, place.clone());
        Some(Arc::clone(&item.artifact))
    }

    pub(super) fn put(&mut self, place: Place, artifact: Arc<Artifact>) {
        self.remove(&place);
        let bytes = artifact.files.iter().fold(OVERHEAD, |sum, (path, content)| sum + path.len() + content.len() + OVERHEAD);
        while self.bytes.saturating_add(bytes) > self.most {
            let Some((_, oldest)) = self.order.pop_first() else { break };
            self.remove(&oldest);
        }
        self.clock += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        self.order.insert(self.clock, place.clone());
        self.items.insert(place, Item { used: self.clock, bytes, artifact });
    }

    /// Nothing is kept.
    pub(super) fn clear(&mut self) {
        *self = Self::new(self.most);
    }

    fn remove(&mut self, place: &Place) {
        if let Some(item) = self.items.remove(place) {
            self.order.remove(&item.used);
            self.bytes = self.bytes.saturating_sub(item.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(digit: char) -> Place {
        let digest: String = std::iter::repeat_n(digit, 64).collect();
        Place::of(&Reference::parse(&format!("r.example.com/a@sha256:{digest}")).unwrap())
    }

    fn artifact(bytes: usize) -> Arc<Artifact> {
        Arc::new(Artifact { files: BTreeMap::from([("a".to_owned(), vec![0; bytes])]), ..Artifact::default() })
    }

    #[test]
    fn it_holds_no_more_than_its_bytes_and_the_oldest_goes_first() {
        let mut shelf = Shelf::new(10_000);
        shelf.put(place('1'), artifact(3_000));
        shelf.put(place('2'), artifact(3_000));
        assert!(shelf.get(&place('1')).is_some());
        shelf.put(place('3'), artifact(3_000));
        assert!(shelf.get(&place('2')).is_none());
        assert!(shelf.get(&place('1')).is_some() && shelf.get(&place('3')).is_some());
        assert!(shelf.bytes() <= 10_000);
        shelf.put(place('3'), artifact(1));
        assert!(shelf.bytes() < 6_000);
        // One that is too large for all of it still is what its only user waits for.
        shelf.put(place('4'), artifact(20_000));
        assert!(shelf.get(&place('4')).is_some() && shelf.get(&place('1')).is_none());
    }
}
