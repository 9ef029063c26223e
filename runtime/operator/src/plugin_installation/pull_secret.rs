//! Credentials out of pull Secrets. A Secret is read when it is needed; what is kept are parsed credentials, by version, in memory.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use weir_api::{
    keys,
    plugin_installation::{ImagePullSecretRef, KongPluginInstallation},
};
use weir_host::oci::{Credentials, DockerConfig, Reference, docker_config};

use super::users;
use crate::{
    cache::Key,
    grants::{self, permitted},
    world::World,
};

/// Credentials remembered; Secrets are read again when more are named.
const MOST: usize = 10_000;

/// What an installation may show to its registry. Has no Debug.
pub enum Looked {
    /// These credentials.
    Usable {
        /// The credentials; anonymous where no Secret is named.
        credentials: Credentials,
        /// Version of the Secret.
        version: String,
    },
    /// The Secret cannot be used: which object, what to do. Whoever shows it names the field.
    Unusable(String),
}

/// Reads pull Secrets, once per version and repository. Has no Debug.
pub struct PullSecrets {
    client: Client,
    world: Arc<World>,
    known: Mutex<HashMap<(Key, String), Known>>,
}

struct Known {
    version: Option<String>,
    read: Result<Credentials, String>,
}

impl PullSecrets {
    /// Nothing is read yet.
    #[must_use]
    pub fn new(client: Client, world: Arc<World>) -> Self {
        Self { client, world, known: Mutex::default() }
    }

    /// What the installation may show to the registry of `reference`.
    ///
    /// # Errors
    /// When the API server does not answer.
    pub async fn look(&self, installation: &KongPluginInstallation, reference: &Reference) -> Result<Looked, String> {
        let (Some(named), Some(key)) = (&installation.spec.image_pull_secret_ref, users::secret(installation)) else {
            return Ok(Looked::Usable { credentials: Credentials::Anonymous, version: String::new() });
        };
        if let Some(problem) = self.refused(installation, named, &key) {
            return Ok(Looked::Unusable(problem));
        }
        let missing = || Looked::Unusable(format!("Secret {key} does not exist: create it, or name another one"));
        let Some(meta) = self.world.secrets.get(&key) else { return Ok(missing()) };
        let place = (key.clone(), format!("{}/{}", reference.registry(), reference.repository()));
        let version = meta.metadata.resource_version.clone();
        if let Some(known) = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&place).filter(|k| k.version == version) {
            return Ok(looked(known));
        }
        let api = Api::<Secret>::namespaced(self.client.clone(), &key.namespace);
        let Some(secret) = api.get_opt(&key.name).await.map_err(|error| format!("Secret {key}: {error}"))? else { return Ok(missing()) };
        let known = Known { version: secret.metadata.resource_version.clone(), read: read(&key, &secret, reference) };
        let answer = looked(&known);
        let mut all = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MOST {
            all.clear();
        }
        all.insert(place, known);
        Ok(answer)
    }

    /// Why the reference may not be followed.
    fn refused(&self, installation: &KongPluginInstallation, named: &ImagePullSecretRef, key: &Key) -> Option<String> {
        if !named.group.is_empty() || named.kind != "Secret" {
            let what = if named.group.is_empty() { named.kind.clone() } else { format!("{}.{}", named.kind, named.group) };
            return Some(format!("a {what} is named and only a Secret can be read: leave out `group` and `kind`"));
        }
        let own = installation.metadata.namespace.as_deref().unwrap_or_default();
        let reference = grants::Reference {
            from: (keys::GATEWAY_OPERATOR_GROUP, "KongPluginInstallation", own),
            to: ("", "Secret", &key.namespace, &key.name),
        };
        if key.namespace == own || permitted(&self.world, &reference) {
            return None;
        }
        Some(format!(
            "Secret {key} is in another namespace: create a ReferenceGrant in namespace {} from group {} kind \
             KongPluginInstallation namespace {own} to group \"\" kind Secret name {}",
            key.namespace,
            keys::GATEWAY_OPERATOR_GROUP,
            key.name
        ))
    }
}

fn looked(known: &Known) -> Looked {
    match &known.read {
        Ok(credentials) => Looked::Usable { credentials: credentials.clone(), version: known.version.clone().unwrap_or_default() },
        Err(problem) => Looked::Unusable(problem.clone()),
    }
}

/// Credentials for one repository, or what is wrong with the Secret. No value of it is in any text.
pub(crate) fn read(key: &Key, secret: &Secret, reference: &Reference) -> Result<Credentials, String> {
    let type_ = secret.type_.as_deref().unwrap_or("Opaque");
    let (kind, entry) = match type_ {
        "kubernetes.io/dockerconfigjson" => (DockerConfig::Json, ".dockerconfigjson"),
        "kubernetes.io/dockercfg" => (DockerConfig::Legacy, ".dockercfg"),
        other => {
            return Err(format!(
                "Secret {key} has type {other}, which holds no credentials of a registry: make it with `kubectl create secret \
                 docker-registry`"
            ));
        }
    };
    let Some(bytes) = secret.data.as_ref().and_then(|data| data.get(entry)) else {
        return Err(format!("Secret {key} of type {type_} has no key {entry}: put the docker config there"));
    };
    docker_config(kind, &bytes.0, reference).map_err(|error| {
        format!("Secret {key}: {error}; nothing is fetched without credentials while a Secret is named: mend it, or name none")
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use k8s_openapi::ByteString;

    use super::*;

    fn secret(type_: &str, entry: &str, text: &str) -> Secret {
        let data = BTreeMap::from([(entry.to_owned(), ByteString(text.as_bytes().to_vec()))]);
        Secret { type_: Some(type_.into()), data: Some(data), ..Secret::default() }
    }

    fn told(secret: &Secret) -> String {
        let reference = Reference::parse("registry.example.com/a/b:1").unwrap();
        read(&Key::new("n", "s"), secret, &reference).err().unwrap()
    }

    #[test]
    fn each_fault_has_a_text_of_its_own_that_names_the_secret_and_no_value() {
        let json = "kubernetes.io/dockerconfigjson";
        let other = r#"{"auths": {"other.example.com": {"username": "u", "password": "pssst"}}}"#;
        let faults = [
            (secret("Opaque", "x", "pssst"), "has type Opaque"),
            (secret(json, ".dockercfg", "pssst"), "has no key .dockerconfigjson"),
            (secret(json, ".dockerconfigjson", "pssst"), "no JSON object"),
            (secret(json, ".dockerconfigjson", other), "no entry for registry.example.com/a/b"),
        ];
        for (secret, expected) in faults {
            let text = told(&secret);
            // The field is named where this is shown, not a second time here.
            assert!(text.contains(expected) && text.starts_with("Secret n/s") && !text.contains("pssst"), "{text}");
        }
        assert!(told(&secret(json, ".dockerconfigjson", other)).contains("nothing is fetched without credentials"));
    }

    #[test]
    fn both_kinds_of_docker_configs_are_read() {
        let reference = Reference::parse("registry.example.com/a/b:1").unwrap();
        let entry = r#"{"registry.example.com": {"username": "u", "password": "p"}}"#;
        let new = secret("kubernetes.io/dockerconfigjson", ".dockerconfigjson", &format!(r#"{{"auths": {entry}}}"#));
        let old = secret("kubernetes.io/dockercfg", ".dockercfg", entry);
        for secret in [new, old] {
            assert!(read(&Key::new("n", "s"), &secret, &reference).is_ok_and(|c| !c.is_anonymous()));
        }
    }
}
