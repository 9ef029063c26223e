//! The remote plugin of the test kit, on an address that an EndpointSlice may name, with the Secrets that belong to it.

use std::net::{IpAddr, SocketAddr, UdpSocket};

use serde_json::{Value, json};
use weir_remote_plugin::{Behavior, Config, Files, Pair, certificates, start};

/// A plugin that can be stopped and started.
pub(crate) struct Server {
    behavior: Behavior,
    server: Pair,
    client: Pair,
    pub(crate) address: SocketAddr,
    running: Option<weir_remote_plugin::Server>,
}

impl Server {
    /// One that is ready, for a Service of this name. Its certificates are self-signed leaves, as cert-manager makes them.
    pub(crate) async fn start(service: &str, plugin: &str, version: &str) -> Self {
        let mut server = Self {
            behavior: Behavior { version: version.into(), slots: vec!["konnect-env".into()], ..Behavior::good(plugin) },
            server: certificates::self_signed(&certificates::server(&[service]).unwrap()).unwrap(),
            client: certificates::self_signed(&certificates::client().unwrap()).unwrap(),
            address: SocketAddr::new(address(), 0),
            running: None,
        };
        server.resume().await;
        server
    }

    /// Nobody listens any more, and connections end.
    pub(crate) fn stop(&mut self) {
        self.running = None;
    }

    /// Listens again, at the same port.
    pub(crate) async fn resume(&mut self) {
        let files = Files { cert: self.server.cert.clone(), key: self.server.key.clone(), clients: self.client.cert.clone() };
        let running = start(Config { listen: self.address, files, behavior: self.behavior.clone() }).await.unwrap();
        self.address = running.address();
        self.running = Some(running);
    }

    /// Changes what it does, now and when it starts again.
    pub(crate) fn set(&mut self, change: impl Fn(&mut Behavior)) {
        change(&mut self.behavior);
        if let Some(running) = &self.running {
            running.handle().set(change);
        }
    }

    /// What the operator trusts.
    pub(crate) fn server_secret(&self, name: &str) -> Value {
        secret(name, &self.server)
    }

    /// What the operator shows.
    pub(crate) fn client_secret(&self, name: &str) -> Value {
        secret(name, &self.client)
    }
}

pub(super) fn secret(name: &str, pair: &Pair) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "metadata": {"name": name},
        "stringData": {"tls.crt": pair.cert, "tls.key": pair.key}
    })
}

/// The address that this machine would talk from: the API server takes no loopback in an EndpointSlice.
pub(super) fn address() -> IpAddr {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    // Nothing is sent: the kernel only chooses a route.
    socket.connect("203.0.113.1:9").unwrap();
    socket.local_addr().unwrap().ip()
}
