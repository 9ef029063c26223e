//! Standard streams: nothing to read, and what is written becomes log lines, as many and as long as a policy's own.

use wasmtime::{
    StoreContextMut,
    component::{ComponentType, Lift, LinkerInstance, Lower, Resource},
};

use super::answers::ready;
use crate::wasm::{
    call::State,
    log::{LineLevel, MAX_LENGTH},
};

/// What may be written at once, bytes.
const WRITE: u64 = 64 << 10;
/// Where every call's random numbers begin.
const SEED: u64 = 0x5765_6972_2053_6565;

/// A stream that is written to: its number is one of [`OUT`] and [`ERR`].
pub(super) enum Output {}
/// A stream that is read from. It is at its end.
pub(super) enum Input {}
/// What went wrong with a stream. Nothing ever does.
pub(super) enum Failure {}

const OUT: u32 = 1;
const ERR: u32 = 2;

/// `wasi:io/streams`' reason why nothing was written. Nothing fails and these streams stay open; the type has both cases.
#[derive(ComponentType, Lift, Lower)]
#[component(variant)]
enum StreamError {
    #[component(name = "last-operation-failed")]
    Failed(Resource<Failure>),
    #[component(name = "closed")]
    Closed,
}

type Call<'a> = StoreContextMut<'a, State>;
type Written<T> = wasmtime::Result<(Result<T, StreamError>,)>;

/// What the stubs of one call remember.
#[derive(Debug)]
pub(crate) struct Stub {
    random: u64,
    out: Vec<u8>,
    err: Vec<u8>,
}

impl Default for Stub {
    fn default() -> Self {
        Self { random: SEED, out: Vec::new(), err: Vec::new() }
    }
}

impl Stub {
    /// The next number of a sequence that is the same in every call (splitmix64).
    pub(super) fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(super) fn random_bytes(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(length.next_multiple_of(8));
        while bytes.len() < length {
            bytes.extend(self.random().to_le_bytes());
        }
        bytes.truncate(length);
        bytes
    }
}

impl State {
    /// Lines that are whole, and what is over a line's length, go to the log.
    fn write(&mut self, stream: u32, bytes: &[u8]) {
        let (level, buffer) = match stream {
            ERR => (LineLevel::Warn, &mut self.stub.err),
            _ => (LineLevel::Info, &mut self.stub.out),
        };
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let room = MAX_LENGTH.saturating_sub(buffer.len());
            // The rest of a line that is too long is dropped, as that of a log line is.
            buffer.extend(piece.iter().take(room));
            if piece.ends_with(b"\n") {
                say(&mut self.lines, level, buffer);
            }
        }
    }

    /// What was written without an end of line.
    pub(in crate::wasm) fn close_streams(&mut self) {
        say(&mut self.lines, LineLevel::Info, &mut self.stub.out);
        say(&mut self.lines, LineLevel::Warn, &mut self.stub.err);
    }
}

fn say(lines: &mut crate::wasm::log::Lines, level: LineLevel, buffer: &mut Vec<u8>) {
    let text = String::from_utf8_lossy(buffer);
    let text = text.trim_end();
    if !text.is_empty() {
        lines.line(level, text);
    }
    buffer.clear();
}

/// Defines what answers of `cli/std*` and `io/streams`.
pub(super) fn define(at: &mut LinkerInstance<'_, State>, name: &str) -> wasmtime::Result<bool> {
    match name {
        "get-stdin" => at.func_wrap(name, |_: Call<'_>, ()| Ok((Resource::<Input>::new_own(0),)))?,
        "get-stdout" => at.func_wrap(name, |_: Call<'_>, ()| Ok((Resource::<Output>::new_own(OUT),)))?,
        "get-stderr" => at.func_wrap(name, |_: Call<'_>, ()| Ok((Resource::<Output>::new_own(ERR),)))?,
        "[method]input-stream.subscribe" => at.func_wrap(name, |_: Call<'_>, (_,): (Resource<Input>,)| ready())?,
        "[method]output-stream.subscribe" => at.func_wrap(name, |_: Call<'_>, (_,): (Resource<Output>,)| ready())?,
        "[method]output-stream.check-write" => {
            at.func_wrap(name, |_: Call<'_>, (_,): (Resource<Output>,)| -> Written<u64> { Ok((Ok(WRITE),)) })?;
        }
        "[method]output-stream.write" | "[method]output-stream.blocking-write-and-flush" => {
            at.func_wrap(name, |mut call: Call<'_>, (stream, bytes): (Resource<Output>, Vec<u8>)| -> Written<()> {
                call.data_mut().write(stream.rep(), &bytes);
                Ok((Ok(()),))
            })?;
        }
        "[method]output-stream.flush" | "[method]output-stream.blocking-flush" => {
            at.func_wrap(name, |_: Call<'_>, (_,): (Resource<Output>,)| -> Written<()> { Ok((Ok(()),)) })?;
        }
        "[method]output-stream.write-zeroes" | "[method]output-stream.blocking-write-zeroes-and-flush" => {
            at.func_wrap(name, |_: Call<'_>, (_, _): (Resource<Output>, u64)| -> Written<()> { Ok((Ok(()),)) })?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}
