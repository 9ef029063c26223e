//! Secrets of plugins. A Secret is read once per version; what the host needs of it is kept in memory, and shown to nobody.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use weir_core::{
    hash,
    remote::{
        self as core,
        snapshot::{Certificates, SecretFacts, Validity},
    },
};
use weir_host::remote::{ClientIdentity, ServerTrust};

use super::Remote;
use crate::{cache::Key, certificates};

/// What is dialled with. Has no Debug.
#[derive(Clone)]
pub(super) struct Pair {
    pub(super) identity: Arc<ClientIdentity>,
    pub(super) trust: Arc<ServerTrust>,
}

/// A Secret that was read. Has no Debug.
pub(super) struct Read {
    version: Option<String>,
    pub(super) facts: SecretFacts,
    pub(super) identity: Option<Arc<ClientIdentity>>,
    pub(super) trust: Option<Arc<ServerTrust>>,
}

/// Reads Secrets of plugins.
pub(super) struct Materials {
    client: Client,
    known: Mutex<HashMap<core::Key, Arc<Read>>>,
}

impl Materials {
    pub(super) fn new(client: Client) -> Self {
        Self { client, known: Mutex::default() }
    }

    /// A Secret; none where it does not exist. While the API server does not answer, what was read before stands.
    pub(super) async fn read(&self, remote: &Remote, key: &Key) -> Result<Option<Arc<Read>>, String> {
        let Some(meta) = remote.secrets.get(key) else { return Ok(None) };
        let place = (key.namespace.clone(), key.name.clone());
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&place).cloned();
        if let Some(known) = known.as_ref().filter(|known| known.version == meta.metadata.resource_version) {
            return Ok(Some(Arc::clone(known)));
        }
        match Api::<Secret>::namespaced(self.client.clone(), &key.namespace).get_opt(&key.name).await {
            Ok(None) => Ok(None),
            Ok(Some(secret)) => {
                let read = Arc::new(read(&secret));
                self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(place, Arc::clone(&read));
                Ok(Some(read))
            }
            Err(error) => known.map(Some).ok_or_else(|| format!("Secret {key}: {error}")),
        }
    }

    /// Only these are named any more.
    pub(super) fn keep(&self, reads: &HashMap<core::Key, Arc<Read>>) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).retain(|key, _| reads.contains_key(key));
    }
}

fn read(secret: &Secret) -> Read {
    let part = |key: &str| secret.data.as_ref().and_then(|data| data.get(key)).map(|value| value.0.as_slice());
    let crt = part("tls.crt").unwrap_or_default();
    // cert-manager writes an empty one for issuers that have none.
    let ca = part("ca.crt").filter(|ca| !ca.trim_ascii().is_empty());
    let identity = ClientIdentity::parse(crt, part("tls.key").unwrap_or_default()).map_err(|error| error.to_string());
    let trust = ServerTrust::parse(crt, ca);
    let facts = SecretFacts {
        certificates: certificates_of(crt),
        authorities: ca.map(certificates_of),
        key: identity.as_ref().map(|_| hash::digest(part("tls.key").unwrap_or_default())).map_err(Clone::clone),
    };
    Read {
        version: secret.metadata.resource_version.clone(),
        facts,
        identity: identity.ok().map(Arc::new),
        trust: trust.ok().map(Arc::new),
    }
}

fn certificates_of(pem: &[u8]) -> Result<Certificates, String> {
    // The same parser as the one that connects, so that what is called good can be used.
    ServerTrust::parse(pem, None).map_err(|error| error.to_string())?;
    let validity = certificates::validity(pem)?;
    let validity = validity.into_iter().map(|(begins, ends)| Validity { begins, ends }).collect();
    Ok(Certificates { digest: hash::digest(pem), validity })
}
