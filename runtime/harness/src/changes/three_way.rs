//! What an object would be after an apply: what Weir applied before and does not any more goes, what is new comes, what is others' stays.

use serde_json::{Map, Value, json};
use weir_api::keys;
use weir_core::live;

/// Keys that name elements of lists, the most specific first, as the API server merges them.
const MERGE_KEYS: [&[&str]; 6] = [&["containerPort", "protocol"], &["port", "protocol"], &["mountPath"], &["uid"], &["name"], &["type"]];

/// The live object after an apply of `wanted`.
///
/// What Weir applied last is known from `metadata.managedFields`. Where nobody has written these down, elements with a name that the new object
/// does not have count as Weir's below `spec`: lists of named things are rarely shared.
#[must_use]
pub fn applied(live: &Value, wanted: &Value) -> Value {
    let mut after = live.clone();
    match ours(live) {
        Some(fields) => withdraw(&mut after, wanted, fields),
        None => {
            if let (Some(after), Some(wanted)) = (after.get_mut("spec"), wanted.get("spec")) {
                withdraw_named(after, wanted);
            }
        }
    }
    merge(&mut after, wanted);
    after
}

/// The fields of our last apply.
fn ours(live: &Value) -> Option<&Map<String, Value>> {
    let entries = live.pointer("/metadata/managedFields")?.as_array()?;
    let text = |entry: &Value, field: &str| entry.get(field).and_then(Value::as_str).map(str::to_owned);
    let ours = |entry: &&Value| {
        text(entry, "manager").as_deref() == Some(keys::FIELD_MANAGER)
            && text(entry, "operation").as_deref() == Some("Apply")
            && text(entry, "subresource").is_none_or(|subresource| subresource.is_empty())
    };
    entries.iter().find(ours)?.get("fieldsV1")?.as_object()
}

/// Takes out of `live` what `fields` has and `wanted` has not.
fn withdraw(live: &mut Value, wanted: &Value, fields: &Map<String, Value>) {
    for (key, below) in fields {
        if let Some(name) = key.strip_prefix("f:") {
            let Some(map) = live.as_object_mut() else { return };
            match (wanted.get(name), map.get_mut(name), below.as_object()) {
                (None, _, _) => drop(map.remove(name)),
                (Some(wanted), Some(live), Some(below)) => withdraw(live, wanted, below),
                (Some(_), _, _) => {}
            }
        } else if let Some(name) = key.strip_prefix("k:") {
            let Ok(name) = serde_json::from_str::<Value>(name) else { continue };
            let Some(items) = live.as_array_mut() else { return };
            let Some(place) = items.iter().position(|item| has(item, &name)) else { continue };
            let wanted = wanted.as_array().and_then(|wanted| wanted.iter().find(|item| has(item, &name)));
            match (wanted, items.get_mut(place), below.as_object()) {
                (None, _, _) => drop(items.remove(place)),
                (Some(wanted), Some(live), Some(below)) => withdraw(live, wanted, below),
                (Some(_), _, _) => {}
            }
        } else if let Some(value) = key.strip_prefix("v:") {
            let Ok(value) = serde_json::from_str::<Value>(value) else { continue };
            let kept = wanted.as_array().is_some_and(|wanted| wanted.contains(&value));
            if let (false, Some(items)) = (kept, live.as_array_mut()) {
                items.retain(|item| *item != value);
            }
        }
    }
}

/// Whether an element has all the fields that name it. The server fills in a protocol that nobody wrote.
fn has(item: &Value, name: &Value) -> bool {
    let field = |key: &str| item.get(key).cloned().or_else(|| (key == "protocol").then(|| json!("TCP")));
    name.as_object().is_some_and(|name| name.iter().all(|(key, value)| field(key).as_ref() == Some(value)))
}

/// Takes out elements with a name that `wanted` has not, in all lists that both have.
fn withdraw_named(live: &mut Value, wanted: &Value) {
    match (live, wanted) {
        (Value::Object(live), Value::Object(wanted)) => {
            for (key, wanted) in wanted {
                if let Some(live) = live.get_mut(key) {
                    withdraw_named(live, wanted);
                }
            }
        }
        (Value::Array(live), Value::Array(wanted)) => {
            live.retain(|item| name_of(item).is_none_or(|name| wanted.iter().any(|wanted| has(wanted, &name))));
            for item in live {
                if let Some(wanted) = name_of(item).and_then(|name| wanted.iter().find(|wanted| has(wanted, &name))) {
                    withdraw_named(item, wanted);
                }
            }
        }
        (_, _) => {}
    }
}

/// What names an element.
fn name_of(item: &Value) -> Option<Value> {
    let keys = MERGE_KEYS.into_iter().find(|keys| keys.first().is_some_and(|first| item.get(*first).is_some()))?;
    let fields = keys.iter().map(|key| ((*key).to_owned(), item.get(*key).cloned().unwrap_or_else(|| json!("TCP"))));
    Some(Value::Object(fields.collect()))
}

/// Puts `wanted` over `live`. What means the same already stays as it is written.
fn merge(live: &mut Value, wanted: &Value) {
    match (live, wanted) {
        (Value::Object(live), Value::Object(wanted)) => {
            for (key, wanted) in wanted {
                match live.get_mut(key) {
                    None if is_nothing(wanted) => {}
                    None => drop(live.insert(key.clone(), wanted.clone())),
                    // The name of the field says whether `1` and `1000m` are one.
                    Some(found) if live::covers(&json!({key: found}), &json!({key: wanted})) && !is_shorter(wanted, found) => {}
                    Some(found) => merge(found, wanted),
                }
            }
        }
        (Value::Array(live), Value::Array(wanted)) if wanted.iter().all(|item| name_of(item).is_some()) && !wanted.is_empty() => {
            for item in wanted {
                let found = name_of(item).and_then(|name| live.iter_mut().find(|found| has(found, &name)));
                match found {
                    Some(found) => merge(found, item),
                    None => live.push(item.clone()),
                }
            }
        }
        (live, wanted) => *live = wanted.clone(),
    }
}

/// A list without names is replaced whole: that the live one has everything is not enough.
fn is_shorter(wanted: &Value, live: &Value) -> bool {
    match (wanted, live) {
        (Value::Array(wanted), Value::Array(live)) => wanted.len() < live.len() && wanted.iter().any(|item| name_of(item).is_none()),
        (_, _) => false,
    }
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.values().all(is_nothing),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deployment(env: &Value, managed: bool) -> Value {
        let mut object = json!({
            "kind": "Deployment", "metadata": {"name": "d"},
            "spec": {"replicas": 3, "template": {"spec": {"dnsPolicy": "ClusterFirst", "containers": [
                {"name": "proxy", "env": env, "resources": {"limits": {"cpu": "1"}}, "terminationMessagePath": "/dev/termination-log"},
            ]}}},
        });
        if managed {
            object["metadata"]["managedFields"] = json!([
                {"manager": "kubectl", "operation": "Update", "fieldsV1": {"f:spec": {"f:replicas": {}}}},
                {"manager": "weir", "operation": "Apply", "fieldsV1": {"f:spec": {"f:paused": {}, "f:template": {"f:spec": {"f:containers": {
                    "k:{\"name\":\"proxy\"}": {".": {}, "f:name": {}, "f:env": {"k:{\"name\":\"A\"}": {".": {}, "f:name": {}, "f:value": {}}}},
                }}}}}},
            ]);
            object["spec"]["paused"] = json!(true);
        }
        object
    }

    fn wanted() -> Value {
        json!({"kind": "Deployment", "metadata": {"name": "d"}, "spec": {"template": {"spec": {"containers": [
            {"name": "proxy", "env": [{"name": "B", "value": "2"}], "resources": {"limits": {"cpu": "1000m"}}},
        ]}}}})
    }

    fn env(object: &Value) -> &Value {
        &object["spec"]["template"]["spec"]["containers"][0]["env"]
    }

    #[test]
    fn what_we_applied_and_do_not_want_any_more_goes_and_what_is_others_stays() {
        let live = deployment(&json!([{"name": "A", "value": "1"}, {"name": "INJECTED", "value": "x"}]), true);
        let after = applied(&live, &wanted());
        assert_eq!(env(&after), &json!([{"name": "INJECTED", "value": "x"}, {"name": "B", "value": "2"}]));
        assert_eq!((&after["spec"]["replicas"], after["spec"].get("paused")), (&json!(3), None));
        assert_eq!(after["spec"]["template"]["spec"]["dnsPolicy"], "ClusterFirst");
        assert_eq!(after["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["cpu"], "1", "the same amount is no change");
    }

    #[test]
    fn without_a_record_named_elements_count_as_ours() {
        let live = deployment(&json!([{"name": "A", "value": "1"}, {"name": "B", "value": "1"}]), false);
        assert_eq!(env(&applied(&live, &wanted())), &json!([{"name": "B", "value": "2"}]));
    }

    #[test]
    fn an_apply_of_what_is_there_changes_nothing() {
        let live = deployment(&json!([{"name": "B", "value": "2"}]), false);
        assert_eq!(applied(&live, &wanted()), live);
    }

    #[test]
    fn ports_are_told_apart_by_number_and_protocol() {
        let live = json!({"spec": {"ports": [{"port": 80, "protocol": "TCP", "nodePort": 30000}, {"port": 80, "protocol": "UDP"}]}});
        let wanted = json!({"spec": {"ports": [{"port": 80, "targetPort": 8000}]}});
        let after = applied(&live, &wanted);
        assert_eq!(after["spec"]["ports"], json!([{"port": 80, "protocol": "TCP", "nodePort": 30000, "targetPort": 8000}]));
    }
}
