//! A registry that lies. A real one cannot be made to: it hashes what it is given and sends what it has. Plain HTTP on a loopback port; what it
//! answers is the caller's.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
use std::thread;
use std::time::Duration;

use anyhow::Result;

/// How long it keeps somebody waiting who gets no answer; longer than every limit of a puller.
const FOR_EVER: Duration = Duration::from_secs(600);
/// An endless body ends here, so that a puller without a limit fails a test instead of filling a disk.
const ENDLESS: u64 = 256 << 20;

/// What it answers.
#[derive(Debug)]
pub enum Answer {
    /// 200 with this media type and body.
    Good(&'static str, Vec<u8>),
    /// 200, the length of all this, and the first half of it.
    Half(&'static str, Vec<u8>),
    /// 200 and a body that does not end.
    Endless,
    /// 307 to this address.
    Redirect(String),
    /// Nothing, ever.
    Silence,
    /// 404.
    Missing,
}

/// A running one. Its threads end with the process.
#[derive(Debug)]
pub struct Liar {
    host: String,
    sent: Arc<AtomicU64>,
}

impl Liar {
    /// Starts one. `answer` is asked with the path of each request.
    pub fn start(answer: impl Fn(&str) -> Answer + Send + Sync + 'static) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let liar = Self { host: listener.local_addr()?.to_string(), sent: Arc::default() };
        let (answer, sent) = (Arc::new(answer), Arc::clone(&liar.sent));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (answer, sent) = (Arc::clone(&answer), Arc::clone(&sent));
                // Whoever hangs up in the middle of an answer is right to do so.
                thread::spawn(move || serve(stream, &*answer, &sent).ok());
            }
        });
        Ok(liar)
    }

    /// `127.0.0.1:PORT`.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Bytes of bodies sent so far.
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }
}

fn serve(stream: TcpStream, answer: &dyn Fn(&str) -> Answer, sent: &AtomicU64) -> Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    let mut words = first.split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    while lines.next().transpose()?.is_some_and(|line| !line.is_empty()) {}
    reply(stream, method == "HEAD", answer(path), sent)
}

fn reply(mut stream: TcpStream, head: bool, answer: Answer, sent: &AtomicU64) -> Result<()> {
    let (status, headers, body) = match answer {
        Answer::Good(kind, body) => ("200 OK", format!("Content-Type: {kind}\r\nContent-Length: {}\r\n", body.len()), body),
        Answer::Half(kind, mut body) => {
            let headers = format!("Content-Type: {kind}\r\nContent-Length: {}\r\n", body.len());
            body.truncate(body.len() / 2);
            ("200 OK", headers, body)
        }
        Answer::Endless => ("200 OK", String::new(), Vec::new()),
        Answer::Redirect(to) => ("307 Temporary Redirect", format!("Location: {to}\r\nContent-Length: 0\r\n"), Vec::new()),
        Answer::Missing => ("404 Not Found", "Content-Length: 0\r\n".into(), Vec::new()),
        Answer::Silence => {
            thread::sleep(FOR_EVER);
            return Ok(());
        }
    };
    let endless = headers.is_empty();
    write!(stream, "HTTP/1.1 {status}\r\n{headers}Connection: close\r\n\r\n")?;
    if head {
        return Ok(());
    }
    stream.write_all(&body)?;
    sent.fetch_add(body.len() as u64, Ordering::Relaxed);
    let chunk = [0; 64 << 10];
    while endless && sent.load(Ordering::Relaxed) < ENDLESS {
        stream.write_all(&chunk)?;
        sent.fetch_add(chunk.len() as u64, Ordering::Relaxed);
    }
    Ok(())
}
