use std::collections::BTreeMap;

use super::tarball::{Tar, gzip, plugin, zstd};
use crate::oci::{
    LayerError, Limits,
    unpack::{Unpacked, Unpacker},
};

const OCI_GZIP: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

/// Layers as type, title and bytes.
fn unpack(layers: &[(&str, &str, Vec<u8>)]) -> Result<Unpacked, LayerError> {
    let mut unpacker = Unpacker::new(&Limits::PLUGIN);
    for (index, (kind, title, bytes)) in layers.iter().enumerate() {
        let title = (!title.is_empty()).then(|| ("org.opencontainers.image.title".to_owned(), (*title).to_owned()));
        unpacker.layer(index + 1, kind, &title.into_iter().collect(), bytes)?;
    }
    Ok(unpacker.finish())
}

fn paths(layers: &[Vec<u8>]) -> Vec<String> {
    let layers: Vec<_> = layers.iter().map(|bytes| (OCI_GZIP, "", bytes.clone())).collect();
    unpack(&layers).unwrap().0.into_keys().collect()
}

#[test]
fn compressions_and_types() {
    for (kind, bytes) in [
        ("application/vnd.oci.image.layer.v1.tar", plugin().end()),
        (OCI_GZIP, plugin().gzip()),
        ("application/vnd.oci.image.layer.v1.tar+zstd", plugin().zstd()),
        ("application/vnd.docker.image.rootfs.diff.tar.gzip", plugin().gzip()),
        ("application/vnd.docker.image.rootfs.diff.tar", plugin().end()),
        ("application/vnd.oci.image.layer.nondistributable.v1.tar+gzip", plugin().gzip()),
        ("application/vnd.docker.image.rootfs.foreign.diff.tar.gzip", plugin().gzip()),
        ("application/vnd.example.plugin", plugin().gzip()),
        ("", plugin().end()),
    ] {
        let (files, notes) = unpack(&[(kind, "", bytes)]).unwrap();
        assert_eq!(files.keys().collect::<Vec<_>>(), ["handler.lua", "schema.lua"], "{kind}");
        assert!(notes.is_empty(), "{kind}: {notes:?}");
    }
}

#[test]
fn bytes_win_over_types() {
    let (files, notes) = unpack(&[(OCI_GZIP, "", plugin().zstd())]).unwrap();
    assert_eq!(files.len(), 2);
    assert_eq!(notes, ["layer 1 is compressed with zstd although its type is application/vnd.oci.image.layer.v1.tar+gzip"]);
    let (files, notes) = unpack(&[(OCI_GZIP, "", plugin().end())]).unwrap();
    assert_eq!((files.len(), notes.len()), (2, 1));
}

#[test]
fn frames_and_members_one_after_the_other() {
    let whole = plugin().end();
    let (first, second) = whole.split_at(700);
    assert_eq!(paths(&[[gzip(first), gzip(second)].concat()]).len(), 2);
    let skippable = [&[0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0], &b"abc"[..]].concat();
    assert_eq!(paths(&[[skippable.clone(), zstd(first), skippable, zstd(second)].concat()]).len(), 2);
}

#[test]
fn empty_layers() {
    assert!(paths(&[Tar::default().gzip(), Tar::default().end(), Vec::new()]).is_empty());
    assert!(unpack(&[("application/vnd.oci.empty.v1+json", "", b"{}".to_vec())]).unwrap().0.is_empty());
}

#[test]
fn names_in_every_dialect() {
    let long = format!("{}/handler.lua", "d".repeat(200));
    let found = paths(&[Tar::default()
        .dir("./")
        .dir("kong/")
        .file("./kong//plugins/./a.lua", "")
        .long_name(&long)
        .file("short", "")
        .pax("path", "ünï/code.lua")
        .file("ascii", "")
        .pax("mtime", "1.5")
        .file("plain.lua", "")
        .entry(b"pax_global_header", b'g', b"52 comment=0123456789012345678901234567890123456789\n")
        .entry(b"old/", b'0', b"")
        .gzip()]);
    assert_eq!(found, [&long, "kong/plugins/a.lua", "plain.lua", "ünï/code.lua"]);
}

#[test]
fn layers_lie_on_top_of_each_other() {
    let base = Tar::default().file("a/x", "1").file("a/y", "1").file("b/z", "1").file("c", "1").file("d/e/f", "1").end();
    let cases: [(Tar, &[&str]); 8] = [
        (Tar::default().file("a/x", "2"), &["a/x", "a/y", "b/z", "c", "d/e/f"]),
        (Tar::default().file("a/.wh.x", ""), &["a/y", "b/z", "c", "d/e/f"]),
        (Tar::default().file(".wh.a", ""), &["b/z", "c", "d/e/f"]),
        (Tar::default().file("a/.wh..wh..opq", "").file("a/n", ""), &["a/n", "b/z", "c", "d/e/f"]),
        (Tar::default().file(".wh..wh..opq", ""), &[]),
        (Tar::default().file("a", ""), &["a", "b/z", "c", "d/e/f"]),
        (Tar::default().file("c/n", ""), &["a/x", "a/y", "b/z", "c/n", "d/e/f"]),
        (Tar::default().dir("c").file(".wh..wh.plnk", "").file("d/.wh.e", "").file("d/e", ""), &["a/x", "a/y", "b/z", "d/e"]),
    ];
    for (upper, expected) in cases {
        assert_eq!(paths(&[base.clone(), upper.end()]), expected);
    }
    // A removal does not reach its own layer, whatever the order.
    let same = Tar::default().file("new", "").file(".wh.new", "").end();
    assert_eq!(paths(&[same]), ["new"]);
    let (files, _) = unpack(&[("", "", base), ("", "", Tar::default().file("a/x", "2").end())]).unwrap();
    assert_eq!(files["a/x"], b"2");
}

#[test]
fn files_pushed_by_oras() {
    let tar = "application/vnd.oci.image.layer.v1.tar";
    let (files, notes) =
        unpack(&[(tar, "handler.lua", b"return 1".to_vec()), ("text/x-lua", "sub/schema.lua", b"return 2".to_vec())]).unwrap();
    assert_eq!(
        files,
        BTreeMap::from([("handler.lua".to_owned(), b"return 1".to_vec()), ("sub/schema.lua".to_owned(), b"return 2".to_vec())])
    );
    assert_eq!(notes.len(), 1, "{notes:?}");
    // Archives are unpacked whatever they are called.
    assert_eq!(unpack(&[(tar, "plugin.tgz", plugin().gzip())]).unwrap().0.len(), 2);
    assert_eq!(unpack(&[("text/x-lua", "empty.lua", Vec::new())]).unwrap().0.len(), 1);
    let wasm = unpack(&[("application/wasm", "", b"\0asm\x0d\0\x01\0".to_vec())]).unwrap().0;
    assert_eq!(wasm.keys().collect::<Vec<_>>(), ["layer-1.wasm"]);
}

#[test]
fn directories_pushed_by_oras() {
    let mut unpacker = Unpacker::new(&Limits::PLUGIN);
    let notes = BTreeMap::from([
        ("org.opencontainers.image.title".to_owned(), "my-plugin".to_owned()),
        ("io.deis.oras.content.unpack".to_owned(), "true".to_owned()),
    ]);
    unpacker.layer(1, OCI_GZIP, &notes, &Tar::default().dir("my-plugin").file("my-plugin/handler.lua", "").gzip()).unwrap();
    assert!(matches!(unpacker.layer(2, OCI_GZIP, &notes, b"text"), Err(LayerError::NotArchive { .. })));
    assert_eq!(unpacker.finish().0.into_keys().collect::<Vec<_>>(), ["my-plugin/handler.lua"]);
}
