use std::collections::BTreeMap;

use super::tarball::{Tar, gzip, plugin, zstd};
use crate::oci::{EntryProblem, LayerError, Limits, unpack::Unpacker};

fn refusal(limits: &Limits, bytes: &[u8]) -> LayerError {
    Unpacker::new(limits).layer(1, "", &BTreeMap::new(), bytes).unwrap_err()
}

/// The entry that is refused, and why.
fn problem(tar: Tar) -> (String, EntryProblem) {
    match refusal(&Limits::PLUGIN, &plugin().gzip_with(tar)) {
        LayerError::Entry { name, problem } => (name, problem),
        other @ (LayerError::Broken { .. }
        | LayerError::NotArchive { .. }
        | LayerError::NotTar
        | LayerError::Total { .. }
        | LayerError::Files { .. }
        | LayerError::Bomb { .. }
        | LayerError::Window { .. }) => panic!("{other}"),
    }
}

impl Tar {
    fn gzip_with(self, more: Self) -> Vec<u8> {
        gzip(&[self.raw(), more.end()].concat())
    }

    fn raw(self) -> Vec<u8> {
        let mut bytes = self.end();
        bytes.truncate(bytes.len() - 1024);
        bytes
    }
}

#[test]
fn names() {
    let file = |name: &str| problem(Tar::default().file(name, "")).1;
    for name in ["../x", "a/../../x", "a/..", "a/../x"] {
        assert_eq!(file(name), EntryProblem::Traversal, "{name}");
    }
    assert_eq!(file("/etc/passwd"), EntryProblem::Absolute);
    assert_eq!(file("."), EntryProblem::NoName);
    assert_eq!(file(".wh."), EntryProblem::NoName);
    assert_eq!(file(".wh..."), EntryProblem::NoName);
    for name in ["a\\b", "a\x1b[2Jb", "a\nb", "a\u{202e}b"] {
        assert_eq!(file(name), EntryProblem::Odd, "{name:?}");
    }
    assert_eq!(file(&["x"; 17].join("/")), EntryProblem::Deep { found: 17, most: 16 });
    assert_eq!(problem(Tar::default().entry(b"a\xffb", b'0', b"")).1, EntryProblem::NotUtf8);
    let long = "x".repeat(600);
    assert_eq!(problem(Tar::default().long_name(&long).file("x", "")).1, EntryProblem::Long { found: 600, most: 512 });
    assert_eq!(problem(Tar::default().pax("path", "../x").file("x", "")), ("../x".to_owned(), EntryProblem::Traversal));
    assert_eq!(problem(Tar::default().long_name("/x").file("x", "")).1, EntryProblem::Absolute);
}

#[test]
fn kinds() {
    for (kind, what) in [
        (b'2', "symbolic link"),
        (b'1', "hard link"),
        (b'3', "device"),
        (b'4', "device"),
        (b'6', "named pipe"),
        (b'S', "sparse file"),
        (b'Z', "file of an unknown type"),
    ] {
        let (name, found) = problem(Tar::default().entry(b"evil", kind, b""));
        assert_eq!((name.as_str(), found), ("evil", EntryProblem::Kind(what)));
    }
    let sparse = Tar::default().pax("GNU.sparse.major", "1").file("evil", "x");
    assert_eq!(problem(sparse).1, EntryProblem::Kind("sparse file"));
    let shown = refusal(&Limits::PLUGIN, &Tar::default().entry(b"evil\x07", b'2', b"").end()).to_string();
    assert_eq!(shown, "entry \"evil\\u{7}\" has a control character, an invisible character or a backslash in its name");
}

#[test]
fn twice_and_both() {
    assert_eq!(problem(Tar::default().file("./handler.lua", "other")), ("handler.lua".to_owned(), EntryProblem::Twice));
    assert_eq!(problem(Tar::default().dir("schema.lua/")).1, EntryProblem::Both);
    assert_eq!(problem(Tar::default().file("schema.lua/x", "")), ("schema.lua".to_owned(), EntryProblem::Both));
    assert_eq!(problem(Tar::default().file("a/b", "").file("a", "")), ("a".to_owned(), EntryProblem::Both));
    assert_eq!(problem(Tar::default().entry(b"dir/", b'5', b"content")).1, EntryProblem::Both);
}

#[test]
fn sizes_in_headers() {
    let large = EntryProblem::Large { found: 1 << 40, most: 1 << 20 };
    assert_eq!(problem(Tar::default().header(b"evil", b'0', 1 << 40)), ("evil".to_owned(), large.clone()));
    assert_eq!(problem(Tar::default().pax("size", &(1_u64 << 40).to_string()).file("evil", "")).1, large);
    assert_eq!(large.to_string(), "has 1048576 MiB, at most 1 MiB are allowed");
    let short = Tar::default().header(b"cut", b'0', 10_000).data(b"x").raw();
    assert_eq!(
        refusal(&Limits::PLUGIN, &short),
        LayerError::Entry { name: "cut".into(), problem: EntryProblem::Short { found: 512, declared: 10_000 } }
    );
    // Only the padding may be missing (umoci's `insert` leaves it out), not a byte of the content.
    let mut cut = Tar::default().header(b"cut", b'0', 300).data(b"x").raw();
    cut.truncate(512 + 300);
    let mut unpacker = Unpacker::new(&Limits::PLUGIN);
    unpacker.layer(1, "", &BTreeMap::new(), &cut).unwrap();
    assert_eq!(unpacker.finish().0["cut"].len(), 300);
    cut.truncate(512 + 299);
    assert_eq!(
        refusal(&Limits::PLUGIN, &cut),
        LayerError::Entry { name: "cut".into(), problem: EntryProblem::Short { found: 299, declared: 300 } }
    );
}

#[test]
fn too_much() {
    let limits = Limits { files: 4, unpacked_bytes: 100, file_bytes: 60, ..Limits::PLUGIN };
    let many = (0..5).fold(Tar::default(), |tar, n| tar.dir(&format!("d{n}")));
    assert_eq!(refusal(&limits, &many.end()), LayerError::Files { most: 4 });
    let sum = Tar::default().file("a", &"x".repeat(60)).file("b", &"x".repeat(60)).end();
    assert_eq!(refusal(&limits, &sum), LayerError::Total { name: "b".into(), most: 100 });
    // Over all layers, even where the upper hides the lower.
    let mut unpacker = Unpacker::new(&limits);
    let layer = Tar::default().file("a", &"x".repeat(60)).end();
    unpacker.layer(1, "", &BTreeMap::new(), &layer).unwrap();
    assert!(matches!(unpacker.layer(2, "", &BTreeMap::new(), &layer), Err(LayerError::Total { .. })));
    let title = BTreeMap::from([("org.opencontainers.image.title".to_owned(), "x".to_owned())]);
    assert!(Unpacker::new(&limits).layer(1, "text/x-lua", &title, &[b'x'; 61]).is_err());
}

#[test]
fn bombs() {
    let most = Limits::PLUGIN.stream_bytes();
    // After the end of the archive, inside of a name, and in a file that says so.
    let after = [plugin().end(), vec![0; 64 << 20]].concat();
    assert_eq!(refusal(&Limits::PLUGIN, &gzip(&after)), LayerError::Bomb { most });
    assert_eq!(refusal(&Limits::PLUGIN, &zstd(&after)), LayerError::Bomb { most });
    let name = Tar::default().long_name(&"x".repeat(64 << 20)).file("x", "");
    assert_eq!(refusal(&Limits::PLUGIN, &name.gzip()), LayerError::Bomb { most });
    let file = Tar::default().header(b"bomb", b'0', 64 << 20).data(&vec![0; 64 << 20]).gzip();
    assert!(matches!(refusal(&Limits::PLUGIN, &file), LayerError::Entry { problem: EntryProblem::Large { .. }, .. }));
}

#[test]
fn zstd_windows() {
    // A frame header with a window of 1 GiB, and one with a content of 1 TiB in a single segment.
    for (header, found) in [(vec![0x00, 0xa0], 1 << 30), (vec![0xe0, 0, 0, 0, 0, 0, 1, 0, 0], 1 << 40)] {
        let bytes = [vec![0x28, 0xb5, 0x2f, 0xfd], header, vec![0; 16]].concat();
        assert_eq!(refusal(&Limits::PLUGIN, &bytes), LayerError::Window { found, most: 8 << 20 });
    }
}

#[test]
fn broken_content() {
    let gz = plugin().gzip();
    let cases = [
        gz[..gz.len() - 6].to_vec(),
        [&gz[..gz.len() - 8], &[0; 8][..]].concat(),
        [&gz[..], b"garbage"].concat(),
        [&plugin().zstd()[..], b"garbage"].concat(),
        vec![0x28, 0xb5, 0x2f, 0xfd],
        vec![0x1f, 0x8b, 8],
        gzip(&[plugin().raw(), vec![b'x'; 512]].concat()),
    ];
    for bytes in cases {
        let error = refusal(&Limits::PLUGIN, &bytes);
        assert!(matches!(error, LayerError::Broken { .. }), "{error}");
    }
    assert_eq!(refusal(&Limits::PLUGIN, &gzip(b"no tar at all")), LayerError::NotTar);
    assert!(matches!(refusal(&Limits::PLUGIN, b"<html>"), LayerError::NotArchive { .. }));
}
