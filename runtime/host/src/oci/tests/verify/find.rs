use std::sync::Arc;

use serde_json::json;
use weir_sigstore::key;

use super::{BUNDLE, IMAGE, INDEX, Place, all_of, by_key, signer, simple_by_key, verify};
use crate::oci::{
    Error, VerifyError,
    tests::registry::{Reply, Server, status},
};

#[tokio::test]
async fn nothing_is_asked_for_without_requirements() {
    let (server, digest) = Place::new().serve().await;
    assert!(verify(&server, &[&digest], &[], None).await.unwrap().signers.is_empty() && server.asked().is_empty());
}

#[tokio::test]
async fn unsigned_says_where_was_looked() {
    let (server, digest) = Place::new().serve().await;
    let error = verify(&server, &[&digest], &[all_of(&[&signer("k", &key().unwrap())])], None).await.unwrap_err();
    let tag = digest.replace(':', "-");
    assert_eq!(
        error.to_string(),
        format!(
            "{}/x/y@{digest} is not signed: nothing was found at tag {tag}.sig, referrers of {digest} (tag {tag}); sign it with cosign, or copy its signatures along with it",
            server.address
        )
    );
    assert!(matches!(error, VerifyError::NotSigned { .. }) && !error.transient());
    for path in [format!("/manifests/{tag}.sig"), format!("/referrers/{digest}"), format!("/manifests/{tag}")] {
        assert!(server.asked().iter().any(|asked| asked.path.ends_with(&path)), "{path}");
    }
}

#[tokio::test]
async fn the_api_of_referrers_comes_in_parts() {
    let pair = key().unwrap();
    let mut place = Place::new();
    place.bundle(&by_key(&key().unwrap(), &place.digest));
    place.bundle(&by_key(&pair, &place.digest));
    let (bundles, digest) = (place.bundles.clone(), place.digest.clone());
    let part = Arc::new(move |number: usize| {
        let body = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [bundles[number]]}).to_string();
        let mut headers = vec![("content-type", INDEX.to_owned())];
        if number == 0 {
            headers.push(("link", "</v2/x/y/referrers/more?last=1>; rel=\"next\"".to_owned()));
        }
        Reply::Full(200, headers, body.into_bytes())
    });
    let tag = place.tag("");
    let server = Server::start(place.shelf, move |asked, _| match asked.path.as_str() {
        path if path.ends_with(&tag) => Some(status(404, "{}")),
        path if path.contains("/referrers/more") => Some(part(1)),
        path if path.contains("/referrers/") => Some(part(0)),
        _ => None,
    })
    .await;
    verify(&server, &[&digest], &[all_of(&[&signer("k", &pair)])], None).await.unwrap();
}

#[tokio::test]
async fn registries_without_the_api_answer_in_many_ways() {
    let pair = key().unwrap();
    let wanted = [all_of(&[&signer("k", &pair)])];
    for reply in
        [status(405, "no"), status(400, "<html>"), Reply::Full(200, vec![("content-type", "text/html".into())], b"<html>".to_vec())]
    {
        let mut place = Place::new();
        place.bundle(&by_key(&pair, &place.digest));
        let digest = place.digest.clone();
        let server = Server::start(place.shelf, move |asked, _| asked.path.contains("/referrers/").then(|| reply.clone())).await;
        verify(&server, &[&digest], &wanted, None).await.unwrap();
    }
}

#[tokio::test]
async fn a_registry_that_fails_is_not_taken_for_one_without_signatures() {
    for part in ["/referrers/", ".sig", "/blobs/"] {
        let pair = key().unwrap();
        let mut place = Place::new();
        place.simple(&[simple_by_key(&pair, &place.digest)]);
        let digest = place.digest.clone();
        let server = Server::start(place.shelf, move |asked, _| asked.path.contains(part).then(|| status(503, ""))).await;
        let error = verify(&server, &[&digest], &[all_of(&[&signer("k", &pair)])], None).await.unwrap_err();
        assert!(matches!(error, VerifyError::Fetch(Error::Status { status: 503, .. })) && error.transient(), "{part}: {error}");
    }
}

#[tokio::test]
async fn lists_that_name_bundles_by_what_they_are_not() {
    let pair = key().unwrap();
    for listed_as in ["application/vnd.oci.empty.v1+json", "application/vnd.oci.image.config.v1+json", ""] {
        let mut place = Place::new();
        place.listed("application/spdx+json", "application/spdx+json", &vec![b'x'; 2 << 20]);
        place.listed(listed_as, BUNDLE, by_key(&pair, &place.digest).to_string().as_bytes());
        let (server, digest) = place.serve().await;
        verify(&server, &[&digest], &[all_of(&[&signer("k", &pair)])], None).await.unwrap();
        assert_eq!(server.count("/blobs/"), 1, "only the signature is fetched");
    }
}

#[tokio::test]
async fn rubbish_hides_no_signature() {
    let pair = key().unwrap();
    let mut place = Place::new();
    place.listed(BUNDLE, BUNDLE, b"{");
    place.listed(BUNDLE, BUNDLE, &vec![b' '; (1 << 20) + 1]);
    place.bundles.push(json!({"mediaType": IMAGE, "digest": format!("sha256:{}", "9".repeat(64)), "size": 1, "artifactType": BUNDLE}));
    place.bundle(&by_key(&pair, &place.digest));
    place.shelf.manifest(&place.tag(".sig"), INDEX, &json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": []}));
    let (server, digest) = place.serve().await;
    verify(&server, &[&digest], &[all_of(&[&signer("k", &pair)])], None).await.unwrap();
    // Without the good one it is told.
    let error = verify(&server, &[&digest], &[all_of(&[&signer("other", &key().unwrap())])], None).await.unwrap_err();
    for problem in ["is an index, which is no signature", "does not exist", "the bundle is malformed", "at most 1 MiB are read"] {
        assert!(super::found(&error).contains(problem), "{problem}: {error}");
    }
}

#[tokio::test]
async fn only_so_many_signatures_are_read() {
    let pair = key().unwrap();
    let mut place = Place::new();
    let many: Vec<_> = (0..40).map(|_| simple_by_key(&pair, &place.digest)).collect();
    place.simple(&many);
    let (server, digest) = place.serve().await;
    let error = verify(&server, &[&digest], &[all_of(&[&signer("other", &key().unwrap())])], None).await.unwrap_err();
    let VerifyError::NotBy { found, .. } = &error else { panic!("{error}") };
    assert_eq!((found.len(), found.last().unwrap().as_str()), (33, "only the first 32 are read; delete old signatures"));
    assert!(error.to_string().contains("27 more"), "{error}");
}
