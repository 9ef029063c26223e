//! Tar archives, sound and unsound: names, sizes and kinds are written as they are given.

use anyhow::{Context, Result, bail};

const BLOCK: usize = 512;
/// What a header has room for.
const NAME: usize = 100;

/// Kinds of entries, as a header names them.
pub mod kind {
    /// A regular file.
    pub const FILE: u8 = b'0';
    /// Another name of an entry before.
    pub const HARDLINK: u8 = b'1';
    /// A symbolic link.
    pub const SYMLINK: u8 = b'2';
    /// A character device.
    pub const CHARACTER_DEVICE: u8 = b'3';
    /// A block device.
    pub const BLOCK_DEVICE: u8 = b'4';
    /// A directory.
    pub const DIRECTORY: u8 = b'5';
    /// A named pipe.
    pub const FIFO: u8 = b'6';
    /// GNU: the data is the name of the entry after this one.
    pub const LONG_NAME: u8 = b'L';
    /// POSIX: the data overrides fields of the entry after this one.
    pub const EXTENDED: u8 = b'x';
}

/// A header as it is written.
#[derive(Debug, Clone)]
pub struct Header {
    /// At most 100 bytes.
    pub name: Vec<u8>,
    /// See [`kind`].
    pub kind: u8,
    /// What it claims, whatever data follows. More than 8 GiB is written in base 256, as GNU does.
    pub size: u64,
    /// Permissions.
    pub mode: u32,
    /// Where a link points; at most 100 bytes.
    pub link: Vec<u8>,
}

impl Header {
    /// A header of a kind that claims to have a size.
    pub fn new(name: &str, kind: u8, size: u64) -> Self {
        Self { name: name.into(), kind, size, mode: 0o644, link: Vec::new() }
    }
}

/// An archive in the making.
#[derive(Debug, Clone, Default)]
pub struct Archive {
    bytes: Vec<u8>,
}

impl Archive {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file. A long name gets an entry of its own before it, as GNU does.
    pub fn file(self, name: &str, data: impl AsRef<[u8]>) -> Result<Self> {
        let data = data.as_ref();
        let size = u64::try_from(data.len())?;
        self.named(Header::new(name, kind::FILE, size), data)
    }

    /// Adds a directory.
    pub fn dir(self, name: &str) -> Result<Self> {
        self.named(Header { mode: 0o755, ..Header::new(name, kind::DIRECTORY, 0) }, &[])
    }

    /// Adds a symbolic link.
    pub fn symlink(self, name: &str, target: &str) -> Result<Self> {
        self.named(Header { link: target.into(), mode: 0o777, ..Header::new(name, kind::SYMLINK, 0) }, &[])
    }

    /// Adds a hard link.
    pub fn hardlink(self, name: &str, target: &str) -> Result<Self> {
        self.named(Header { link: target.into(), ..Header::new(name, kind::HARDLINK, 0) }, &[])
    }

    /// Adds a character device.
    pub fn device(self, name: &str) -> Result<Self> {
        self.named(Header::new(name, kind::CHARACTER_DEVICE, 0), &[])
    }

    /// Adds a header and data, filled up to whole blocks; neither need fit the other.
    pub fn raw(mut self, header: &Header, data: &[u8]) -> Result<Self> {
        self.bytes.extend(encode(header)?);
        self.bytes.extend(data);
        self.bytes.resize(self.bytes.len().next_multiple_of(BLOCK), 0);
        Ok(self)
    }

    /// Adds bytes as they are.
    pub fn garbage(mut self, bytes: &[u8]) -> Self {
        self.bytes.extend(bytes);
        self
    }

    /// The archive with its end.
    pub fn finish(mut self) -> Vec<u8> {
        self.bytes.resize(self.bytes.len() + 2 * BLOCK, 0);
        self.bytes
    }

    /// The archive as if cut off: without its end.
    pub fn unfinished(self) -> Vec<u8> {
        self.bytes
    }

    fn named(self, mut header: Header, data: &[u8]) -> Result<Self> {
        if header.name.len() <= NAME {
            return self.raw(&header, data);
        }
        let long = [header.name.as_slice(), b"\0"].concat();
        header.name.truncate(NAME);
        let size = u64::try_from(long.len())?;
        self.raw(&Header::new("././@LongLink", kind::LONG_NAME, size), &long)?.raw(&header, data)
    }
}

fn encode(header: &Header) -> Result<[u8; BLOCK]> {
    let mut block = [0; BLOCK];
    put(&mut block, 0, NAME, &header.name)?;
    put(&mut block, 100, 8, format!("{:07o}", header.mode).as_bytes())?;
    put(&mut block, 108, 8, b"0000000")?;
    put(&mut block, 116, 8, b"0000000")?;
    if header.size < 1 << 33 {
        put(&mut block, 124, 12, format!("{:011o}", header.size).as_bytes())?;
    } else {
        put(&mut block, 124, 12, &[&[0x80, 0, 0, 0], header.size.to_be_bytes().as_slice()].concat())?;
    }
    put(&mut block, 136, 12, b"00000000000")?;
    put(&mut block, 156, 1, &[header.kind])?;
    put(&mut block, 157, NAME, &header.link)?;
    put(&mut block, 257, 8, b"ustar\x0000")?;
    // The checksum is computed as if its own field held blanks.
    put(&mut block, 148, 8, b"        ")?;
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    put(&mut block, 148, 8, format!("{sum:06o}\0 ").as_bytes())?;
    Ok(block)
}

fn put(block: &mut [u8; BLOCK], at: usize, room: usize, bytes: &[u8]) -> Result<()> {
    if bytes.len() > room {
        bail!("{:?} is longer than {room} bytes", String::from_utf8_lossy(bytes));
    }
    block.get_mut(at..at + bytes.len()).context("beyond the header")?.copy_from_slice(bytes);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    /// What tar itself makes of it.
    fn listed(bytes: &[u8]) -> (bool, String) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a.tar"), bytes).unwrap();
        let output = Command::new("tar").arg("tvf").arg(dir.path().join("a.tar")).stdin(Stdio::null()).output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
    }

    #[test]
    fn tar_reads_what_is_written() {
        let long = format!("kong/{}/handler.lua", "x".repeat(120));
        let archive = Archive::new().dir("kong/").unwrap().file("kong/a.lua", "return {}").unwrap().file(&long, "b").unwrap();
        let archive = archive.symlink("kong/l", "/etc/passwd").unwrap().hardlink("kong/h", "kong/a.lua").unwrap();
        let (sound, list) = listed(&archive.device("kong/d").unwrap().finish());
        assert!(sound, "{list}");
        let kinds: Vec<&str> = list.lines().map(|line| line.split_at(1).0).collect();
        assert_eq!(kinds, ["d", "-", "-", "l", "h", "c"], "{list}");
        assert!(list.contains(&long) && list.contains("kong/l -> /etc/passwd") && list.contains("link to kong/a.lua"), "{list}");
    }

    #[test]
    fn sizes_may_lie() {
        let lie = Archive::new().raw(&Header::new("big", kind::FILE, 1 << 40), b"small").unwrap().finish();
        let (sound, list) = listed(&lie);
        assert!(!sound && list.contains("1099511627776"), "{list}");
        let lie = Archive::new().raw(&Header::new("big", kind::FILE, 1 << 20), b"small").unwrap().unfinished();
        assert!(!listed(&lie).0);
        assert!(Archive::new().raw(&Header::new(&"x".repeat(101), kind::FILE, 0), b"").is_err());
    }
}
