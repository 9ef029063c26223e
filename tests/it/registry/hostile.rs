//! Artifacts that somebody made to do harm: each is refused with the entry named where there is one, and all of them together cost little
//! memory.

use std::{
    fs,
    path::Path,
    process::{Command, ExitCode},
};

use libtest_mimic::Trial;
use serde_json::{Value, json};
use weir_testkit::{
    binaries,
    registry::{
        Raw, Registry, RegistryOptions,
        archive::{Archive, Header, kind},
        pack::{gzip, gzip_zeros, zstd},
    },
    skipped,
};

use super::{Client, OCI, TAR, TAR_GZIP, TAR_ZSTD, files, forms::manifest, plugin, plugin_archive, registry, settings};
use crate::support::test;

/// Tells the test binary to pull instead of testing: the registry's host, then tags.
const AS_PULLER: &str = "WEIR_TEST_AS_PULLER";
const REPOSITORY: &str = "hostile";
/// An artifact that does no harm.
const HONEST: &str = "honest";
const MIB: usize = 1 << 20;
/// What pulling them all may cost, bytes.
const MOST: u64 = 64 << 20;

pub(super) fn tests() -> Vec<Trial> {
    vec![test("registry hostile artifacts are refused", refused), test("registry hostile artifacts cost little memory", memory)]
}

/// What was pushed, and what the refusal says.
struct Hostile {
    tag: &'static str,
    says: &'static [&'static str],
}

/// A layer of a type.
struct Evil {
    tag: &'static str,
    media_type: &'static str,
    layer: Vec<u8>,
    says: &'static [&'static str],
}

fn evil(tag: &'static str, archive: Archive, says: &'static [&'static str]) -> Evil {
    packed(tag, TAR_GZIP, gzip(&archive.finish()).unwrap(), says)
}

fn packed(tag: &'static str, media_type: &'static str, layer: Vec<u8>, says: &'static [&'static str]) -> Evil {
    Evil { tag, media_type, layer, says }
}

/// One entry after an honest plugin.
fn after(header: &Header, data: &[u8]) -> Archive {
    plugin_archive().raw(header, data).unwrap()
}

fn file(name: &str) -> Archive {
    plugin_archive().file(name, "return {}").unwrap()
}

fn names() -> Vec<Evil> {
    let not_utf8 = Header { name: b"evil\xff.lua".to_vec(), ..Header::new("", kind::FILE, 0) };
    let deep = format!("{}/evil.lua", ["d"; 16].join("/"));
    vec![
        evil("traversal", file("../evil.lua"), &["\"../evil.lua\" leads out of its directory"]),
        evil("traversal-inside", file("a/../../evil.lua"), &["\"a/../../evil.lua\" leads out of its directory"]),
        evil("absolute", file("/etc/evil.lua"), &["\"/etc/evil.lua\" is an absolute path"]),
        evil("twice", plugin_archive().file("./handler.lua", "return 2").unwrap(), &["\"handler.lua\" occurs twice in one layer"]),
        evil("file-and-folder", file("schema.lua/evil.lua"), &["\"schema.lua\" is both a file and a directory"]),
        evil("not-utf8", after(&not_utf8, &[]), &["entry \"evil", "has a name that is not UTF-8"]),
        evil("control-character", file("evil\x1b[2J.lua"), &["entry \"evil", "has a control character"]),
        evil("deep", file(&deep), &["evil.lua\" is 17 levels deep, at most 16"]),
        evil("long", file(&"x".repeat(600)), &["has a path of 600 bytes, at most 512"]),
    ]
}

fn kinds() -> Vec<Evil> {
    let of = |kind: u8| after(&Header::new("evil", kind, 0), &[]);
    vec![
        evil("symlink", plugin_archive().symlink("evil.lua", "/etc/passwd").unwrap(), &["\"evil.lua\" is a symbolic link"]),
        evil("hardlink", plugin_archive().hardlink("evil.lua", "handler.lua").unwrap(), &["\"evil.lua\" is a hard link"]),
        evil("device", plugin_archive().device("evil").unwrap(), &["\"evil\" is a device"]),
        evil("block-device", of(kind::BLOCK_DEVICE), &["\"evil\" is a device"]),
        evil("fifo", of(kind::FIFO), &["\"evil\" is a named pipe"]),
        evil("unknown-kind", of(b'Z'), &["\"evil\" is a", "unknown type"]),
    ]
}

fn sizes() -> Vec<Evil> {
    let claims = |size: u64| Header::new("evil.lua", kind::FILE, size);
    let many = (0..513).fold(Archive::new(), |archive, n| archive.file(&format!("{n}.lua"), "").unwrap());
    let much = (0..9).fold(Archive::new(), |archive, n| archive.file(&format!("{n}.lua"), vec![b'x'; MIB]).unwrap());
    let cut_in_a_block = plugin_archive().raw(&claims(100), &[]).unwrap().garbage(&[b'x'; 50]).unfinished();
    vec![
        evil("huge", after(&claims(1 << 40), b"x"), &["\"evil.lua\" has 1048576 MiB, at most 1 MiB"]),
        packed("cut", TAR, after(&claims(4096), b"x").unfinished(), &["\"evil.lua\" ends after 512 of 4096 bytes"]),
        // What is missing must not be made up: an archive without its last padding is fine, one without a file's last bytes is not.
        packed("cut-in-a-block", TAR, cut_in_a_block, &["\"evil.lua\" ends after 50 of 100 bytes"]),
        evil("many-files", many, &["more than 512 files and directories"]),
        evil("much", much, &["more than 8 MiB together, up to entry \"8.lua\""]),
    ]
}

fn bombs() -> Vec<Evil> {
    let zeros = vec![0; 64 * MIB];
    let in_a_file = after(&Header::new("evil.lua", kind::FILE, 64 << 20), &zeros);
    let in_a_name = Archive::new().file(&"x".repeat(32 * MIB), "").unwrap();
    let after_the_end = [plugin_archive().finish(), zeros.clone()].concat();
    // A frame that wants to look back 1 GiB.
    let window = [vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xa0], vec![0; 16]].concat();
    let mut bombs = vec![
        packed("bomb", TAR_GZIP, gzip_zeros(256 << 20).unwrap(), &["unpacks to more than"]),
        evil("bomb-in-a-file", in_a_file, &["\"evil.lua\" has 64 MiB, at most 1 MiB"]),
        evil("bomb-in-a-name", in_a_name, &["unpacks to more than"]),
        packed("bomb-after-the-end", TAR_GZIP, gzip(&after_the_end).unwrap(), &["unpacks to more than"]),
        packed("zstd-window", TAR_ZSTD, window, &["its zstd window has 1024 MiB, at most 8 MiB"]),
    ];
    match binaries::not_installed(&[binaries::ZSTD]) {
        Some(reason) => skipped("registry hostile artifacts: zstd", &reason).unwrap(),
        None => bombs.push(packed("zstd-bomb", TAR_ZSTD, zstd(&zeros).unwrap(), &["unpacks to more than"])),
    }
    bombs
}

fn broken() -> Vec<Evil> {
    let whole = gzip(&plugin_archive().finish()).unwrap();
    vec![
        packed("broken-gzip", TAR_GZIP, whole[..whole.len() - 6].to_vec(), &["is broken"]),
        packed("no-archive", TAR_GZIP, gzip(b"no archive at all").unwrap(), &["is no tar archive"]),
        packed("page", TAR_GZIP, b"<html>".to_vec(), &["is no tar archive"]),
    ]
}

/// Manifests that lie, and a layer that is not what its digest says.
fn lies(registry: &Registry, raw: &Raw) -> Vec<Hostile> {
    let layer = raw.blob(TAR_GZIP, &gzip(&plugin_archive().finish()).unwrap()).unwrap();
    let push = |tag: &str, layers: &[Value]| {
        manifest(raw, tag, OCI, "application/vnd.oci.image.config.v1+json", layers, &Value::Null);
    };
    let sized = |size: u64| {
        let mut lie = layer.json();
        lie["size"] = json!(size);
        lie
    };
    let repeated = |count: usize| std::iter::repeat_n(layer.json(), count).collect::<Vec<_>>();
    let size = u64::try_from(layer.size).unwrap();
    push("larger-than-declared", &[sized(size - 1)]);
    push("smaller-than-declared", &[sized(size + 1)]);
    push("declared-huge", &[sized(1 << 40)]);
    push("many-layers", &repeated(65));
    push("very-many-layers", &repeated(300));
    let swapped = raw.blob(TAR_GZIP, &gzip(&file("swapped.lua").finish()).unwrap()).unwrap();
    push("swapped", &[swapped.json()]);
    spoil(&registry.blob_file(&swapped.digest).unwrap());
    vec![
        Hostile { tag: "larger-than-declared", says: &["which is what its manifest declares"] },
        Hostile { tag: "smaller-than-declared", says: &["its manifest declares"] },
        Hostile { tag: "declared-huge", says: &["layer 1 has 1048576 MiB, at most 8 MiB"] },
        Hostile { tag: "many-layers", says: &["it has 65 layers, at most 64"] },
        Hostile { tag: "very-many-layers", says: &["the manifest is malformed"] },
        Hostile { tag: "swapped", says: &["layer sha256:", "has digest sha256:", "instead of sha256:"] },
    ]
}

/// Other bytes of the same length, so that only the digest can tell.
fn spoil(file: &Path) {
    let length = fs::metadata(file).unwrap().len();
    fs::write(file, vec![b'x'; usize::try_from(length).unwrap()]).unwrap();
}

fn fill(registry: &Registry) -> Vec<Hostile> {
    let raw = registry.raw(REPOSITORY).unwrap();
    raw.image(HONEST, &[raw.blob(TAR_GZIP, &gzip(&plugin_archive().finish()).unwrap()).unwrap()]).unwrap();
    let mut all = lies(registry, &raw);
    for Evil { tag, media_type, layer, says } in [names(), kinds(), sizes(), bombs(), broken()].into_iter().flatten() {
        assert!(layer.len() < 8 * MIB, "{tag} is refused for its size alone");
        raw.image(tag, &[raw.blob(media_type, &layer).unwrap()]).unwrap();
        all.push(Hostile { tag, says });
    }
    all
}

fn refused() {
    let Some(registry) = registry("registry hostile artifacts are refused", &RegistryOptions::default()) else { return };
    let client = Client::new(settings());
    let mut wrong = Vec::new();
    for Hostile { tag, says } in fill(&registry) {
        match client.pull(&registry.reference(REPOSITORY, tag)) {
            Ok(artifact) => wrong.push(format!("{tag} is taken: {:?}", artifact.files.keys())),
            Err(error) => {
                let said = error.to_string();
                let named = says.iter().all(|words| said.contains(*words)) && said.contains(REPOSITORY);
                let plain = said.len() < 2_048 && !said.chars().any(char::is_control);
                if !named || !plain || error.transient() {
                    wrong.push(format!("{tag}: {said:?} (transient: {}), wanted {says:?}", error.transient()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // What is honest is taken afterwards as before.
    assert_eq!(files(&client.pull(&registry.reference(REPOSITORY, HONEST)).unwrap()), plugin());
}

/// In a process of its own: in this one other tests run at the same time.
fn memory() {
    let Some(registry) = registry("registry hostile artifacts cost little memory", &RegistryOptions::default()) else { return };
    let tags: Vec<&str> = fill(&registry).iter().map(|hostile| hostile.tag).collect();
    let told = format!("{} {}", registry.host(), tags.join(" "));
    let output = Command::new(std::env::current_exe().unwrap()).env(AS_PULLER, told).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{err}");
    let grown: u64 = out.lines().find_map(|line| line.strip_prefix("grown ")).and_then(|bytes| bytes.parse().ok()).unwrap();
    assert!(grown < MOST, "{} hostile artifacts cost {} MiB", tags.len(), grown >> 20);
}

/// Pulls and says by how much the peak of its memory has grown, if this process was started for that.
pub(crate) fn as_puller() -> Option<ExitCode> {
    let told = std::env::var(AS_PULLER).ok()?;
    let (host, tags) = told.split_once(' ').unwrap();
    let client = Client::new(settings());
    let reference = |tag: &str| format!("{host}/{REPOSITORY}:{tag}");
    // What is made once, such as TLS and threads, is there before the first look.
    client.pull(&reference(HONEST)).unwrap();
    let before = peak();
    for tag in tags.split(' ') {
        assert!(client.pull(&reference(tag)).is_err(), "{tag} is taken");
    }
    println!("grown {}", peak().saturating_sub(before));
    Some(ExitCode::SUCCESS)
}

/// Most memory this process ever had, bytes.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}
