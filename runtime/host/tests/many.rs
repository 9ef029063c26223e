//! A start with many policies: what is cached is never compiled, and a cache that takes nothing costs one line.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test's way to fail")]

mod support;

use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use support::{ask, load, stamped};
use tracing_subscriber::fmt::MakeWriter;
use weir_host::wasm::{CacheError, Config, Wasm};

/// Policies of one operator.
const POLICIES: u32 = 50;

fn host(dir: &Path) -> Wasm {
    Wasm::new(Config { cache_dir: Some(dir.to_owned()), ..Config::default() }).unwrap()
}

/// The default of konnect-env, so many times, each with a digest of its own.
fn components(number: u32) -> Vec<Vec<u8>> {
    let path = Path::new(env!("WEIR_GUESTS")).join("konnect-env.wasm");
    let bytes = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}; run `cargo xtask guests`", path.display()));
    (0..number).map(|number| stamped(&bytes, number)).collect()
}

/// What the cache holds: files that are written anew get another number.
fn held(dir: &Path) -> BTreeMap<PathBuf, u64> {
    let versions = fs::read_dir(dir).unwrap().flatten();
    let files = versions.flat_map(|version| fs::read_dir(version.path()).unwrap().flatten());
    files.map(|file| (file.path(), file.metadata().unwrap().ino())).collect()
}

#[test]
fn a_start_with_fifty_policies_compiles_nothing_that_is_cached() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("cache");
    let all = components(POLICIES);
    let first = host(&dir);
    all.iter().for_each(|bytes| drop(load(&first, bytes)));
    assert_eq!((first.compilations(), held(&dir).len()), (u64::from(POLICIES), 50));
    let before = held(&dir);

    let second = host(&dir);
    let loaded: Vec<_> = all.iter().map(|bytes| load(&second, bytes)).collect();
    assert_eq!(second.compilations(), 0);
    assert_eq!(held(&dir), before, "nothing was written again");
    let digests: std::collections::BTreeSet<_> =
        loaded.iter().map(|policy| weir_core::policy::Policy::identity(&**policy).digest.clone()).collect();
    assert_eq!(digests.len(), 50, "each is a component of its own");
    assert!(loaded.iter().all(|policy| ask(&**policy).is_ok()));

    // One more, and one whose file is gone: these two and no others.
    fs::remove_file(before.keys().next().unwrap()).unwrap();
    let third = host(&dir);
    components(POLICIES + 1).iter().for_each(|bytes| drop(load(&third, bytes)));
    assert_eq!((third.compilations(), held(&dir).len()), (2, 51));
}

#[test]
fn what_is_in_memory_is_compiled_once_however_often_it_is_loaded() {
    let host = Wasm::new(Config::default()).unwrap();
    let [bytes] = components(1).try_into().unwrap();
    let all: Vec<_> = (0..5).map(|_| load(&host, &bytes)).collect();
    assert_eq!((host.compilations(), all.len()), (1, 5));
}

/// Lines of the log.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// Does something, and gives what it logs at level warn or above.
fn logged(act: impl FnOnce()) -> Vec<String> {
    let lines = Lines::default();
    let subscriber = tracing_subscriber::fmt().with_writer(lines.clone()).with_max_level(tracing::Level::WARN).with_ansi(false).finish();
    tracing::subscriber::with_default(subscriber, act);
    let bytes = lines.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
    String::from_utf8(bytes).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn a_directory_that_cannot_be_made_is_told_once_and_costs_only_the_cache() {
    let lines = logged(|| {
        // Nobody makes a directory there, root neither.
        let host = host(Path::new("/proc/weir-cache"));
        assert!(matches!(host.cache(), Err(CacheError::Io { .. })), "{:?}", host.cache());
        let loaded: Vec<_> = components(3).iter().map(|bytes| load(&host, bytes)).collect();
        assert!(loaded.iter().all(|policy| ask(&**policy).is_ok()));
        assert_eq!(host.compilations(), 3);
    });
    assert_eq!(lines.len(), 1, "{lines:#?}");
    assert!(lines[0].contains("compiled code is kept in memory only") && lines[0].contains("/proc/weir-cache"), "{lines:#?}");
}

#[test]
fn a_directory_that_takes_no_files_any_more_is_told_once_and_costs_only_the_cache() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("cache");
    let lines = logged(|| {
        let host = host(&dir);
        // Root may write wherever the permissions say otherwise; where there is no directory nobody can.
        fs::remove_dir_all(&dir).unwrap();
        let loaded: Vec<_> = components(3).iter().map(|bytes| load(&host, bytes)).collect();
        assert!(loaded.iter().all(|policy| ask(&**policy).is_ok()));
        // What is in memory is not compiled again.
        components(3).iter().for_each(|bytes| drop(load(&host, bytes)));
        assert_eq!(host.compilations(), 3);
    });
    assert_eq!(lines.len(), 1, "{lines:#?}");
    assert!(lines[0].contains("compiled code is not cached and kept in memory only"), "{lines:#?}");
}
