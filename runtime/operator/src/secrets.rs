//! Digests of users' Secrets. Values are read here, become digests, and are dropped.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use weir_core::{
    dataplane::snapshot::{Lookup, SecretFacts},
    hash,
};

use crate::{cache::Key, certificates, world::World};

/// Secrets remembered; they are read again when more are named.
const MOST: usize = 10_000;

/// Reads Secrets, once per version.
pub struct Secrets {
    client: Client,
    world: Arc<World>,
    known: Mutex<HashMap<Key, (Option<String>, SecretFacts)>>,
}

impl Secrets {
    /// Nothing is read yet.
    #[must_use]
    pub fn new(client: Client, world: Arc<World>) -> Self {
        Self { client, world, known: Mutex::default() }
    }

    /// A Secret without its values.
    ///
    /// # Errors
    /// When the API server does not answer.
    pub async fn facts(&self, key: &Key) -> Result<Lookup<SecretFacts>, String> {
        let Some(meta) = self.world.secrets.get(key) else { return Ok(Lookup::Missing) };
        let version = meta.metadata.resource_version.clone();
        if let Some((known, facts)) = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(key)
            && *known == version
        {
            return Ok(Lookup::Found(facts.clone()));
        }
        let api = Api::<Secret>::namespaced(self.client.clone(), &key.namespace);
        let Some(secret) = api.get_opt(&key.name).await.map_err(|error| format!("Secret {key}: {error}"))? else {
            return Ok(Lookup::Missing);
        };
        let version = secret.metadata.resource_version.clone();
        let part = |key: &str| secret.data.as_ref().and_then(|d| d.get(key)).map(|v| v.0.as_slice());
        let pair = part("tls.crt").zip(part("tls.key"));
        let facts = SecretFacts {
            ends: part("tls.crt").and_then(certificates::end),
            unusable: pair.and_then(|(certificate, key)| certificates::unusable_pair(certificate, key)),
            type_: secret.type_.unwrap_or_default(),
            keys: secret.data.into_iter().flatten().map(|(key, value)| (key, hash::digest(&value.0))).collect(),
            metadata: crate::world::identity(secret.metadata),
        };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(key.clone(), (version, facts.clone()));
        Ok(Lookup::Found(facts))
    }
}
