//! Functions of WASI that answer, each with the least there is.

use wasmtime::{
    StoreContextMut,
    component::{ComponentType, Lift, LinkerInstance, Lower, Resource},
};

use super::{NotGiven, streams};
use crate::wasm::call::State;

/// Most random bytes of one call; more are no seed.
const MOST_RANDOM: u64 = 64 << 10;

/// Something that is waited for. It has happened.
pub(super) enum Pollable {}
/// A network without anything in it.
pub(super) enum Network {}
/// What never exists: a file, a socket, a terminal.
pub(super) enum Absent {}

/// A point in time, as `wasi:clocks/wall-clock` has it.
#[derive(ComponentType, Lift, Lower)]
#[component(record)]
struct Datetime {
    seconds: u64,
    nanoseconds: u32,
}

type Call<'a> = StoreContextMut<'a, State>;

/// Defines `name` of the interface at `path`, if there is more to say than no.
pub(super) fn define(at: &mut LinkerInstance<'_, State>, path: &str, name: &str) -> wasmtime::Result<bool> {
    match path.strip_prefix("wasi:").unwrap_or(path) {
        "cli/environment" => environment(at, name),
        "cli/exit" => exit(at, name),
        "cli/terminal-stdin" | "cli/terminal-stdout" | "cli/terminal-stderr" => terminal(at, name),
        "clocks/monotonic-clock" | "clocks/wall-clock" => clock(at, path.ends_with("wall-clock"), name),
        "filesystem/preopens" => preopens(at, name),
        "io/poll" => poll(at, name),
        "random/random" | "random/insecure" | "random/insecure-seed" => random(at, name),
        "sockets/instance-network" => network(at, name),
        "cli/stdin" | "cli/stdout" | "cli/stderr" | "io/streams" => streams::define(at, name),
        _ => Ok(false),
    }
}

fn environment(at: &mut LinkerInstance<'_, State>, name: &str) -> wasmtime::Result<bool> {
    match name {
        "get-environment" => at.func_wrap(name, |_: Call<'_>, ()| Ok((Vec::<(String, String)>::new(),)))?,
        "get-arguments" => at.func_wrap(name, |_: Call<'_>, ()| Ok((Vec::<String>::new(),)))?,
        "initial-cwd" => at.func_wrap(name, |_: Call<'_>, ()| Ok((None::<String>,)))?,
        _ => return Ok(false),
    }
    Ok(true)
}

/// A policy that ends itself has not answered.
fn exit(at: &mut LinkerInstance<'_, State>, name: &str) -> wasmtime::Result<bool> {
    fn ends<T>() -> wasmtime::Result<T> {
        Err(NotGiven("exit".to_owned()).into())
    }
    match name {
        "exit" => at.func_wrap(name, |_: Call<'_>, (_,): (Result<(), ()>,)| ends::<()>())?,
        "exit-with-code" => at.func_wrap(name, |_: Call<'_>, (_,): (u8,)| ends::<()>())?,
        _ => return Ok(false),
    }
    Ok(true)
}

fn terminal(at: &mut LinkerInstance<'_, State>, name: &str) -> wasmtime::Result<bool> {
    if !name.starts_with("get-terminal-") {
        return Ok(false);
    }
    at.func_wrap(name, |_: Call<'_>, ()| Ok((None::<Resource<Absent>>,)))?;
    Ok(true)
}

/// It is always the same moment: the first one of Unix time, so that nobody takes it for today.
fn clock(at: &mut LinkerInstance<'_, State>, wall: bool, name: &str) -> wasmtime::Result<bool> {
    match (name, wall) {
        ("now", true) => at.func_wrap(name, |_: Call<'_>, ()| Ok((Datetime { seconds: 0, nanoseconds: 0 },)))?,
        ("resolution", true) => at.func_wrap(name, |_: Call<'_>, ()| Ok((Datetime { seconds: 1, nanoseconds: 0 },)))?,
        ("now", false) => at.func_wrap(name, |_: Call<'_>, ()| Ok((0_u64,)))?,
        ("resolution", false) => at.func_wrap(name, |_: Call<'_>, ()| Ok((1_000_000_000_u64,)))?,
        ("subscribe-instant" | "subscribe-duration", false) => at.func_wrap(name, |_: Call<'_>, (_,): (u64,)| ready())?,
        _ => return Ok(false),
    }
    Ok(true)
}

/// Something that has happened.
pub(super) fn ready() -> wasmtime::Result<(Resource<Pollable>,)> {
    Ok((Resource::new_own(0),))
}

fn preopens(at: &mut LinkerInstance<'_, State>, name: &str) -> wasmtime::Result<bool> {
    if name != "get-directories" {
        return Ok(false);
    }
    at.func_wrap(name, |_: Call<'_>, ()| Ok((Vec::<(Resource<Absent>, String)>::new(),)))?;
    Ok(true)
}

fn poll(at: &mut LinkerInstance<'_, State>, name: &str) -> wasmtime::Result<bool> {
    match name {
        "poll" => at.func_wrap(name, |_: Call<'_>, (all,): (Vec<Resource<Pollable>>,)| {
            // Nobody may wait for nothing, WASI says.
            let all = u32::try_from(all.len()).ok().filter(|all| *all > 0).ok_or_else(|| NotGiven("poll of nothing".to_owned()))?;
            Ok(((0..all).collect::<Vec<u32>>(),))
        })?,
        "[method]pollable.ready" => at.func_wrap(name, |_: Call<'_>, (_,): (Resource<Pollable>,)| Ok((true,)))?,
        "[method]pollable.block" => at.func_wrap(name, |_: Call<'_>, (_,): (Resource<Pollable>,)| Ok(()))?,
        _ => return Ok(false),
    }
    Ok(true)
}

fn random(at: &mut LinkerInstance<'_, State>, name: &str) -> wasmtime::Result<bool> {
    match name {
        "get-random-bytes" | "get-insecure-random-bytes" => {
            at.func_wrap(name, |mut call: Call<'_>, (length,): (u64,)| {
                if length > MOST_RANDOM {
                    return Err(NotGiven(format!("random bytes, {length} at once (at most {MOST_RANDOM})")).into());
                }
                let length = usize::try_from(length).unwrap_or_default();
                Ok((call.data_mut().stub.random_bytes(length),))
            })?;
        }
        "get-random-u64" | "get-insecure-random-u64" => {
            at.func_wrap(name, |mut call: Call<'_>, ()| Ok((call.data_mut().stub.random(),)))?;
        }
        "insecure-seed" => {
            at.func_wrap(name, |mut call: Call<'_>, ()| {
                let stub = &mut call.data_mut().stub;
                Ok(((stub.random(), stub.random()),))
            })?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

fn network(at: &mut LinkerInstance<'_, State>, name: &str) -> wasmtime::Result<bool> {
    if name != "instance-network" {
        return Ok(false);
    }
    at.func_wrap(name, |_: Call<'_>, ()| Ok((Resource::<Network>::new_own(0),)))?;
    Ok(true)
}
