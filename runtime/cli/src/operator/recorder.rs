//! Writes what passes of an operator saw as cases: into a bounded folder, or as an archive of one.

use std::{
    collections::HashMap,
    path::Path,
    sync::{
        atomic::{AtomicU64, Ordering},
        mpsc::{SyncSender, sync_channel},
    },
};

use weir_core::hash;
use weir_harness::{
    pass::Kinds,
    record::{self, Files, Folder, Limits, of_snapshot},
};
use weir_operator::record::{Recorder, Seen};

use crate::exit::Failure;

/// Passes that wait to be written; more are dropped.
const WAITING: usize = 16;
/// Objects whose last case is remembered, so that the same is not written again.
const REMEMBERED: usize = 10_000;

/// A recorder.
pub(super) struct Cases {
    kinds: Kinds,
    queue: Option<SyncSender<Seen>>,
    dropped: AtomicU64,
}

impl Cases {
    /// A recorder that keeps passes in a folder, where one is given.
    ///
    /// # Errors
    /// The folder cannot be used.
    pub(super) fn new(folder: Option<&Path>) -> Result<Self, Failure> {
        let queue = folder.map(|path| {
            let wrong = |error: std::io::Error| Failure::usage(format!("--record {}: {error}", path.display()));
            let folder = Folder::open(path, Limits::default()).map_err(wrong)?;
            let kinds = Kinds::new()?;
            let (sender, receiver) = sync_channel::<Seen>(WAITING);
            let writing = move || {
                let mut keeper = Keeper { folder, kinds, last: HashMap::new() };
                receiver.iter().for_each(|seen| keeper.keep(&seen));
            };
            std::thread::Builder::new().name("record".into()).spawn(writing).map_err(wrong)?;
            Ok::<_, Failure>(sender)
        });
        Ok(Self { kinds: Kinds::new()?, queue: queue.transpose()?, dropped: AtomicU64::new(0) })
    }
}

impl Recorder for Cases {
    fn keeps(&self) -> bool {
        self.queue.is_some()
    }

    fn keep(&self, seen: Seen) {
        let Some(queue) = &self.queue else { return };
        if queue.try_send(seen).is_err() {
            let dropped = self.dropped.fetch_add(1, Ordering::Relaxed) + 1;
            // Once per doubling: a storm of passes is no storm of lines.
            if dropped.is_power_of_two() {
                tracing::warn!(dropped, "passes were not recorded: more come than can be written");
            }
        }
    }

    fn archive(&self, seen: Seen) -> Result<Vec<u8>, String> {
        let (name, files) = files(&seen, &self.kinds).map_err(|failure| failure.message)?;
        tar(&name, &files).map_err(|error| error.to_string())
    }
}

/// Writes cases one after the other.
struct Keeper {
    folder: Folder,
    kinds: Kinds,
    /// Digest of the last case by object.
    last: HashMap<String, String>,
}

impl Keeper {
    fn keep(&mut self, seen: &Seen) {
        let (name, files) = match files(seen, &self.kinds) {
            Ok(made) => made,
            Err(failure) => {
                tracing::warn!(reason = %failure.message, "a pass was not recorded");
                return;
            }
        };
        // Without the time of the pass, which stands in case.yaml.
        let same: Vec<&Vec<u8>> = files.iter().filter(|(path, _)| path.as_str() != "case.yaml").map(|(_, file)| file).collect();
        let digest = hash::digest(&same.into_iter().flatten().copied().collect::<Vec<u8>>());
        if self.last.get(&name) == Some(&digest) {
            return;
        }
        if let Err(error) = self.folder.put(&name, seen.snapshot.now, &files) {
            tracing::warn!(%error, "a pass was not recorded");
            return;
        }
        if self.last.len() >= REMEMBERED {
            self.last.clear();
        }
        self.last.insert(name, digest);
    }
}

fn files(seen: &Seen, kinds: &Kinds) -> Result<(String, Files), Failure> {
    let of = record::Seen { snapshot: seen.snapshot.clone(), installations: seen.installations.clone() };
    let mut recording = of_snapshot(&of);
    recording.options.allow_cross_namespace_plugins = seen.cross_namespace_plugins;
    let name = recording.name.clone();
    Ok((name, record::files(recording, kinds, &seen.policies)?))
}

/// The case as a folder of its name.
fn tar(name: &str, files: &Files) -> std::io::Result<Vec<u8>> {
    let mut archive = tar::Builder::new(Vec::new());
    for (path, content) in files {
        let mut header = tar::Header::new_ustar();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        header.set_entry_type(tar::EntryType::Regular);
        archive.append_data(&mut header, Path::new(name).join(path), content.as_slice())?;
    }
    archive.into_inner()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_has_the_files_of_a_case_below_its_name() {
        let files = Files::from([("case.yaml".to_owned(), b"a: 1\n".to_vec()), ("input/manifests.yaml".to_owned(), b"b: 2\n".to_vec())]);
        let archive = tar("edge.gw", &files).expect("an archive");
        let mut reader = tar::Archive::new(archive.as_slice());
        let names: Vec<String> = reader
            .entries()
            .expect("entries")
            .map(|entry| entry.expect("an entry").path().expect("a path").display().to_string())
            .collect();
        assert_eq!(names, ["edge.gw/case.yaml", "edge.gw/input/manifests.yaml"]);
    }
}
