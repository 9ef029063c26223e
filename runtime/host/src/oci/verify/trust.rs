//! Whose certificates, logs and clocks count: the `trusted_root.json` of a sigstore.

use rustls::pki_types::{CertificateDer, TrustAnchor};
use serde::Deserialize;

use super::{
    super::{bounded, text},
    bundle::{LogId, Raw},
    key::{Key, KeyProblem},
};

/// Largest trust root that is read, bytes. That of the public sigstore has 7 KB.
pub const MAX_TRUST_ROOT: usize = 1 << 20;
const KIND: &str = "application/vnd.dev.sigstore.trustedroot";

/// A trust root that is of no use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TrustRootError {
    /// Too large.
    #[error("the trust root has {0} bytes, at most {MAX_TRUST_ROOT} are read")]
    Large(usize),
    /// Not one.
    #[error(
        "the trust root is malformed: {0}; give the trusted_root.json that `cosign trusted-root create` or your sigstore's TUF repository makes"
    )]
    Malformed(String),
    /// Another document.
    #[error("the trust root is of type \"{}\"; give a trusted_root.json", text::name(.0))]
    Kind(String),
    /// It vouches for nobody.
    #[error("the trust root names no certificateAuthorities, so that no certificate would count; add that of your Fulcio")]
    Empty,
    /// It names no source of time.
    #[error("the trust root names neither tlogs nor timestampAuthorities, so that no signature has a time; add one of them")]
    Timeless,
    /// A certificate that is none.
    #[error("{list}[{index}] of the trust root has no certificate chain that can be used: {problem}")]
    Chain {
        /// Which list.
        list: &'static str,
        /// Position, from 0.
        index: usize,
        /// What is wrong.
        problem: String,
    },
    /// A key that is none.
    #[error("{list}[{index}] of the trust root has no key that can be used: {problem}")]
    Key {
        /// Which list.
        list: &'static str,
        /// Position, from 0.
        index: usize,
        /// What is wrong.
        problem: KeyProblem,
    },
    /// A time that is none.
    #[error("\"{}\" in the trust root is no time; write 2026-01-31T00:00:00Z", text::name(.0))]
    Time(String),
}

/// Whose certificates, logs and clocks count. What it names is asked of every keyless signature: an entry in a log where it has
/// `tlogs`, a certificate that was logged where it has `ctlogs`.
#[derive(Debug)]
pub struct TrustRoot {
    /// Who issues certificates for signers.
    pub(super) authorities: Vec<Authority>,
    /// Who tells the time.
    pub(super) clocks: Vec<Authority>,
    /// Logs of signatures.
    pub(super) logs: Vec<Log>,
    /// Logs of certificates.
    pub(super) certificate_logs: Vec<Log>,
}

/// Somebody with a chain of certificates.
#[derive(Debug)]
pub(super) struct Authority {
    pub(super) anchor: TrustAnchor<'static>,
    /// All of them; the last one is the root.
    pub(super) chain: Vec<CertificateDer<'static>>,
    pub(super) valid: Window,
}

/// A log and its key.
#[derive(Debug)]
pub(super) struct Log {
    pub(super) id: Vec<u8>,
    pub(super) key: Key,
    pub(super) valid: Window,
}

/// From when until when something counted, seconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Window {
    start: i64,
    end: i64,
}

impl Window {
    pub(super) fn holds(self, time: u64) -> bool {
        i64::try_from(time).is_ok_and(|time| self.start <= time && time <= self.end)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Root {
    media_type: String,
    #[serde(default, deserialize_with = "bounded::list")]
    tlogs: Option<Vec<RawLog>>,
    #[serde(default, deserialize_with = "bounded::list")]
    ctlogs: Option<Vec<RawLog>>,
    #[serde(default, deserialize_with = "bounded::list")]
    certificate_authorities: Option<Vec<RawAuthority>>,
    #[serde(default, deserialize_with = "bounded::list")]
    timestamp_authorities: Option<Vec<RawAuthority>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawLog {
    public_key: RawKey,
    log_id: LogId,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawKey {
    #[serde(flatten)]
    raw: Raw,
    #[serde(default)]
    valid_for: Option<RawWindow>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawAuthority {
    cert_chain: RawChain,
    #[serde(default)]
    valid_for: Option<RawWindow>,
}

#[derive(Deserialize)]
struct RawChain {
    #[serde(default, deserialize_with = "bounded::list")]
    certificates: Option<Vec<Raw>>,
}

#[derive(Deserialize)]
struct RawWindow {
    #[serde(default)]
    start: Option<String>,
    #[serde(default)]
    end: Option<String>,
}

impl TrustRoot {
    /// Reads a `trusted_root.json`.
    ///
    /// # Errors
    /// See [`TrustRootError`]. What cannot be read is never left out: a root without its logs would ask for less.
    pub fn parse(json: &[u8]) -> Result<Self, TrustRootError> {
        if json.len() > MAX_TRUST_ROOT {
            return Err(TrustRootError::Large(json.len()));
        }
        let root: Root = serde_json::from_slice(json).map_err(|e| TrustRootError::Malformed(text::said(&e.to_string())))?;
        if !root.media_type.starts_with(KIND) {
            return Err(TrustRootError::Kind(root.media_type));
        }
        let root = Self {
            authorities: authorities("certificateAuthorities", root.certificate_authorities)?,
            clocks: authorities("timestampAuthorities", root.timestamp_authorities)?,
            logs: logs("tlogs", root.tlogs)?,
            certificate_logs: logs("ctlogs", root.ctlogs)?,
        };
        if root.authorities.is_empty() {
            return Err(TrustRootError::Empty);
        }
        if root.logs.is_empty() && root.clocks.is_empty() {
            return Err(TrustRootError::Timeless);
        }
        Ok(root)
    }
}

fn authorities(list: &'static str, raw: Option<Vec<RawAuthority>>) -> Result<Vec<Authority>, TrustRootError> {
    let mut authorities = Vec::new();
    for (index, RawAuthority { cert_chain, valid_for }) in raw.unwrap_or_default().into_iter().enumerate() {
        let wrong = |problem: String| TrustRootError::Chain { list, index, problem };
        let chain: Vec<_> =
            cert_chain.certificates.unwrap_or_default().into_iter().map(|raw| CertificateDer::from(raw.raw_bytes.0)).collect();
        let root = chain.last().ok_or_else(|| wrong("it has none".to_owned()))?;
        let anchor = webpki::anchor_from_trusted_cert(root).map_err(|error| wrong(text::said(&error.to_string())))?.to_owned();
        authorities.push(Authority { anchor, chain, valid: window(valid_for)? });
    }
    Ok(authorities)
}

fn logs(list: &'static str, raw: Option<Vec<RawLog>>) -> Result<Vec<Log>, TrustRootError> {
    let mut logs = Vec::new();
    for (index, RawLog { public_key, log_id }) in raw.unwrap_or_default().into_iter().enumerate() {
        let key = Key::from_der(&public_key.raw.raw_bytes.0).map_err(|problem| TrustRootError::Key { list, index, problem })?;
        logs.push(Log { id: log_id.key_id.0, key, valid: window(public_key.valid_for)? });
    }
    Ok(logs)
}

fn window(raw: Option<RawWindow>) -> Result<Window, TrustRootError> {
    let time = |text: Option<String>, otherwise: i64| match text {
        None => Ok(otherwise),
        Some(text) => text.parse::<jiff::Timestamp>().map(jiff::Timestamp::as_second).map_err(|_| TrustRootError::Time(text)),
    };
    let RawWindow { start, end } = raw.unwrap_or(RawWindow { start: None, end: None });
    Ok(Window { start: time(start, i64::MIN)?, end: time(end, i64::MAX)? })
}
