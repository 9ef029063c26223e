//! What a registry and its clients read.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use k8s_openapi::ByteString;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use serde_json::{Value, json};

use super::Credentials;
use crate::binaries::HTPASSWD;

/// A certificate for this machine and who signed it.
#[derive(Debug)]
pub(super) struct Authority {
    pub(super) ca_pem: String,
    certificate: String,
    key: String,
}

impl Authority {
    pub(super) fn new() -> Result<Self> {
        let ca_key = KeyPair::generate()?;
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "weir test registry authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let ca_pem = params.self_signed(&ca_key)?.pem();
        let issuer = Issuer::new(params, ca_key);
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(["127.0.0.1".to_owned(), "localhost".to_owned()])?;
        params.distinguished_name.push(DnType::CommonName, "weir test registry");
        let certificate = params.signed_by(&key, &issuer)?.pem();
        Ok(Self { ca_pem, certificate, key: key.serialize_pem() })
    }
}

pub(super) fn config(dir: &Path) -> PathBuf {
    dir.join("config.yml")
}

pub(super) fn storage(dir: &Path) -> PathBuf {
    dir.join("storage")
}

/// Everything that the registry reads. Its configuration is JSON, which is YAML.
pub(super) fn write(dir: &Path, port: u16, credentials: Option<&Credentials>, authority: Option<&Authority>) -> Result<()> {
    let mut http = json!({ "addr": format!("127.0.0.1:{port}"), "secret": "of a test" });
    if let Some(authority) = authority {
        let (certificate, key) = (dir.join("tls.crt"), dir.join("tls.key"));
        fs::write(&certificate, &authority.certificate)?;
        fs::write(&key, &authority.key)?;
        set(&mut http, "tls", json!({ "certificate": certificate, "key": key }));
    }
    let mut config = json!({
        "version": "0.1",
        // The access log goes to the same place and is there at every level.
        "log": { "level": "warn" },
        "storage": { "filesystem": { "rootdirectory": storage(dir) }, "delete": { "enabled": true } },
        "http": http,
    });
    if let Some(credentials) = credentials {
        write_passwords(dir, credentials)?;
        set(&mut config, "auth", json!({ "htpasswd": { "realm": "weir test", "path": passwords(dir) } }));
    }
    Ok(fs::write(self::config(dir), config.to_string())?)
}

fn set(object: &mut Value, name: &str, value: Value) {
    if let Value::Object(object) = object {
        object.insert(name.to_owned(), value);
    }
}

fn passwords(dir: &Path) -> PathBuf {
    dir.join("htpasswd")
}

/// The registry takes bcrypt only. The lowest cost: tests make many requests.
pub(super) fn write_passwords(dir: &Path, credentials: &Credentials) -> Result<()> {
    let mut htpasswd = Command::new(HTPASSWD.find()?);
    htpasswd.args(["-niB", "-C", "4"]).arg(&credentials.user).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = htpasswd.spawn().context("cannot run htpasswd")?;
    // Taken, so that it is closed before the wait.
    child.stdin.take().context("htpasswd has no input")?.write_all(credentials.password.as_bytes())?;
    let output = child.wait_with_output()?;
    if !output.status.success() {
        bail!("htpasswd failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(fs::write(passwords(dir), output.stdout)?)
}

pub(super) fn docker_config(host: &str, credentials: Option<&Credentials>) -> Result<Value> {
    let Some(credentials) = credentials else { return Ok(json!({ "auths": {} })) };
    let Credentials { user, password } = credentials;
    Ok(json!({ "auths": { host: { "username": user, "password": password, "auth": basic(credentials)? } } }))
}

/// `user:password` as base64. Kubernetes' bytes are written so, which spares a crate for it.
pub(super) fn basic(credentials: &Credentials) -> Result<String> {
    let joined = format!("{}:{}", credentials.user, credentials.password);
    let encoded = serde_json::to_value(ByteString(joined.into_bytes()))?;
    Ok(encoded.as_str().context("bytes that are not written as text")?.to_owned())
}
