//! Takes out of objects what nobody may see: content of Secrets, keys and certificates, tokens, passwords. Names, and names of keys, stay.

use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::{Map, Value, json};
use weir_api::keys;
use weir_core::hash;

use super::facts::Recorded;

/// What stands for a text that was taken out.
pub(crate) const REDACTED: &str = "REDACTED";
/// The same in base64, as Secrets have it.
pub(super) const REDACTED_BASE64: &str = "UkVEQUNURUQ=";
/// A copy of the whole manifest, Secrets' values included.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// Keys of Secrets that everybody may know, and whose digests pods carry anyhow.
pub(super) const PUBLIC: [&str; 2] = ["tls.crt", "ca.crt"];
/// Words in the name of a variable that make its value a secret.
const SECRET_WORDS: [&str; 9] =
    ["PASSWORD", "PASSWD", "PASSPHRASE", "SECRET", "TOKEN", "CREDENTIAL", "LICENSE_DATA", "PRIVATE", "SESSION_CONF"];

/// Texts that are secrets wherever they stand.
static SECRETS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let pem = r"-----BEGIN [A-Z0-9 ]+-----[\s\S]*?(?:-----END [A-Z0-9 ]+-----|$)";
    let konnect = r"\b[ks]pat_[A-Za-z0-9_-]+";
    let jwt = r"\beyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*";
    let bearer = r"\b(?:Bearer|bearer|Basic)\s+[A-Za-z0-9+/=._~-]{16,}";
    Regex::new(&format!("{pem}|{konnect}|{jwt}|{bearer}")).ok()
});
/// User and password in a URL.
static USERINFO: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*://)[^/\s@]+@").ok());

/// Redacts an object.
pub(crate) fn object(object: &mut Value) {
    if object.get("apiVersion").and_then(Value::as_str) == Some("v1") {
        match object.get("kind").and_then(Value::as_str) {
            Some("Secret") => secret(object),
            // Only their metadata counts.
            Some("ConfigMap") => ["data", "binaryData"].iter().for_each(|field| drop(fields(object).and_then(|map| map.remove(*field)))),
            Some(_) | None => {}
        }
    }
    if let Some(annotations) = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.remove(LAST_APPLIED);
        if let Some(Value::String(decisions)) = annotations.get_mut(keys::DECISIONS) {
            *decisions = open(decisions);
        }
    }
    walk(object);
}

fn fields(object: &mut Value) -> Option<&mut Map<String, Value>> {
    object.as_object_mut()
}

/// Values by placeholders; of public parts the digests stay, since names and templates are made of them.
fn secret(object: &mut Value) {
    let meta = object.get("metadata").and_then(|meta| serde_json::from_value(meta.clone()).ok()).unwrap_or_default();
    let mut recorded = Recorded::of(&meta);
    if let Some(data) = object.get_mut("data").and_then(Value::as_object_mut) {
        for (key, value) in data.iter_mut() {
            let bytes = serde_json::from_value::<k8s_openapi::ByteString>(value.clone()).map(|bytes| bytes.0).unwrap_or_default();
            if PUBLIC.contains(&key.as_str()) && !bytes.is_empty() && *value != json!(REDACTED_BASE64) {
                recorded.keys.insert(key.clone(), hash::digest(&bytes));
            }
            *value = json!(REDACTED_BASE64);
        }
    }
    if let Some(data) = object.get_mut("stringData").and_then(Value::as_object_mut) {
        data.values_mut().for_each(|value| *value = json!(REDACTED));
    }
    recorded.put(object);
}

/// The record of answers without its seals: they are for one cluster's key.
fn open(decisions: &str) -> String {
    let Ok(mut value) = serde_json::from_str::<Value>(decisions) else { return text(decisions) };
    for record in value.as_object_mut().into_iter().flatten().filter_map(|(_, record)| record.as_object_mut()) {
        record.remove("mac");
    }
    walk(&mut value);
    value.to_string()
}

/// Redacts any document.
pub(super) fn value(value: &mut Value) {
    walk(value);
}

fn walk(value: &mut Value) {
    match value {
        Value::Object(map) => {
            variable(map);
            map.values_mut().for_each(walk);
        }
        Value::Array(items) => items.iter_mut().for_each(walk),
        Value::String(all) => *all = text(all),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// An environment variable whose name says that its value is a secret.
fn variable(map: &mut Map<String, Value>) {
    let secret = map.get("name").and_then(Value::as_str).is_some_and(is_secret);
    if let (true, Some(Value::String(value))) = (secret, map.get_mut("value"))
        // A path leads to a secret and is none.
        && !value.starts_with('/')
        && !value.is_empty()
    {
        *value = REDACTED.to_owned();
    }
}

/// Whether a variable of this name holds a secret.
fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    SECRET_WORDS.iter().any(|word| name.contains(word)) || name == "KEY" || name.ends_with("_KEY") || name.ends_with("APIKEY")
}

/// A text without the secrets that are known by their form.
pub(crate) fn text(text: &str) -> String {
    let text = match &*SECRETS {
        Some(secrets) => secrets.replace_all(text, REDACTED),
        None => text.into(),
    };
    match &*USERINFO {
        Some(userinfo) => userinfo
            .replace_all(&text, |found: &Captures<'_>| format!("{}{REDACTED}@", found.name("scheme").map_or("", |s| s.as_str())))
            .into_owned(),
        None => text.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_secret_names_and_digests_of_public_parts_stay() {
        let mut secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "tls", "annotations": {LAST_APPLIED: "{\"data\":{\"tls.key\":\"a2V5\"}}"}},
            "data": {"tls.crt": "Y2VydA==", "tls.key": "a2V5", "password": "aHVudGVyMg=="}, "stringData": {"plain": "hunter2"},
        });
        object(&mut secret);
        let text = secret.to_string();
        for gone in ["Y2VydA==", "a2V5", "aHVudGVyMg==", "hunter2", &hash::digest(b"hunter2"), &hash::digest(b"key")] {
            assert!(!text.contains(gone), "{gone}: {text}");
        }
        assert_eq!(secret["data"].as_object().unwrap().len(), 3);
        let recorded: Value =
            serde_json::from_str(secret["metadata"]["annotations"][super::super::facts::RECORDED].as_str().unwrap()).unwrap();
        assert_eq!(recorded, json!({"keys": {"tls.crt": hash::digest(b"cert")}}));
        let once = secret.clone();
        object(&mut secret);
        assert_eq!(secret, once, "what is redacted stays as it is");
    }

    #[test]
    fn secrets_are_taken_out_wherever_they_stand() {
        let mut deployment = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "d", "annotations": {
                "note": "use kpat_abcDEF123 or eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIn0.c2ln",
                keys::DECISIONS: json!({"konnect-env": {"answer": {"env": [{"name": "KONG_PG_PASSWORD", "value": "hunter2"}]}, "mac": "cafe"}}).to_string(),
            }},
            "spec": {"template": {"spec": {"containers": [{"name": "proxy", "env": [
                {"name": "KONG_PG_PASSWORD", "value": "hunter2"}, {"name": "KONG_LICENSE_DATA", "value": "{\"license\":1}"},
                {"name": "KONG_CLUSTER_CERT_KEY", "value": "/etc/secrets/tls.key"}, {"name": "KONG_ROLE", "value": "data_plane"},
                {"name": "PROXY", "value": "http://user:pw@proxy:3128"}, {"name": "A", "value": "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----"},
            ]}]}}},
        });
        object(&mut deployment);
        let text = deployment.to_string();
        for gone in ["hunter2", "kpat_abc", "eyJhbGci", "license\\\"", "user:pw", "PRIVATE KEY", "cafe"] {
            assert!(!text.contains(gone), "{gone}: {text}");
        }
        for kept in ["/etc/secrets/tls.key", "data_plane", "KONG_PG_PASSWORD", "http://REDACTED@proxy:3128"] {
            assert!(text.contains(kept), "{kept}: {text}");
        }
    }
}
