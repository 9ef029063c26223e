//! What a process used, and whether it says it is ready.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, Result};

/// What a process used since it began.
pub(crate) struct Usage {
    /// User and system time.
    pub(crate) cpu_seconds: f64,
    /// Largest resident set.
    pub(crate) peak_bytes: u64,
}

/// Reads /proc. Ticks are 1/100 s on every Linux that Kubernetes runs on.
pub(crate) fn usage(pid: u32) -> Result<Usage> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let fields: Vec<&str> = stat.rsplit_once(')').context("no process name in stat")?.1.split_whitespace().collect();
    let ticks = |index: usize| fields.get(index).and_then(|f| f.parse::<u32>().ok()).context("stat has too few fields");
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let peak = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).and_then(|l| l.split_whitespace().next());
    let peak: u64 = peak.and_then(|p| p.parse().ok()).context("no VmHWM in status")?;
    Ok(Usage { cpu_seconds: f64::from(ticks(11)? + ticks(12)?) / 100.0, peak_bytes: peak << 10 })
}

/// Asks `/readyz`.
pub(crate) async fn is_ready(port: u16) -> Result<bool> {
    tokio::task::spawn_blocking(move || {
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else { return Ok(false) };
        stream.set_read_timeout(Some(Duration::from_secs(2)))?;
        stream.write_all(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer.starts_with("HTTP/1.1 200"))
    })
    .await?
}
