use std::{fs, path::Path};

use serde_json::{Value, json};

use super::{
    registry::{IMAGE, INDEX, Server, Shelf, puller},
    tarball::{Tar, plugin},
    uploads::Uploads,
};
use crate::oci::{Credentials, Error, ManifestError, PushError, Upload, local, save};

const ANYBODY: Credentials = Credentials::Anonymous;
const MOST: u64 = 1 << 20;

/// An index of two images with a layer in common.
fn shelf() -> Shelf {
    let mut shelf = Shelf::default();
    let common = plugin().gzip();
    let mut amd = shelf.image("a", std::slice::from_ref(&common));
    let mut arm = shelf.image("b", &[common, Tar::default().file("new.lua", "x").gzip()]);
    amd["platform"] = json!({"os": "linux", "architecture": "amd64"});
    arm["platform"] = json!({"os": "linux", "architecture": "arm64"});
    let index = shelf.manifest("1", INDEX, &json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [amd, arm]}));
    shelf.manifest("nested", INDEX, &json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [index]}));
    shelf
}

async fn whole(tag: &str, most: u64) -> Result<Upload, Error> {
    let server = Server::start(shelf(), |_, _| None).await;
    puller().whole(&server.reference(tag), &ANYBODY, most).await
}

#[tokio::test]
async fn copies_are_equal_byte_for_byte() {
    let from = Server::start(shelf(), |_, _| None).await;
    let uploads = Uploads::default();
    let stored = uploads.clone();
    let to = Server::start(Shelf::default(), move |asked, _| stored.reply(asked)).await;
    let copied = puller().copy((&from.reference(":1"), &ANYBODY), (&to.reference(":2"), &ANYBODY), MOST).await.unwrap();
    assert_eq!(copied.digest, puller().resolve(&from.reference(":1"), &ANYBODY).await.unwrap().digest);
    assert_eq!((copied.sent, copied.present, copied.reference.tag()), (2, 0, Some("2")), "a blob of two images is sent once");
    let (there, here) = (whole(":1", MOST).await.unwrap(), puller().whole(&to.reference(":2"), &ANYBODY, MOST).await.unwrap());
    assert_eq!(there, here);
    assert_eq!(here.images.len(), 2);
}

#[tokio::test]
async fn what_is_copied_is_bounded() {
    let size = whole(":1", MOST).await.unwrap().size();
    assert_eq!(whole(":1", size).await.unwrap().size(), size);
    let refused = |result: Result<Upload, Error>| match result {
        Err(Error::Manifest { source, .. }) => *source,
        other => panic!("{other:?}"),
    };
    assert!(matches!(refused(whole(":1", size - 1).await), ManifestError::Large { found, .. } if found == size));
    assert_eq!(refused(whole(":nested", MOST).await), ManifestError::Nested);
}

#[tokio::test]
async fn what_is_not_there_is_not_copied() {
    let server = Server::start(shelf(), |_, _| None).await;
    let result = puller().copy((&server.reference(":none"), &ANYBODY), (&server.reference(":2"), &ANYBODY), MOST).await;
    assert!(matches!(result, Err(PushError::Registry(Error::NotFound { .. }))));
    assert!(server.asked().iter().all(|asked| matches!(asked.method.as_str(), "GET" | "HEAD")));
}

fn archive(upload: &Upload) -> Vec<u8> {
    let mut bytes = Vec::new();
    save(upload, Some("1"), &[], &mut bytes).unwrap();
    bytes
}

fn load(bytes: &[u8]) -> Result<Upload, local::Error> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("saved.tar");
    fs::write(&path, bytes).unwrap();
    local::whole(&path, MOST)
}

#[tokio::test]
async fn what_is_saved_is_loaded() {
    for tag in [":1", ":a"] {
        let upload = whole(tag, MOST).await.unwrap();
        let bytes = archive(&upload);
        assert_eq!(bytes, archive(&upload));
        assert_eq!(load(&bytes).unwrap(), upload);
    }
    // A layout as a directory is the same.
    let upload = whole(":1", MOST).await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    tar::Archive::new(archive(&upload).as_slice()).unpack(dir.path()).unwrap();
    assert_eq!(local::whole(dir.path(), MOST).unwrap(), upload);
    let empty = tempfile::tempdir().unwrap();
    assert!(matches!(local::whole(empty.path(), MOST), Err(local::Error::NoLayout { .. })));
}

#[tokio::test]
async fn archives_are_not_believed() {
    let upload = whole(":a", MOST).await.unwrap();
    let mut bytes = archive(&upload);
    let layer = &upload.blobs[0].bytes;
    let at = bytes.windows(layer.len()).position(|window| window == layer).unwrap();
    bytes[at + 20] ^= 1;
    let error = load(&bytes).unwrap_err();
    assert!(matches!(&error, local::Error::Broken { problem, .. } if problem.contains("digest")), "{error}");

    assert!(matches!(load(&Tar::default().file("x.lua", "x").end()), Err(local::Error::NoImage { .. })));
    let marker = Tar::default().file("oci-layout", "{}");
    let index = |entries: &[Value]| marker.clone().file("index.json", &json!({"manifests": entries}).to_string()).end();
    let entry = |digit: &str| json!({"mediaType": IMAGE, "digest": format!("sha256:{}", digit.repeat(64)), "size": 1});
    assert!(matches!(load(&index(&[entry("1"), entry("2")])), Err(local::Error::Images { count: 2, .. })));
    assert!(matches!(load(&index(&[])), Err(local::Error::Images { count: 0, .. })));
    assert!(matches!(load(&index(&[entry("1")])), Err(local::Error::Missing { .. })));
    let wrong = json!({"mediaType": IMAGE, "digest": "sha256:../../x", "size": 1});
    assert!(matches!(load(&index(&[wrong])), Err(local::Error::Manifest { .. })));
    assert!(matches!(local::whole(Path::new("/nowhere"), MOST), Err(local::Error::Read { .. })));
}
