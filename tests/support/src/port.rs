//! Ports that nobody listens on.

use std::net::{Ipv4Addr, TcpListener};

use anyhow::{Context, Result};

/// A loopback port that was free a moment ago. Another process may take it before it is used, so a caller starts again when that
/// happens.
pub fn free_port() -> Result<u16> {
    free_ports().map(|[port]| port)
}

/// Ports that differ from each other: all are held until the last one is known.
pub(crate) fn free_ports<const N: usize>() -> Result<[u16; N]> {
    let mut held = Vec::with_capacity(N);
    let mut ports = [0; N];
    for port in &mut ports {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no free port on 127.0.0.1")?;
        *port = listener.local_addr()?.port();
        held.push(listener);
    }
    Ok(ports)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_of_one_call_differ_and_are_free() {
        let ports: [u16; 8] = free_ports().unwrap();
        let mut unique = ports.to_vec();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), 8);
        assert!(TcpListener::bind((Ipv4Addr::LOCALHOST, ports[0])).is_ok());
    }
}
