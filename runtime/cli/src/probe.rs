//! `weir probe`: one small HTTP client, so that an image without a shell can test an install.

#[cfg(test)]
mod tests;

use std::{
    io::{Read, Write},
    net::{TcpStream, ToSocketAddrs},
    time::{Duration, Instant},
};

use crate::exit::{Exit, Failure};

/// For the connection, and for each read and write.
const PATIENCE: Duration = Duration::from_secs(2);
/// Between two tries.
const PAUSE: Duration = Duration::from_millis(500);
/// What of an answer is read, bytes.
const MOST: u64 = 8 << 20;

/// `weir probe`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// http://HOST[:PORT]/PATH; nothing is spoken but plain HTTP.
    #[arg(value_name = "URL", value_parser = Url::parse)]
    url: Url,
    /// The answer must have this text. Repeatable.
    #[arg(long, value_name = "TEXT")]
    contains: Vec<String>,
    /// Ask again until this time has passed.
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = crate::operator::duration)]
    wait: Duration,
}

/// Runs the command.
///
/// # Errors
/// What is wrong with the last answer.
pub fn run(args: &Args) -> anyhow::Result<Exit> {
    let start = Instant::now();
    loop {
        let problem = match ask(&args.url) {
            Ok(body) => match args.contains.iter().find(|text| !body.contains(text.as_str())) {
                None => return Ok(Exit::Done),
                Some(text) => format!("the answer has no {text:?}"),
            },
            Err(problem) => problem,
        };
        if start.elapsed().saturating_add(PAUSE) > args.wait {
            let Url { host, port, path } = &args.url;
            return Err(Failure { exit: Exit::Unavailable, message: format!("http://{host}:{port}{path}: {problem}") }.into());
        }
        std::thread::sleep(PAUSE);
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Url {
    host: String,
    port: u16,
    path: String,
}

impl Url {
    fn parse(text: &str) -> Result<Self, String> {
        let rest = text.strip_prefix("http://").ok_or("write http://HOST[:PORT]/PATH")?;
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, port.parse().map_err(|_| format!("{port:?} is no port"))?),
            Some(_) | None => (authority, 80),
        };
        // Nothing in it may end a line of the request.
        if host.is_empty() || text.chars().any(|c| c.is_control() || c == ' ') {
            return Err("the host is missing, or there is a space".to_owned());
        }
        Ok(Self { host: host.to_owned(), port, path: format!("/{path}") })
    }
}

/// The body of an answer with status 2xx.
fn ask(url: &Url) -> Result<String, String> {
    let Url { host, port, path } = url;
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let mut addresses = (bare, *port).to_socket_addrs().map_err(|error| format!("no address: {error}"))?;
    let address = addresses.next().ok_or("no address")?;
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE).map_err(|error| format!("no connection: {error}"))?;
    let answer = (|| -> std::io::Result<Vec<u8>> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.write_all(format!("GET {path} HTTP/1.0\r\nHost: {host}\r\nConnection: close\r\n\r\n").as_bytes())?;
        let mut answer = Vec::new();
        stream.take(MOST).read_to_end(&mut answer)?;
        Ok(answer)
    })()
    .map_err(|error| format!("no answer: {error}"))?;
    let text = String::from_utf8_lossy(&answer);
    let (head, body) = text.split_once("\r\n\r\n").ok_or("no HTTP answer")?;
    let status = head.lines().next().unwrap_or_default();
    match status.split(' ').nth(1) {
        Some(code) if code.starts_with('2') => Ok(body.to_owned()),
        Some(_) | None => Err(format!("the answer is {status:?}")),
    }
}
