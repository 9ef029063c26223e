//! Artifacts from files: a directory of plugin files, an image layout, what `docker save` writes, or an archive of files. The same
//! limits and refusals as for registries.

mod archive;
mod layout;
mod whole;

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

pub use self::whole::{signatures, whole};
use super::{Artifact, Component, Limits, artifact::listing, component, digest, manifest, text, unpack};

/// Marks an image layout.
const LAYOUT: &str = "oci-layout";

/// Why a path is no artifact.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Cannot be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// File or directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file as a whole is too large.
    #[error("{} has more than {}, which is the limit", path.display(), text::bytes(*.most))]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Bytes allowed.
        most: u64,
    },
    /// Nothing that is known.
    #[error(
        "{} is neither a directory nor a tar archive; give a directory of plugin files, an OCI image layout, or the output of `docker save`",
        path.display()
    )]
    Unknown {
        /// The file.
        path: PathBuf,
    },
    /// A file that others refer to.
    #[error("{}: \"{}\" is missing, or no plain file", path.display(), text::name(.name))]
    Missing {
        /// Layout or archive.
        path: PathBuf,
        /// The name inside.
        name: String,
    },
    /// Broken.
    #[error("{}: \"{}\" {problem}", path.display(), text::name(.name))]
    Broken {
        /// Layout or archive.
        path: PathBuf,
        /// The name inside.
        name: String,
        /// What is wrong.
        problem: String,
    },
    /// More images than one.
    #[error("{} holds {count} images; save one of them alone", path.display())]
    Images {
        /// The archive.
        path: PathBuf,
        /// How many.
        count: usize,
    },
    /// A manifest is of no use.
    #[error("{}: {source}", path.display())]
    Manifest {
        /// Layout or archive.
        path: PathBuf,
        /// Why.
        source: Box<manifest::Error>,
    },
    /// A directory with files, which are no component.
    #[error("{} is a directory without an OCI image layout in it; give the .wasm file, a layout, or an archive of one", path.display())]
    NoLayout {
        /// The directory.
        path: PathBuf,
    },
    /// An archive of something else.
    #[error("{} is an archive, and not of an image; give the .wasm file itself, an OCI image layout, or the output of `docker save`", path.display())]
    NoImage {
        /// The archive.
        path: PathBuf,
    },
    /// There is no component in it.
    #[error("{}: {source}", path.display())]
    Component {
        /// Layout, archive or file.
        path: PathBuf,
        /// Why.
        source: Box<component::Error>,
    },
    /// A file or layer is of no use.
    #[error("{}{}: {source}", path.display(), number.map(|number| format!(", layer {number}")).unwrap_or_default())]
    Content {
        /// Layout, archive or directory.
        path: PathBuf,
        /// Position of the layer, from 1; none outside of layers.
        number: Option<usize>,
        /// Why.
        source: Box<unpack::Error>,
    },
}

/// Reads the artifact at `path`: see the module. Blocks on the file system.
///
/// # Errors
/// See [`Error`].
pub fn read(path: &Path, limits: &Limits) -> Result<Artifact, Error> {
    let unreadable = |source| Error::Read { path: path.to_owned(), source };
    let kind = std::fs::metadata(path).map_err(unreadable)?.file_type();
    if kind.is_dir() && path.join(LAYOUT).is_file() {
        return layout::read(path, &layout::Blobs::Directory(path), limits);
    }
    if kind.is_dir() {
        return directory(path, limits);
    }
    if !kind.is_file() {
        return Err(Error::Unknown { path: path.to_owned() });
    }
    archive::read(path, &bytes(path, archive::most(limits))?, limits)
}

/// The Wasm component at `path`, of at most `most_bytes`: a .wasm file, an image layout, an archive of one, or what `docker save` writes.
/// Blocks on the file system.
///
/// # Errors
/// See [`Error`].
pub fn component(path: &Path, most_bytes: u64) -> Result<Component, Error> {
    let unreadable = |source| Error::Read { path: path.to_owned(), source };
    let kind = std::fs::metadata(path).map_err(unreadable)?.file_type();
    if kind.is_dir() && path.join(LAYOUT).is_file() {
        return layout::component(path, &layout::Blobs::Directory(path), most_bytes);
    }
    if kind.is_dir() {
        return Err(Error::NoLayout { path: path.to_owned() });
    }
    let bytes = bytes(path, archive::most(&Limits::component(most_bytes)))?;
    if unpack::archive(&bytes) {
        return archive::component(path, &bytes, most_bytes);
    }
    file(path, "the file", bytes, most_bytes)
}

/// A component without a manifest: a file, or the blob of a layer. `place` is for messages.
fn file(path: &Path, place: &str, blob: Vec<u8>, most: u64) -> Result<Component, Error> {
    let refused = |source| Error::Component { path: path.to_owned(), source: Box::new(source) };
    let digest = digest::of(&blob);
    let content = component::content(place, 1, "", blob, most).map_err(refused)?;
    Ok(Component::of_file(format!("file:{}", path.display()), digest, content))
}

/// A file of at most `most` bytes.
fn bytes(path: &Path, most: u64) -> Result<Vec<u8>, Error> {
    let unreadable = |source| Error::Read { path: path.to_owned(), source };
    let mut bytes = Vec::new();
    File::open(path).map_err(unreadable)?.take(most.saturating_add(1)).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > most { Err(Error::TooLarge { path: path.to_owned(), most }) } else { Ok(bytes) }
}

/// An artifact that has files only.
fn plain(path: &Path, files: BTreeMap<String, Vec<u8>>, notes: Vec<String>) -> Artifact {
    Artifact {
        reference: format!("file:{}", path.display()),
        digest: listing(&files),
        index_digest: None,
        media_type: String::new(),
        artifact_type: None,
        annotations: BTreeMap::new(),
        files,
        notes,
    }
}

fn directory(root: &Path, limits: &Limits) -> Result<Artifact, Error> {
    let content = |source| Error::Content { path: root.to_owned(), number: None, source: Box::new(source) };
    let mut room = unpack::Room::new(limits);
    let mut files = BTreeMap::new();
    let mut open = vec![(root.to_owned(), String::new())];
    while let Some((directory, prefix)) = open.pop() {
        let unreadable = |source| Error::Read { path: directory.clone(), source };
        for entry in std::fs::read_dir(&directory).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let name = [prefix.as_bytes(), entry.file_name().as_encoded_bytes()].concat();
            // The name has passed as a relative path here, so that there is one.
            let Some(path) = room.entry(&name).map_err(content)? else { continue };
            let kind = entry.file_type().map_err(unreadable)?;
            if kind.is_dir() {
                open.push((entry.path(), format!("{path}/")));
            } else if kind.is_file() {
                let size = entry.metadata().map_err(unreadable)?.len();
                room.file(&path, size).map_err(content)?;
                files.insert(path, bytes(&entry.path(), size)?);
            } else {
                let what = if kind.is_symlink() { "symbolic link" } else { "device, pipe or socket" };
                return Err(content(unpack::Error::Entry { name: path, problem: unpack::EntryProblem::Kind(what) }));
            }
        }
    }
    Ok(plain(root, files, Vec::new()))
}
