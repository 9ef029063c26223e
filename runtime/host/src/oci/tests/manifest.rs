use crate::oci::{
    Limits, ManifestError,
    manifest::{self, Document, Image},
};

const HEX: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

fn parse(text: &str, kind: &str) -> Result<Document, ManifestError> {
    Document::parse(text.replace("HEX", HEX).as_bytes(), Some(kind), &Limits::PLUGIN)
}

fn image(text: &str) -> Image {
    manifest::image(parse(text, "").unwrap()).unwrap()
}

fn error(text: &str) -> ManifestError {
    parse(text, "").unwrap_err()
}

#[test]
fn images_and_artifacts() {
    let docker = image(r#"{"schemaVersion": 2, "mediaType": "application/vnd.docker.distribution.manifest.v2+json", "layers": []}"#);
    assert_eq!(docker.media_type, "application/vnd.docker.distribution.manifest.v2+json");
    let config = r#"{"mediaType": "application/vnd.x.config", "digest": "sha256:HEX", "size": 2}"#;
    let oci = image(&format!(r#"{{"schemaVersion": 2, "config": {config}, "layers": [], "annotations": {{"a": "b"}}}}"#));
    assert_eq!((oci.artifact_type.as_deref(), oci.annotations["a"].as_str()), (Some("application/vnd.x.config"), "b"));
    let artifact = image(&format!(
        r#"{{"mediaType": "{}", "artifactType": "application/vnd.kong", "config": {config}, "layers": null, "annotations": null}}"#,
        "application/vnd.oci.image.manifest.v1+json"
    ));
    assert_eq!(artifact.artifact_type.as_deref(), Some("application/vnd.kong"));
    let early = image(
        r#"{"mediaType": "application/vnd.oci.artifact.manifest.v1+json", "blobs": [{"mediaType": "", "digest": "sha256:HEX", "size": 1}]}"#,
    );
    assert_eq!(early.layers.len(), 1);
}

#[test]
fn refusals() {
    let layer = |digest: &str, size: u64| format!(r#"{{"mediaType": "x", "digest": "{digest}", "size": {size}}}"#);
    let layers = |list: &[String]| format!(r#"{{"schemaVersion": 2, "layers": [{}]}}"#, list.join(","));
    assert_eq!(error(r#"{"schemaVersion": 1, "fsLayers": []}"#), ManifestError::Schema1);
    assert_eq!(
        parse("{}", "application/vnd.docker.distribution.manifest.v1+prettyjws; charset=utf-8").unwrap_err(),
        ManifestError::Schema1
    );
    assert_eq!(error(r#"{"schemaVersion": 2, "layers": [], "manifests": []}"#), ManifestError::Ambiguous);
    assert_eq!(parse(r#"{"layers": []}"#, "application/vnd.oci.image.index.v1+json").unwrap_err(), ManifestError::Ambiguous);
    assert!(matches!(error(r#"{"schemaVersion": 2}"#), ManifestError::Neither(_)));
    assert!(matches!(error(r#"{"layers": [], "layers": []}"#), ManifestError::Malformed(_)));
    assert!(matches!(error(&layers(&[layer("sha256:../../x", 1)])), ManifestError::Digest(_)));
    assert!(matches!(
        error(&layers(&[r#"{"mediaType": "x", "digest": "sha256:HEX", "size": -1}"#.to_owned()])),
        ManifestError::Malformed(_)
    ));
    let one = layer("sha256:HEX", 5 << 20);
    assert_eq!(error(&layers(&[layer("sha256:HEX", 9 << 20)])).to_string(), "layer 1 has 9 MiB, at most 8 MiB are allowed");
    assert_eq!(error(&layers(&[one.clone(), one])).to_string(), "the sum of all layers has 10 MiB, at most 8 MiB are allowed");
    assert!(matches!(error(&layers(&vec![layer("sha256:HEX", 1); 65])), ManifestError::Many { found: 65, most: 64, .. }));
    assert!(error(&layers(&vec![layer("sha256:HEX", 1); 300])).to_string().contains("at most 256 entries"));
    let many = (0..300).map(|n| format!("\"{n}\": \"\"")).collect::<Vec<_>>().join(",");
    assert!(error(&format!(r#"{{"layers": [], "annotations": {{{many}}}}}"#)).to_string().contains("at most 256 annotations"));
}

#[test]
fn indexes() {
    let entry = |digit: char, more: &str| {
        format!(
            r#"{{"mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": "sha256:{}", "size": 2{more}}}"#,
            digit.to_string().repeat(64)
        )
    };
    let candidates = |entries: &[String]| match parse(&format!(r#"{{"schemaVersion": 2, "manifests": [{}]}}"#, entries.join(",")), "")? {
        Document::Index(index) => index.candidates().map(|list| list.len()),
        Document::Image(_) => panic!("an image"),
    };
    let attestation = entry('9', r#", "annotations": {"vnd.docker.reference.type": "attestation-manifest"}"#);
    assert_eq!(candidates(&[entry('1', ""), attestation.clone()]), Ok(1));
    assert_eq!(candidates(&[entry('1', ""), entry('1', ""), entry('2', "")]), Ok(2));
    assert_eq!(candidates(&[attestation]), Err(ManifestError::Empty));
    assert!(matches!(candidates(&vec![entry('1', ""); 33]), Err(ManifestError::Many { most: 32, .. })));
}
