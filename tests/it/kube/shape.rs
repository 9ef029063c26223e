//! Manifests that tests start from, and questions about objects.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// A small DataPlane: one pod, a load balancer.
pub(crate) fn gateway(name: &str) -> Value {
    json!({
        "apiVersion": "gateway-operator.konghq.com/v1beta1",
        "kind": "DataPlane",
        "metadata": {"name": name},
        "spec": {"deployment": {"podTemplateSpec": {"spec": {"containers": [{"name": "proxy", "image": "kong:3.9"}]}}}}
    })
}

/// The same with a merge patch on top.
pub(crate) fn gateway_with(name: &str, patch: Value) -> Value {
    let mut object = gateway(name);
    merge(&mut object, patch);
    object
}

/// A spec's patch that sets the containers.
pub(crate) fn containers(list: Value) -> Value {
    json!({"spec": {"deployment": {"podTemplateSpec": {"spec": {"containers": list}}}}})
}

/// A patch that sets the proxy's image.
pub(crate) fn image(image: &str) -> Value {
    containers(json!([{"name": "proxy", "image": image}]))
}

/// A token-free extension that uses a Secret.
pub(crate) fn extension(name: &str, secret: &str) -> Value {
    json!({
        "apiVersion": "gateway-operator.konghq.com/v1alpha1",
        "kind": "KonnectExtension",
        "metadata": {"name": name},
        "spec": {
            "controlPlaneRef": {"type": "konnectID", "konnectID": "7d7b1a6e-92a5-4f63-bc63-1c9a7a3d2f10"},
            "controlPlaneRegion": "eu",
            "konnectControlPlaneAPIAuthConfiguration": {"clusterCertificateSecretRef": {"name": secret}}
        }
    })
}

/// A patch that joins a DataPlane to an extension.
pub(crate) fn extended(name: &str) -> Value {
    json!({"spec": {"extensions": [{"group": "gateway-operator.konghq.com", "kind": "KonnectExtension", "name": name}]}})
}

/// A client certificate of its own, another at each call: self-signed, as Konnect pins them.
pub(crate) fn tls_secret(name: &str) -> Value {
    let made = rcgen::generate_simple_self_signed(vec!["konnect-client".to_owned()]).unwrap();
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "labels": {"konghq.com/secret": "true"}},
        "type": "kubernetes.io/tls",
        "stringData": {"tls.crt": made.cert.pem(), "tls.key": made.signing_key.serialize_pem()}
    })
}

/// The same that ends in so many days.
pub(crate) fn tls_secret_ending(name: &str, days: i64) -> Value {
    let end = jiff::Timestamp::now().as_second() + days * 86_400;
    let date = jiff::Timestamp::from_second(end).unwrap().to_zoned(jiff::tz::TimeZone::UTC).date();
    let key = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::new(vec!["konnect-client".to_owned()]).unwrap();
    params.not_after = rcgen::date_time_ymd(date.year().into(), date.month().unsigned_abs(), date.day().unsigned_abs());
    let mut secret = tls_secret(name);
    secret["stringData"] = json!({"tls.crt": params.self_signed(&key).unwrap().pem(), "tls.key": key.serialize_pem()});
    secret
}

/// A merge patch (RFC 7386).
pub(crate) fn merge(target: &mut Value, patch: Value) {
    let Value::Object(fields) = patch else {
        *target = patch;
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    let target = target.as_object_mut().unwrap();
    for (key, value) in fields {
        if value.is_null() {
            target.remove(&key);
        } else {
            merge(target.entry(key).or_insert(Value::Null), value);
        }
    }
}

/// `metadata.name`.
pub(crate) fn name_of(object: &Value) -> String {
    object["metadata"]["name"].as_str().unwrap_or_default().to_owned()
}

/// `metadata.uid`.
pub(crate) fn uid(object: &Value) -> String {
    object["metadata"]["uid"].as_str().unwrap_or_default().to_owned()
}

/// `metadata.generation`.
pub(crate) fn generation(object: &Value) -> i64 {
    object["metadata"]["generation"].as_i64().unwrap_or_default()
}

/// A condition by its type.
pub(crate) fn condition<'a>(object: &'a Value, type_: &str) -> Option<&'a Value> {
    object["status"]["conditions"].as_array()?.iter().find(|c| c["type"] == type_)
}

/// Whether the object is controlled by the owner with this UID.
pub(crate) fn is_owned_by(object: &Value, owner: &str) -> bool {
    let owners = object["metadata"]["ownerReferences"].as_array();
    owners.is_some_and(|list| list.iter().any(|o| o["uid"] == owner && o["controller"] == true))
}

/// Kong's container in a Deployment.
pub(crate) fn proxy(deployment: &Value) -> Value {
    let list = deployment["spec"]["template"]["spec"]["containers"].as_array().cloned().unwrap_or_default();
    list.into_iter().find(|c| c["name"] == "proxy").unwrap_or_default()
}

/// Literal environment of Kong's container.
pub(crate) fn env(deployment: &Value) -> BTreeMap<String, String> {
    let proxy = proxy(deployment);
    let vars = proxy["env"].as_array().cloned().unwrap_or_default();
    vars.iter().map(|v| (v["name"].as_str().unwrap_or_default().into(), v["value"].as_str().unwrap_or_default().into())).collect()
}

/// Equality as an observation.
pub(crate) fn same<T: PartialEq + std::fmt::Debug>(what: &str, found: T, wanted: T) -> Result<(), String> {
    if found == wanted { Ok(()) } else { Err(format!("{what} is {found:?}, not {wanted:?}")) }
}

/// Truth as an observation.
pub(crate) fn holds(truth: bool, otherwise: impl FnOnce() -> String) -> Result<(), String> {
    if truth { Ok(()) } else { Err(otherwise()) }
}
