//! Time stamps (RFC 3161).

use std::time::Duration;

use anyhow::{Context, Result};
use rcgen::{CertificateParams, CustomExtension, DnType, Issuer, KeyPair, KeyUsagePurpose};
use sha2::{Digest as _, Sha256};

use crate::{
    authority::{authority, sign},
    der::{FIELD_0, INTEGER, OCTETS, OID, SEQUENCE, SET, TIME, parts, value},
};

const SHA_256: &[u8] = &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01];
const ECDSA: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02];
const SIGNED_DATA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07, 0x02];
const STAMP: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x10, 0x01, 0x04];
const CONTENT_TYPE: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x03];
const MESSAGE_DIGEST: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x04];
const CERTIFICATE_V2: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x10, 0x02, 0x2f];
const POLICY: &[u8] = &[0x2b, 0x06, 0x01, 0x04, 0x01, 0x83, 0xbf, 0x30, 0x02];
const TIME_STAMPING: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x08];

/// Somebody who stamps.
#[derive(Debug)]
pub struct Clock {
    key: KeyPair,
    own: Vec<u8>,
    root: Vec<u8>,
}

impl Clock {
    pub(crate) fn new() -> Result<Self> {
        let root_key = KeyPair::generate()?;
        let params = authority("root of the clock of sigstore.test");
        let root = params.self_signed(&root_key)?.der().to_vec();
        let issuer = Issuer::new(params, root_key);
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "clock of sigstore.test");
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        let mut usage = CustomExtension::from_oid_content(&[2, 5, 29, 37], value(SEQUENCE, &[&value(OID, &[TIME_STAMPING])]));
        usage.set_criticality(true);
        params.custom_extensions = vec![usage];
        let own = params.signed_by(&key, &issuer)?.der().to_vec();
        Ok(Self { key, own, root })
    }

    /// Its certificates; the last one is the root.
    pub fn chain(&self) -> [Vec<u8>; 2] {
        [self.own.clone(), self.root.clone()]
    }

    /// A stamp for `bytes`.
    pub fn stamp(&self, bytes: &[u8], time: u64) -> Result<Vec<u8>> {
        self.stamp_digest(&Sha256::digest(bytes), time)
    }

    /// A stamp for bytes with a SHA-256 digest.
    pub(crate) fn stamp_digest(&self, digest: &[u8], time: u64) -> Result<Vec<u8>> {
        let algorithm = value(SEQUENCE, &[&value(OID, &[SHA_256])]);
        let imprint = value(SEQUENCE, &[&algorithm, &value(OCTETS, &[digest])]);
        let serial = value(INTEGER, &[&[0x2a]]);
        let info = value(
            SEQUENCE,
            &[&value(INTEGER, &[&[1]]), &value(OID, &[POLICY]), &imprint, &serial, &value(TIME, &[generalized(time).as_bytes()])],
        );
        let content = value(SEQUENCE, &[&value(OID, &[STAMP]), &value(FIELD_0, &[&value(OCTETS, &[&info])])]);
        let certificates = value(FIELD_0, &[&self.own]);
        let signers = value(SET, &[&self.signer(&info, &algorithm)?]);
        let digests = value(SET, &[&algorithm]);
        let data = value(SEQUENCE, &[&value(INTEGER, &[&[3]]), &digests, &content, &certificates, &signers]);
        let token = value(SEQUENCE, &[&value(OID, &[SIGNED_DATA]), &value(FIELD_0, &[&data])]);
        Ok(value(SEQUENCE, &[&value(SEQUENCE, &[&value(INTEGER, &[&[0]])]), &token]))
    }

    fn signer(&self, info: &[u8], algorithm: &[u8]) -> Result<Vec<u8>> {
        let attribute = |name: &[u8], content: &[u8]| value(SEQUENCE, &[&value(OID, &[name]), &value(SET, &[content])]);
        let certificate = value(SEQUENCE, &[&value(SEQUENCE, &[&value(SEQUENCE, &[&value(OCTETS, &[&Sha256::digest(&self.own)])])])]);
        // In the order of their encodings, as DER sorts sets.
        let mut attributes = [
            attribute(CONTENT_TYPE, &value(OID, &[STAMP])),
            attribute(MESSAGE_DIGEST, &value(OCTETS, &[&Sha256::digest(info)])),
            attribute(CERTIFICATE_V2, &certificate),
        ];
        attributes.sort();
        let attributes = attributes.concat();
        let signature = sign(&self.key, &value(SET, &[&attributes]))?;
        // Issuer and serial number as the certificate has them.
        let certificate = parts(&self.own)?;
        let fields = parts(certificate.first().context("no certificate")?)?;
        let (serial, issuer) = (fields.get(1).context("no serial number")?, fields.get(3).context("no issuer")?);
        Ok(value(
            SEQUENCE,
            &[
                &value(INTEGER, &[&[1]]),
                &value(SEQUENCE, &[issuer, serial]),
                algorithm,
                &value(FIELD_0, &[&attributes]),
                &value(SEQUENCE, &[&value(OID, &[ECDSA])]),
                &value(OCTETS, &[&signature]),
            ],
        ))
    }
}

/// `20260131235959Z`.
fn generalized(time: u64) -> String {
    let date = rcgen::date_time_ymd(1970, 1, 1) + Duration::from_secs(time);
    let (year, month, day) = date.to_calendar_date();
    let (hour, minute, second) = date.to_hms();
    format!("{year:04}{:02}{day:02}{hour:02}{minute:02}{second:02}Z", u8::from(month))
}
