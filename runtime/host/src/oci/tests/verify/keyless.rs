use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use weir_sigstore::{Generation, Identity, Log, Named, Signed, Sigstore, key, payload, signature_annotations};

use super::{Place, all_of, found, signer};
use crate::oci::{Requirement, Signer, TrustRoot, VerifyError};

const ISSUER: &str = "https://token.actions.example.com";
const SUBJECT: &str = "https://example.com/org/repo/.github/workflows/release.yml@refs/tags/v1";
/// A certificate that is over.
const LONG_AGO: u64 = 1_700_000_000;

fn wanted(issuer: &str, subject: &str) -> [Requirement; 1] {
    [all_of(&[&Signer::Identity { issuer: issuer.into(), subject: subject.into() }])]
}

/// What a bundle is made of; a test spoils one thing.
struct Maker {
    sigstore: Sigstore,
    place: Place,
    identity: Identity,
    /// When the certificate begins.
    issued: u64,
    /// When the log and the clock say that it was signed.
    signed: u64,
    logged_certificate: bool,
    entry: Option<Generation>,
    stamped: bool,
}

impl Maker {
    fn new() -> Self {
        let (sigstore, place) = (Sigstore::new().unwrap(), Place::new());
        let identity = Identity::new(ISSUER, SUBJECT);
        Self {
            sigstore,
            place,
            identity,
            issued: LONG_AGO,
            signed: LONG_AGO + 5,
            logged_certificate: true,
            entry: Some(Generation::First),
            stamped: true,
        }
    }

    fn signed(&self) -> Signed {
        let key = key().unwrap();
        let log = self.logged_certificate.then_some(&self.sigstore.certificates);
        let certificate = self.sigstore.authority.issue(&key, &self.identity, self.issued, log).unwrap();
        Signed::new(&key, &self.place.digest, Some(certificate)).unwrap()
    }

    fn bundle(&self) -> Value {
        let signed = self.signed();
        let entry = self.entry.map(|generation| self.sigstore.log.entry(generation, &signed.body(generation), self.signed).unwrap());
        let stamp = self.stamped.then(|| self.sigstore.clock.stamp(&signed.signature, self.signed).unwrap());
        signed.bundle(entry.as_slice(), stamp.as_slice())
    }

    async fn verify(mut self, bundle: &Value, named: Named) -> Result<Vec<String>, String> {
        self.place.bundle(bundle);
        let trust = TrustRoot::parse(self.sigstore.trusted_root(named).to_string().as_bytes()).unwrap();
        match self.place.verify(&wanted(ISSUER, SUBJECT), Some(&trust)).await {
            Ok(verified) => Ok(verified.signers),
            Err(error) => Err(found(&error)),
        }
    }

    async fn refused(self, named: Named, why: &str) {
        let bundle = self.bundle();
        self.refused_with(&bundle, named, why).await;
    }

    async fn refused_with(self, bundle: &Value, named: Named, why: &str) {
        let refused = self.verify(bundle, named).await.unwrap_err();
        assert!(refused.contains(why), "{why}: {refused}");
    }
}

#[tokio::test]
async fn what_the_trust_root_names_is_enough() {
    let no_certificate_log = Named { certificates: false, ..Named::ALL };
    for (entry, stamped, logged_certificate, named) in [
        (Some(Generation::First), true, true, Named::ALL),
        (Some(Generation::First), false, true, Named::ALL),
        (Some(Generation::Second), true, true, Named::ALL),
        (None, true, false, Named::CLOCK),
        (Some(Generation::First), false, false, no_certificate_log),
    ] {
        let mut maker = Maker { entry, stamped, logged_certificate, ..Maker::new() };
        if entry == Some(Generation::Second) {
            maker.sigstore.log = Log::tiled("tiles.sigstore.test").unwrap();
        }
        let bundle = maker.bundle();
        assert_eq!(
            maker.verify(&bundle, named).await.unwrap(),
            [format!("{ISSUER} {SUBJECT}")],
            "{entry:?} {stamped} {logged_certificate}"
        );
    }
}

#[tokio::test]
async fn what_the_trust_root_names_is_asked_for() {
    Maker { entry: None, ..Maker::new() }.refused(Named::ALL, "it is in no transparency log").await;
    Maker { logged_certificate: false, ..Maker::new() }.refused(Named::ALL, "its certificate is in no log of certificates").await;
    Maker { entry: Some(Generation::Second), stamped: false, ..Maker::new() }.refused(Named::ALL, "says when it was made").await;
    Maker { stamped: false, ..Maker::new() }.refused(Named::CLOCK, "says when it was made").await;
}

#[tokio::test]
async fn the_time_must_be_within_the_certificate() {
    for signed in [LONG_AGO - 1, LONG_AGO + 601] {
        Maker { signed, ..Maker::new() }.refused(Named::ALL, "its certificate is not of an authority in the trust root").await;
    }
}

#[tokio::test]
async fn another_sigstore_counts_for_nothing() {
    let (maker, other) = (Maker::new(), Sigstore::new().unwrap());
    let signed = maker.signed();
    let stamp = maker.sigstore.clock.stamp(&signed.signature, maker.signed).unwrap();
    let entry = maker.sigstore.log.entry(Generation::First, &signed.body(Generation::First), maker.signed).unwrap();
    let other_entry = other.log.entry(Generation::First, &signed.body(Generation::First), maker.signed).unwrap();
    let other_stamp = other.clock.stamp(&signed.signature, maker.signed).unwrap();
    let not_logged = signed.bundle(&[other_entry], &[stamp]);
    Maker { place: Place { digest: maker.place.digest.clone(), ..Place::new() }, ..Maker::new() }
        .refused_with(&not_logged, Named::ALL, "its transparency log is not in the trust root")
        .await;
    let mut no_promise = entry;
    no_promise.as_object_mut().unwrap().remove("inclusionPromise");
    maker
        .refused_with(&signed.bundle(&[no_promise], &[other_stamp]), Named::ALL, "its time stamp is not of an authority in the trust root")
        .await;

    let maker = Maker::new();
    let (issued, key) = (maker.issued, key().unwrap());
    let certificate = other.authority.issue(&key, &maker.identity, issued, None).unwrap();
    let signed = Signed::new(&key, &maker.place.digest, Some(certificate)).unwrap();
    let stamp = maker.sigstore.clock.stamp(&signed.signature, maker.signed).unwrap();
    maker.refused_with(&signed.bundle(&[], &[stamp]), Named::CLOCK, "but its certificate is not of an authority in the trust root").await;
}

#[tokio::test]
async fn certificates_of_others_count_for_nothing() {
    // Somebody else's certificate beside one's own signature.
    let maker = Maker::new();
    let mut bundle = maker.bundle();
    bundle["verificationMaterial"]["certificate"] = maker.bundle()["verificationMaterial"]["certificate"].clone();
    maker.refused_with(&bundle, Named::ALL, "it is not made by the holder of its certificate").await;
    // Another name, and another place to log in.
    for identity in [
        Identity::new(ISSUER, "someone@example.com"),
        Identity::new("https://evil.example.com", SUBJECT),
        Identity::new(ISSUER, &format!("{SUBJECT}x")),
    ] {
        let said = format!("{} {}", identity.issuer, identity.subject);
        Maker { identity, ..Maker::new() }.refused(Named::ALL, &said).await;
    }
}

/// Changes one byte of base64 text.
fn spoil(text: &mut Value) {
    let mut bytes = STANDARD.decode(text.as_str().unwrap()).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    *text = json!(STANDARD.encode(bytes));
}

#[tokio::test]
async fn spoilt_evidence_counts_for_nothing() {
    for (path, why) in [
        ("inclusionPromise/signedEntryTimestamp", "the promise of its log entry is not signed by that log"),
        ("canonicalizedBody", "the promise of its log entry is not signed by that log"),
        ("inclusionProof/rootHash", "its log entry is not proven to be in that log"),
        ("inclusionProof/hashes/0", "its log entry is not proven to be in that log"),
        ("logId/keyId", "its transparency log is not in the trust root"),
    ] {
        let maker = Maker::new();
        let mut bundle = maker.bundle();
        spoil(bundle.pointer_mut(&format!("/verificationMaterial/tlogEntries/0/{path}")).unwrap());
        maker.refused_with(&bundle, Named::ALL, why).await;
    }
    for (field, value, why) in [
        ("integratedTime", json!("1700000006"), "the promise of its log entry"),
        ("inclusionPromise", Value::Null, "says when it was made"),
        (
            "inclusionProof",
            json!({"logIndex": "9", "treeSize": "3", "rootHash": "AAAA", "checkpoint": {"envelope": "x"}}),
            "the proof of its log entry is malformed",
        ),
    ] {
        let maker = Maker { stamped: false, ..Maker::new() };
        let mut bundle = maker.bundle();
        bundle["verificationMaterial"]["tlogEntries"][0][field] = value;
        maker.refused_with(&bundle, Named::ALL, why).await;
    }
    let intoto = Maker::new();
    let signed = intoto.signed();
    let body = json!({"apiVersion": "0.0.2", "kind": "intoto", "spec": {}});
    let entry = intoto.sigstore.log.entry(Generation::First, &body, intoto.signed).unwrap();
    intoto.refused_with(&signed.bundle(&[entry], &[]), Named::ALL, "of a kind that is not read here").await;
    let neither = Maker { entry: Some(Generation::Second), ..Maker::new() };
    let mut bundle = neither.bundle();
    bundle["verificationMaterial"]["tlogEntries"][0]["inclusionProof"] = Value::Null;
    neither.refused_with(&bundle, Named::ALL, "neither promise nor proof").await;
}

#[tokio::test]
async fn evidence_about_another_signature_counts_for_nothing() {
    for generation in [Generation::First, Generation::Second] {
        let maker = Maker { entry: Some(generation), ..Maker::new() };
        let mut bundle = maker.bundle();
        bundle["verificationMaterial"]["tlogEntries"] = maker.bundle()["verificationMaterial"]["tlogEntries"].clone();
        maker.refused_with(&bundle, Named::ALL, "its log entry is about another signature").await;
    }
    let maker = Maker { entry: None, ..Maker::new() };
    let mut bundle = maker.bundle();
    bundle["verificationMaterial"]["timestampVerificationData"] =
        maker.bundle()["verificationMaterial"]["timestampVerificationData"].clone();
    maker.refused_with(&bundle, Named::CLOCK, "its time stamp is of another signature").await;
    // A stamp with another time, within the certificate too.
    let maker = Maker { entry: None, ..Maker::new() };
    let mut bundle = maker.bundle();
    let stamp = bundle.pointer_mut("/verificationMaterial/timestampVerificationData/rfc3161Timestamps/0/signedTimestamp").unwrap();
    let mut bytes = STANDARD.decode(stamp.as_str().unwrap()).unwrap();
    let time = bytes.windows(15).position(|window| window == b"20231114221325Z").unwrap();
    bytes[time + 13] = b'6';
    *stamp = json!(STANDARD.encode(bytes));
    maker.refused_with(&bundle, Named::CLOCK, "its time stamp is malformed").await;
    // A certificate with the promise of another one.
    let maker = Maker::new();
    let other = Sigstore::new().unwrap();
    let key = key().unwrap();
    let certificate = maker.sigstore.authority.issue(&key, &maker.identity, maker.issued, Some(&other.certificates)).unwrap();
    let signed = Signed::new(&key, &maker.place.digest, Some(certificate)).unwrap();
    let entry = maker.sigstore.log.entry(Generation::First, &signed.body(Generation::First), maker.signed).unwrap();
    maker.refused_with(&signed.bundle(&[entry], &[]), Named::ALL, "no log of certificates in the trust root promised").await;
}

#[tokio::test]
async fn simple_signatures_by_certificate() {
    let mut maker = Maker::new();
    let key = key().unwrap();
    let certificate = maker.sigstore.authority.issue(&key, &maker.identity, maker.issued, Some(&maker.sigstore.certificates)).unwrap();
    let document = payload(&maker.place.digest);
    let (mut annotations, body) = signature_annotations(&key, &document, Some(&certificate)).unwrap();
    let named = Named { log: false, ..Named::ALL };
    let trust = |named| TrustRoot::parse(maker.sigstore.trusted_root(named).to_string().as_bytes()).unwrap();
    let (all, clock) = (trust(Named::ALL), trust(named));
    let signature = STANDARD.decode(annotations["dev.cosignproject.cosign/signature"].as_str().unwrap()).unwrap();
    let stamp = STANDARD.encode(maker.sigstore.clock.stamp(&signature, maker.signed).unwrap());
    annotations["dev.sigstore.cosign/rfc3161timestamp"] = json!(json!({"SignedRFC3161Timestamp": stamp}).to_string());
    let unlogged = annotations.clone();
    annotations["dev.sigstore.cosign/bundle"] = json!(maker.sigstore.log.annotation(&body, maker.signed).unwrap().to_string());
    maker.place.simple(&[(document.clone(), annotations)]);
    let (server, digest) = maker.place.serve().await;
    let signers = super::verify(&server, &[&digest], &wanted(ISSUER, SUBJECT), Some(&all)).await.unwrap().signers;
    assert_eq!(signers, [format!("{ISSUER} {SUBJECT}")]);
    let mut place = Place::new();
    place.simple(&[(document, unlogged)]);
    let (server, digest) = place.serve().await;
    super::verify(&server, &[&digest], &wanted(ISSUER, SUBJECT), Some(&clock)).await.unwrap();
    let error = super::verify(&server, &[&digest], &wanted(ISSUER, SUBJECT), Some(&all)).await.unwrap_err();
    assert!(found(&error).contains("it is in no transparency log"), "{error}");
}

#[tokio::test]
async fn without_a_trust_root() {
    let mut maker = Maker::new();
    let bundle = maker.bundle();
    maker.place.bundle(&bundle);
    let pair = key().unwrap();
    maker.place.bundle(&super::by_key(&pair, &maker.place.digest));
    let (server, digest) = maker.place.serve().await;
    let error = super::verify(&server, &[&digest], &wanted(ISSUER, SUBJECT), None).await.unwrap_err();
    assert!(matches!(&error, VerifyError::NoTrustRoot { identity } if *identity == format!("{ISSUER} {SUBJECT}")), "{error}");
    assert!(error.to_string().contains("trusted_root.json"), "{error}");
    // A key needs none, also where an identity would do.
    let either = Requirement {
        any_of: vec![signer("k", &pair), Signer::Identity { issuer: ISSUER.into(), subject: SUBJECT.into() }],
        all_of: Vec::new(),
    };
    assert_eq!(super::verify(&server, &[&digest], &[either], None).await.unwrap().signers, ["key k"]);
    let error = super::verify(&server, &[&digest], &[all_of(&[&signer("other", &key().unwrap())])], None).await.unwrap_err();
    assert!(found(&error).contains(&format!("a certificate that names {ISSUER} {SUBJECT}, unchecked")), "{error}");
}
