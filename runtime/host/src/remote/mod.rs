//! Remote plugins: gRPC servers that answer slots and hooks, reached over mutual TLS through a pool that tests a connection before it
//! hands it out (`docs/remote-plugins.md`, `docs/adr/0013-remote-plugins.md`).
//!
//! [`Registry`] is the whole: [`Registry::replace`] gives it what was discovered, as [`Spec`]s; [`Registry::get`] gives a [`Plugin`] by its
//! name. A [`Plugin`] says how it is ([`Plugin::status`]) and lends connections ([`Plugin::acquire`]); a [`Lease`] makes calls.
//! [`RemotePolicy`] serves a slot through all that and cannot be told from a component.
//!
//! Nothing here waits without a deadline, and nothing a plugin says is believed before it is bounded.

mod breaker;
mod calls;
mod connect;
mod error;
mod examine;
mod lease;
mod metadata;
mod observe;
mod pem;
mod plugin;
mod policy;
mod registry;
mod setup;
mod slot;
mod spec;
mod state;
mod text;
mod tls;
mod transport;
mod wire;

pub use self::{
    calls::{Behavior, Caps, Stage, ValidationError, Verb},
    error::{AcquireError, CallError, Class},
    examine::{Examination, examine},
    lease::Lease,
    metadata::{Capabilities, Lifecycle, Metadata, OperatorCall, Service},
    observe::{Event, Observer},
    pem::{ClientIdentity, PemError, ServerTrust, Validity},
    plugin::Plugin,
    policy::{RemoteMemo, RemotePolicy},
    registry::{Plugins, Registry, Replaced},
    slot::{RemoteSlot, Reply},
    spec::{Deadlines, Endpoint, Limits, Spec, Tuning, service_names},
    state::{Gauges, Reason, State, Status},
};
