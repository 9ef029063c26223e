//! TCP to an endpoint, directly: proxy variables of the environment are for the world outside of the cluster.

use std::{net::SocketAddr, time::Duration};

use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpStream, lookup_host};

use crate::remote::{Endpoint, Reason, tls::Failure};

/// Most addresses of one name that are tried.
const MAX_ADDRESSES: usize = 8;
/// Silence until the kernel asks whether the other side is there.
const KEEPALIVE: Duration = Duration::from_secs(30);
/// Between such questions.
const INTERVAL: Duration = Duration::from_secs(10);
/// Longest time that sent bytes may stay unconfirmed.
const USER_TIMEOUT: Duration = Duration::from_secs(20);

/// Tries the addresses in turn, all of them within `time`.
pub(super) async fn connect(endpoint: &Endpoint, time: Duration) -> Result<TcpStream, Failure> {
    match tokio::time::timeout(time, any(endpoint)).await {
        Ok(outcome) => outcome,
        Err(_) => Err(Failure::new(Reason::Unreachable, format!("{endpoint} does not take a connection within {time:?}"))),
    }
}

async fn any(endpoint: &Endpoint) -> Result<TcpStream, Failure> {
    let found = lookup_host((endpoint.host.as_str(), endpoint.port)).await;
    let addresses: Vec<SocketAddr> = match found {
        Ok(found) => found.take(MAX_ADDRESSES).collect(),
        Err(error) => return Err(Failure::new(Reason::NoEndpoints, format!("{} has no address: {error}", endpoint.host))),
    };
    let mut last = Failure::new(Reason::NoEndpoints, format!("{} has no address", endpoint.host));
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => {
                tune(&stream).map_err(|error| Failure::new(Reason::Unreachable, format!("{address}: {error}")))?;
                return Ok(stream);
            }
            Err(error) => last = Failure::new(Reason::Unreachable, format!("{address} does not take a connection: {error}")),
        }
    }
    Err(last)
}

fn tune(stream: &TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let socket = SockRef::from(stream);
    socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEPALIVE).with_interval(INTERVAL).with_retries(3))?;
    socket.set_tcp_user_timeout(Some(USER_TIMEOUT))
}
