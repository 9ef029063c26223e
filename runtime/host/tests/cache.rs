//! The AOT cache: only an optimisation, and never a way in.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test's way to fail")]

mod support;

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use support::{Guest, ask, load};
use weir_host::wasm::{CacheError, Config, Wasm};

fn host(dir: &Path, bytes: u64) -> Wasm {
    Wasm::new(Config { cache_dir: Some(dir.to_owned()), cache_bytes: bytes, ..Config::default() }).unwrap()
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let versions = fs::read_dir(dir).unwrap().flatten();
    let mut files: Vec<PathBuf> = versions.flat_map(|v| fs::read_dir(v.path()).unwrap().flatten()).map(|f| f.path()).collect();
    files.sort();
    files
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn compiled_code_is_kept_and_used_by_the_next_process() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("a/b");
    let bytes = Guest::default().build();
    let first = host(&dir, 1 << 30);
    assert_eq!(first.cache().unwrap(), Some(dir.as_path()));
    assert!(ask(&*load(&first, &bytes)).is_ok());
    let [file] = files(&dir).try_into().unwrap();
    assert_eq!(mode(&dir), 0o700);
    assert_eq!(mode(file.parent().unwrap()), 0o700);
    assert_eq!(mode(&file), 0o600);
    assert_eq!(file.file_stem().unwrap().len(), 64);

    // Used: its time moves, its content does not.
    let old = SystemTime::now() - Duration::from_secs(3600);
    fs::File::options().write(true).open(&file).unwrap().set_modified(old).unwrap();
    assert!(ask(&*load(&host(&dir, 1 << 30), &bytes)).is_ok());
    assert!(fs::metadata(&file).unwrap().modified().unwrap() > old + Duration::from_secs(60));
}

#[test]
fn a_damaged_file_is_replaced() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("cache");
    let bytes = Guest::default().build();
    drop(load(&host(&dir, 1 << 30), &bytes));
    let [file] = files(&dir).try_into().unwrap();
    let good = fs::read(&file).unwrap();

    let mut flipped = good.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 1;
    for bad in [flipped, good[..good.len() / 2].to_vec(), Vec::new(), b"\x7fELF not really".to_vec()] {
        fs::write(&file, bad).unwrap();
        assert!(ask(&*load(&host(&dir, 1 << 30), &bytes)).is_ok());
        assert_eq!(fs::read(&file).unwrap().len(), good.len(), "compiled again and stored");
    }
    // A file that others can write to, and a link to elsewhere.
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
    assert!(ask(&*load(&host(&dir, 1 << 30), &bytes)).is_ok());
    assert_eq!(mode(&file), 0o600);
    let elsewhere = temp.path().join("elsewhere");
    fs::rename(&file, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &file).unwrap();
    assert!(ask(&*load(&host(&dir, 1 << 30), &bytes)).is_ok());
    assert!(fs::symlink_metadata(&file).unwrap().is_file());
}

#[test]
fn a_directory_that_others_can_write_to_is_not_used() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("cache");
    fs::create_dir(&dir).unwrap();
    for bad in [0o777, 0o770, 0o702] {
        fs::set_permissions(&dir, fs::Permissions::from_mode(bad)).unwrap();
        let host = host(&dir, 1 << 30);
        assert!(matches!(host.cache(), Err(CacheError::Exposed { .. })), "{:?}", host.cache());
        assert!(ask(&*load(&host, &Guest::default().build())).is_ok(), "the host works without");
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 0);
    }
}

#[test]
fn a_directory_of_another_user_is_not_used() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("cache");
    fs::create_dir(&dir).unwrap();
    // Only root can give a directory away; elsewhere `/` is somebody else's.
    let dir = if std::os::unix::fs::chown(&dir, Some(12345), None).is_ok() { dir } else { PathBuf::from("/") };
    let host = host(&dir, 1 << 30);
    assert!(matches!(host.cache(), Err(CacheError::Exposed { .. } | CacheError::Io { .. })), "{:?}", host.cache());
}

#[test]
fn a_path_that_is_no_directory_costs_only_the_cache() {
    let temp = tempfile::NamedTempFile::new().unwrap();
    let host = host(temp.path(), 1 << 30);
    assert!(matches!(host.cache(), Err(CacheError::Io { .. })), "{:?}", host.cache());
    assert!(ask(&*load(&host, &Guest::default().build())).is_ok());
}

#[test]
fn the_oldest_files_of_any_version_go_first() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("cache");
    let guests: Vec<Vec<u8>> =
        (0..3).map(|n| Guest { more: format!("(global (export \"g\") i32 (i32.const {n}))"), ..Guest::default() }.build()).collect();
    drop(load(&host(&dir, 1 << 30), &guests[0]));
    let size = fs::metadata(&files(&dir)[0]).unwrap().len();
    // A file of an earlier version of the host, older than all.
    let old = dir.join("0123456789abcdef");
    fs::create_dir(&old).unwrap();
    fs::write(old.join("f.cwasm"), vec![0; usize::try_from(size).unwrap()]).unwrap();
    let hour_ago = SystemTime::now() - Duration::from_secs(3600);
    fs::File::options().write(true).open(old.join("f.cwasm")).unwrap().set_modified(hour_ago).unwrap();

    let host = host(&dir, 2 * size + size / 2);
    drop(load(&host, &guests[1]));
    assert!(!old.join("f.cwasm").exists(), "the oldest goes first");
    assert_eq!(files(&dir).len(), 2);
    drop(load(&host, &guests[2]));
    assert_eq!(files(&dir).len(), 2);
}
