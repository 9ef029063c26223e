use std::collections::BTreeMap;

use serde_json::json;

use crate::{
    oci::{Blob, Package, PackageError},
    wasm::inspect,
};

/// A component that imports and exports something.
pub(super) fn component() -> Vec<u8> {
    wat::parse_str(
        r#"(component
            (import "weir:policy/log@0.1.0" (instance))
            (instance $i)
            (export "weir:policy/konnect-env@0.1.0" (instance $i))
            (export "weir:policy/settings@0.1.0" (instance $i)))"#,
    )
    .unwrap()
}

#[test]
fn the_layout_of_the_cncf_word_for_word() {
    let wasm = component();
    let upload = Package::new(&wasm, "policy.wasm").cncf().unwrap();
    let [config, layer] = &upload.blobs[..] else { panic!("{upload:?}") };
    assert_eq!((layer.media_type.as_str(), &layer.bytes), ("application/wasm", &wasm));
    assert_eq!(config.media_type, "application/vnd.wasm.config.v0+json");
    assert_eq!(
        String::from_utf8(config.bytes.clone()).unwrap(),
        format!(
            concat!(
                r#"{{"created":"1970-01-01T00:00:00Z","architecture":"wasm","os":"wasip2","layerDigests":["{}"],"#,
                r#""component":{{"imports":["weir:policy/log@0.1.0"],"#,
                r#""exports":["weir:policy/konnect-env@0.1.0","weir:policy/settings@0.1.0"]}}}}"#
            ),
            layer.digest
        )
    );
    assert_eq!(
        String::from_utf8(upload.manifest.clone()).unwrap(),
        format!(
            concat!(
                r#"{{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","#,
                r#""config":{{"mediaType":"application/vnd.wasm.config.v0+json","digest":"{}","size":{}}},"#,
                r#""layers":[{{"mediaType":"application/wasm","digest":"{}","size":{},"#,
                r#""annotations":{{"org.opencontainers.image.title":"policy.wasm"}}}}]}}"#
            ),
            config.digest,
            config.bytes.len(),
            layer.digest,
            wasm.len()
        )
    );
    assert_eq!(upload, Package::new(&wasm, "policy.wasm").cncf().unwrap());
}

#[test]
fn the_layout_before_it() {
    let wasm = component();
    let annotations = BTreeMap::from([("b".to_owned(), "2".to_owned()), ("a".to_owned(), "1".to_owned())]);
    let package = Package { annotations, ..Package::new(&wasm, "policy.wasm") };
    let upload = package.legacy().unwrap();
    assert_eq!(upload.blobs[0], Blob::new("application/vnd.wasm.config.v1+json", b"{}".to_vec()));
    assert_eq!(upload.blobs[1].media_type, "application/vnd.wasm.content.layer.v1+wasm");
    let manifest: serde_json::Value = serde_json::from_slice(&upload.manifest).unwrap();
    assert_eq!(manifest["annotations"], json!({"a": "1", "b": "2"}));
    assert_ne!(upload.digest, package.cncf().unwrap().digest);
}

#[test]
fn what_is_no_component_is_not_packed() {
    let module = wat::parse_str("(module)").unwrap();
    assert!(matches!(Package::new(&module, "x").cncf(), Err(PackageError::Component(inspect::Error::NotComponent(_)))));
    assert!(matches!(Package::new(b"<html>", "x").legacy(), Err(PackageError::Component(_))));
    let (wasm, large) = (component(), "x".repeat(64 << 10));
    let with = |name: &str, value: &str| {
        Package { annotations: BTreeMap::from([(name.to_owned(), value.to_owned())]), ..Package::new(&wasm, "x") }.cncf().unwrap_err()
    };
    assert_eq!(with("", "x"), PackageError::NoName);
    assert_eq!(with("a", &large), PackageError::Annotations { count: 1, bytes: (64 << 10) + 1 });
}
