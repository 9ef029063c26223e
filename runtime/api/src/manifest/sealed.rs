//! Secrets that cannot be printed or written by accident.

use std::{collections::BTreeMap, fmt};

use k8s_openapi::api::core::v1::Secret;

/// Where kubectl keeps a copy of everything it applied, values of Secrets included.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// A value that is neither shown by `Debug` nor can be serialised. Who needs it says so with [`Sealed::expose`].
#[derive(Clone, PartialEq)]
pub struct Sealed<T>(T);

impl<T> Sealed<T> {
    /// The value. Do not print it, write it or keep it; take what is needed (a digest) and let it go.
    #[must_use]
    pub fn expose(&self) -> &T {
        &self.0
    }
}

impl Sealed<Secret> {
    /// Seals a Secret in the form the API server would store: `stringData` merged into `data`. kubectl's copy of the
    /// values in the annotations is dropped.
    #[must_use]
    pub fn new(mut secret: Secret) -> Self {
        if let Some(texts) = secret.string_data.take() {
            let data = secret.data.get_or_insert_with(BTreeMap::new);
            data.extend(texts.into_iter().map(|(key, text)| (key, k8s_openapi::ByteString(text.into_bytes()))));
        }
        if let Some(annotations) = &mut secret.metadata.annotations {
            annotations.remove(LAST_APPLIED);
        }
        Self(secret)
    }
}

impl fmt::Debug for Sealed<Secret> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys: Vec<&String> = self.0.data.iter().flat_map(BTreeMap::keys).collect();
        f.debug_struct("Secret")
            .field("namespace", &self.0.metadata.namespace)
            .field("name", &self.0.metadata.name)
            .field("keys", &keys)
            .finish_non_exhaustive()
    }
}
