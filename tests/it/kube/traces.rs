//! Traces reach a collector: OTLP over HTTP, one span for each pass and in it those of its steps.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    time::Duration,
};

use libtest_mimic::Trial;

use super::{
    labs::{Lab, lab},
    ns::READY,
    shape::{gateway, holds},
};

pub(crate) fn tests() -> Vec<Trial> {
    vec![lab("traces", traces)]
}

/// What a collector was sent: paths and bodies.
type Received = Arc<Mutex<Vec<(String, Vec<u8>)>>>;

/// Reads one request of HTTP/1.1 with a content length, and answers.
fn take(stream: &mut TcpStream, received: &Received) -> Option<()> {
    stream.set_read_timeout(Some(Duration::from_secs(30))).ok()?;
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).ok()?;
    let length = head.lines().find_map(|l| l.to_lowercase().strip_prefix("content-length:").map(|n| n.trim().parse::<usize>()))?.ok()?;
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    received.lock().unwrap().push((head.lines().next()?.to_owned(), body));
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\ncontent-length: 0\r\n\r\n").ok()
}

fn collector() -> (u16, Received) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (port, received) = (listener.local_addr().unwrap().port(), Received::default());
    let shared = Arc::clone(&received);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || while take(&mut stream, &shared).is_some() {});
        }
    });
    (port, received)
}

/// Names and attributes are plain text in the protobuf.
fn says(received: &Received, word: &str) -> bool {
    received.lock().unwrap().iter().any(|(_, body)| body.windows(word.len()).any(|part| part == word.as_bytes()))
}

async fn traces(lab: Lab) {
    let (port, received) = collector();
    let endpoint = format!("http://127.0.0.1:{port}");
    let mut operator = lab.operator("weir", &["--otlp-endpoint", &endpoint]);
    lab.ns.apply(&gateway("traced-gateway")).await;
    lab.ns.ready("traced-gateway", READY).await;
    lab.ns
        .eventually(READY, "spans", async || {
            for word in ["reconcile", "gather", "decide", "write", "traced-gateway", "service.name"] {
                holds(says(&received, word), || format!("no {word} in {} exports", received.lock().unwrap().len()))?;
            }
            Ok(())
        })
        .await;
    assert!(received.lock().unwrap().iter().all(|(line, _)| line.starts_with("POST /v1/traces ")));
    // The exporter stands in nobody's way at the end.
    assert!(operator.stop(Duration::from_secs(20)).success());
}
