//! Taking back what an undone rollout wrote (ADR 9): the API server records a template that somebody brought back as theirs, and our next apply
//! could not remove what only that template has.

use serde_json::{Map, Value, json};
use weir_api::keys;
use weir_core::{
    live::owned::{self, TEMPLATE_HASH_FIELD},
    plan::Target,
};

use super::{Failed, Failure, Writer, takeover::conditions};

impl Writer {
    pub(super) async fn reclaim(&self, target: &Target) -> Result<(), Failure> {
        let failure = |error: &kube::Error| Failure::new(target.kind, &target.name, Failed::of(error), error);
        let live = self.get(target.kind, &target.namespace, &target.name).await.map_err(|error| failure(&error))?;
        let mut patch = conditions(&live);
        let managed = live.pointer("/metadata/managedFields").and_then(Value::as_array);
        if let Some(fields) = managed.and_then(|entries| handed_back(entries)) {
            patch.push(json!({"op": "replace", "path": "/metadata/managedFields", "value": fields}));
        }
        self.patch_json(target, patch).await.map_err(|error| failure(&error))
    }
}

/// The entries with template and annotations of ours taken from whoever brought them back. Their other fields stay theirs.
fn handed_back(entries: &[Value]) -> Option<Vec<Value>> {
    let text = |entry: &Value, field: &str| entry.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let is_whole = |e: &Value| text(e, "subresource").is_empty();
    let is_ours = |e: &Value| text(e, "manager") == keys::FIELD_MANAGER && text(e, "operation") == "Apply" && is_whole(e);
    let undid = |e: &Value| {
        let hash = e.pointer("/fieldsV1/f:metadata/f:annotations").and_then(|a| a.get(TEMPLATE_HASH_FIELD));
        hash.is_some() && text(e, "manager") != keys::FIELD_MANAGER && text(e, "operation") == "Update" && is_whole(e)
    };
    let mut fields = Map::new();
    let mut kept = Vec::with_capacity(entries.len());
    let (undoing, others): (Vec<&Value>, Vec<&Value>) = entries.iter().partition(|e| undid(e));
    for entry in undoing {
        let mut theirs = entry.clone();
        owned::merge(&mut fields, &taken(&mut theirs));
        if theirs.get("fieldsV1").and_then(Value::as_object).is_some_and(|left| !left.is_empty()) {
            kept.push(theirs);
        }
    }
    if fields.is_empty() {
        return None;
    }
    let mut given = false;
    for entry in others {
        let mut entry = entry.clone();
        if is_ours(&entry)
            && let Some(ours) = entry.get_mut("fieldsV1").and_then(Value::as_object_mut)
        {
            owned::merge(ours, &fields);
            given = true;
        }
        kept.push(entry);
    }
    given.then_some(kept)
}

/// Takes out of an entry what is ours: the pod template, and annotations with our prefix.
fn taken(entry: &mut Value) -> Map<String, Value> {
    let mut taken = Map::new();
    let Some(fields) = entry.get_mut("fieldsV1").and_then(Value::as_object_mut) else { return taken };
    if let Some(spec) = fields.get_mut("f:spec").and_then(Value::as_object_mut)
        && let Some(template) = spec.remove("f:template")
    {
        taken.insert("f:spec".into(), json!({"f:template": template}));
    }
    if let Some(metadata) = fields.get_mut("f:metadata").and_then(Value::as_object_mut) {
        if let Some(annotations) = metadata.get_mut("f:annotations").and_then(Value::as_object_mut) {
            let (ours, theirs): (Map<_, _>, Map<_, _>) =
                std::mem::take(annotations).into_iter().partition(|(key, _)| key.starts_with("f:weir.dev/"));
            *annotations = theirs;
            taken.insert("f:metadata".into(), json!({"f:annotations": ours}));
        }
        // `.` is the map itself, which is nobody's without an entry.
        metadata.retain(|key, value| key != "f:annotations" || value.as_object().is_some_and(|all| all.keys().any(|key| key != ".")));
    }
    fields.retain(|_, value| value.as_object().is_none_or(|part| !part.is_empty()));
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kubectls() -> Value {
        json!({"manager": "kubectl", "operation": "Update", "apiVersion": "apps/v1", "fieldsType": "FieldsV1", "fieldsV1": {
            "f:metadata": {"f:annotations": {".": {}, "f:weir.dev/template-hash": {}, "f:weir.dev/applied": {}}},
            "f:spec": {"f:template": {"f:spec": {"f:volumes": {"k:{\"name\":\"plugin-p\"}": {".": {}, "f:name": {}}}}}},
        }})
    }

    fn ours() -> Value {
        json!({"manager": "weir", "operation": "Apply", "fieldsV1": {
            "f:metadata": {"f:annotations": {"f:weir.dev/decisions": {}}}, "f:spec": {"f:replicas": {}, "f:template": {"f:spec": {"f:dnsPolicy": {}}}},
        }})
    }

    #[test]
    fn what_an_undone_rollout_brought_back_is_ours_again() {
        let status = json!({"manager": "kubectl", "operation": "Update", "subresource": "status", "fieldsV1": {"f:status": {}}});
        let restart =
            json!({"manager": "kubectl-rollout", "operation": "Update", "fieldsV1": {"f:spec": {"f:template": {"f:metadata": {}}}}});
        let after = handed_back(&[kubectls(), status.clone(), restart.clone(), ours()]).unwrap();
        assert_eq!(after.len(), 3, "nothing of the undoer's is left: {after:#?}");
        assert_eq!((&after[0], &after[1]), (&status, &restart));
        let wanted = json!({
            "f:metadata": {"f:annotations": {"f:weir.dev/decisions": {}, "f:weir.dev/template-hash": {}, "f:weir.dev/applied": {}}},
            "f:spec": {"f:replicas": {}, "f:template": {"f:spec": {
                "f:dnsPolicy": {}, "f:volumes": {"k:{\"name\":\"plugin-p\"}": {".": {}, "f:name": {}}},
            }}},
        });
        assert_eq!(after[2]["fieldsV1"], wanted);
    }

    #[test]
    fn what_else_they_wrote_stays_theirs() {
        let mut theirs = kubectls();
        theirs["fieldsV1"]["f:metadata"]["f:annotations"]["f:note"] = json!({});
        theirs["fieldsV1"]["f:spec"]["f:minReadySeconds"] = json!({});
        let after = handed_back(&[theirs, ours()]).unwrap();
        assert_eq!(
            after[0]["fieldsV1"],
            json!({"f:metadata": {"f:annotations": {".": {}, "f:note": {}}}, "f:spec": {"f:minReadySeconds": {}}})
        );
    }

    #[test]
    fn nothing_is_taken_from_other_writers() {
        let mut other = kubectls();
        other["fieldsV1"]["f:metadata"]["f:annotations"] = json!({"f:note": {}});
        assert_eq!(handed_back(&[other, ours()]), None);
        assert_eq!(handed_back(&[kubectls()]), None, "without an entry of ours there is nobody to give it to");
    }
}
