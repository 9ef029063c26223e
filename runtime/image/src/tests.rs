use std::io::Read;

use super::{Blob, Compression, Finished, Image, Layer, Operator, Parts, Program, base, program, rfc3339};

fn layer(order: [&str; 3]) -> Finished {
    let mut layer = Layer::new(7);
    for path in order {
        layer.file(path, 0o644, path.as_bytes().to_vec()).unwrap();
    }
    layer.directory("/tmp", 0o1777);
    layer.finish(Compression::best()).unwrap()
}

#[test]
fn the_same_files_in_any_order_are_the_same_layer() {
    let (one, other) = (layer(["/a/b/c", "/a/d", "/e"]), layer(["/e", "/a/d", "/a/b/c"]));
    assert_eq!(one.diff_id, other.diff_id);
    assert_eq!(one.blob.bytes, other.blob.bytes);
    let mut tar = tar::Archive::new(flate2::read::GzDecoder::new(one.blob.bytes.as_slice()));
    let mut seen = Vec::new();
    for entry in tar.entries().unwrap() {
        let mut entry = entry.unwrap();
        let header = entry.header();
        assert_eq!((header.uid().unwrap(), header.gid().unwrap(), header.mtime().unwrap()), (0, 0, 7));
        let mode = header.mode().unwrap();
        let path = entry.path().unwrap().display().to_string();
        let mut text = String::new();
        entry.read_to_string(&mut text).unwrap();
        seen.push(format!("{path} {mode:o} {text}"));
    }
    let wanted = ["a/ 755 ", "a/b/ 755 ", "a/b/c 644 /a/b/c", "a/d 644 /a/d", "e 644 /e", "tmp/ 1777 "];
    assert_eq!(seen, wanted);
}

#[test]
fn a_path_that_leaves_the_image_or_is_taken_is_refused() {
    let mut layer = Layer::new(0);
    for bad in ["/", "/a/../b", "/a//b", "/./a"] {
        assert!(layer.file(bad, 0o644, Vec::new()).is_err(), "{bad}");
    }
    layer.file("/a", 0o644, Vec::new()).unwrap();
    assert!(layer.file("/a", 0o644, Vec::new()).is_err());
}

#[test]
fn an_archive_has_a_layout_whose_digests_are_true() {
    let image = Image {
        name: "localhost/weir:1".into(),
        architecture: "amd64",
        config: Blob::new(b"{}".to_vec()),
        layers: vec![layer(["/a", "/b", "/c"]).blob, layer(["/d", "/e", "/f"]).blob],
    };
    let bytes = image.archive(0).unwrap();
    assert_eq!(bytes, image.archive(0).unwrap());
    let mut files = std::collections::BTreeMap::new();
    for entry in tar::Archive::new(bytes.as_slice()).entries().unwrap() {
        let mut entry = entry.unwrap();
        let mut content = Vec::new();
        entry.read_to_end(&mut content).unwrap();
        files.insert(entry.path().unwrap().display().to_string(), content);
    }
    let json = |path: &str| -> serde_json::Value { serde_json::from_slice(&files[path]).unwrap() };
    let blob = |descriptor: &serde_json::Value| format!("blobs/{}", descriptor["digest"].as_str().unwrap().replace(':', "/"));
    assert_eq!(json("oci-layout")["imageLayoutVersion"], "1.0.0");
    let entry = &json("index.json")["manifests"][0];
    assert_eq!(entry["digest"], image.digest().unwrap());
    assert_eq!(entry["annotations"]["org.opencontainers.image.ref.name"], "localhost/weir:1");
    let manifest = json(&blob(entry));
    for descriptor in manifest["layers"].as_array().unwrap().iter().chain([&manifest["config"], entry]) {
        let content = &files[&blob(descriptor)];
        assert_eq!(Blob::new(content.clone()).bytes.len(), descriptor["size"].as_u64().unwrap() as usize);
    }
    let docker = json("manifest.json");
    assert!(files.contains_key(docker[0]["Config"].as_str().unwrap()));
    assert_eq!(docker[0]["Layers"].as_array().unwrap().len(), 2);
}

#[test]
fn times_are_dates() {
    for (seconds, text) in [
        (0, "1970-01-01T00:00:00Z"),
        (951_782_399, "2000-02-28T23:59:59Z"),
        (951_782_400, "2000-02-29T00:00:00Z"),
        (1_796_073_549, "2026-11-30T21:19:09Z"),
        (4_107_542_400, "2100-03-01T00:00:00Z"),
    ] {
        assert_eq!(rfc3339(seconds).unwrap(), text);
    }
}

#[test]
fn programs_are_told_by_their_header() {
    let mut header = vec![0_u8; 64 + 56];
    header[..6].copy_from_slice(b"\x7fELF\x02\x01");
    header[18] = 0xb7;
    header[32] = 64;
    header[54] = 56;
    header[56] = 1;
    assert_eq!(program::architecture(&header), Some("arm64"));
    assert_eq!(program::is_dynamic(&header), Some(false));
    header[64] = 3;
    assert_eq!(program::is_dynamic(&header), Some(true));
    header[56] = 9;
    assert_eq!(program::is_dynamic(&header), None);
    assert_eq!(program::architecture(b"#!/bin/sh"), None);
}

#[test]
fn libraries_are_read_from_what_ldd_says() {
    let said = "\tlinux-vdso.so.1 (0x00)\n\tlibc.so.6 => /lib/x/libc.so.6 (0x00)\n\t/lib64/ld-linux-x86-64.so.2 (0x00)\n";
    assert_eq!(base::linked(said).unwrap(), ["/lib/x/libc.so.6", "/lib64/ld-linux-x86-64.so.2"]);
    assert!(base::linked("\tlibz.so => not found\n").is_err());
    assert!(base::linked("\tstatically linked\n").is_err());
}

/// A program that needs no library.
fn program(dir: &std::path::Path) -> Program {
    let mut bytes = vec![0_u8; 4096];
    bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
    bytes[18] = if cfg!(target_arch = "x86_64") { 0x3e } else { 0xb7 };
    let path = dir.join("weir");
    std::fs::write(&path, bytes).unwrap();
    Program::read(&path).unwrap()
}

#[test]
fn the_same_inputs_give_the_same_digest_and_another_time_another_one() {
    let dir = tempfile::tempdir().unwrap();
    let program = program(dir.path());
    assert!(program.is_native() && !program.is_dynamic);
    let image = |created, documents: Vec<(&'static str, Vec<u8>)>| {
        let base = base::Base { files: vec![("/etc/passwd".to_owned(), 0o644, b"root".to_vec())], packages: Vec::new() };
        let parts = Parts {
            name: "a:1",
            program: &program,
            base,
            documents,
            env: Vec::new(),
            revision: "r",
            created,
            compression: Compression::best(),
        };
        Operator::new(parts).unwrap().image
    };
    let documents = || vec![("/usr/share/doc/weir/LICENSE", b"x".to_vec()), ("/usr/share/doc/weir/sbom.spdx.json", b"{}".to_vec())];
    let (one, again) = (image(7, documents()), image(7, documents()));
    assert_eq!(one.digest().unwrap(), again.digest().unwrap());
    assert_eq!(one.archive(7).unwrap(), again.archive(7).unwrap());
    let reordered = image(7, documents().into_iter().rev().collect());
    assert_eq!(one.digest().unwrap(), reordered.digest().unwrap());
    assert_ne!(one.digest().unwrap(), image(8, documents()).digest().unwrap());
    let config: serde_json::Value = serde_json::from_slice(&one.config.bytes).unwrap();
    assert_eq!(config["config"]["User"], "65532:65532");
    assert_eq!(config["created"], "1970-01-01T00:00:07Z");
}

#[test]
fn links_are_links() {
    let mut layer = Layer::new(0);
    layer.link("/lib/a.so", "a.so.1").unwrap();
    assert!(layer.link("/lib/a.so", "b").is_err() && layer.link("/../a", "b").is_err());
    let bytes = layer.finish(Compression::fast()).unwrap().blob.bytes;
    let mut tar = tar::Archive::new(flate2::read::GzDecoder::new(bytes.as_slice()));
    let entry = tar.entries().unwrap().nth(1).unwrap().unwrap();
    assert_eq!(entry.link_name().unwrap().unwrap(), std::path::Path::new("a.so.1"));
}
