//! Every format and every refusal, in memory; and a registry of some lines that misbehaves on demand.

mod credentials;
mod dial;
mod faults;
mod formats;
mod hostile;
mod local;
mod manifest;
mod pull;
mod reference;
mod registry;
mod tarball;
