//! Every format and every refusal, in memory; and a registry of some lines that misbehaves on demand.

mod component;
mod credentials;
mod dial;
mod faults;
mod formats;
mod hostile;
mod local;
mod local_component;
mod manifest;
mod mirrors;
mod package;
mod pull;
mod push;
mod reference;
mod registries_file;
mod registry;
mod store;
mod tags;
mod tarball;
mod uploads;
mod verification_file;
mod verify;
mod whole;
