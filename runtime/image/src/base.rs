//! What the binary stands on, out of the Debian packages of the machine that builds the image: the libraries it is linked with, CA
//! certificates, a user, and how names are resolved. No shell and no package manager.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{Program, process};

/// The CA certificates that TLS trusts.
pub const CERTIFICATES: &str = "/etc/ssl/certs/ca-certificates.crt";
const CA_PACKAGE: &str = "ca-certificates";
/// The largest file that is taken.
const MOST: u64 = 64 << 20;

const PASSWD: &str = "root:x:0:0:root:/root:/sbin/nologin\nweir:x:65532:65532:weir:/nonexistent:/sbin/nologin\n";
const GROUP: &str = "root:x:0:\nweir:x:65532:\n";
/// The C library asks files, then DNS; without this file it asks DNS first.
const NSSWITCH: &str = "passwd: files\ngroup: files\nhosts: files dns\n";

/// A Debian package that something of the image is from.
pub struct Package {
    /// With its architecture, as dpkg calls it.
    pub name: String,
    /// Debian's version.
    pub version: String,
}

/// Files out of packages, and which packages those are.
pub struct Base {
    /// Path, mode, content.
    pub files: Vec<(String, u32, Vec<u8>)>,
    /// Sorted by name.
    pub packages: Vec<Package>,
}

/// Everything below the operator's binary.
///
/// # Errors
/// A library or a file that no Debian package of this machine has.
pub fn of(program: &Program) -> Result<Base> {
    let mut base = Base {
        files: vec![
            ("/etc/passwd".to_owned(), 0o644, PASSWD.as_bytes().to_vec()),
            ("/etc/group".to_owned(), 0o644, GROUP.as_bytes().to_vec()),
            ("/etc/nsswitch.conf".to_owned(), 0o644, NSSWITCH.as_bytes().to_vec()),
        ],
        packages: Vec::new(),
    };
    let certificates = read(Path::new(CERTIFICATES)).context("install the Debian package ca-certificates")?;
    base.files.push((CERTIFICATES.to_owned(), 0o644, certificates));
    base.add(libraries(program)?, &[CA_PACKAGE])?;
    Ok(base)
}

impl Base {
    /// Adds files as images name them and as they really are here, and the licences of all packages they are of. A path that is there already
    /// stays as it is.
    ///
    /// # Errors
    /// A file that cannot be read, or that no Debian package has.
    pub fn add(&mut self, files: impl IntoIterator<Item = (String, PathBuf)>, packages: &[&str]) -> Result<()> {
        let known = self.packages.iter().map(|package| package.name.clone());
        let mut names: BTreeSet<String> = known.chain(packages.iter().map(|name| (*name).to_owned())).collect();
        for (path, real) in files {
            if self.files.iter().any(|(there, ..)| *there == path) {
                continue;
            }
            names.insert(owner(&real)?);
            let executable = std::fs::metadata(&real).is_ok_and(|data| data.permissions().mode() & 0o111 != 0);
            let mode = if executable || path.contains(".so") { 0o755 } else { 0o644 };
            self.files.push((path, mode, read(&real)?));
        }
        self.packages = names.into_iter().map(package).collect::<Result<_>>()?;
        for package in &self.packages {
            let name = package.name.split(':').next().unwrap_or_default();
            let copyright = format!("/usr/share/doc/{name}/copyright");
            if !self.files.iter().any(|(there, ..)| *there == copyright) {
                let text = read(Path::new(&copyright)).context("its licence has to be in the image")?;
                self.files.push((copyright, 0o644, text));
            }
        }
        Ok(())
    }
}

fn read(path: &Path) -> Result<Vec<u8>> {
    let size = std::fs::metadata(path).with_context(|| format!("cannot read {}", path.display()))?.len();
    if size > MOST {
        bail!("{} has {size} bytes, more than an image of ours may get from one file", path.display());
    }
    std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Libraries of a program or library as the linker names them, and the files they really are.
///
/// # Errors
/// A program of another machine, or a library that is not there.
pub fn libraries(binary: &Program) -> Result<Vec<(String, PathBuf)>> {
    if !binary.is_dynamic {
        return Ok(Vec::new());
    }
    if !binary.is_native() {
        bail!(
            "the binary for {} needs libraries that this machine does not have; build a static one, such as --target aarch64-unknown-linux-musl",
            binary.architecture
        );
    }
    let said = process::stdout(Command::new("ldd").arg(&binary.path))?;
    let paths = linked(&said)?;
    paths.into_iter().map(|path| Ok((path.clone(), std::fs::canonicalize(&path).with_context(|| format!("cannot read {path}"))?))).collect()
}

/// Paths in what `ldd` says: `libc.so.6 => /lib/…/libc.so.6 (0x…)`, or the dynamic linker itself.
pub(crate) fn linked(said: &str) -> Result<Vec<String>> {
    let mut paths = Vec::new();
    for line in said.lines() {
        let path = line.split_once("=> ").map_or(line, |(_, path)| path).trim();
        if path.starts_with("not found") {
            bail!("the binary needs a library that is not installed:{line}");
        }
        if path.starts_with('/') {
            paths.push(path.split(' ').next().unwrap_or_default().to_owned());
        }
    }
    if paths.is_empty() {
        bail!("`ldd` names no libraries of a binary that has some: {said:?}");
    }
    Ok(paths)
}

/// The package that a file is of. Debian moved `/lib` to `/usr/lib`, and not every package's list of files.
fn owner(real: &Path) -> Result<String> {
    let other = real.strip_prefix("/usr").map(|rest| Path::new("/").join(rest));
    let candidates = [Some(real.to_owned()), other.ok()];
    let found = candidates.into_iter().flatten().find_map(|path| {
        let said = process::stdout(Command::new("dpkg-query").arg("--search").arg(path)).ok()?;
        said.lines().next()?.split(": ").next().map(str::to_owned)
    });
    found.with_context(|| format!("no Debian package has {}; on another system use the Dockerfile, or a static --target", real.display()))
}

fn package(name: String) -> Result<Package> {
    let version = process::stdout(Command::new("dpkg-query").args(["--show", "--showformat=${Version}", &name]))?;
    Ok(Package { name, version })
}
