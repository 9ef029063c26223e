//! Whether two pod templates say the same once the API server has filled in what is left out.
//!
//! Stricter than [`super::covers`]: what only the live side has counts too, and so does order, since both would roll the pods when our
//! rendering takes the place of a template of Kong's operator. An unknown default makes a difference that waits for a person; it never rolls.

use serde_json::{Map, Value};

use super::{has_quantities, same_text};

/// What the server fills in, by field name, wherever in a pod template it stands.
const DEFAULTS: [(&str, &str); 22] = [
    ("restartPolicy", r#""Always""#),
    ("dnsPolicy", r#""ClusterFirst""#),
    ("schedulerName", r#""default-scheduler""#),
    ("terminationGracePeriodSeconds", "30"),
    ("terminationMessagePath", r#""/dev/termination-log""#),
    ("terminationMessagePolicy", r#""File""#),
    // The server chooses between these two by the image's tag.
    ("imagePullPolicy", r#""IfNotPresent""#),
    ("imagePullPolicy", r#""Always""#),
    ("protocol", r#""TCP""#),
    ("scheme", r#""HTTP""#),
    ("path", r#""/""#),
    ("timeoutSeconds", "1"),
    ("periodSeconds", "10"),
    ("successThreshold", "1"),
    ("failureThreshold", "3"),
    ("defaultMode", "420"),
    ("apiVersion", r#""v1""#),
    ("expirationSeconds", "3600"),
    ("readOnly", "false"),
    ("optional", "false"),
    ("type", r#""""#),
    ("value", r#""""#),
];

/// Annotation of `kubectl rollout restart`: it stays with whoever set it, whatever we send.
const RESTARTED_AT: &str = "kubectl.kubernetes.io/restartedAt";

/// Whether sending `wanted` in place of `live` changes nothing.
#[must_use]
pub fn same(live: &Value, wanted: &Value) -> bool {
    same_in(live, wanted, false)
}

fn same_in(live: &Value, wanted: &Value, quantities: bool) -> bool {
    match (live, wanted) {
        (Value::Object(live), Value::Object(wanted)) => only(live, wanted) && only(wanted, live) && both(live, wanted, quantities),
        (Value::Array(live), Value::Array(wanted)) => {
            live.len() == wanted.len() && live.iter().zip(wanted).all(|(live, wanted)| same_in(live, wanted, quantities))
        }
        (Value::String(a), Value::String(b)) => same_text(a, b, quantities),
        (a, b) => a == b,
    }
}

fn both(live: &Map<String, Value>, wanted: &Map<String, Value>, quantities: bool) -> bool {
    live.iter().all(|(key, value)| wanted.get(key).is_none_or(|other| same_in(value, other, quantities || has_quantities(key))))
}

/// Whether everything that only `some` has is what the server fills in.
fn only(some: &Map<String, Value>, other: &Map<String, Value>) -> bool {
    some.iter().filter(|(key, _)| !other.contains_key(*key)).all(|(key, value)| filled_in(key, value) || implied(key, value, other))
}

fn filled_in(key: &str, value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.iter().all(|(key, value)| filled_in(key, value)),
        Value::Array(items) => items.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            let default = |(name, text): &(&str, &str)| *name == key && serde_json::from_str::<Value>(text).is_ok_and(|v| v == *value);
            key == RESTARTED_AT || DEFAULTS.iter().any(default)
        }
    }
}

/// What follows from the fields beside it.
fn implied(key: &str, value: &Value, beside: &Map<String, Value>) -> bool {
    match key {
        "serviceAccount" => beside.get("serviceAccountName") == Some(value),
        "requests" => beside.get("limits").is_some_and(|limits| same_in(value, limits, true)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_the_server_fills_in_is_no_difference() {
        let wanted = json!({"spec": {
            "serviceAccountName": "kong",
            "containers": [{"name": "proxy", "ports": [{"containerPort": 80}], "resources": {"limits": {"cpu": "1000m"}}}],
            "volumes": [{"name": "c", "secret": {"secretName": "s"}}],
        }});
        let live = json!({"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z"}}, "spec": {
            "serviceAccountName": "kong", "serviceAccount": "kong", "dnsPolicy": "ClusterFirst", "securityContext": {},
            "containers": [{"name": "proxy", "ports": [{"containerPort": 80, "protocol": "TCP"}], "imagePullPolicy": "IfNotPresent",
                "terminationMessagePath": "/dev/termination-log", "resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}}],
            "volumes": [{"name": "c", "secret": {"secretName": "s", "defaultMode": 420}}],
        }});
        assert!(same(&live, &wanted));
        assert!(same(&wanted, &live), "the order of the two does not matter");
    }

    #[test]
    fn more_or_otherwise_ordered_is_a_difference() {
        let wanted = json!({"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]});
        assert!(!same(&json!({"env": [{"name": "A", "value": "1"}]}), &wanted));
        assert!(!same(&json!({"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}, {"name": "C"}]}), &wanted));
        assert!(!same(&json!({"env": [{"name": "B", "value": "2"}, {"name": "A", "value": "1"}]}), &wanted));
        assert!(!same(&json!({"value": "1"}), &json!({"value": "1000m"})), "a variable is no quantity");
        assert!(!same(&json!({"env": wanted["env"], "annotations": {"a": "b"}}), &wanted));
        assert!(!same(&json!({"env": wanted["env"], "dnsPolicy": "Default"}), &wanted));
    }
}
