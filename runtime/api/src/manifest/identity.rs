//! Which object a manifest speaks of.

use serde_json::Value;

use super::path::FieldPath;

/// What makes an object that object, plus the version it is written in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) namespace: Option<String>,
    pub(super) name: String,
}

/// Two manifests with the same key are about the same object, whatever version they are written in.
pub(super) type Key = (String, String, Option<String>, String);

impl Identity {
    /// Reads the identity.
    ///
    /// # Errors
    /// The field that is missing and what to do.
    pub(super) fn of(value: &Value) -> Result<Self, (FieldPath, String)> {
        if !value.is_object() {
            return Err((FieldPath::root(), "expected a Kubernetes object, a map with apiVersion, kind and metadata".to_owned()));
        }
        let metadata = FieldPath::root().key("metadata");
        let missing = |path: FieldPath, example: &str| {
            let message = format!("`{path}` is missing or not a text: add it, for example {example}");
            (path, message)
        };
        let root =
            |name: &str, example: &str| text(value, &["/", name].concat()).ok_or_else(|| missing(FieldPath::root().key(name), example));
        let api_version = root("apiVersion", "`apiVersion: gateway-operator.konghq.com/v1beta1`")?;
        let kind = root("kind", "`kind: DataPlane`")?;
        let name = match text(value, "/metadata/name") {
            Some(name) => name,
            None if text(value, "/metadata/generateName").is_some() => {
                let message = "an object without a name cannot be planned: replace generateName by `name`";
                return Err((metadata.key("generateName"), message.to_owned()));
            }
            None => return Err(missing(metadata.key("name"), "`name: my-gateway`")),
        };
        Ok(Self { api_version, kind, namespace: text(value, "/metadata/namespace"), name })
    }

    pub(super) fn key(&self) -> Key {
        let group = self.api_version.rsplit_once('/').map_or("", |(group, _)| group);
        (group.to_owned(), self.kind.clone(), self.namespace.clone(), self.name.clone())
    }

    /// `DataPlane default/gw`, or `Namespace default` without a namespace.
    pub(super) fn label(&self) -> String {
        match &self.namespace {
            Some(namespace) => format!("{} {namespace}/{}", self.kind, self.name),
            None => format!("{} {}", self.kind, self.name),
        }
    }
}

/// How messages name an object, as far as it can be told.
pub(super) fn label(value: &Value) -> Option<String> {
    match Identity::of(value) {
        Ok(identity) => Some(identity.label()),
        Err(_) => text(value, "/kind"),
    }
}

fn text(value: &Value, pointer: &str) -> Option<String> {
    value.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
}
