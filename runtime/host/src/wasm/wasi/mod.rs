//! The second link profile: WASI 0.2 for guests whose toolchain imports it whether it is used or not (Python, Go, most others).
//!
//! A policy is given nothing by it: no files, no environment, no arguments, no network, no input. What it writes to its standard streams
//! becomes log lines. Clocks stand still and random numbers are the same ones in every call, so that one question has one answer on every
//! machine. Nothing waits: whatever is polled is ready, so a guest that waits for time to pass runs into its deadline, as any loop does.
//!
//! Interfaces are told by name ([`given`] lists them); of these, functions with an answer of their own are in `answers`, all others fail:
//! with `unsupported`, `not-supported` or `closed` where their type has such a case, else the call ends as a trap.

mod answers;
mod streams;

use wasmtime::{
    Engine, StoreContextMut,
    component::{Component, Linker, LinkerInstance, ResourceType, Type, Val, types},
};

use super::call::State;

pub(super) use streams::Stub;

/// The interfaces of WASI 0.2 that are given as stubs.
const GIVEN: [&str; 27] = [
    "wasi:cli/environment",
    "wasi:cli/exit",
    "wasi:cli/stderr",
    "wasi:cli/stdin",
    "wasi:cli/stdout",
    "wasi:cli/terminal-input",
    "wasi:cli/terminal-output",
    "wasi:cli/terminal-stderr",
    "wasi:cli/terminal-stdin",
    "wasi:cli/terminal-stdout",
    "wasi:clocks/monotonic-clock",
    "wasi:clocks/wall-clock",
    "wasi:filesystem/preopens",
    "wasi:filesystem/types",
    "wasi:io/error",
    "wasi:io/poll",
    "wasi:io/streams",
    "wasi:random/insecure",
    "wasi:random/insecure-seed",
    "wasi:random/random",
    "wasi:sockets/instance-network",
    "wasi:sockets/ip-name-lookup",
    "wasi:sockets/network",
    "wasi:sockets/tcp",
    "wasi:sockets/tcp-create-socket",
    "wasi:sockets/udp",
    "wasi:sockets/udp-create-socket",
];

/// Cases of an error that say that there is no such thing here.
const NO: [&str; 3] = ["unsupported", "not-supported", "closed"];

/// A call of a function that gives nothing and cannot fail in its own words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("it called {0}, which policies do not get")]
pub(super) struct NotGiven(pub(super) String);

/// Whether an import (`package/interface`, and its version) is one of WASI that is given as a stub.
pub(super) fn given(path: &str, version: &str) -> bool {
    let patch = version.strip_prefix("0.2.").is_some_and(|patch| !patch.is_empty() && patch.bytes().all(|b| b.is_ascii_digit()));
    patch && GIVEN.contains(&path)
}

/// Defines stubs for all of WASI that `component` imports. Every one is defined under the version that it is imported by.
///
/// # Errors
/// When an import is nothing that WASI has, or wasmtime's.
pub(super) fn define(linker: &mut Linker<State>, component: &Component) -> wasmtime::Result<()> {
    let engine = linker.engine().clone();
    let kind = component.component_type();
    for (name, import) in kind.imports(&engine) {
        let Some((path, _)) = name.split_once('@').filter(|(path, version)| given(path, version)) else { continue };
        let types::ComponentItem::ComponentInstance(instance) = import.ty else {
            wasmtime::bail!("{name} is imported as something else than an interface");
        };
        interface(&mut linker.instance(name)?, &engine, path, &instance)?;
    }
    Ok(())
}

fn interface(at: &mut LinkerInstance<'_, State>, engine: &Engine, path: &str, kind: &types::ComponentInstance) -> wasmtime::Result<()> {
    for (name, item) in kind.exports(engine) {
        match item.ty {
            types::ComponentItem::Resource(_) => at.resource(name, resource(name), |_, _| Ok(()))?,
            types::ComponentItem::ComponentFunc(_) => {
                if !answers::define(at, path, name)? {
                    nothing(at, format!("{path}#{name}"), name)?;
                }
            }
            types::ComponentItem::Type(_) => {}
            types::ComponentItem::CoreFunc(_)
            | types::ComponentItem::Module(_)
            | types::ComponentItem::Component(_)
            | types::ComponentItem::ComponentInstance(_) => wasmtime::bail!("{path} has no {name} of that kind"),
        }
    }
    Ok(())
}

/// Resources that exist are told from each other by type; of all others there is never a value.
fn resource(name: &str) -> ResourceType {
    match name {
        "output-stream" => ResourceType::host::<streams::Output>(),
        "input-stream" => ResourceType::host::<streams::Input>(),
        "pollable" => ResourceType::host::<answers::Pollable>(),
        "network" => ResourceType::host::<answers::Network>(),
        "error" => ResourceType::host::<streams::Failure>(),
        _ => ResourceType::host::<answers::Absent>(),
    }
}

/// A function that fails, in its own words if it has such.
fn nothing(at: &mut LinkerInstance<'_, State>, full: String, name: &str) -> wasmtime::Result<()> {
    at.func_new(name, move |mut store: StoreContextMut<'_, State>, kind, arguments, results| {
        for argument in arguments {
            // What was lent has to be given back before the call ends.
            if let Val::Resource(lent) = argument {
                lent.resource_drop(&mut store)?;
            }
        }
        let refusal = kind.results().next().as_ref().and_then(refusal);
        match (refusal, results.first_mut()) {
            (Some(refusal), Some(result)) => *result = refusal,
            _ => return Err(NotGiven(full.clone()).into()),
        }
        Ok(())
    })
}

/// The failure of a result whose error has a case for it.
fn refusal(kind: &Type) -> Option<Val> {
    let Type::Result(result) = kind else { return None };
    let error = result.err()?;
    let error = if let Type::Enum(cases) = &error {
        let case = NO.iter().find(|no| cases.names().any(|name| name == **no))?;
        Val::Enum((*case).to_owned())
    } else if let Type::Variant(cases) = &error {
        let case = NO.iter().find(|no| cases.cases().any(|case| case.name == **no && case.ty.is_none()))?;
        Val::Variant((*case).to_owned(), None)
    } else {
        return None;
    };
    Some(Val::Result(Err(Some(Box::new(error)))))
}
