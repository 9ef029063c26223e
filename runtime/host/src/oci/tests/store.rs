use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use super::registry::wasm;
use crate::oci::{Known, Layout, Store, StoreError, digest};

struct Dir {
    root: tempfile::TempDir,
}

impl Dir {
    fn new() -> Self {
        Self { root: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.root.path().join("store")
    }

    fn open(&self, most: u64) -> Store {
        Store::open(&self.path(), most).unwrap()
    }

    fn files(&self, kind: &str) -> Vec<PathBuf> {
        let mut files: Vec<_> = fs::read_dir(self.path().join(kind)).unwrap().map(|file| file.unwrap().path()).collect();
        files.sort();
        files
    }

    fn component(&self, digest: &str) -> PathBuf {
        self.path().join("components").join(format!("{}.wasm", digest.trim_start_matches("sha256:")))
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

/// As if it was used so many hours ago.
fn age(path: &Path, hours: u64) {
    fs::File::options().write(true).open(path).unwrap().set_modified(SystemTime::now() - Duration::from_secs(hours * 3600)).unwrap();
}

/// A component of 100 bytes, and its digest.
fn hundred(name: char) -> (Vec<u8>, String) {
    let bytes = wasm(&name.to_string().repeat(92));
    let digest = digest::of(&bytes);
    (bytes, digest)
}

fn known(layer: &str) -> Known {
    Known {
        layer_digest: layer.to_owned(),
        blob_digest: digest::of(b"blob"),
        layout: Layout::Image,
        annotations: BTreeMap::from([("org.opencontainers.image.version".to_owned(), "1.2.3".to_owned())]),
        version: Some("1.2.3".to_owned()),
    }
}

#[test]
fn components_outlive_the_process() {
    let dir = Dir::new();
    let (bytes, digest) = hundred('a');
    let store = dir.open(1_000);
    assert_eq!(store.get(&digest), None);
    store.put(&digest, &bytes).unwrap();
    assert_eq!(dir.open(1_000).get(&digest), Some(bytes));
    let file = dir.component(&digest);
    assert_eq!((mode(&dir.path()), mode(file.parent().unwrap()), mode(&file)), (0o700, 0o700, 0o600));
    age(&file, 5);
    assert!(store.get(&digest).is_some());
    assert!(fs::metadata(&file).unwrap().modified().unwrap().elapsed().unwrap() < Duration::from_secs(3600), "its use is marked");
}

#[test]
fn wrong_content_counts_as_none() {
    let dir = Dir::new();
    let (bytes, digest) = hundred('a');
    let store = dir.open(1_000);
    let file = dir.component(&digest);
    for bad in [wasm("other"), bytes[..50].to_vec(), Vec::new(), vec![0; 2_000]] {
        store.put(&digest, &bytes).unwrap();
        fs::write(&file, bad).unwrap();
        assert_eq!(store.get(&digest), None);
        assert!(!file.exists());
    }
    store.put(&digest, &bytes).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
    assert_eq!((store.get(&digest), file.exists()), (None, false));
    // A link, even to the right bytes.
    let elsewhere = dir.root.path().join("elsewhere");
    fs::write(&elsewhere, &bytes).unwrap();
    symlink(&elsewhere, &file).unwrap();
    assert_eq!((store.get(&digest), fs::symlink_metadata(&file).is_ok(), elsewhere.exists()), (None, false, true));
}

#[test]
fn only_what_fits_its_name_is_put() {
    let dir = Dir::new();
    let store = dir.open(100);
    let (bytes, digest) = hundred('a');
    assert!(matches!(store.put(&digest, b"other"), Err(StoreError::Content { .. })));
    for name in ["", "sha256:../../x", "abc", &format!("sha512:{}", "a".repeat(128))] {
        assert!(matches!(store.put(name, &bytes), Err(StoreError::Digest(_))), "{name}");
        assert_eq!(store.get(name), None);
    }
    let large = wasm(&"x".repeat(93));
    assert!(matches!(store.put(&digest::of(&large), &large), Err(StoreError::TooLarge { found: 101, most: 100, .. })));
    assert!(dir.files("components").is_empty());
}

#[test]
fn the_oldest_go_first_and_those_in_use_never() {
    let dir = Dir::new();
    let store = dir.open(300);
    let all: Vec<_> = ['a', 'b', 'c', 'd', 'e'].into_iter().map(hundred).collect();
    let has = |index: usize| dir.component(&all[index].1).exists();
    for (hours, (bytes, digest)) in (1..).zip(&all[..3]) {
        store.put(digest, bytes).unwrap();
        age(&dir.component(digest), hours);
    }
    // c was used longest ago, but is in use.
    store.keep(&BTreeSet::from([all[2].1.clone()]));
    store.put(&all[3].1, &all[3].0).unwrap();
    assert_eq!([has(0), has(1), has(2), has(3)], [true, false, true, true]);
    store.put(&all[3].1, &all[3].0).unwrap();
    assert_eq!(dir.files("components").len(), 3, "what is replaced takes no room twice");
    // What another process left unfinished.
    let unfinished = dir.path().join("components/.tmp-x");
    fs::write(&unfinished, vec![0; 100]).unwrap();
    age(&unfinished, 9);
    store.put(&all[4].1, &all[4].0).unwrap();
    assert!(!unfinished.exists() && has(2) && has(3) && has(4) && !has(0));

    store.keep(&[2, 3, 4].map(|index: usize| all[index].1.clone()).into());
    let error = store.put(&all[0].1, &all[0].0).unwrap_err();
    assert!(matches!(error, StoreError::Full { kept: 300, most: 300, size: 100, .. }), "{error}");
    assert!(has(2) && has(3) && has(4));
    store.keep(&BTreeSet::new());
    store.put(&all[0].1, &all[0].0).unwrap();
    assert!(has(0));
}

#[test]
fn manifests_are_remembered() {
    let dir = Dir::new();
    let (bytes, layer) = hundred('a');
    let store = dir.open(1_000);
    let manifest = digest::of(b"manifest");
    let wide = format!("sha512:{}", "a".repeat(128));
    assert_eq!(store.recall(&manifest), None);
    store.put(&layer, &bytes).unwrap();
    store.remember(&manifest, &known(&layer)).unwrap();
    store.remember(&wide, &known(&layer)).unwrap();
    // A restart without a registry.
    let again = dir.open(1_000);
    let found = again.recall(&manifest).unwrap();
    assert_eq!(found, known(&layer));
    assert_eq!(again.get(&found.layer_digest), Some(bytes));
    assert!(again.recall(&wide).is_some());
    store.remember(&manifest, &Known { version: None, ..known(&layer) }).unwrap();
    assert_eq!(again.recall(&manifest).unwrap().version, None);
    let large = Known { annotations: BTreeMap::from([("a".to_owned(), "x".repeat(65 << 10))]), ..known(&layer) };
    assert!(matches!(store.remember(&manifest, &large), Err(StoreError::Record { .. })));
    assert!(matches!(store.remember("sha256:../x", &known(&layer)), Err(StoreError::Digest(_))));
    assert_eq!(store.recall("../x"), None);
}

#[test]
fn damaged_records_count_as_none() {
    let dir = Dir::new();
    let store = dir.open(1_000);
    let (manifest, other) = (digest::of(b"one"), digest::of(b"two"));
    store.remember(&manifest, &known(&digest::of(b"layer"))).unwrap();
    let [file] = dir.files("manifests").try_into().unwrap();
    let good = fs::read(&file).unwrap();
    let evil = String::from_utf8(good.clone()).unwrap().replace(&digest::of(b"layer"), &digest::of(b"LAYER")).into_bytes();
    for bad in [evil, good[..good.len() - 1].to_vec(), Vec::new(), vec![b'x'; 70 << 10]] {
        fs::write(&file, bad).unwrap();
        assert_eq!((store.recall(&manifest), file.exists()), (None, false));
    }
    // A good record under another name.
    let name = file.with_file_name(format!("{}.json", other.replace(':', "-")));
    fs::write(&name, &good).unwrap();
    assert_eq!((store.recall(&other), name.exists()), (None, false));
    // One of a later version of this program is left alone.
    let json = format!(r#"{{"format": 2, "manifest": "{manifest}", "what": 1}}"#);
    fs::write(&file, format!("{}\n{json}", digest::of(json.as_bytes()))).unwrap();
    assert_eq!((store.recall(&manifest), file.exists()), (None, true));
}

#[test]
fn records_are_not_without_number() {
    let dir = Dir::new();
    let store = dir.open(1_000);
    let (used, unused) = (digest::of(b"used"), digest::of(b"unused"));
    let record = |n: u32| digest::of(&n.to_be_bytes());
    let file = |n: u32| dir.path().join("manifests").join(format!("{}.json", record(n).replace(':', "-")));
    store.remember(&record(0), &known(&used)).unwrap();
    store.remember(&record(1), &known(&unused)).unwrap();
    for n in 0..512 {
        if n > 1 {
            fs::copy(file(1), file(n)).unwrap();
        }
        age(&file(n), 1_000 - u64::from(n));
    }
    store.keep(&BTreeSet::from([used]));
    store.remember(&record(512), &known(&unused)).unwrap();
    assert_eq!(dir.files("manifests").len(), 512);
    assert!(store.recall(&record(0)).is_some() && store.recall(&record(1)).is_none() && store.recall(&record(512)).is_some());
}

#[test]
fn directories_of_others_are_not_used() {
    let dir = Dir::new();
    fs::create_dir(dir.path()).unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o770)).unwrap();
    let error = Store::open(&dir.path(), 1_000).unwrap_err();
    assert!(matches!(error, StoreError::Directory(_)) && error.to_string().contains("mode 0770"), "{error}");
    let file = dir.root.path().join("file");
    fs::write(&file, "").unwrap();
    assert!(Store::open(&file, 1_000).is_err());
}

#[test]
fn a_disk_that_takes_nothing_is_an_error() {
    let dir = Dir::new();
    let store = dir.open(1_000);
    let (bytes, digest) = hundred('a');
    fs::remove_dir(dir.path().join("components")).unwrap();
    fs::write(dir.path().join("components"), "").unwrap();
    let error = store.put(&digest, &bytes).unwrap_err();
    assert!(matches!(&error, StoreError::Io { .. }) && error.to_string().contains(".wasm"), "{error}");
    assert_eq!(store.get(&digest), None);
}
