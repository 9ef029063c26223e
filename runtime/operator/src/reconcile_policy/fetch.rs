//! From a reference to the bytes of a component: credentials, registry, and what is kept on disk so that neither is needed again.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Api, Client};
use semver::{Version, VersionReq};
use weir_api::reconcile_policy::{OciSource, Revision};
use weir_core::{
    hash,
    reconcile_policy::snapshot::{Failure, Step},
};
use weir_host::oci::{Component, Credentials, Error, Known, Puller, Reference, Store};

use super::demand::Demand;
use crate::{
    cache::Key,
    metrics::PullOutcome,
    plugin_installation::{pull_secret, pulls::registry::outcome},
    registries::{Current, Live},
};

/// Largest component, bytes.
const MAX_COMPONENT: u64 = 32 << 20;
/// Largest CA bundle, bytes.
const MAX_CA: usize = 256 << 10;
/// Annotation of an artifact that says its version.
const VERSION: &str = "org.opencontainers.image.version";
/// What is remembered with a component that was found through an index: digest of the image in it, which may be what is signed.
const IMAGE: &str = "weir.dev/image-digest";

/// Where components come from.
pub struct Sources {
    client: Client,
    live: Arc<Live>,
    store: Option<Store>,
}

/// A component, whole.
pub struct Fetched {
    /// Its bytes.
    pub bytes: Arc<[u8]>,
    /// Digest of the manifest it was asked for by.
    pub manifest: String,
    /// Digests that a signature may be about: of the index and of the image in it.
    pub digests: Vec<String>,
    /// Digest of the bytes.
    pub layer: String,
    /// Version that the artifact says it has.
    pub version: Option<String>,
}

/// How one registry is asked.
pub struct Access {
    /// Who asks.
    pub puller: Puller,
    /// What is asked for.
    pub reference: Reference,
    /// What is shown.
    pub credentials: Credentials,
    /// The operator's own settings, which count until the work is done.
    pub current: Arc<Current>,
}

impl Sources {
    /// `store`: what is kept on disk, where there is a disk.
    pub fn new(client: Client, live: Arc<Live>, store: Option<Store>) -> Self {
        Self { client, live, store }
    }

    /// How the registry of a policy is asked.
    pub async fn access(&self, policy: &Key, oci: &OciSource) -> Result<Access, Failure> {
        let reference =
            Reference::parse(&oci.image).map_err(|error| failed("InvalidReference", format!("spec.source.oci.image: {error}"), false))?;
        let current = self.live.current();
        if oci.insecure == Some(true) && !current.registries.insecure.iter().any(|host| host.eq_ignore_ascii_case(reference.registry())) {
            let message = format!(
                "spec.source.oci.insecure: the operator does not allow plain HTTP with {}: run it with --insecure-registry {0}, name it as insecure in its registries file, or remove the field",
                reference.registry()
            );
            return Err(failed("NotAllowed", message, false));
        }
        let own = self.credentials(policy, oci, &reference).await?;
        let credentials = current.credentials(&reference, &own).await.map_err(|error| {
            let cure = "name a pull Secret in spec.source.oci.pullSecretRef, or have the operator's credentials mended";
            failed("Unauthorized", format!("spec.source.oci.image: {}: the operator's {error}; {cure}", reference.place()), false)
        })?;
        let puller = match &oci.ca_bundle_ref {
            None => current.puller.clone(),
            Some(named) => {
                self.trusting(&current, &Key::new(&policy.namespace, &named.name), named.key.as_deref().unwrap_or("ca.crt")).await?
            }
        };
        Ok(Access { puller, reference, credentials, current })
    }

    async fn credentials(&self, policy: &Key, oci: &OciSource, reference: &Reference) -> Result<Credentials, Failure> {
        const FIELD: &str = "spec.source.oci.pullSecretRef";
        let Some(named) = &oci.pull_secret_ref else { return Ok(Credentials::Anonymous) };
        let key = Key::new(&policy.namespace, &named.name);
        let secret = self.secret(&key, FIELD).await?;
        pull_secret::read(&key, &secret, reference).map_err(|message| failed("PullSecret", format!("{FIELD}: {message}"), false))
    }

    /// A Secret that a field of a policy names.
    pub async fn secret(&self, key: &Key, field: &str) -> Result<Secret, Failure> {
        let api = Api::<Secret>::namespaced(self.client.clone(), &key.namespace);
        match api.get_opt(&key.name).await {
            Ok(Some(secret)) => Ok(secret),
            Ok(None) => {
                Err(failed("SecretNotFound", format!("{field}: Secret {key} does not exist: create it, or name another one"), false))
            }
            Err(error) => Err(failed("SecretNotRead", format!("{field}: Secret {key} cannot be read: {error}"), true)),
        }
    }

    /// A puller that trusts one more CA.
    async fn trusting(&self, current: &Current, key: &Key, entry: &str) -> Result<Puller, Failure> {
        const FIELD: &str = "spec.source.oci.caBundleRef";
        let api = Api::<ConfigMap>::namespaced(self.client.clone(), &key.namespace);
        let bundle = match api.get_opt(&key.name).await {
            Ok(Some(map)) => map.data.and_then(|mut data| data.remove(entry)),
            Ok(None) => {
                return Err(failed(
                    "CaNotFound",
                    format!("{FIELD}: ConfigMap {key} does not exist: create it, or name another one"),
                    false,
                ));
            }
            Err(error) => return Err(failed("CaNotRead", format!("{FIELD}: ConfigMap {key} cannot be read: {error}"), true)),
        };
        let Some(bundle) = bundle.filter(|bundle| bundle.len() <= MAX_CA) else {
            let message =
                format!("{FIELD}: ConfigMap {key} has no key {entry} of at most {} KiB: put the certificates there", MAX_CA >> 10);
            return Err(failed("CaNotFound", message, false));
        };
        current
            .puller_with_ca(bundle.into_bytes())
            .map_err(|_| failed("CaInvalid", format!("{FIELD}: key {entry} of ConfigMap {key} holds no certificate in PEM form"), false))
    }

    /// The digest that a policy's reference leads to now, and the reference with it.
    pub async fn resolve(&self, access: &Access, oci: &OciSource) -> Result<(String, Reference), Failure> {
        let tagged;
        let mut reference = &access.reference;
        if let Some(range) = &oci.semver {
            tagged = newest(access, range).await?;
            reference = &tagged;
        }
        let digest = match reference.digest() {
            // Nothing has to be asked: a registry that is away is no problem for what is on disk.
            Some(digest) => digest.to_owned(),
            None => access.puller.resolve(reference, &access.credentials).await.map_err(|e| of_registry(&e))?.digest,
        };
        let with_digest =
            reference.with_digest(&digest).map_err(|e| failed("InvalidReference", format!("spec.source.oci.image: {e}"), false))?;
        Ok((digest, with_digest))
    }

    /// The component of a reference with a digest: from disk where it is there, else from the registry.
    pub async fn component(&self, access: &Access, reference: &Reference, manifest: &str) -> Result<Fetched, Failure> {
        if let Some(kept) = self.kept(manifest) {
            return Ok(kept);
        }
        let pulled = access.puller.component(reference, &access.credentials, MAX_COMPONENT).await.map_err(|e| of_registry(&e))?;
        Ok(self.keep(manifest, pulled))
    }

    /// Bytes of a revision that the status names.
    pub async fn revision(&self, demand: &Demand, oci: &OciSource, revision: &Revision) -> Result<Arc<[u8]>, Failure> {
        if let Some(bytes) = self.store.as_ref().and_then(|store| store.get(&revision.layer_digest)) {
            return Ok(bytes.into());
        }
        let Some(manifest) = &revision.manifest_digest else {
            return Err(failed(
                "Lost",
                format!("{} is not kept on disk, and no registry is known that has it", revision.layer_digest),
                false,
            ));
        };
        let access = self.access(&demand.policy, oci).await?;
        // Where it was found, whatever the spec says by now.
        let found_at = revision.image.as_deref().and_then(|image| image.split(' ').next()).map(Reference::parse);
        let reference = found_at.and_then(Result::ok).unwrap_or_else(|| access.reference.clone()).with_digest(manifest);
        let reference = reference.map_err(|e| failed("InvalidReference", e.to_string(), false))?;
        let fetched = self.component(&access, &reference, manifest).await?;
        if fetched.layer != revision.layer_digest {
            let message = format!("{reference} holds {} instead of {}", fetched.layer, revision.layer_digest);
            return Err(failed("DigestMismatch", message, false));
        }
        Ok(fetched.bytes)
    }

    fn kept(&self, manifest: &str) -> Option<Fetched> {
        let store = self.store.as_ref()?;
        let known = store.recall(manifest)?;
        let bytes = store.get(&known.layer_digest)?;
        Some(Fetched {
            bytes: bytes.into(),
            manifest: manifest.to_owned(),
            digests: std::iter::once(manifest.to_owned()).chain(known.annotations.get(IMAGE).cloned()).collect(),
            layer: known.layer_digest,
            version: known.version,
        })
    }

    /// A disk that is full costs the next start a pull, and nothing now.
    fn keep(&self, manifest: &str, component: Component) -> Fetched {
        let version = component.annotations.get(VERSION).cloned();
        let mut digests = vec![component.manifest_digest.clone()];
        digests.extend(component.index_digest.clone());
        if let Some(store) = &self.store {
            let annotations = BTreeMap::from([(IMAGE.to_owned(), component.manifest_digest.clone())]);
            let known = Known {
                layer_digest: component.layer_digest.clone(),
                blob_digest: component.blob_digest,
                layout: component.layout,
                annotations,
                version: version.clone(),
            };
            let kept = store.put(&component.layer_digest, &component.bytes).and_then(|()| store.remember(manifest, &known));
            if let Err(error) = kept {
                tracing::warn!(%error, "a component is not kept on disk");
            }
        }
        Fetched { bytes: component.bytes.into(), manifest: manifest.to_owned(), digests, layer: component.layer_digest, version }
    }

    /// Components that must not make room for others.
    pub fn pin(&self, layers: &std::collections::BTreeSet<String>) {
        if let Some(store) = &self.store {
            store.keep(layers);
        }
    }
}

/// The newest version among the tags of a repository that a range allows.
async fn newest(access: &Access, range: &str) -> Result<Reference, Failure> {
    let wanted = VersionReq::parse(range).map_err(|error| {
        failed("InvalidReference", format!("spec.source.oci.semver: {range:?} is no range: {error}; write ^1.2 or >=1.2, <2"), false)
    })?;
    let tags = access.puller.tags(&access.reference, &access.credentials).await.map_err(|e| of_registry(&e))?;
    let version = |tag: &str| Version::parse(tag.strip_prefix('v').unwrap_or(tag)).ok().filter(|version| wanted.matches(version));
    let best = tags.iter().filter_map(|tag| Some((version(tag)?, tag))).max();
    let Some((_, tag)) = best else {
        let message =
            format!("spec.source.oci.semver: none of the {} tags of {} is in {range}: push one", tags.len(), access.reference.place());
        return Err(failed("NotFound", message, true));
    };
    access.reference.with_tag(tag).map_err(|e| failed("InvalidReference", format!("spec.source.oci.semver: {e}"), false))
}

/// Why a reference leads to no component.
pub(super) fn failed(reason: &str, message: String, transient: bool) -> Failure {
    Failure { step: Step::Resolved, reason: reason.to_owned(), message, transient }
}

fn of_registry(error: &Error) -> Failure {
    let reason = match outcome(error) {
        PullOutcome::Unauthorized => "Unauthorized",
        PullOutcome::NotFound => "NotFound",
        PullOutcome::Transient => "Unreachable",
        PullOutcome::Refused | PullOutcome::Unverified | PullOutcome::Resolved | PullOutcome::Fetched | PullOutcome::Cached => "Unusable",
    };
    failed(reason, format!("spec.source.oci.image: {error}"), error.transient())
}

/// Digest of what is wanted of signatures, by the operator and by the policy; none where nothing is.
pub(super) fn wanted_signatures(current: &Current, oci: Option<&OciSource>) -> Option<String> {
    let reference = oci.and_then(|oci| Reference::parse(&oci.image).ok());
    let own = reference.and_then(|reference| current.wanted(&reference)).unwrap_or_default();
    let verify = oci.and_then(|oci| oci.verify.as_ref());
    (verify.is_some() || !own.is_empty()).then(|| hash::digest_json(&(own, verify)))
}
