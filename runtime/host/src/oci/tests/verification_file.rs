use std::fs;

use weir_sigstore::key;

use crate::oci::{
    Reference, Requirement, Signer,
    verification_file::{File, Problem, read},
};

const HEAD: &str = "apiVersion: weir.dev/v1alpha1\nkind: Verification\n";

/// The file of this body, beside which is a key.
fn parse(body: &str) -> Result<File, Problem> {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("cosign.pub"), key().unwrap().public_key_pem()).unwrap();
    let path = root.path().join("verification.yaml");
    fs::write(&path, format!("{HEAD}{body}")).unwrap();
    read(&path).map_err(|error| {
        assert!(error.to_string().starts_with(&format!("{}: ", path.display())), "{error}");
        error.problem
    })
}

fn wanted<'a>(file: &'a File, reference: &str) -> Option<&'a Requirement> {
    file.requirement(&Reference::parse(reference).unwrap())
}

const ENTRIES: &str = "\
entries:
- anyOf: [{keyless: {issuer: https://i, subject: everybody}}]
- prefix: index.docker.io/library/
  anyOf: [{publicKey: {file: cosign.pub}}, {keyless: {issuer: https://i, subject: s}}]
- prefix: ghcr.io/acme
  allOf: [{publicKey: {file: cosign.pub}}]
- prefix: ghcr.io/acme/scratch
  unsigned: true
";

#[test]
fn the_longest_prefix_holds_and_it_alone() {
    let file = parse(ENTRIES).unwrap();
    let everybody = Signer::Identity { issuer: "https://i".into(), subject: "everybody".into() };
    for reference in ["quay.io/x:1", "ghcr.io/acmeplus:1", "ghcr.io/other/acme:1"] {
        assert_eq!(wanted(&file, reference), Some(&Requirement { any_of: vec![everybody.clone()], all_of: vec![] }), "{reference}");
    }
    let hub = wanted(&file, "busybox").unwrap();
    assert_eq!((hub.any_of.len(), hub.all_of.len()), (2, 0));
    let acme = wanted(&file, "ghcr.io/acme/policies/a:1").unwrap();
    assert!(matches!(acme.all_of.as_slice(), [Signer::Key { name, .. }] if name == "cosign.pub") && acme.any_of.is_empty());
    assert_eq!(wanted(&file, "ghcr.io/acme/scratch/a:1"), None);
    assert!(wanted(&file, "ghcr.io/acme/scratchpad:1").is_some());
    assert!(file.wants_identities());
    assert!(file.files().iter().all(|path| path.ends_with("cosign.pub")) && file.files().len() == 2);
}

#[test]
fn what_no_entry_is_for_needs_nothing() {
    let file = parse("entries: [{prefix: ghcr.io, anyOf: [{publicKey: {file: cosign.pub}}]}]").unwrap();
    assert_eq!(wanted(&file, "quay.io/x:1"), None);
    assert!(!file.wants_identities());
    assert_eq!(File::default().digest(&Reference::parse("quay.io/x:1").unwrap()), None);
}

#[test]
fn the_digest_is_of_keys_and_identities_and_not_of_file_names() {
    let pem = key().unwrap().public_key_pem();
    let of = |body: &str| parse(body).unwrap().digest(&Reference::parse("quay.io/x:1").unwrap()).unwrap();
    let inline = |pem: &str, more: &str| {
        let indented = pem.trim().replace('\n', "\n        ");
        of(&format!("entries:\n- anyOf:\n  - publicKey:\n      pem: |\n        {indented}\n{more}"))
    };
    let one = inline(&pem, "");
    assert_eq!(one, inline(&pem, "- {prefix: ghcr.io, unsigned: true}"));
    assert_ne!(one, inline(&key().unwrap().public_key_pem(), ""));
    let identity = |list: &str, subject: &str| of(&format!("entries: [{{{list}: [{{keyless: {{issuer: i, subject: {subject}}}}}]}}]"));
    assert_ne!(identity("anyOf", "a"), identity("anyOf", "b"));
    assert_ne!(identity("anyOf", "a"), identity("allOf", "a"));
}

#[test]
fn every_mistake_names_its_field_and_the_cure() {
    for (body, field, cure) in [
        ("entries: []", "entries", "add an entry"),
        ("", "the file", "entries"),
        ("entries: [{prefix: ghcr.io}]", "entries[0]", "unsigned: true"),
        ("entries: [{prefix: ghcr.io, unsigned: true, anyOf: [{publicKey: {file: cosign.pub}}]}]", "entries[0].unsigned", "leave one"),
        ("entries: [{prefix: acme, unsigned: true}]", "entries[0].prefix", "acme"),
        ("entries: [{unsigned: true}, {unsigned: true}]", "entries[1].prefix", "merge the two"),
        ("entries: [{prefix: docker.io, unsigned: true}, {prefix: index.docker.io/, unsigned: true}]", "entries[1].prefix", "merge"),
        ("entries: [{anyOf: [{}]}]", "entries[0].anyOf[0]", "publicKey or keyless"),
        ("entries: [{allOf: [{publicKey: {}}]}]", "entries[0].allOf[0].publicKey", "pem or file"),
        ("entries: [{allOf: [{publicKey: {pem: x, file: y}}]}]", "entries[0].allOf[0].publicKey", "leave one"),
        ("entries: [{allOf: [{publicKey: {file: none.pub}}]}]", "entries[0].allOf[0].publicKey.file", "cannot be read"),
        ("entries: [{allOf: [{publicKey: {pem: x}}]}]", "entries[0].allOf[0].publicKey", "no key in PEM form"),
        ("entries: [{anyOf: [{keyless: {issuer: '', subject: s}}]}]", "entries[0].anyOf[0].keyless.issuer", "1 to"),
        ("entries: [{anyOf: [{keyless: {issuer: i}}]}]", "entries[0].anyOf[0].keyless", "subject"),
        ("entries: [{anyof: []}]", "entries[0]", "anyOf"),
    ] {
        let problem = parse(body).unwrap_err().to_string();
        assert!(problem.starts_with(field) && problem.contains(cure), "{body}: {problem}");
    }
    let problem = parse("kind: Registries").unwrap_err().to_string();
    assert!(problem.contains("kind"), "{problem}");
}
