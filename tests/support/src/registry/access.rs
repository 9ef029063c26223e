//! Who asked the registry for what.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};

/// A line of the log is written when a request is over, which may be a moment after the client has its answer.
const SETTLED: Duration = Duration::from_millis(40);

/// A request that was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// `GET`, `HEAD`, …
    pub method: String,
    /// Without its query.
    pub path: String,
    /// Of the answer.
    pub status: u16,
    /// What the client calls itself.
    pub agent: String,
}

impl Request {
    /// Whether a manifest was asked for; `HEAD` asks for its digest only and is not meant.
    pub fn gets_manifest(&self) -> bool {
        self.method == "GET" && self.path.contains("/manifests/")
    }

    /// Whether a blob was asked for.
    pub fn gets_blob(&self) -> bool {
        self.method == "GET" && self.path.contains("/blobs/")
    }
}

/// Reads until nothing is added any more.
pub(super) fn read(log: &Path) -> Result<Vec<Request>> {
    let read = || std::fs::read(log).with_context(|| format!("cannot read {}", log.display()));
    let mut bytes = read()?;
    loop {
        std::thread::sleep(SETTLED);
        let again = read()?;
        if again.len() == bytes.len() {
            return Ok(String::from_utf8_lossy(&bytes).lines().filter_map(parse).collect());
        }
        bytes = again;
    }
}

/// A line in the Apache format; other lines begin with `time=`. Readiness checks of ours are not counted: they ask in HTTP/1.0.
fn parse(line: &str) -> Option<Request> {
    if line.starts_with("time=") {
        return None;
    }
    let mut quoted = line.split('"');
    let (request, rest, agent) = (quoted.nth(1)?, quoted.next()?, quoted.nth(2)?);
    let mut words = request.split(' ');
    let (method, target, version) = (words.next()?, words.next()?, words.next()?);
    let path = target.split('?').next()?;
    if version == "HTTP/1.0" && path == "/v2/" {
        return None;
    }
    let status = rest.split_whitespace().next()?.parse().ok()?;
    Some(Request { method: method.to_owned(), path: path.to_owned(), status, agent: agent.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_requests_are_told_from_others() {
        let line = r#"127.0.0.1 - - [30/Nov/2026:12:58:34 +0000] "PUT /v2/a/b/manifests/v1?x=y HTTP/1.1" 201 0 "" "skopeo/1.9.3""#;
        let request = parse(line).unwrap();
        assert_eq!((request.method.as_str(), request.path.as_str(), request.status), ("PUT", "/v2/a/b/manifests/v1", 201));
        assert_eq!(request.agent, "skopeo/1.9.3");
        assert!(!request.gets_manifest() && !request.gets_blob());
        assert!(parse(&line.replace("PUT", "GET")).unwrap().gets_manifest());
        assert!(parse(&line.replace("PUT", "GET").replace("manifests", "blobs")).unwrap().gets_blob());
        assert_eq!(parse(r#"time="2026" level=error msg="GET /v2/ HTTP/1.1" 1 "" "a""#), None);
        assert_eq!(parse(r#"127.0.0.1 - - [30/Nov/2026:12:58:34 +0000] "GET /v2/ HTTP/1.0" 200 2 "" """#), None);
    }
}
