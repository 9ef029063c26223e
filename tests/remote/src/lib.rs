//! A remote plugin for tests: serves identity, every slot and every hook over mutual TLS, on a real socket, and misbehaves on request. It
//! shares no code with the host, only the contract.

mod behavior;
pub mod certificates;
mod hooks;
mod identity;
mod server;
mod slots;
mod tls;

pub use self::{
    behavior::{Behavior, Fault, Handle},
    certificates::{Authority, Pair},
    server::{Config, Server, start},
    tls::Files,
};
