//! Servers that real cosign asks: for a certificate (Fulcio's API, version 2) and for a time stamp.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, Result, bail};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use rcgen::SubjectPublicKeyInfo;
use serde_json::{Value, json};

use crate::{Identity, Sigstore, bundle::pem, der, now};

/// Cosign is on this machine.
const LIMIT: Duration = Duration::from_secs(30);
/// More than any request of cosign.
const MAX_BODY: u64 = 1 << 20;

/// A running sigstore. Its thread ends with the process.
#[derive(Debug)]
pub struct Servers {
    url: String,
}

impl Servers {
    /// Starts on a free loopback port. Whoever asks gets a certificate for what their token says; nothing is checked.
    pub fn start(sigstore: Arc<Sigstore>) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let url = format!("http://{}", listener.local_addr()?);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A client that breaks off says so itself.
                let _ = serve(&stream, &sigstore);
            }
        });
        Ok(Self { url })
    }

    /// What `cosign sign --signing-config` reads: where to ask.
    pub fn signing_config(&self) -> Value {
        let service = |path: &str| {
            json!({ "url": format!("{}{path}", self.url), "majorApiVersion": 1, "operator": "sigstore.test",
                "validFor": { "start": "2020-01-01T00:00:00Z" } })
        };
        json!({
            "mediaType": "application/vnd.dev.sigstore.signingconfig.v0.2+json",
            "caUrls": [service("")], "tsaUrls": [service("/api/v1/timestamp")], "tsaConfig": { "selector": "ANY" },
        })
    }

    /// A signing config without any service: for keys.
    pub fn none() -> Value {
        json!({ "mediaType": "application/vnd.dev.sigstore.signingconfig.v0.2+json" })
    }

    /// A token for `cosign sign --identity-token`.
    pub fn token(identity: &Identity) -> String {
        let part = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let claims = json!({
            "iss": identity.issuer, "sub": identity.subject, "email": identity.subject, "email_verified": true, "aud": "sigstore",
            "iat": now(), "exp": now() + 600,
        });
        format!("{}.{}.c2lnbmVk", part(json!({ "alg": "ES256", "typ": "JWT" })), part(claims))
    }
}

struct Request {
    path: String,
    token: String,
    body: Vec<u8>,
}

fn serve(stream: &TcpStream, sigstore: &Sigstore) -> Result<()> {
    stream.set_read_timeout(Some(LIMIT))?;
    let request = read(stream)?;
    let answer = match request.path.as_str() {
        "/api/v2/signingCert" => certificate(&request, sigstore).map(|body| ("200 OK", "application/json", body.to_string().into_bytes())),
        "/api/v1/timestamp" => stamp(&request, sigstore).map(|body| ("201 Created", "application/timestamp-reply", body)),
        _ => bail!("nobody asks for {}", request.path),
    };
    let (status, kind, body) = answer.unwrap_or_else(|error| ("400 Bad Request", "text/plain", format!("{error:#}").into_bytes()));
    let mut stream = stream;
    write!(stream, "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len())?;
    Ok(stream.write_all(&body)?)
}

fn read(stream: &TcpStream) -> Result<Request> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let path = line.split(' ').nth(1).context("no request")?.to_owned();
    let (mut token, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim().split_once(':') else { break };
        match name.to_ascii_lowercase().as_str() {
            "authorization" => token = value.trim().trim_start_matches("Bearer ").to_owned(),
            "content-length" => length = value.trim().parse()?,
            _ => {}
        }
    }
    let mut body = Vec::new();
    reader.take(MAX_BODY.min(length)).read_to_end(&mut body)?;
    Ok(Request { path, token, body })
}

fn certificate(request: &Request, sigstore: &Sigstore) -> Result<Value> {
    let claims = URL_SAFE_NO_PAD.decode(request.token.split('.').nth(1).context("no token")?)?;
    let claims: Value = serde_json::from_slice(&claims)?;
    let claim = |name: &str| claims.get(name).and_then(Value::as_str).with_context(|| format!("no {name}"));
    let identity = Identity::new(claim("iss")?, claim("sub")?);
    let body: Value = serde_json::from_slice(&request.body)?;
    let key = body.pointer("/publicKeyRequest/publicKey/content").and_then(Value::as_str).context("no key")?;
    let key = SubjectPublicKeyInfo::from_pem(key)?;
    // A moment ago: both clocks count in seconds.
    let leaf = sigstore.authority.issue(&key, &identity, now() - 1, Some(&sigstore.certificates))?;
    let chain = std::iter::once(leaf).chain(sigstore.authority.chain()).map(|der| pem(&der)).collect::<Vec<_>>();
    Ok(json!({ "signedCertificateEmbeddedSct": { "chain": { "certificates": chain } } }))
}

fn stamp(request: &Request, sigstore: &Sigstore) -> Result<Vec<u8>> {
    // version, messageImprint { algorithm, digest }, …
    let fields = der::parts(&request.body)?;
    let imprint = der::parts(fields.get(1).context("no imprint")?)?;
    let digest = imprint.get(1).context("no digest")?;
    sigstore.clock.stamp_digest(digest.get(2..).context("no digest")?, now())
}
