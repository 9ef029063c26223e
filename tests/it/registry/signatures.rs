//! Signatures by real cosign, and by a writer of ours where there is no cosign, in a registry without the API of referrers.

use std::{path::PathBuf, sync::Arc};

use libtest_mimic::Trial;
use serde_json::json;
use weir_host::oci::{Credentials, DockerConfig, Error, Reference, Requirement, Signer, TrustRoot, VerifyError, docker_config};
use weir_sigstore::{Identity, Named, Servers, Signed, Sigstore};
use weir_testkit::{
    binaries,
    registry::{Credentials as User, KeyFiles, Registry, RegistryOptions, archive::Archive},
    skipped,
};

use super::{Client, HANDLER, OCI, OCI_INDEX, Scratch, TAR, plugin_archive, registry, settings};
use crate::support::test;

const BUNDLE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";

pub(super) fn tests() -> Vec<Trial> {
    vec![
        test("registry cosign signs with a key", keys),
        test("registry cosign signs an index", indexes),
        test("registry cosign signs keyless", keyless),
        test("registry cosign signs behind passwords", passwords),
        test("registry signatures without cosign", without_cosign),
    ]
}

/// As [`registry`], where cosign is needed too.
fn registry_and_cosign(test: &str, options: &RegistryOptions) -> Option<Registry> {
    if let Some(reason) = binaries::missing_cosign() {
        skipped(test, &reason).unwrap();
        return None;
    }
    registry(test, options)
}

fn key_of(name: &str, key: &KeyFiles) -> Signer {
    Signer::Key { name: name.to_owned(), pem: std::fs::read(&key.public).unwrap() }
}

fn all_of(signers: &[&Signer]) -> [Requirement; 1] {
    [Requirement { any_of: Vec::new(), all_of: signers.iter().map(|signer| (*signer).clone()).collect() }]
}

impl Client {
    fn verify(
        &self,
        reference: &str,
        digests: &[&str],
        wanted: &[Requirement],
        trust: Option<&TrustRoot>,
    ) -> Result<Vec<String>, VerifyError> {
        self.verify_as(reference, &Credentials::Anonymous, digests, wanted, trust)
    }

    fn verify_as(
        &self,
        reference: &str,
        credentials: &Credentials,
        digests: &[&str],
        wanted: &[Requirement],
        trust: Option<&TrustRoot>,
    ) -> Result<Vec<String>, VerifyError> {
        let reference = Reference::parse(reference).unwrap();
        let verified = self.runtime.block_on(self.puller.verify(&reference, credentials, digests, wanted, trust))?;
        Ok(verified.signers)
    }
}

/// An artifact that differs from all others by its content.
fn artifact(registry: &Registry, repository: &str, tag: &str, handler: &str) -> String {
    let raw = registry.raw(repository).unwrap();
    raw.image(tag, &[raw.blob(TAR, &Archive::new().file("handler.lua", handler).unwrap().finish()).unwrap()]).unwrap()
}

/// What cosign asks instead of the sigstore of the world: nobody.
fn nobody(dir: &Scratch) -> (PathBuf, PathBuf) {
    let root = Sigstore::new().unwrap().trusted_root(Named::CLOCK);
    (dir.write("signing-config.json", Servers::none().to_string()), dir.write("trusted_root.json", root.to_string()))
}

fn keys() {
    let Some(registry) = registry_and_cosign("registry cosign signs with a key", &RegistryOptions::default()) else { return };
    let dir = Scratch::new();
    let (config, root) = nobody(&dir);
    let (ours, theirs) = (registry.cosign_key(&dir.0, "ours").unwrap(), registry.cosign_key(&dir.0, "theirs").unwrap());
    let (wanted, others) = (key_of("gateways/cosign#ours.pub", &ours), key_of("gateways/cosign#theirs.pub", &theirs));
    let client = Client::new(settings());
    for (repository, bundle) in [("team/simple", false), ("team/bundle", true)] {
        let digest = artifact(&registry, repository, "v1", repository);
        let other = artifact(&registry, repository, "v2", &format!("{repository} 2"));
        let reference = registry.reference(repository, "v1");
        let ask = |digest: &str, signers: &[&Signer]| client.verify(&reference, &[digest], &all_of(signers), None);

        let error = ask(&digest, &[&wanted]).unwrap_err();
        assert!(matches!(&error, VerifyError::NotSigned { looked_for, .. } if looked_for.len() == 2) && !error.transient(), "{error}");
        let sign = |key: &KeyFiles| {
            let image = registry.reference(repository, &digest);
            if bundle {
                registry.cosign_sign(&image, &config, &root, &["--key", &key.private.display().to_string()]).unwrap();
            } else {
                registry.cosign_sign_simple(&image, key).unwrap();
            }
        };
        sign(&ours);
        assert_eq!(ask(&digest, &[&wanted]).unwrap(), ["key gateways/cosign#ours.pub"]);
        let error = ask(&digest, &[&wanted, &others]).unwrap_err();
        assert!(matches!(&error, VerifyError::NotBy { wanted, .. } if *wanted == ["key gateways/cosign#theirs.pub"]), "{error}");
        assert!(error.to_string().contains("a signature by another key"), "{error}");
        // Every signature is kept beside the others.
        sign(&theirs);
        assert_eq!(ask(&digest, &[&wanted, &others]).unwrap().len(), 2);

        // The same signatures, laid beside another artifact.
        let raw = registry.raw(repository).unwrap();
        let ending = if bundle { "" } else { ".sig" };
        let moved = raw.pull_manifest(&format!("{}{ending}", digest.replace(':', "-"))).unwrap();
        raw.manifest(&format!("{}{ending}", other.replace(':', "-")), &moved.media_type, &moved.bytes).unwrap();
        let error = ask(&other, &[&wanted]).unwrap_err();
        assert!(error.to_string().contains("a signature of another artifact"), "{error}");
        // Pulling is not what is asked: an artifact without a signature is pulled all the same.
        assert_eq!(client.pull(&registry.reference(repository, "v2")).unwrap().digest, other);
    }
}

fn indexes() {
    let Some(registry) = registry_and_cosign("registry cosign signs an index", &RegistryOptions::default()) else { return };
    let dir = Scratch::new();
    let (config, root) = nobody(&dir);
    let key = registry.cosign_key(&dir.0, "ours").unwrap();
    let raw = registry.raw("team/many").unwrap();
    let image = raw.image("one", &[raw.blob(TAR, &plugin_archive().finish()).unwrap()]).unwrap();
    let size = raw.pull_manifest(&image).unwrap().bytes.len();
    let index = json!({ "schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": [{ "mediaType": OCI, "digest": image, "size": size }] });
    let index = raw.manifest("many", OCI_INDEX, index.to_string().as_bytes()).unwrap();
    registry.cosign_sign(&registry.reference("team/many", &index), &config, &root, &["--key", &key.private.display().to_string()]).unwrap();

    let client = Client::new(settings());
    let pulled = client.pull(&registry.reference("team/many", "many")).unwrap();
    let digests: Vec<&str> = [Some(pulled.digest.as_str()), pulled.index_digest.as_deref()].into_iter().flatten().collect();
    assert_eq!(digests, [image.as_str(), index.as_str()]);
    let wanted = all_of(&[&key_of("ours", &key)]);
    assert_eq!(client.verify(&registry.reference("team/many", "many"), &digests, &wanted, None).unwrap(), ["key ours"]);
    // The image by itself was never signed.
    let error = client.verify(&registry.reference("team/many", "one"), &[&image], &wanted, None).unwrap_err();
    assert!(matches!(error, VerifyError::NotSigned { .. }), "{error}");
}

fn keyless() {
    let Some(registry) = registry_and_cosign("registry cosign signs keyless", &RegistryOptions::default()) else { return };
    let (dir, sigstore) = (Scratch::new(), Arc::new(Sigstore::new().unwrap()));
    // No log of signatures runs here; cosign checks what it made with the rest.
    let named = Named { log: false, ..Named::ALL };
    let root = dir.write("trusted_root.json", sigstore.trusted_root(named).to_string());
    let servers = Servers::start(sigstore.clone()).unwrap();
    let config = dir.write("signing-config.json", servers.signing_config().to_string());
    let (issuer, subject) = ("https://issuer.example.com", "release@example.com");
    let token = dir.write("token", Servers::token(&Identity::new(issuer, subject))).display().to_string();
    let digest = artifact(&registry, "team/x", "v1", HANDLER);
    registry.cosign_sign(&registry.reference("team/x", &digest), &config, &root, &["--identity-token", &token]).unwrap();

    let client = Client::new(settings());
    let trust = TrustRoot::parse(&std::fs::read(&root).unwrap()).unwrap();
    let identity = |issuer: &str, subject: &str| all_of(&[&Signer::Identity { issuer: issuer.into(), subject: subject.into() }]);
    let ask =
        |wanted: &[Requirement], trust: Option<&TrustRoot>| client.verify(&registry.reference("team/x", "v1"), &[&digest], wanted, trust);
    assert_eq!(ask(&identity(issuer, subject), Some(&trust)).unwrap(), [format!("{issuer} {subject}")]);
    for (issuer, subject) in [(issuer, "release@example.org"), ("https://issuer.example.org", subject)] {
        let error = ask(&identity(issuer, subject), Some(&trust)).unwrap_err();
        assert!(matches!(error, VerifyError::NotBy { .. }) && error.to_string().contains("release@example.com"), "{error}");
    }
    assert!(matches!(ask(&identity(issuer, subject), None), Err(VerifyError::NoTrustRoot { .. })));
    // A root that names a log asks for an entry; the root of another sigstore knows nobody of this one.
    let strict = TrustRoot::parse(sigstore.trusted_root(Named::ALL).to_string().as_bytes()).unwrap();
    let error = ask(&identity(issuer, subject), Some(&strict)).unwrap_err();
    assert!(error.to_string().contains("it is in no transparency log"), "{error}");
    let stranger = TrustRoot::parse(Sigstore::new().unwrap().trusted_root(named).to_string().as_bytes()).unwrap();
    let error = ask(&identity(issuer, subject), Some(&stranger)).unwrap_err();
    assert!(error.to_string().contains("not of an authority in the trust root"), "{error}");
}

fn passwords() {
    let options = RegistryOptions { credentials: Some(User::new("kong", "first")), ..RegistryOptions::default() };
    let Some(registry) = registry_and_cosign("registry cosign signs behind passwords", &options) else { return };
    let dir = Scratch::new();
    let (config, root) = nobody(&dir);
    let key = registry.cosign_key(&dir.0, "ours").unwrap();
    let digest = artifact(&registry, "team/x", "v1", HANDLER);
    registry.cosign_sign(&registry.reference("team/x", &digest), &config, &root, &["--key", &key.private.display().to_string()]).unwrap();
    let reference = registry.reference("team/x", "v1");
    let secret = registry.docker_config().unwrap().to_string();
    let user = docker_config(DockerConfig::Json, secret.as_bytes(), &Reference::parse(&reference).unwrap()).unwrap();
    let client = Client::new(settings());
    let wanted = all_of(&[&key_of("ours", &key)]);
    assert_eq!(client.verify_as(&reference, &user, &[&digest], &wanted, None).unwrap(), ["key ours"]);
    // "Not allowed to look" is not "not signed".
    let error = client.verify(&reference, &[&digest], &wanted, None).unwrap_err();
    assert!(matches!(error, VerifyError::Fetch(Error::Unauthorized { sent: false, .. })), "{error}");
}

/// The same decision on machines that cannot build cosign.
fn without_cosign() {
    let Some(registry) = registry("registry signatures without cosign", &RegistryOptions::default()) else { return };
    let key = weir_sigstore::key().unwrap();
    let digest = artifact(&registry, "team/x", "v1", HANDLER);
    let raw = registry.raw("team/x").unwrap();
    let bundle = Signed::new(&key, &digest, None).unwrap().bundle(&[], &[]);
    let (layer, config) =
        (raw.blob(BUNDLE, bundle.to_string().as_bytes()).unwrap(), raw.blob("application/vnd.oci.empty.v1+json", b"{}").unwrap());
    let manifest =
        json!({ "schemaVersion": 2, "mediaType": OCI, "artifactType": BUNDLE, "config": config.json(), "layers": [layer.json()] })
            .to_string();
    let listed = raw.manifest("unnamed", OCI, manifest.as_bytes()).unwrap();
    let entry = json!({ "mediaType": OCI, "digest": listed, "size": manifest.len(), "artifactType": BUNDLE });
    let index = json!({ "schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": [entry] }).to_string();
    raw.manifest(&digest.replace(':', "-"), OCI_INDEX, index.as_bytes()).unwrap();

    let client = Client::new(settings());
    let signer = |key: &str| Signer::Key { name: "ours".into(), pem: key.as_bytes().to_vec() };
    let ask = |signer: &Signer| client.verify(&registry.reference("team/x", "v1"), &[&digest], &all_of(&[signer]), None);
    assert_eq!(ask(&signer(&key.public_key_pem())).unwrap(), ["key ours"]);
    let error = ask(&signer(&weir_sigstore::key().unwrap().public_key_pem())).unwrap_err();
    assert!(matches!(error, VerifyError::NotBy { .. }), "{error}");
    // What the registry counts: the list of the API, its tag, and the tag of the old form.
    let asked = registry.requests().unwrap();
    assert!(asked.iter().any(|request| request.path.contains("/referrers/") && request.status == 404), "{asked:?}");
}
