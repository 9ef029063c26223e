//! Writes tar archives that no honest tool writes.

use std::io::Write as _;

use flate2::{Compression, write::GzEncoder};

/// An archive in the making.
#[derive(Default, Clone)]
pub(super) struct Tar(Vec<u8>);

impl Tar {
    pub(super) fn file(self, name: &str, content: &str) -> Self {
        self.entry(name.as_bytes(), b'0', content.as_bytes())
    }

    pub(super) fn dir(self, name: &str) -> Self {
        self.entry(name.as_bytes(), b'5', b"")
    }

    pub(super) fn entry(self, name: &[u8], kind: u8, content: &[u8]) -> Self {
        self.header(name, kind, content.len() as u64).data(content)
    }

    /// A header that may say anything.
    pub(super) fn header(mut self, name: &[u8], kind: u8, size: u64) -> Self {
        let mut block = [0_u8; 512];
        block[..name.len().min(100)].copy_from_slice(&name[..name.len().min(100)]);
        block[100..108].copy_from_slice(b"0000644\0");
        block[108..116].copy_from_slice(b"0000000\0");
        block[116..124].copy_from_slice(b"0000000\0");
        if size < 1 << 33 {
            block[124..136].copy_from_slice(format!("{size:011o}\0").as_bytes());
        } else {
            block[124] = 0x80;
            block[128..136].copy_from_slice(&size.to_be_bytes());
        }
        block[136..148].copy_from_slice(b"00000000000\0");
        block[156] = kind;
        if matches!(kind, b'1' | b'2') {
            block[157..167].copy_from_slice(b"/etc/passw");
        }
        // GNU's own marks, so that its extensions are read.
        block[257..265].copy_from_slice(if matches!(kind, b'L' | b'S') { b"ustar  \0" } else { b"ustar\x0000" });
        if kind == b'S' {
            block[483..495].copy_from_slice(b"00000000000\0");
        }
        block[148..156].copy_from_slice(b"        ");
        let sum: u32 = block.iter().map(|b| u32::from(*b)).sum();
        block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        self.0.extend_from_slice(&block);
        self
    }

    pub(super) fn data(mut self, content: &[u8]) -> Self {
        self.0.extend_from_slice(content);
        self.0.resize(self.0.len().next_multiple_of(512), 0);
        self
    }

    /// A PAX header for the next entry.
    pub(super) fn pax(self, key: &str, value: &str) -> Self {
        let bare = key.len() + value.len() + 3;
        let length = (bare..).find(|total| total.to_string().len() + bare == *total).unwrap();
        self.entry(b"PaxHeaders/x", b'x', format!("{length} {key}={value}\n").as_bytes())
    }

    /// A GNU long name for the next entry.
    pub(super) fn long_name(self, name: &str) -> Self {
        self.entry(b"././@LongLink", b'L', format!("{name}\0").as_bytes())
    }

    pub(super) fn end(mut self) -> Vec<u8> {
        self.0.resize(self.0.len() + 1024, 0);
        self.0
    }

    pub(super) fn gzip(self) -> Vec<u8> {
        gzip(&self.end())
    }

    pub(super) fn zstd(self) -> Vec<u8> {
        zstd(&self.end())
    }
}

pub(super) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(super) fn zstd(bytes: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
}

/// What an honest plugin looks like.
pub(super) fn plugin() -> Tar {
    Tar::default().file("handler.lua", "return {}").file("schema.lua", "return { name = \"x\" }")
}
