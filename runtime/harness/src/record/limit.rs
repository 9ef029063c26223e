//! A folder of recordings that never grows beyond its bounds: the oldest go first.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use jiff::Timestamp;

use super::Files;

/// Bounds of a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most cases.
    pub cases: usize,
    /// Most bytes of all of them.
    pub bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { cases: 500, bytes: 64 << 20 }
    }
}

/// A folder of cases, one folder each.
#[derive(Debug)]
pub struct Folder {
    root: PathBuf,
    limits: Limits,
    /// Bytes by name; names begin with the time, so that the first is the oldest.
    known: BTreeMap<String, u64>,
    number: u64,
}

impl Folder {
    /// Opens it, and makes it where it is missing. What is there counts.
    ///
    /// # Errors
    /// It cannot be made or read.
    pub fn open(root: &Path, limits: Limits) -> io::Result<Self> {
        fs::create_dir_all(root)?;
        let mut known = BTreeMap::new();
        for entry in fs::read_dir(root)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            // What begins otherwise is somebody else's; half a case is nobody's.
            if name.starts_with(HALF) {
                fs::remove_dir_all(entry.path())?;
            } else if name.starts_with(PREFIX) && entry.file_type()?.is_dir() {
                known.insert(name, size(&entry.path())?);
            }
        }
        Ok(Self { root: root.to_owned(), limits, known, number: 0 })
    }

    /// Writes a case, whole or not at all, after the oldest ones made room. Its folder.
    ///
    /// # Errors
    /// It is larger than the folder may be, or cannot be written.
    pub fn put(&mut self, name: &str, now: Timestamp, files: &Files) -> io::Result<PathBuf> {
        let bytes: u64 = files.values().map(|file| file.len() as u64).sum();
        if bytes > self.limits.bytes || self.limits.cases == 0 {
            return Err(io::Error::other(format!("a case of {bytes} bytes is larger than its folder may be")));
        }
        while self.known.len() >= self.limits.cases || self.known.values().sum::<u64>() + bytes > self.limits.bytes {
            let Some((oldest, _)) = self.known.pop_first() else { break };
            fs::remove_dir_all(self.root.join(oldest))?;
        }
        self.number += 1;
        let time = now.strftime("%Y%m%dT%H%M%S%3fZ");
        let folder = format!("{PREFIX}{time}-{:06}-{}", self.number, plain(name));
        let (half, whole) = (self.root.join(format!("{HALF}{folder}")), self.root.join(&folder));
        write(&half, files).and_then(|()| fs::rename(&half, &whole)).inspect_err(|_| drop(fs::remove_dir_all(&half)))?;
        self.known.insert(folder, bytes);
        Ok(whole)
    }
}

/// How folders of cases begin.
const PREFIX: &str = "case-";
/// How one begins that is being written; hidden folders are no cases.
const HALF: &str = ".half-";

/// Writes the files of a case into a folder.
///
/// # Errors
/// What cannot be written.
pub(crate) fn write(folder: &Path, files: &Files) -> io::Result<()> {
    for (name, content) in files {
        let path = folder.join(name);
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::write(path, content)?;
    }
    Ok(())
}

impl Folder {
    /// Writes a case into a folder of its own, which must not be there yet.
    ///
    /// # Errors
    /// It is there, or cannot be written.
    pub fn one(folder: &Path, files: &Files) -> io::Result<()> {
        folder.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::create_dir(folder)?;
        write(folder, files)
    }
}

fn plain(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || "-.".contains(c) { c } else { '-' }).take(120).collect()
}

fn size(folder: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        bytes += if entry.file_type()?.is_dir() { size(&entry.path())? } else { entry.metadata()?.len() };
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(root: &Path) -> Vec<String> {
        let mut all: Vec<String> = fs::read_dir(root).unwrap().map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
        all.sort();
        all
    }

    fn case(bytes: usize) -> Files {
        Files::from([("input/a.yaml".to_owned(), vec![b'x'; bytes])])
    }

    #[test]
    fn the_oldest_cases_make_room_and_strangers_stay() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("notes.txt"), "mine").unwrap();
        fs::create_dir(dir.path().join(".half-case-old")).unwrap();
        let limits = Limits { cases: 2, bytes: 100 };
        let mut folder = Folder::open(dir.path(), limits).unwrap();
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        for second in 1..=3 {
            folder.put("ns/gw", at(second), &case(10)).unwrap();
        }
        assert_eq!(names(dir.path()).len(), 3, "{:?}", names(dir.path()));
        assert!(names(dir.path())[0].starts_with("case-19700101T000002"), "{:?}", names(dir.path()));
        let mut again = Folder::open(dir.path(), limits).unwrap();
        again.put("ns/gw", at(4), &case(95)).unwrap();
        assert_eq!(names(dir.path()).len(), 2, "bytes count as well: {:?}", names(dir.path()));
        assert!(again.put("ns/gw", at(5), &case(101)).is_err());
        assert!(dir.path().join("notes.txt").exists() && names(dir.path()).len() == 2);
    }

    #[test]
    fn names_never_leave_the_folder() {
        let dir = tempfile::tempdir().unwrap();
        let mut folder = Folder::open(dir.path(), Limits::default()).unwrap();
        let path = folder.put("../../etc", Timestamp::UNIX_EPOCH, &case(1)).unwrap();
        assert_eq!(path.parent(), Some(dir.path()));
    }
}
