//! Compression: recognised by the first bytes, decoded under caps.

use std::{
    cell::Cell,
    fmt,
    io::{self, Read},
};

use flate2::read::MultiGzDecoder;
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};

use super::{Error, Limits};
use crate::oci::text;

const BLOCK: usize = 512;
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// How an archive is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Packed {
    Plain,
    Gzip,
    Zstd,
}

impl fmt::Display for Packed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Plain => "an uncompressed tar archive",
            Self::Gzip => "compressed with gzip",
            Self::Zstd => "compressed with zstd",
        })
    }
}

/// What bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Archive(Packed),
    /// Nothing, or zeros: an empty archive.
    Blank,
    Other,
}

pub(super) fn sniff(bytes: &[u8]) -> Format {
    match packed(bytes) {
        Some(packed) => Format::Archive(packed),
        None if bytes.iter().all(|b| *b == 0) && bytes.len().is_multiple_of(BLOCK) => Format::Blank,
        None if is_tar(bytes) => Format::Archive(Packed::Plain),
        None => Format::Other,
    }
}

/// Whether `bytes` may be an archive at all.
pub(in crate::oci) fn archive(bytes: &[u8]) -> bool {
    matches!(sniff(bytes), Format::Archive(_))
}

fn packed(bytes: &[u8]) -> Option<Packed> {
    match bytes {
        [0x1f, 0x8b, ..] => Some(Packed::Gzip),
        // Skippable frames may come first.
        [a, b, c, d, ..] if [*a, *b, *c, *d] == ZSTD || (matches!(a, 0x50..=0x5f) && [*b, *c, *d] == [0x2a, 0x4d, 0x18]) => {
            Some(Packed::Zstd)
        }
        [..] => None,
    }
}

/// Whether the first block is a header: its checksum says so in every dialect of tar.
fn is_tar(bytes: &[u8]) -> bool {
    let (Some(before), Some(field), Some(after)) = (bytes.get(..148), bytes.get(148..156), bytes.get(156..BLOCK)) else { return false };
    let sum: u32 = before.iter().chain(after).map(|b| u32::from(*b)).sum::<u32>() + 8 * u32::from(b' ');
    let digits = std::str::from_utf8(field).unwrap_or_default().trim_matches(['\0', ' ']);
    u32::from_str_radix(digits, 8).is_ok_and(|declared| declared == sum)
}

/// Decodes an archive for `parse`, reads on to the end so that the compression's own checks happen, and never yields more than
/// `limits` allow.
pub(super) fn read<T>(bytes: &[u8], limits: &Limits, mut parse: impl FnMut(&mut dyn Read) -> Result<T, Error>) -> Result<T, Error> {
    let full = Cell::new(false);
    let window = Cell::new(None);
    let most = limits.stream_bytes();
    let packed = packed(bytes);
    let mut reader = Capped { inner: stream(bytes, limits.zstd_window, &window), left: most, full: &full };
    let mut go = || {
        let mut first = [0; BLOCK];
        let got = fill(&mut reader, &mut first).map_err(|e| broken(packed, &e))?;
        let first = first.get(..got).unwrap_or_default();
        if packed.is_some() && sniff(first) == Format::Other {
            return Err(Error::NotTar);
        }
        let parsed = parse(&mut first.chain(&mut reader))?;
        io::copy(&mut reader, &mut io::sink()).map_err(|e| broken(packed, &e))?;
        Ok(parsed)
    };
    // The readers in between turn an error of the lowest one into errors of their own.
    match go() {
        Err(_) if full.get() => Err(Error::Bomb { most }),
        Err(other) => Err(window.get().map_or(other, |found| Error::Window { found, most: limits.zstd_window })),
        Ok(parsed) => Ok(parsed),
    }
}

/// A reader of what `bytes` are compressed from. A zstd window above `most` bytes is left in `window`.
pub(in crate::oci) fn stream<'a>(bytes: &'a [u8], most: u64, window: &'a Cell<Option<u64>>) -> Box<dyn Read + 'a> {
    match packed(bytes) {
        None | Some(Packed::Plain) => Box::new(bytes),
        Some(Packed::Gzip) => Box::new(MultiGzDecoder::new(bytes)),
        Some(Packed::Zstd) => Box::new(Frames { rest: bytes, frame: None, most, window }),
    }
}

fn broken(packed: Option<Packed>, error: &io::Error) -> Error {
    let what = match packed {
        None | Some(Packed::Plain) => "tar archive",
        Some(Packed::Gzip) => "gzip compression",
        Some(Packed::Zstd) => "zstd compression",
    };
    Error::Broken { what, problem: text::said(&error.to_string()) }
}

fn fill(reader: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut got = 0;
    while let Some(rest) = buffer.get_mut(got..).filter(|rest| !rest.is_empty()) {
        match reader.read(rest)? {
            0 => break,
            more => got += more,
        }
    }
    Ok(got)
}

/// Fails, rather than ends, after so many bytes.
struct Capped<'a, R> {
    inner: R,
    left: u64,
    full: &'a Cell<bool>,
}

impl<R: Read> Read for Capped<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = self.inner.read(buffer)?;
        self.left = self.left.checked_sub(got as u64).ok_or_else(|| {
            self.full.set(true);
            io::Error::other("unpacks to too much")
        })?;
        Ok(got)
    }
}

/// zstd frames one after the other, those to skip among them; the decoder itself takes one.
struct Frames<'a> {
    rest: &'a [u8],
    frame: Option<StreamingDecoder<&'a [u8], FrameDecoder>>,
    most: u64,
    window: &'a Cell<Option<u64>>,
}

impl Read for Frames<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(frame) = &mut self.frame {
                let got = frame.read(buffer)?;
                if got > 0 || buffer.is_empty() {
                    return Ok(got);
                }
                self.rest = frame.get_ref();
                self.frame = None;
            }
            let Some((magic, after)) = self.rest.split_first_chunk::<4>() else {
                return if self.rest.is_empty() { Ok(0) } else { Err(io::Error::other("bytes after the last frame")) };
            };
            if *magic == ZSTD {
                // The decoder reserves the window before it looks at its size.
                let found = window_size(after).ok_or(io::ErrorKind::UnexpectedEof)?;
                if found > self.most {
                    self.window.set(Some(found));
                    return Err(io::Error::other("window too large"));
                }
                self.frame = Some(StreamingDecoder::new(self.rest).map_err(io::Error::other)?);
            } else {
                self.rest = skippable(*magic, after)?;
            }
        }
    }
}

fn skippable(magic: [u8; 4], after: &[u8]) -> io::Result<&[u8]> {
    let (length, after) = after.split_first_chunk::<4>().ok_or(io::ErrorKind::UnexpectedEof)?;
    if !matches!(magic, [0x50..=0x5f, 0x2a, 0x4d, 0x18]) {
        return Err(io::Error::other("bytes after the last frame"));
    }
    let length = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX);
    after.get(length..).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

/// RFC 8878, 3.1.1.1: from what follows the magic number.
fn window_size(header: &[u8]) -> Option<u64> {
    let (descriptor, rest) = header.split_first()?;
    let single_segment = descriptor & 0x20 != 0;
    if !single_segment {
        let byte = *rest.first()?;
        let base = 1_u64 << (10 + u32::from(byte >> 3));
        return Some(base + base / 8 * u64::from(byte & 7));
    }
    let dictionary = [0, 1, 2, 4].get(usize::from(descriptor & 3))?;
    let size = rest.get(*dictionary..)?;
    match descriptor >> 6 {
        0 => size.first().map(|b| u64::from(*b)),
        1 => size.first_chunk().map(|b| u64::from(u16::from_le_bytes(*b)) + 256),
        2 => size.first_chunk().map(|b| u64::from(u32::from_le_bytes(*b))),
        _ => size.first_chunk().map(|b| u64::from_le_bytes(*b)),
    }
}
