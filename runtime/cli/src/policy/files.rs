//! Files that commands read and write.

use std::{
    fs::{self, File},
    io::{self, Read, Write},
    path::Path,
};

use super::MOST_COMPONENT;
use crate::exit::Failure;

/// A component, or one byte more than any has.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    begin(path, MOST_COMPONENT + 1)
}

/// A file of at most so many bytes.
pub(crate) fn whole(path: &Path, most: u64) -> Result<Vec<u8>, Failure> {
    let bytes = begin(path, most + 1)?;
    if bytes.len() as u64 > most {
        return Err(Failure::usage(format!("{}: has more than {most} bytes", path.display())));
    }
    Ok(bytes)
}

fn begin(path: &Path, most: u64) -> Result<Vec<u8>, Failure> {
    let failed = |error: io::Error| Failure::usage(format!("{}: {error}", path.display()));
    let mut bytes = Vec::new();
    File::open(path).map_err(failed)?.take(most).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

/// Writes a file, all of it or nothing; what is no plain file (a pipe, `/dev/null`) is written to.
pub(super) fn write(path: &Path, content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::usage(format!("{}: {error}", path.display()));
    if fs::metadata(path).is_ok_and(|file| !file.is_file()) {
        let mut file = File::options().write(true).open(path).map_err(failed)?;
        return content(&mut file).map_err(failed);
    }
    let name = path.file_name().ok_or_else(|| Failure::usage(format!("{}: is no name of a file", path.display())))?;
    let beside = path.with_file_name(format!(".{}.{}", name.to_string_lossy(), std::process::id()));
    let written = File::create_new(&beside).and_then(|mut file| content(&mut file)).and_then(|()| fs::rename(&beside, path));
    written.map_err(|error| {
        let _ = fs::remove_file(&beside);
        failed(error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_whole_or_as_it_was() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("policy.wasm");
        write(&path, |out| out.write_all(b"old")).expect("written");
        let error = write(&path, |out| out.write_all(b"ne").and(Err(io::Error::other("disk full")))).unwrap_err();
        assert!(error.message.ends_with("disk full") && fs::read(&path).ok().as_deref() == Some(b"old"), "{error}");
        write(&path, |out| out.write_all(b"new")).expect("written");
        assert_eq!(read(&path).expect("read"), b"new");
        assert_eq!(fs::read_dir(dir.path()).expect("a directory").count(), 1);
        write(Path::new("/dev/null"), |out| out.write_all(b"gone")).expect("written");
        assert!(Path::new("/dev/null").exists());
    }
}
