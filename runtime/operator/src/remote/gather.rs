//! What one pass sees. Secrets are read here, become digests and times for the core, and stay behind as what the host needs of them.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, atomic::Ordering},
};

use k8s_openapi::api::discovery::v1::EndpointSlice;
use weir_core::remote::{self as core, Snapshot, Spec, snapshot::SecretFacts, validate};

use super::{
    Remote, host,
    materials::{Pair, Read},
};
use crate::{cache::Key, context::Context};

/// Label of a slice: the Service it is of.
const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// What a pass sees.
pub(super) struct Seen {
    pub(super) snapshot: Snapshot,
    reads: HashMap<core::Key, Arc<Read>>,
    kept: BTreeMap<String, (Spec, Pair)>,
}

/// Looks.
///
/// # Errors
/// When the API server does not answer about a Secret that was never read: nothing can be said of its plugin then.
pub(super) async fn look(context: &Context) -> Result<Seen, String> {
    let remote = &context.remote;
    let services = remote.all_services();
    let mut reads = HashMap::new();
    for key in services.iter().flat_map(|service| validate::secrets(service, remote.settings.cnpg)) {
        if reads.contains_key(&key) {
            continue;
        }
        if let Some(read) = remote.materials.read(remote, &Key::new(&key.0, &key.1)).await? {
            reads.insert(key, read);
        }
    }
    remote.materials.keep(&reads);
    let secrets: BTreeMap<core::Key, SecretFacts> = reads.iter().map(|(key, read)| (key.clone(), read.facts.clone())).collect();
    let (kept, told) = {
        let last = remote.last();
        (last.kept.clone(), last.told.clone())
    };
    let snapshot = Snapshot {
        now: context.clock.now(),
        cnpg: remote.settings.cnpg,
        services: services.iter().map(|service| (**service).clone()).collect(),
        secrets,
        slices: remote.slices_served.load(Ordering::Relaxed).then(|| slices(remote)),
        kept: kept.iter().map(|(name, (spec, _))| (name.clone(), spec.clone())).collect(),
        reports: remote.registry.plugins().iter().map(|(name, plugin)| (name.clone(), host::report(&plugin.status()))).collect(),
        told,
    };
    Ok(Seen { snapshot, reads, kept })
}

fn slices(remote: &Remote) -> BTreeMap<core::Key, Vec<EndpointSlice>> {
    let mut by_service: BTreeMap<core::Key, Vec<EndpointSlice>> = BTreeMap::new();
    for slice in remote.slices.all() {
        let namespace = slice.metadata.namespace.clone().unwrap_or_default();
        if let Some(service) = slice.metadata.labels.as_ref().and_then(|labels| labels.get(SERVICE_NAME)) {
            by_service.entry((namespace, service.clone())).or_default().push((*slice).clone());
        }
    }
    by_service
}

impl Seen {
    /// What is dialled, with certificates and keys: those that stand in the Secrets, or those that were good before.
    pub(super) fn pairs(&self, specs: &[Spec]) -> Vec<(Spec, Pair)> {
        specs.iter().filter_map(|spec| Some((spec.clone(), self.pair(spec)?))).collect()
    }

    fn pair(&self, spec: &Spec) -> Option<Pair> {
        let last = self.kept.get(&spec.name);
        let read = |key: &core::Key| self.reads.get(key);
        let identity = read(&spec.client.secret)
            .filter(|read| read.facts.client_digest().as_ref() == Some(&spec.client.digest))
            .and_then(|read| read.identity.clone())
            .or_else(|| last.filter(|(before, _)| before.client == spec.client).map(|(_, pair)| Arc::clone(&pair.identity)))?;
        let trust = read(&spec.server.secret)
            .filter(|read| read.facts.server_digest().as_ref() == Some(&spec.server.digest))
            .and_then(|read| read.trust.clone())
            .or_else(|| last.filter(|(before, _)| before.server == spec.server).map(|(_, pair)| Arc::clone(&pair.trust)))?;
        Some(Pair { identity, trust })
    }
}
