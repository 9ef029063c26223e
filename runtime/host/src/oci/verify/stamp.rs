//! Time stamps (RFC 3161): when a signature was there, in the words of somebody whom the trust root names.

use der::{
    AnyRef, Decode as _, Encode as _, Reader as _, SliceReader, Tag, TagNumber, Tagged as _,
    asn1::{ObjectIdentifier, OctetStringRef, UintRef},
};
use rustls::pki_types::CertificateDer;
use sha2::{Digest as _, Sha256, Sha384, Sha512};
use webpki::{ALL_VERIFICATION_ALGS, EndEntityCert};

use super::{certificate::chained, trust::TrustRoot};

const SIGNED_DATA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.7.2");
const STAMP: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.16.1.4");
const CONTENT_TYPE: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.3");
const MESSAGE_DIGEST: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.4");
const SHA_256: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.2.1");
const SHA_384: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.2.2");
const SHA_512: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.2.3");
/// id-kp-timeStamping, as DER has it.
const TIME_STAMPING: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 8];
/// More parts than any honest structure here has, the certificates of a stamp among them.
const MAX_PARTS: usize = 12;

/// The time at which `signature` was there, if `stamp` is true.
///
/// # Errors
/// Why it is not.
pub(super) fn time(stamp: &[u8], signature: &[u8], trust: &TrustRoot) -> Result<u64, String> {
    let token = Token::read(stamp).ok_or("its time stamp is malformed")?;
    if hash(token.imprint.0, signature).as_deref() != Some(token.imprint.1) {
        return Err("its time stamp is of another signature".to_owned());
    }
    for clock in trust.clocks.iter().filter(|clock| clock.valid.holds(token.time)) {
        let certificates = clock.chain.iter().map(|certificate| &**certificate).chain(token.certificates.iter().copied());
        for certificate in certificates {
            let der = CertificateDer::from(certificate);
            let Ok(leaf) = EndEntityCert::try_from(&der) else { continue };
            let signed = ALL_VERIFICATION_ALGS.iter().any(|kind| leaf.verify_signature(*kind, &token.signed, token.signature).is_ok());
            if signed && chained(&leaf, clock, &token.certificates, TIME_STAMPING, token.time).is_ok() {
                return Ok(token.time);
            }
        }
    }
    Err("its time stamp is not of an authority in the trust root".to_owned())
}

/// What matters of a time stamp, whose content is what its signer's attributes say.
struct Token<'a> {
    /// Algorithm and digest of what was stamped.
    imprint: (ObjectIdentifier, &'a [u8]),
    /// Seconds since 1970.
    time: u64,
    certificates: Vec<&'a [u8]>,
    /// The bytes that were signed.
    signed: Vec<u8>,
    signature: &'a [u8],
}

impl<'a> Token<'a> {
    /// Reads a TimeStampResp.
    fn read(stamp: &'a [u8]) -> Option<Self> {
        let [_status, token] = *parts(AnyRef::from_der(stamp).ok()?)? else { return None };
        let [kind, data] = *parts(token)? else { return None };
        if oid(kind)? != SIGNED_DATA {
            return None;
        }
        let data = parts(inside(data)?)?;
        let [_version, _digests, content, rest @ ..] = data.as_slice() else { return None };
        let [kind, content] = *parts(*content)? else { return None };
        if oid(kind)? != STAMP {
            return None;
        }
        let content = inside(content)?.decode_as::<&OctetStringRef>().ok()?.as_bytes();
        let embedded = rest.iter().find(|part| part.tag() == context(0)).map_or(Some(Vec::new()), |set| raw(set.value()))?;
        let signers = parts(*rest.last().filter(|part| part.tag() == Tag::Set)?)?;
        let [signer] = signers.as_slice() else { return None };
        let (signed, signature) = signer_info(*signer, content)?;
        let (imprint, time) = info(content)?;
        Some(Self { imprint, time, certificates: embedded, signed, signature })
    }
}

/// What a signer signed, and the signature, if its attributes are about `content`.
fn signer_info<'a>(signer: AnyRef<'a>, content: &[u8]) -> Option<(Vec<u8>, &'a [u8])> {
    let fields = parts(signer)?;
    let [_version, _id, digest, attributes, _algorithm, signature, ..] = fields.as_slice() else { return None };
    if attributes.tag() != context(0) {
        return None;
    }
    let algorithm = oid(*parts(*digest)?.first()?)?;
    let (mut kind, mut same) = (false, false);
    for attribute in list(attributes.value())? {
        let [name, values] = *parts(attribute)? else { return None };
        let values = parts(values)?;
        let [value] = values.as_slice() else { continue };
        match oid(name)? {
            CONTENT_TYPE => kind = oid(*value)? == STAMP,
            MESSAGE_DIGEST => same = hash(algorithm, content).as_deref() == Some(value.decode_as::<&OctetStringRef>().ok()?.as_bytes()),
            _ => {}
        }
    }
    // What is signed is the set of attributes, not the field that it stands in.
    let signed = AnyRef::new(Tag::Set, attributes.value()).ok()?.to_der().ok()?;
    (kind && same).then_some((signed, signature.decode_as::<&OctetStringRef>().ok()?.as_bytes()))
}

/// Imprint and time of a TSTInfo.
fn info(content: &[u8]) -> Option<((ObjectIdentifier, &[u8]), u64)> {
    let fields = parts(AnyRef::from_der(content).ok()?)?;
    let [version, _policy, imprint, _serial, time, ..] = fields.as_slice() else { return None };
    if version.decode_as::<UintRef<'_>>().ok()?.as_bytes() != [1] || time.tag() != Tag::GeneralizedTime {
        return None;
    }
    let [algorithm, digest] = *parts(*imprint)? else { return None };
    let algorithm = oid(*parts(algorithm)?.first()?)?;
    Some(((algorithm, digest.decode_as::<&OctetStringRef>().ok()?.as_bytes()), generalized(time.value())?))
}

/// A GeneralizedTime, which here may have fractions of a second: `20260131235959.5Z`.
fn generalized(time: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(time).ok()?.strip_suffix('Z')?;
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if whole.len() != 14 || !digits(whole) || !digits(fraction) {
        return None;
    }
    let time = jiff::fmt::strtime::parse("%Y%m%d%H%M%S", whole).ok()?.to_datetime().ok()?;
    u64::try_from(time.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp().as_second()).ok()
}

fn hash(algorithm: ObjectIdentifier, content: &[u8]) -> Option<Vec<u8>> {
    match algorithm {
        SHA_256 => Some(Sha256::digest(content).to_vec()),
        SHA_384 => Some(Sha384::digest(content).to_vec()),
        SHA_512 => Some(Sha512::digest(content).to_vec()),
        _ => None,
    }
}

fn context(number: u32) -> Tag {
    Tag::ContextSpecific { constructed: true, number: TagNumber(number) }
}

fn oid(part: AnyRef<'_>) -> Option<ObjectIdentifier> {
    part.decode_as().ok()
}

/// The only part of an explicit field.
fn inside(part: AnyRef<'_>) -> Option<AnyRef<'_>> {
    if part.tag() != context(0) {
        return None;
    }
    AnyRef::from_der(part.value()).ok()
}

/// The parts of a sequence or a set.
fn parts(whole: AnyRef<'_>) -> Option<Vec<AnyRef<'_>>> {
    if matches!(whole.tag(), Tag::Sequence | Tag::Set) { list(whole.value()) } else { None }
}

fn list(bytes: &[u8]) -> Option<Vec<AnyRef<'_>>> {
    let mut reader = SliceReader::new(bytes).ok()?;
    let mut parts = Vec::new();
    while !reader.is_finished() {
        if parts.len() == MAX_PARTS {
            return None;
        }
        parts.push(AnyRef::decode(&mut reader).ok()?);
    }
    Some(parts)
}

/// The parts as they are, with their headers.
fn raw(bytes: &[u8]) -> Option<Vec<&[u8]>> {
    let mut reader = SliceReader::new(bytes).ok()?;
    let mut parts = Vec::new();
    while !reader.is_finished() {
        if parts.len() == MAX_PARTS {
            return None;
        }
        parts.push(reader.tlv_bytes().ok()?);
    }
    Some(parts)
}
