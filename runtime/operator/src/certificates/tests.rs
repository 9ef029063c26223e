use jiff::{SignedDuration, Timestamp};
use weir_core::plan::{CertificateRequest, KeyAlgorithm};
use x509_parser::{certificate::X509Certificate, extensions::GeneralName, pem::parse_x509_pem, prelude::FromDer};

use super::*;

const NOW: &str = "2026-03-01T12:00:00.75Z";
const DAY: i64 = 86_400;
const NAME: &str = "*.dataplane-admin-gw.kong.svc";

fn now() -> Timestamp {
    NOW.parse().expect("a time")
}

fn request(key: KeyAlgorithm, ttl_seconds: i64) -> CertificateRequest {
    CertificateRequest {
        metadata: Default::default(),
        common_name: NAME.into(),
        organization: "Kong, Inc.".into(),
        country: "US".into(),
        dns_names: vec![NAME.into()],
        key,
        ttl_seconds,
    }
}

fn new_ca(key: KeyAlgorithm) -> (Pem, Ca) {
    let pem = generate_ca(key, now()).expect("a CA");
    let ca = Ca::read(pem.certificate.as_bytes(), pem.key.as_bytes()).expect("readable");
    (pem, ca)
}

fn der(pem: &str) -> Vec<u8> {
    parse_x509_pem(pem.as_bytes()).expect("PEM").1.contents
}

/// The leaf signed by the CA, with the extensions that TLS needs.
fn check(leaf: &Leaf, key: KeyAlgorithm) {
    let (ca, own) = (der(&leaf.ca_crt), der(&leaf.tls_crt));
    let (_, ca) = X509Certificate::from_der(&ca).expect("a CA");
    let (_, own) = X509Certificate::from_der(&own).expect("a leaf");
    own.verify_signature(Some(ca.public_key())).expect("signed by the CA");
    assert_eq!(own.issuer().as_raw(), ca.subject().as_raw(), "a verifier compares names byte for byte");
    assert_eq!(own.subject().to_string(), format!("C=US, O=Kong, Inc., CN={NAME}"));
    let names = own.subject_alternative_name().expect("readable").expect("there");
    assert_eq!(names.value.general_names, vec![GeneralName::DNSName(NAME)]);
    let usage = own.key_usage().expect("readable").expect("there").value;
    assert!(usage.digital_signature() && usage.key_encipherment() && !usage.key_cert_sign());
    let extended = own.extended_key_usage().expect("readable").expect("there").value;
    assert!(extended.server_auth && !extended.client_auth && !extended.any);
    assert!(!own.is_ca());
    assert_eq!(own.validity().not_after.timestamp(), leaf.ends.as_second());
    let rsa = own.public_key().algorithm.algorithm.to_id_string() == "1.2.840.113549.1.1.1";
    assert_eq!(rsa, key == KeyAlgorithm::Rsa2048);
    let pair = rcgen::KeyPair::from_pem(&leaf.tls_key).expect("a key");
    assert_eq!(rcgen::PublicKeyData::der_bytes(&pair), &*own.public_key().subject_public_key.data, "the leaf's own key");
}

/// What OpenSSL and rustls agree on: a handshake that trusts `ca.crt` alone.
fn verify_as_a_client_does(leaf: &Leaf, at: Timestamp) -> Result<(), rustls::Error> {
    use rustls::pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject};
    let provider = std::sync::Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut roots = rustls::RootCertStore::empty();
    for root in CertificateDer::pem_slice_iter(leaf.ca_crt.as_bytes()) {
        roots.add(root.expect("PEM")).expect("a root");
    }
    let chain: Vec<_> = CertificateDer::pem_slice_iter(leaf.tls_crt.as_bytes()).map(|c| c.expect("PEM")).collect();
    let verifier = rustls::client::WebPkiServerVerifier::builder_with_provider(roots.into(), provider).build().expect("a verifier");
    let name = ServerName::try_from("10-0-0-1.dataplane-admin-gw.kong.svc").expect("a name");
    let at = UnixTime::since_unix_epoch(std::time::Duration::from_secs(u64::try_from(at.as_second()).expect("after 1970")));
    let (own, rest) = chain.split_first().expect("one");
    rustls::client::danger::ServerCertVerifier::verify_server_cert(&*verifier, own, rest, &name, &[], at).map(|_| ())
}

#[test]
fn a_leaf_of_each_kind_of_ca_is_what_a_client_accepts() {
    for key in [KeyAlgorithm::EcdsaP256, KeyAlgorithm::Rsa2048] {
        let (pem, ca) = new_ca(key);
        assert_eq!(ca.facts().key, key);
        assert_eq!(ca.facts().digest, weir_core::hash::digest(pem.certificate.as_bytes()));
        let leaf = ca.mint(&request(key, 30 * DAY), now()).expect("a leaf");
        check(&leaf, key);
        assert_eq!(leaf.ends.as_second(), now().as_second() + 30 * DAY);
        verify_as_a_client_does(&leaf, now()).expect("accepted");
        verify_as_a_client_does(&leaf, now() - SignedDuration::from_mins(4)).expect("accepted by a clock that is behind");
        assert!(verify_as_a_client_does(&leaf, now() + SignedDuration::from_hours(24 * 31)).is_err());
    }
}

#[test]
fn a_leaf_follows_the_request_and_not_the_ca() {
    let (_, ca) = new_ca(KeyAlgorithm::EcdsaP256);
    let leaf = ca.mint(&request(KeyAlgorithm::Rsa2048, DAY), now()).expect("a leaf");
    check(&leaf, KeyAlgorithm::Rsa2048);
    verify_as_a_client_does(&leaf, now()).expect("accepted");
}

#[test]
fn the_ca_is_one_and_lives_ten_years() {
    let (pem, ca) = new_ca(KeyAlgorithm::EcdsaP256);
    let bytes = der(&pem.certificate);
    let (_, own) = X509Certificate::from_der(&bytes).expect("a certificate");
    own.verify_signature(None).expect("signs itself");
    assert!(own.is_ca());
    let usage = own.key_usage().expect("readable").expect("there").value;
    assert!(usage.key_cert_sign() && usage.crl_sign() && !usage.digital_signature());
    assert_eq!(ca.ends().as_second(), now().as_second() + 3_650 * DAY);
    assert_eq!(ca.begins().as_second(), now().as_second() - 300);
}

#[test]
fn serials_and_keys_differ() {
    let (_, ca) = new_ca(KeyAlgorithm::EcdsaP256);
    let [a, b] = [(); 2].map(|()| ca.mint(&request(KeyAlgorithm::EcdsaP256, DAY), now()).expect("a leaf"));
    assert_ne!(a.tls_key, b.tls_key);
    let serial = |leaf: &Leaf| X509Certificate::from_der(&der(&leaf.tls_crt)).expect("a leaf").1.raw_serial_as_string();
    assert_ne!(serial(&a), serial(&b));
    assert_eq!(serial(&a).split(':').count(), 16);
}

#[test]
fn a_leaf_ends_with_the_ca_and_never_begins_before_it() {
    let (_, ca) = new_ca(KeyAlgorithm::EcdsaP256);
    let late = ca.ends() - SignedDuration::from_hours(1);
    let leaf = ca.mint(&request(KeyAlgorithm::EcdsaP256, i64::MAX), late).expect("a leaf");
    assert_eq!(leaf.ends, ca.ends());
    let early = ca.mint(&request(KeyAlgorithm::EcdsaP256, DAY), ca.begins()).expect("a leaf");
    let bytes = der(&early.tls_crt);
    let (_, own) = X509Certificate::from_der(&bytes).expect("a leaf");
    assert_eq!(own.validity().not_before.timestamp(), ca.begins().as_second());
}

#[test]
fn a_ca_out_of_its_time_does_not_sign() {
    let (_, ca) = new_ca(KeyAlgorithm::EcdsaP256);
    let ask = |at| ca.mint(&request(KeyAlgorithm::EcdsaP256, DAY), at).map(|_| ());
    assert_eq!(ask(ca.ends()), Err(Error::Expired { ends: ca.ends() }));
    assert_eq!(ask(ca.begins() - SignedDuration::from_secs(1)), Err(Error::NotYetValid { begins: ca.begins() }));
}

#[test]
fn a_request_that_cannot_be_met_is_named() {
    let (_, ca) = new_ca(KeyAlgorithm::EcdsaP256);
    let ask = |change: fn(&mut CertificateRequest)| {
        let mut asked = request(KeyAlgorithm::EcdsaP256, DAY);
        change(&mut asked);
        ca.mint(&asked, now()).map(|_| ()).expect_err("refused").to_string()
    };
    assert!(ask(|r| r.ttl_seconds = 0).contains("0 seconds"));
    assert!(ask(|r| r.dns_names = vec!["ä.svc".into()]).contains(NAME));
    assert!(ask(|r| r.country = "ä".into()).contains(NAME));
}

#[test]
fn each_bad_secret_names_its_key_and_a_cure() {
    let (good, ca) = new_ca(KeyAlgorithm::EcdsaP256);
    let (other, _) = new_ca(KeyAlgorithm::EcdsaP256);
    let leaf = ca.mint(&request(KeyAlgorithm::EcdsaP256, DAY), now()).expect("a leaf");
    let read = |crt: &str, key: &str| Ca::read(crt.as_bytes(), key.as_bytes()).map(|_| ()).expect_err("refused");
    assert_eq!(read("", &good.key), Error::NoCertificate);
    assert_eq!(read("garbage", &good.key), Error::NoCertificate);
    assert_eq!(Ca::read(&[0xff, 0xfe], good.key.as_bytes()).map(|_| ()), Err(Error::NoCertificate));
    assert_eq!(Ca::read(good.certificate.as_bytes(), &[0xff; 4_096]).map(|_| ()), Err(Error::NoKey));
    let damaged = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    assert!(matches!(read(damaged, &good.key), Error::BadCertificate(_)));
    assert_eq!(read(&leaf.tls_crt, &leaf.tls_key), Error::NotCa);
    assert_eq!(read(&good.certificate, ""), Error::NoKey);
    assert_eq!(read(&good.certificate, &good.certificate), Error::NoKey);
    assert_eq!(read(&good.certificate, "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"), Error::BadKey);
    assert_eq!(
        read(&good.certificate, "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n"),
        Error::EncryptedKey
    );
    assert_eq!(read(&good.certificate, &other.key), Error::KeyMismatch);
    for error in [read("", ""), read(&good.certificate, ""), read(&good.certificate, &other.key)] {
        assert!(error.to_string().contains("key tls."), "{error}");
        assert!(!error.to_string().contains(&other.key));
    }
}

#[test]
fn a_key_beside_the_certificate_is_not_handed_on() {
    let (pem, _) = new_ca(KeyAlgorithm::EcdsaP256);
    let combined = format!("# comment\r\n{}{}", pem.certificate, pem.key);
    let ca = Ca::read(combined.as_bytes(), pem.key.as_bytes()).expect("readable");
    let leaf = ca.mint(&request(KeyAlgorithm::EcdsaP256, DAY), now()).expect("a leaf");
    assert!(!leaf.ca_crt.contains("PRIVATE") && !leaf.tls_crt.contains("PRIVATE") && !leaf.ca_crt.contains("comment"));
    assert_eq!(ca.facts().digest, weir_core::hash::digest(combined.as_bytes()));
    verify_as_a_client_does(&leaf, now()).expect("accepted");
}

#[test]
fn an_intermediate_ca_sends_its_chain() {
    use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
    let make = |name: &str| {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.not_before = rcgen::date_time_ymd(2026, 1, 1);
        params.not_after = rcgen::date_time_ymd(2027, 1, 1);
        (params, KeyPair::generate_for(&rcgen::PKCS_ECDSA_P384_SHA384).expect("a key"))
    };
    let ((root_params, root_key), (params, key)) = (make("root"), make("middle"));
    let root = root_params.self_signed(&root_key).expect("a root");
    let middle = params.signed_by(&key, &Issuer::from_params(&root_params, &root_key)).expect("an intermediate");
    let ca = Ca::read(format!("{}{}", middle.pem(), root.pem()).as_bytes(), key.serialize_pem().as_bytes()).expect("readable");
    assert_eq!(ca.facts().key, KeyAlgorithm::EcdsaP256, "a CA on P-384 has leaves on P-256");
    let mut leaf = ca.mint(&request(KeyAlgorithm::EcdsaP256, DAY), now()).expect("a leaf");
    check(&leaf, KeyAlgorithm::EcdsaP256);
    assert_eq!(leaf.tls_crt.matches("BEGIN CERTIFICATE").count(), 2);
    assert_eq!(leaf.ca_crt.matches("BEGIN CERTIFICATE").count(), 2);
    leaf.ca_crt = root.pem();
    verify_as_a_client_does(&leaf, now()).expect("accepted by who trusts the root only");
}

#[test]
fn no_debug_shows_a_key() {
    let (pem, ca) = new_ca(KeyAlgorithm::EcdsaP256);
    let leaf = ca.mint(&request(KeyAlgorithm::EcdsaP256, DAY), now()).expect("a leaf");
    for text in [format!("{pem:?}"), format!("{ca:?}"), format!("{leaf:?}")] {
        assert!(!text.contains("PRIVATE"), "{text}");
    }
}

#[test]
fn a_ca_can_be_shared_by_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Ca>();
}

/// Base64 with line breaks; the one in the tree is not ours to name.
fn pem(label: &str, der: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits = der.chunks(3).flat_map(|chunk| {
        let bits = chunk.iter().fold(0_usize, |all, byte| (all << 8) | usize::from(*byte)) << (8 * (3 - chunk.len()));
        (0..4).map(move |n| if n > chunk.len() { '=' } else { char::from(DIGITS[(bits >> (18 - 6 * n)) & 63]) })
    });
    let digits: Vec<char> = digits.collect();
    let lines: String = digits.chunks(64).map(|line| line.iter().collect::<String>() + "\n").collect();
    format!("-----BEGIN {label}-----\n{lines}-----END {label}-----\n")
}

#[test]
fn keys_of_the_older_formats_are_read() {
    for (key, label) in [(KeyAlgorithm::EcdsaP256, "EC PRIVATE KEY"), (KeyAlgorithm::Rsa2048, "RSA PRIVATE KEY")] {
        let (made, _) = new_ca(key);
        let bytes = der(&made.key);
        // PKCS#8 wraps the older formats in an octet string, after a version and an algorithm.
        let (_, outer) = x509_parser::der_parser::parse_der(&bytes).expect("DER");
        let inner = outer.as_sequence().expect("a sequence")[2].as_slice().expect("an octet string").to_vec();
        let parameters = pem("EC PARAMETERS", &[6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7]);
        let text = if key == KeyAlgorithm::EcdsaP256 { parameters + &pem(label, &inner) } else { pem(label, &inner) };
        let ca = Ca::read(made.certificate.as_bytes(), text.as_bytes()).expect("readable");
        let leaf = ca.mint(&request(key, DAY), now()).expect("a leaf");
        verify_as_a_client_does(&leaf, now()).expect("accepted");
        let encrypted =
            text.replacen(&format!("-----BEGIN {label}-----\n"), &format!("-----BEGIN {label}-----\nProc-Type: 4,ENCRYPTED\n\n"), 1);
        let error = Ca::read(made.certificate.as_bytes(), encrypted.as_bytes()).map(|_| ()).expect_err("refused");
        assert_eq!(error, Error::EncryptedKey);
    }
}

#[test]
fn a_client_certificate_is_looked_at_and_strange_keys_are_left_to_others() {
    let made = generate_ca(KeyAlgorithm::EcdsaP256, "2026-01-01T00:00:00Z".parse().unwrap()).unwrap();
    let other = generate_ca(KeyAlgorithm::EcdsaP256, "2026-01-01T00:00:00Z".parse().unwrap()).unwrap();
    let pair = |certificate: &str, key: &str| unusable_pair(certificate.as_bytes(), key.as_bytes());
    assert_eq!(pair(&made.certificate, &made.key), None);
    assert!(pair("garbage", &made.key).unwrap().starts_with("tls.crt"));
    assert!(pair(&made.certificate, "garbage").unwrap().starts_with("tls.key"));
    assert!(pair(&made.certificate, &other.key).unwrap().contains("not the key"));
    let strange = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
    assert_eq!(pair(&made.certificate, strange), None);
}

#[test]
fn the_end_is_that_of_the_first_certificate() {
    let made = |from: &str| generate_ca(KeyAlgorithm::EcdsaP256, from.parse().unwrap()).unwrap().certificate;
    let (first, second) = (made("2026-01-01T00:00:00Z"), made("2027-01-01T00:00:00Z"));
    let ends = |text: &str| end(text.as_bytes());
    assert_eq!(ends(&format!("# leaf\n{first}{second}")), ends(&first));
    assert!(ends(&first) < ends(&second) && ends(&first).is_some());
    assert_eq!(ends("garbage"), None);
}
