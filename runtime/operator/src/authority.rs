//! The cluster CA: read from its Secret, made where there is none, and used to sign admin certificates.

use std::{
    collections::BTreeMap,
    sync::{Arc, PoisonError, RwLock},
};

use jiff::Timestamp;
use k8s_openapi::{ByteString, api::core::v1::Secret, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::{Api, Client, api::PostParams};
use weir_api::keys;
use weir_core::{
    dataplane::snapshot::CaFacts,
    decisions::{Sealing, SealingKey},
    plan::{CertificateRequest, KeyAlgorithm},
};

use crate::{
    apply::tls_secret,
    cache::Key,
    certificates::{self, Ca},
    clock::Clock,
};

/// Secret with the key that seals last answers, in the operator's namespace.
pub const SEALING_SECRET: &str = "weir-decisions-key";
const SEALING_KEY: &str = "key";
const SEALING_BYTES: usize = 32;

/// Why there is no CA or no key.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The API server did not answer, or refused.
    #[error("Secret {name}: {source}")]
    Api {
        /// `namespace/name`.
        name: Key,
        /// What it said.
        source: kube::Error,
    },
    /// The Secret is there and cannot be used.
    #[error("Secret {name}: {source}")]
    Ca {
        /// `namespace/name`.
        name: Key,
        /// Field and cure.
        source: certificates::Error,
    },
    /// The Secret is not there, and this replica does not make it.
    #[error("Secret {0} does not exist yet: the leader makes it")]
    Missing(Key),
    /// The sealing key is not what we write.
    #[error("Secret {0}: key {SEALING_KEY:?} must have at least {SEALING_BYTES} bytes: delete the Secret, and it is made again")]
    SealingKey(Key),
    /// The operating system has no random numbers.
    #[error("no random numbers from the operating system")]
    Random,
}

/// The CA in force.
pub struct Authority {
    client: Client,
    /// Where the Secret is.
    pub name: Key,
    key: KeyAlgorithm,
    secret_label: String,
    clock: Clock,
    ca: RwLock<Option<Arc<Ca>>>,
    /// Why the Secret could not be used the last time it was read.
    problem: RwLock<Option<String>>,
    /// The Secret's content that is in force: what is written back when somebody deletes the Secret, so that no gateway has to roll.
    content: RwLock<Option<BTreeMap<String, ByteString>>>,
    /// The key that seals last answers, as it is in force: what is written back when somebody deletes its Secret.
    sealing: RwLock<Option<Vec<u8>>>,
}

impl Authority {
    /// Nothing is read yet. `key` is what a CA that has to be made gets.
    #[must_use]
    pub fn new(client: Client, name: Key, key: KeyAlgorithm, secret_label: String, clock: Clock) -> Self {
        Self {
            client,
            name,
            key,
            secret_label,
            clock,
            ca: RwLock::default(),
            problem: RwLock::default(),
            content: RwLock::default(),
            sealing: RwLock::default(),
        }
    }

    /// What passes see of it; none before it was read.
    #[must_use]
    pub fn facts(&self) -> Option<CaFacts> {
        self.current().map(|ca| ca.facts())
    }

    /// Why there is none; for people.
    #[must_use]
    pub fn problem(&self) -> String {
        let problem = self.problem.read().unwrap_or_else(PoisonError::into_inner).clone();
        problem.unwrap_or_else(|| format!("Secret {}: the cluster CA is not there yet", self.name))
    }

    /// Its end.
    #[must_use]
    pub fn ends(&self) -> Option<Timestamp> {
        self.current().map(|ca| ca.ends())
    }

    fn current(&self) -> Option<Arc<Ca>> {
        self.ca.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads the Secret, and makes it where it is missing and `create` says so. A Secret that cannot be used leaves the last CA in force.
    /// Returns whether another CA is in force now.
    ///
    /// # Errors
    /// Why there is none.
    pub async fn load(&self, create: bool) -> Result<bool, Error> {
        let loaded = self.read(create).await;
        *self.problem.write().unwrap_or_else(PoisonError::into_inner) = loaded.as_ref().err().map(ToString::to_string);
        loaded
    }

    async fn read(&self, create: bool) -> Result<bool, Error> {
        let api_error = |source| Error::Api { name: self.name.clone(), source };
        let api = Api::<Secret>::namespaced(self.client.clone(), &self.name.namespace);
        let secret = match api.get_opt(&self.name.name).await.map_err(api_error)? {
            Some(secret) => secret,
            None if create => self.create(&api).await?,
            None => return Err(Error::Missing(self.name.clone())),
        };
        let part = |key: &str| secret.data.as_ref().and_then(|d| d.get(key)).map(|b| b.0.as_slice()).unwrap_or_default();
        let ca = Ca::read(part("tls.crt"), part("tls.key")).map_err(|source| Error::Ca { name: self.name.clone(), source })?;
        let before = self.facts();
        let changed = before.as_ref() != Some(&ca.facts());
        *self.ca.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(ca));
        *self.content.write().unwrap_or_else(PoisonError::into_inner) = secret.data;
        Ok(changed)
    }

    async fn create(&self, api: &Api<Secret>) -> Result<Secret, Error> {
        let known = self.content.read().unwrap_or_else(PoisonError::into_inner).clone();
        let lives = self.ends().is_some_and(|end| end > self.clock.now());
        let made = certificates::generate_ca(self.key, self.clock.now()).map_err(|source| Error::Ca { name: self.name.clone(), source })?;
        let metadata = ObjectMeta {
            name: Some(self.name.name.clone()),
            namespace: Some(self.name.namespace.clone()),
            labels: Some([(self.secret_label.clone(), "internal".to_owned())].into()),
            ..ObjectMeta::default()
        };
        let certificate = made.certificate.clone();
        let mut secret = tls_secret(metadata, [("ca.crt", certificate.clone()), ("tls.crt", certificate), ("tls.key", made.key.clone())]);
        // A CA may be replaced in place: its owner's choice.
        secret.immutable = None;
        match known.filter(|_| lives) {
            Some(content) => {
                tracing::warn!(secret = %self.name, "the cluster CA was deleted and is written back");
                secret.data = Some(content);
            }
            None => tracing::info!(secret = %self.name, "the cluster CA is made"),
        }
        self.stored(api, &secret).await
    }

    /// Creates, or reads what another replica created meanwhile.
    async fn stored(&self, api: &Api<Secret>, secret: &Secret) -> Result<Secret, Error> {
        let name = Key::of(&secret.metadata);
        let params = PostParams { field_manager: Some(keys::FIELD_MANAGER.into()), ..PostParams::default() };
        match api.create(&params, secret).await {
            Ok(stored) => Ok(stored),
            Err(kube::Error::Api(status)) if status.code == 409 => api.get(&name.name).await.map_err(|source| Error::Api { name, source }),
            Err(source) => Err(Error::Api { name, source }),
        }
    }

    /// Signs a certificate and makes the Secret that stores it.
    ///
    /// # Errors
    /// For a person: the CA's Secret and what is wrong with it.
    pub fn secret(&self, request: &CertificateRequest) -> Result<Secret, String> {
        let ca = self.current().ok_or_else(|| format!("Secret {}: there is no cluster CA yet", self.name))?;
        let leaf = ca.mint(request, self.clock.now()).map_err(|error| format!("Secret {}: {error}", self.name))?;
        let mut metadata = request.metadata.clone();
        metadata.annotations.get_or_insert_default().insert(keys::CERT_EXPIRES_AT.into(), leaf.ends.to_string());
        Ok(tls_secret(metadata, [("ca.crt", leaf.ca_crt), ("tls.crt", leaf.tls_crt), ("tls.key", leaf.tls_key)]))
    }

    /// Where the key is that seals last answers.
    #[must_use]
    pub fn sealing_name(&self) -> Key {
        Key::new(&self.name.namespace, SEALING_SECRET)
    }

    /// The key that seals last answers; made where it is missing.
    ///
    /// # Errors
    /// Why there is none.
    pub async fn sealing(&self) -> Result<Sealing, Error> {
        let secret = match self.sealing_secret().await? {
            Some(secret) => secret,
            None => {
                let mut bytes = vec![0_u8; SEALING_BYTES];
                let random = rustls::crypto::aws_lc_rs::default_provider().secure_random;
                random.fill(&mut bytes).map_err(|_| Error::Random)?;
                self.store_sealing(bytes).await?
            }
        };
        let bytes = sealing_bytes(secret).ok_or_else(|| Error::SealingKey(self.sealing_name()))?;
        *self.sealing.write().unwrap_or_else(PoisonError::into_inner) = Some(bytes.clone());
        Ok(Sealing::Key(SealingKey::new(bytes)))
    }

    /// Writes the key in force back where its Secret was deleted, so that a restart still believes what was recorded with it. Another key
    /// in its place counts with the next start.
    ///
    /// # Errors
    /// When the API server does not answer, or refuses.
    pub async fn keep_sealing(&self) -> Result<(), Error> {
        let Some(known) = self.sealing.read().unwrap_or_else(PoisonError::into_inner).clone() else { return Ok(()) };
        let name = self.sealing_name();
        match self.sealing_secret().await? {
            None => {
                tracing::warn!(secret = %name, "the key of last answers was deleted and is written back");
                self.store_sealing(known).await.map(drop)
            }
            Some(secret) => {
                if sealing_bytes(secret).as_ref() == Some(&known) {
                    return Ok(());
                }
                tracing::error!(secret = %name, "the key of last answers was replaced: the one in force stays until the operator restarts, \
                    and then every last answer is asked for anew; delete the Secret, and the one in force is written back");
                Ok(())
            }
        }
    }

    async fn sealing_secret(&self) -> Result<Option<Secret>, Error> {
        let name = self.sealing_name();
        let api = Api::<Secret>::namespaced(self.client.clone(), &name.namespace);
        api.get_opt(&name.name).await.map_err(|source| Error::Api { name, source })
    }

    async fn store_sealing(&self, bytes: Vec<u8>) -> Result<Secret, Error> {
        let name = self.sealing_name();
        let api = Api::<Secret>::namespaced(self.client.clone(), &name.namespace);
        let metadata = ObjectMeta { name: Some(name.name), namespace: Some(name.namespace), ..ObjectMeta::default() };
        let data = Some([(SEALING_KEY.to_owned(), ByteString(bytes))].into());
        self.stored(&api, &Secret { metadata, data, immutable: Some(true), ..Secret::default() }).await
    }
}

fn sealing_bytes(secret: Secret) -> Option<Vec<u8>> {
    let bytes = secret.data.and_then(|mut data| data.remove(SEALING_KEY)).map(|bytes| bytes.0);
    bytes.filter(|bytes| bytes.len() >= SEALING_BYTES)
}
