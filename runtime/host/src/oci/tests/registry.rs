//! A registry of some lines: honest unless a test says otherwise.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

use crate::oci::{Puller, Reference, Registries, Retries, Timeouts, digest};

pub(super) const IMAGE: &str = "application/vnd.oci.image.manifest.v1+json";
pub(super) const INDEX: &str = "application/vnd.oci.image.index.v1+json";
pub(super) const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

/// A request as a test sees it.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) method: String,
    /// With query.
    pub(super) path: String,
    pub(super) authorization: Option<String>,
    pub(super) body: String,
    /// The body as it is.
    pub(super) bytes: Vec<u8>,
    pub(super) content_type: Option<String>,
}

/// What is sent back.
#[derive(Clone)]
pub(super) enum Reply {
    /// Status, headers, body.
    Full(u16, Vec<(&'static str, String)>, Vec<u8>),
    /// A body that is shorter than its length.
    Cut(Vec<u8>),
    /// A body that never ends.
    Endless,
    /// Half a body, then silence.
    Silent,
}

pub(super) fn status(status: u16, body: &str) -> Reply {
    Reply::Full(status, Vec::new(), body.as_bytes().to_vec())
}

type Hook = dyn Fn(&Asked, usize) -> Option<Reply> + Send + Sync;

/// What it holds, by path.
#[derive(Default, Clone)]
pub(super) struct Shelf(BTreeMap<String, (String, Vec<u8>)>);

impl Shelf {
    /// Stores a manifest under its digest and, for repository `x/y`, under `tag`.
    pub(super) fn manifest(&mut self, tag: &str, kind: &str, manifest: &Value) -> Value {
        let bytes = serde_json::to_vec(manifest).unwrap();
        let digest = digest::of(&bytes);
        for name in [tag, &digest] {
            self.0.insert(format!("/v2/x/y/manifests/{name}"), (kind.to_owned(), bytes.clone()));
        }
        json!({"mediaType": kind, "digest": digest, "size": bytes.len()})
    }

    pub(super) fn blob(&mut self, kind: &str, bytes: &[u8]) -> Value {
        let digest = digest::of(bytes);
        self.0.insert(format!("/v2/x/y/blobs/{digest}"), ("application/octet-stream".to_owned(), bytes.to_vec()));
        json!({"mediaType": kind, "digest": digest, "size": bytes.len()})
    }

    /// An image with these layers.
    pub(super) fn image(&mut self, tag: &str, layers: &[Vec<u8>]) -> Value {
        let layers: Vec<Value> = layers.iter().map(|layer| self.blob(LAYER, layer)).collect();
        self.manifest(tag, IMAGE, &json!({"schemaVersion": 2, "mediaType": IMAGE, "layers": layers}))
    }

    /// The same content in another repository than `x/y`.
    pub(super) fn moved(self, repository: &str) -> Self {
        Self(self.0.into_iter().map(|(path, held)| (path.replacen("/x/y/", &format!("/{repository}/"), 1), held)).collect())
    }

    fn reply(&self, asked: &Asked) -> Reply {
        if asked.path == "/v2/" {
            return status(200, "{}");
        }
        match self.0.get(&asked.path) {
            Some((kind, bytes)) => {
                let headers = vec![("content-type", kind.clone()), ("docker-content-digest", digest::of(bytes))];
                Reply::Full(200, headers, bytes.clone())
            }
            None => status(404, r#"{"errors": [{"code": "MANIFEST_UNKNOWN", "message": "manifest unknown"}]}"#),
        }
    }
}

/// A running registry.
pub(super) struct Server {
    pub(super) address: SocketAddr,
    log: Arc<Mutex<Vec<Asked>>>,
}

impl Server {
    /// `hook` gets every request and how often its path was asked for before; `None` is for the shelf.
    pub(super) async fn start(shelf: Shelf, hook: impl Fn(&Asked, usize) -> Option<Reply> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let log = Arc::new(Mutex::new(Vec::new()));
        let (shared, hook): (_, Arc<Hook>) = (log.clone(), Arc::new(hook));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, shelf.clone(), hook.clone(), shared.clone()));
            }
        });
        Self { address, log }
    }

    pub(super) fn reference(&self, version: &str) -> Reference {
        Reference::parse(&format!("{}/x/y{version}", self.address)).unwrap()
    }

    pub(super) fn asked(&self) -> Vec<Asked> {
        self.log.lock().unwrap().clone()
    }

    pub(super) fn count(&self, part: &str) -> usize {
        self.asked().iter().filter(|asked| asked.path.contains(part)).count()
    }
}

/// Settings that do not make tests wait.
pub(super) fn settings() -> Registries {
    Registries {
        timeouts: Timeouts { connect: Duration::from_secs(10), read: Duration::from_secs(10), total: Duration::from_secs(60) },
        retries: Retries { tries: 3, pause: Duration::from_millis(2), total: Duration::from_secs(2) },
        ..Registries::default()
    }
}

/// A component as far as its first bytes say so; `content` makes it differ from others.
pub(super) fn wasm(content: &str) -> Vec<u8> {
    [b"\0asm\x0d\0\x01\0", content.as_bytes()].concat()
}

pub(super) fn puller() -> Puller {
    Puller::new(settings()).unwrap()
}

async fn serve(mut stream: TcpStream, shelf: Shelf, hook: Arc<Hook>, log: Arc<Mutex<Vec<Asked>>>) -> Option<()> {
    let asked = read(&mut stream).await?;
    let before = {
        let mut log = log.lock().unwrap();
        log.push(asked.clone());
        log.iter().filter(|other| other.path == asked.path && other.method == asked.method).count() - 1
    };
    match hook(&asked, before).unwrap_or_else(|| shelf.reply(&asked)) {
        Reply::Full(status, headers, body) => {
            let mut head = format!("HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
            headers.iter().for_each(|(name, value)| head.push_str(&format!("{name}: {value}\r\n")));
            stream.write_all(format!("{head}\r\n").as_bytes()).await.ok()?;
            if asked.method != "HEAD" {
                stream.write_all(&body).await.ok()?;
            }
        }
        Reply::Cut(body) => {
            stream.write_all(format!("HTTP/1.1 200 X\r\ncontent-length: {}\r\n\r\n", body.len()).as_bytes()).await.ok()?;
            stream.write_all(&body[..body.len() / 2]).await.ok()?;
        }
        Reply::Endless => {
            stream.write_all(b"HTTP/1.1 200 X\r\nconnection: close\r\ncontent-type: application/json\r\n\r\n").await.ok()?;
            loop {
                stream.write_all(&[b'{'; 64 << 10]).await.ok()?;
            }
        }
        Reply::Silent => {
            stream.write_all(b"HTTP/1.1 200 X\r\n\r\n{").await.ok()?;
            tokio::time::sleep(Duration::from_secs(60)).await;
        }
    }
    stream.shutdown().await.ok()
}

async fn read(stream: &mut TcpStream) -> Option<Asked> {
    let mut bytes = Vec::new();
    let head = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
        // A TLS client hello; servers of plain HTTP answer it like this.
        if bytes[0] == 0x16 {
            stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.ok()?;
            return None;
        }
    };
    let text = String::from_utf8_lossy(&bytes[..head]).into_owned();
    let field = |name: &str| {
        text.lines().find_map(|line| line.split_once(": ").filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, v)| v.to_owned()))
    };
    let length: usize = field("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    while bytes.len() < head + 4 + length {
        stream.read_buf(&mut bytes).await.ok()?;
    }
    let mut first = text.lines().next()?.split(' ');
    Some(Asked {
        method: first.next()?.to_owned(),
        path: first.next()?.to_owned(),
        authorization: field("authorization"),
        body: String::from_utf8_lossy(&bytes[head + 4..]).into_owned(),
        bytes: bytes[head + 4..].to_vec(),
        content_type: field("content-type"),
    })
}
