//! Signatures that are carried to another registry, or through a file, are found and believed there.

use std::fs;

use super::{
    super::{
        registry::{Reply, status},
        uploads::Uploads,
    },
    *,
};
use crate::oci::{Form, Signature, Signatures, Upload, local, save};

const ANYBODY: Credentials = Credentials::Anonymous;
const MOST: u64 = 1 << 20;

struct Twice {
    place: Place,
    simple: KeyPair,
    bundle: KeyPair,
}

/// An artifact with a signature of each form, by two keys.
fn signed() -> Twice {
    let (simple, bundle) = (weir_sigstore::key().unwrap(), weir_sigstore::key().unwrap());
    let mut place = Place::new();
    let digest = place.digest.clone();
    place.simple(&[simple_by_key(&simple, &digest)]);
    place.bundle(&by_key(&bundle, &digest));
    Twice { place, simple, bundle }
}

async fn fetched(server: &Server) -> (Upload, Signatures) {
    let from = server.reference(":1");
    let whole = puller().whole(&from, &ANYBODY, MOST).await.unwrap();
    let signatures = puller().signatures(&from, &ANYBODY, &whole.digests(), MOST).await.unwrap();
    (whole, signatures)
}

async fn target(uploads: &Uploads) -> Server {
    let stored = uploads.clone();
    Server::start(Shelf::default(), move |asked, _| stored.reply(asked)).await
}

async fn laid(to: &Server, whole: &Upload, signatures: &[Signature]) {
    puller().push_signatures(&to.reference(":2"), &ANYBODY, signatures).await.unwrap();
    puller().push(&to.reference(":2"), &ANYBODY, whole).await.unwrap();
}

async fn signers(server: &Server, digest: &str, keys: &[(&str, &KeyPair)]) -> Result<Vec<String>, VerifyError> {
    let signers: Vec<Signer> = keys.iter().map(|(name, key)| signer(name, key)).collect();
    verify(server, &[digest], &[all_of(&signers.iter().collect::<Vec<_>>())], None).await.map(|verified| verified.signers)
}

#[tokio::test]
async fn both_forms_are_carried_and_believed_there() {
    let Twice { place, simple, bundle } = signed();
    let (from, digest) = place.serve().await;
    let (whole, found) = fetched(&from).await;
    assert_eq!(
        found.all.iter().map(|s| (s.form, s.of.as_str())).collect::<Vec<_>>(),
        [(Form::Simple, digest.as_str()), (Form::Bundle, &digest)]
    );
    assert_eq!(found.problems, [] as [String; 0]);
    let uploads = Uploads::default();
    let to = target(&uploads).await;
    let keys = [("a", &simple), ("b", &bundle)];
    assert!(matches!(signers(&to, &digest, &keys).await, Err(VerifyError::NotSigned { .. })));
    laid(&to, &whole, &found.all).await;
    assert_eq!(signers(&to, &digest, &keys).await.unwrap(), ["key a", "key b"]);
    // A second time changes nothing.
    let list = uploads.held(&format!("/v2/x/y/manifests/{}", digest.replace(':', "-"))).unwrap();
    laid(&to, &whole, &found.all).await;
    assert_eq!(uploads.held(&format!("/v2/x/y/manifests/{}", digest.replace(':', "-"))).unwrap(), list);
    assert_eq!(
        fetched(
            &Server::start(Shelf::default(), {
                let u = uploads.clone();
                move |asked, _| u.reply(&renamed(asked))
            })
            .await
        )
        .await
        .1,
        found
    );
}

/// The artifact has tag 2 there.
fn renamed(asked: &super::super::registry::Asked) -> super::super::registry::Asked {
    let mut asked = asked.clone();
    asked.path = asked.path.replace("/manifests/1", "/manifests/2");
    asked
}

#[tokio::test]
async fn signatures_that_are_there_stay_beside_those_that_come() {
    let Twice { place, simple, bundle } = signed();
    let (from, digest) = place.serve().await;
    let (whole, found) = fetched(&from).await;
    let uploads = Uploads::default();
    let to = target(&uploads).await;
    let (theirs, others) = (weir_sigstore::key().unwrap(), weir_sigstore::key().unwrap());
    let mut there = Place::new();
    assert_eq!(there.digest, digest);
    there.simple(&[simple_by_key(&theirs, &digest)]);
    there.bundle(&by_key(&others, &digest));
    let (theirs_from, _) = there.serve().await;
    laid(&to, &whole, &fetched(&theirs_from).await.1.all).await;
    laid(&to, &whole, &found.all).await;
    let keys = [("a", &simple), ("b", &bundle), ("c", &theirs), ("d", &others)];
    assert_eq!(signers(&to, &digest, &keys).await.unwrap().len(), 4);
}

#[tokio::test]
async fn a_registry_that_knows_subjects_gets_no_list_of_ours() {
    let Twice { place, .. } = signed();
    let (from, digest) = place.serve().await;
    let (whole, found) = fetched(&from).await;
    let uploads = Uploads::default();
    let stored = uploads.clone();
    let to = Server::start(Shelf::default(), move |asked, _| match stored.reply(asked)? {
        Reply::Full(201, mut headers, body) if asked.path.contains("/manifests/sha256:") => {
            headers.push(("oci-subject", "sha256:x".into()));
            Some(Reply::Full(201, headers, body))
        }
        reply @ (Reply::Full(..) | Reply::Cut(_) | Reply::Endless | Reply::Silent) => Some(reply),
    })
    .await;
    laid(&to, &whole, &found.all).await;
    let tag = digest.replace(':', "-");
    assert_eq!(uploads.held(&format!("/v2/x/y/manifests/{tag}")), None);
    assert!(uploads.held(&format!("/v2/x/y/manifests/{tag}.sig")).is_some());
    let bundle = &found.all[1].upload.digest;
    assert!(uploads.held(&format!("/v2/x/y/manifests/{bundle}")).is_some());
}

#[tokio::test]
async fn signatures_go_through_a_file() {
    let Twice { place, simple, bundle } = signed();
    let (from, digest) = place.serve().await;
    let (whole, found) = fetched(&from).await;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("saved.tar");
    let archive = |signatures: &[Signature]| {
        let mut bytes = Vec::new();
        save(&whole, Some("1"), signatures, &mut bytes).unwrap();
        bytes
    };
    assert_eq!(archive(&found.all), archive(&found.all));
    fs::write(&file, archive(&found.all)).unwrap();
    assert_eq!((local::whole(&file, MOST).unwrap(), local::signatures(&file, MOST).unwrap()), (whole.clone(), found.all.clone()));
    let to = target(&Uploads::default()).await;
    laid(&to, &whole, &local::signatures(&file, MOST).unwrap()).await;
    assert_eq!(signers(&to, &digest, &[("a", &simple), ("b", &bundle)]).await.unwrap().len(), 2);
    fs::write(&file, archive(&[])).unwrap();
    assert_eq!(local::signatures(&file, MOST).unwrap(), [], "none were saved");
    // A file that somebody else put together.
    let many = vec![found.all[0].clone(); 33];
    fs::write(&file, archive(&many)).unwrap();
    let error = local::signatures(&file, MOST).unwrap_err().to_string();
    assert!(error.contains("it has 33 signatures, at most 32 are allowed"), "{error}");
    let odd = Signature { of: "sha256:no".into(), ..found.all[0].clone() };
    fs::write(&file, archive(&[odd])).unwrap();
    assert!(local::signatures(&file, MOST).unwrap_err().to_string().contains("does not say what it signs"));
}

#[tokio::test]
async fn what_is_no_signature_stays_behind_and_silence_is_an_error() {
    let mut place = Place::new();
    place.listed("application/spdx+json", "application/spdx+json", b"{}");
    place.listed("", "text/plain", b"x");
    let missing = json!({"mediaType": IMAGE, "digest": format!("sha256:{}", "1".repeat(64)), "size": 3, "artifactType": BUNDLE});
    place.bundles.push(missing);
    place.shelf.manifest(&place.tag(""), INDEX, &json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": place.bundles.clone()}));
    let (server, _) = place.serve().await;
    let (_, found) = fetched(&server).await;
    assert_eq!(found.all, []);
    assert_eq!(found.problems.len(), 1, "what is listed should be there: {:?}", found.problems);
    let (shelf, digest) = {
        let place = Place::new();
        (place.shelf, place.digest)
    };
    let silent = Server::start(shelf, |asked, _| asked.path.contains(".sig").then(|| status(503, "{}"))).await;
    let error = puller().signatures(&silent.reference(":1"), &ANYBODY, &[digest], MOST).await.unwrap_err();
    assert!(error.transient(), "{error}");
}
