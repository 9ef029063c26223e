use rcgen::{KeyPair, PKCS_ED25519};
use weir_sigstore::{Named, Sigstore, key};

use super::{Place, all_of, any_of, by_key, signer};
use crate::oci::{KeyProblem, MAX_TRUST_ROOT, Requirement, Signer, TrustRoot, TrustRootError, VerifyError};

#[tokio::test]
async fn keys_that_are_none() {
    let pair = key().unwrap();
    let public = pair.public_key_pem();
    let curve = "-----BEGIN PUBLIC KEY-----\nMFYwEAYHKoZIzj0CAQYFK4EEAAoDQgAE\n-----END PUBLIC KEY-----\n";
    for (pem, wanted) in [
        ("", KeyProblem::NotPem),
        ("cosign.pub", KeyProblem::NotPem),
        (pair.serialize_pem().as_str(), KeyProblem::Private),
        ("-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----", KeyProblem::Private),
        ("-----BEGIN CERTIFICATE-----", KeyProblem::Certificate),
        (KeyPair::generate_for(&PKCS_ED25519).unwrap().public_key_pem().as_str(), KeyProblem::Ed25519),
        (format!("{public}{public}").as_str(), KeyProblem::Several),
    ] {
        let wrong = Signer::Key { name: "a/b#c".into(), pem: pem.as_bytes().to_vec() };
        // Although the other one would do.
        let mut place = Place::new();
        place.bundle(&by_key(&pair, &place.digest));
        let error = place.verify(&[any_of(&[&signer("good", &pair), &wrong])], None).await.unwrap_err();
        assert!(matches!(&error, VerifyError::Key { name, problem } if name == "a/b#c" && *problem == wanted), "{pem}: {error}");
        assert!(error.to_string().starts_with("key a/b#c: it "), "{error}");
    }
    for pem in [
        curve,
        "-----BEGIN RSA PUBLIC KEY-----\nMA==\n-----END RSA PUBLIC KEY-----\n",
        "-----BEGIN PUBLIC KEY-----\n!\n-----END PUBLIC KEY-----\n",
    ] {
        let wrong = Signer::Key { name: "k".into(), pem: pem.as_bytes().to_vec() };
        let error = Place::new().verify(&[all_of(&[&wrong])], None).await.unwrap_err();
        assert!(matches!(&error, VerifyError::Key { problem: KeyProblem::Kind(_), .. }), "{pem}: {error}");
    }
}

#[tokio::test]
async fn a_requirement_of_nobody_is_a_mistake() {
    let error = Place::new().verify(&[Requirement::default()], None).await.unwrap_err();
    assert!(matches!(error, VerifyError::Nobody) && !error.transient());
}

#[test]
fn trust_roots() {
    let sigstore = Sigstore::new().unwrap();
    let good = sigstore.trusted_root(Named::ALL);
    let parse = |root: &serde_json::Value| TrustRoot::parse(root.to_string().as_bytes());
    parse(&good).unwrap();
    parse(&sigstore.trusted_root(Named::CLOCK)).unwrap();
    let changed = |path: &str, value: serde_json::Value| {
        let mut root = good.clone();
        *root.pointer_mut(path).unwrap() = value;
        parse(&root).unwrap_err()
    };
    assert!(matches!(changed("/mediaType", "application/json".into()), TrustRootError::Kind(_)));
    assert!(matches!(changed("/certificateAuthorities", serde_json::json!([])), TrustRootError::Empty));
    assert!(matches!(changed("/tlogs/0/publicKey/rawBytes", "AAAA".into()), TrustRootError::Key { list: "tlogs", index: 0, .. }));
    assert!(matches!(changed("/ctlogs/0/publicKey/rawBytes", "AAAA".into()), TrustRootError::Key { list: "ctlogs", index: 0, .. }));
    let chain = |list: &str| changed(&format!("/{list}/0/certChain/certificates"), serde_json::json!([]));
    assert!(matches!(chain("certificateAuthorities"), TrustRootError::Chain { list: "certificateAuthorities", .. }));
    assert!(matches!(chain("timestampAuthorities"), TrustRootError::Chain { list: "timestampAuthorities", .. }));
    assert!(matches!(changed("/tlogs/0/publicKey/validFor/start", "yesterday".into()), TrustRootError::Time(_)));
    assert!(matches!(changed("/tlogs/0/logId", serde_json::json!({})), TrustRootError::Malformed(_)));
    let timeless = Named { log: false, certificates: true, clock: false };
    assert!(matches!(parse(&sigstore.trusted_root(timeless)), Err(TrustRootError::Timeless)));
    assert!(matches!(TrustRoot::parse(&vec![b' '; MAX_TRUST_ROOT + 1]), Err(TrustRootError::Large(_))));
}
