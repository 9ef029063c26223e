//! Requests without TLS to servers of ours on this machine. HTTP/1.0, so that an answer ends with its connection and never comes in
//! chunks.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, Result, bail};

/// Our servers answer in milliseconds; a machine may be busy.
const LIMIT: Duration = Duration::from_secs(30);

/// What to ask.
#[derive(Debug, Default)]
pub(crate) struct Request<'a> {
    pub(crate) method: &'a str,
    /// Path and query, escaped.
    pub(crate) target: &'a str,
    pub(crate) headers: Vec<(&'a str, String)>,
    pub(crate) body: &'a [u8],
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Response {
    /// A header; names are compared without case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// The body, for messages.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// Asks, and reads the answer to its end.
pub(crate) fn ask(host: &str, request: &Request<'_>) -> Result<Response> {
    let Request { method, target, headers, body } = request;
    let what = format!("{method} http://{host}{target}");
    let mut stream = TcpStream::connect(host).with_context(|| what.clone())?;
    stream.set_read_timeout(Some(LIMIT))?;
    stream.set_write_timeout(Some(LIMIT))?;
    let mut head = format!("{method} {target} HTTP/1.0\r\nHost: {host}\r\nContent-Length: {}\r\n", body.len());
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    stream.write_all(head.as_bytes()).with_context(|| what.clone())?;
    // A server may refuse before it has read everything; its answer says more than the broken pipe.
    let sent = stream.write_all(body).and_then(|()| stream.flush());
    let mut bytes = Vec::new();
    let read = stream.read_to_end(&mut bytes);
    match (read, sent) {
        (Err(error), _) | (Ok(0), Err(error)) => Err(error).with_context(|| what.clone()),
        (Ok(_), _) => parse(&bytes, *method != "HEAD").with_context(|| what),
    }
}

fn parse(bytes: &[u8], has_body: bool) -> Result<Response> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").context("the answer ends within its header")?;
    let (head, body) = bytes.split_at(end);
    let head = String::from_utf8_lossy(head);
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).and_then(|status| status.parse().ok());
    let headers = lines.filter_map(|line| line.split_once(':')).map(|(name, value)| (name.to_owned(), value.trim().to_owned()));
    let response = Response {
        status: status.with_context(|| format!("no status in {head:?}"))?,
        headers: headers.collect(),
        body: body.get(4..).unwrap_or_default().to_owned(),
    };
    let promised = response.header("content-length").and_then(|length| length.parse::<usize>().ok());
    if let Some(promised) = promised.filter(|promised| has_body && *promised != response.body.len()) {
        bail!("{} of {promised} bytes came", response.body.len());
    }
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_whole_or_an_error() {
        let answer = parse(b"HTTP/1.0 201 Created\r\nLocation: /a\r\nContent-Length: 2\r\n\r\nok", true).unwrap();
        assert_eq!((answer.status, answer.header("location"), answer.text().as_str()), (201, Some("/a"), "ok"));
        assert!(parse(b"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nok", true).unwrap_err().to_string().contains("2 of 3 bytes"));
        assert!(parse(b"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\n", false).is_ok());
        assert!(parse(b"HTTP/1.0 200 OK\r\nCont", true).is_err());
        assert!(parse(b"nonsense\r\n\r\n", true).is_err());
    }
}
