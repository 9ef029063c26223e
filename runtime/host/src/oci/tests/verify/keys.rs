use base64::{Engine as _, engine::general_purpose::STANDARD};
use rcgen::{KeyPair, PKCS_ECDSA_P384_SHA384, PKCS_ECDSA_P521_SHA512, PKCS_RSA_SHA256};
use serde_json::json;
use weir_sigstore::{Signed, key, payload, signature_annotations};

use super::{Place, all_of, any_of, by_key, found, signer, simple_by_key, verify};
use crate::oci::{Requirement, VerifyError};

#[tokio::test]
async fn both_forms_verify_by_key() {
    let pair = key().unwrap();
    let wanted = signer("weir-system/cosign#cosign.pub", &pair);
    let mut simple = Place::new();
    simple.simple(&[simple_by_key(&pair, &simple.digest)]);
    let mut bundle = Place::new();
    bundle.bundle(&by_key(&pair, &bundle.digest));
    for place in [simple, bundle] {
        let verified = place.verify(&[any_of(&[&wanted]), all_of(&[&wanted])], None).await.unwrap();
        assert_eq!(verified.signers, ["key weir-system/cosign#cosign.pub"]);
    }
}

#[tokio::test]
async fn kinds_of_keys() {
    for kind in [&PKCS_ECDSA_P384_SHA384, &PKCS_ECDSA_P521_SHA512, &PKCS_RSA_SHA256] {
        let pair = KeyPair::generate_for(kind).unwrap();
        let mut place = Place::new();
        place.bundle(&by_key(&pair, &place.digest));
        place.simple(&[simple_by_key(&key().unwrap(), &place.digest)]);
        place.verify(&[all_of(&[&signer("k", &pair)])], None).await.unwrap();
    }
}

#[tokio::test]
async fn any_of_and_all_of_have_to_be_content() {
    let pairs = [key().unwrap(), key().unwrap(), key().unwrap()];
    let [a, b, c] = [("a", &pairs[0]), ("b", &pairs[1]), ("c", &pairs[2])].map(|(name, pair)| signer(name, pair));
    let mut place = Place::new();
    place.simple(&[simple_by_key(&pairs[0], &place.digest)]);
    place.bundle(&by_key(&pairs[1], &place.digest));
    let (server, digest) = place.serve().await;
    let ask = async |requirements: &[Requirement]| verify(&server, &[&digest], requirements, None).await;
    assert_eq!(ask(&[any_of(&[&c, &b, &a])]).await.unwrap().signers, ["key b", "key a"]);
    assert_eq!(ask(&[all_of(&[&a, &b])]).await.unwrap().signers, ["key a", "key b"]);
    assert_eq!(ask(&[any_of(&[&c, &a]), all_of(&[&a, &b])]).await.unwrap().signers, ["key a", "key b"]);
    let both = Requirement { any_of: vec![a.clone()], all_of: vec![b.clone(), c.clone()] };
    for (requirements, wanted) in [
        (vec![all_of(&[&a, &c])], "key c"),
        (vec![any_of(&[&c])], "key c"),
        (vec![both], "key c"),
        (vec![any_of(&[&a]), any_of(&[&c, &signer("d", &key().unwrap())])], "one of key c, key d"),
    ] {
        let error = ask(&requirements).await.unwrap_err();
        assert!(matches!(&error, VerifyError::NotBy { wanted: w, .. } if *w == [wanted]) && !error.transient(), "{error}");
    }
}

#[tokio::test]
async fn another_key_another_digest_and_another_message_count_for_nothing() {
    let (pair, other) = (key().unwrap(), key().unwrap());
    let wanted = [all_of(&[&signer("k", &pair)])];
    let elsewhere = format!("sha256:{}", "5".repeat(64));

    let mut place = Place::new();
    place.simple(&[simple_by_key(&other, &place.digest)]);
    place.bundle(&by_key(&other, &place.digest));
    let error = place.verify(&wanted, None).await.unwrap_err();
    assert_eq!(found(&error).matches("a signature by another key").count(), 2, "{error}");
    assert!(error.to_string().contains("is not signed by key k; found: tag sha256-"), "{error}");

    let mut place = Place::new();
    place.simple(&[simple_by_key(&pair, &elsewhere)]);
    place.bundle(&by_key(&pair, &elsewhere));
    let error = place.verify(&wanted, None).await.unwrap_err();
    assert_eq!(found(&error).matches("a signature of another artifact").count(), 2, "{error}");

    // The document says the right digest, the signature is of another document.
    let mut place = Place::new();
    let (_, annotations) = simple_by_key(&pair, &elsewhere);
    place.simple(&[(payload(&place.digest), annotations)]);
    let mut bundle = by_key(&pair, &elsewhere);
    bundle["dsseEnvelope"]["payload"] = by_key(&pair, &place.digest)["dsseEnvelope"]["payload"].clone();
    place.bundle(&bundle);
    let error = place.verify(&wanted, None).await.unwrap_err();
    assert_eq!(found(&error).matches("a signature by another key").count(), 2, "{error}");
}

#[tokio::test]
async fn what_is_no_signature_of_cosign_counts_for_nothing() {
    let pair = key().unwrap();
    let wanted = [all_of(&[&signer("k", &pair)])];
    let mut place = Place::new();
    let good = by_key(&pair, &place.digest);
    // A true statement about the artifact that is no approval of it.
    place.bundle(&Signed::statement(&pair, &place.digest, "https://slsa.dev/provenance/v1", None).unwrap().bundle(&[], &[]));
    let mut kind = good.clone();
    kind["dsseEnvelope"]["payloadType"] = json!("text/plain");
    place.bundle(&kind);
    let mut newer = good.clone();
    newer["mediaType"] = json!("application/vnd.dev.sigstore.bundle.v9.0+json");
    place.bundle(&newer);
    let mut twice = good.clone();
    twice["dsseEnvelope"]["signatures"] = json!([good["dsseEnvelope"]["signatures"][0], good["dsseEnvelope"]["signatures"][0]]);
    place.bundle(&twice);
    let mut blob = good;
    blob.as_object_mut().unwrap().remove("dsseEnvelope");
    place.bundle(&blob);
    let document =
        String::from_utf8(payload(&place.digest)).unwrap().replace("cosign container image signature", "atomic container signature");
    let (annotations, _) = signature_annotations(&pair, document.as_bytes(), None).unwrap();
    let (unsigned, _) = simple_by_key(&pair, &place.digest);
    place.simple(&[(document.into_bytes(), annotations), (unsigned, json!({}))]);
    let error = place.verify(&wanted, None).await.unwrap_err();
    let VerifyError::Malformed { problems, .. } = &error else { panic!("{error}") };
    for problem in [
        "a statement of type \"https://slsa.dev/provenance/v1\", not a signature",
        "signs \"text/plain\", which is no statement",
        "versions 0.1 to 0.3 are known",
        "has not exactly one signature",
        "a signature of a file, not of an artifact",
        "of type \"atomic container signature\"",
        "has no annotation dev.cosignproject.cosign/signature",
    ] {
        assert!(problems.iter().any(|found| found.contains(problem)), "{problem}: {problems:?}");
    }
    assert!(!error.transient() && error.to_string().contains("has no signature that can be read"));
}

#[tokio::test]
async fn a_signature_of_the_index_counts_for_its_image() {
    let pair = key().unwrap();
    let mut place = Place::new();
    place.bundle(&by_key(&pair, &place.digest));
    let (server, index) = place.serve().await;
    let image = format!("sha256:{}", "7".repeat(64));
    let wanted = [all_of(&[&signer("k", &pair)])];
    verify(&server, &[&image, &index], &wanted, None).await.unwrap();
    assert!(matches!(verify(&server, &[&image], &wanted, None).await, Err(VerifyError::NotSigned { .. })));
}

#[tokio::test]
async fn old_manners_are_understood() {
    let pair = key().unwrap();
    let wanted = [all_of(&[&signer("k", &pair)])];
    // Signatures broken into lines.
    let mut place = Place::new();
    let (document, mut annotations) = simple_by_key(&pair, &place.digest);
    let signature = annotations["dev.cosignproject.cosign/signature"].as_str().unwrap();
    annotations["dev.cosignproject.cosign/signature"] = json!(signature.replacen('M', "M\n", 2) + "\n");
    place.simple(&[(document, annotations)]);
    place.verify(&wanted, None).await.unwrap();
    // Bundles without padding, and of an older version.
    let mut place = Place::new();
    let mut bundle = by_key(&pair, &place.digest);
    let signature = STANDARD.decode(bundle["dsseEnvelope"]["signatures"][0]["sig"].as_str().unwrap()).unwrap();
    bundle["dsseEnvelope"]["signatures"][0]["sig"] = json!(STANDARD.encode(signature).trim_end_matches('='));
    bundle["mediaType"] = json!("application/vnd.dev.sigstore.bundle+json;version=0.2");
    place.bundle(&bundle);
    place.verify(&wanted, None).await.unwrap();
}
