//! Taking a child over from Kong's operator (design section 8): the fields it owned become ours, so that our next apply can remove those
//! that are not wanted, and its finalizer goes, so that deletions do not hang.

use kube::api::{Patch, PatchParams};
use serde_json::{Map, Value, json};
use weir_api::keys;
use weir_core::{live::owned, plan::Target};

use super::{Failed, Failure, Writer};
use crate::metrics::Verb;

impl Writer {
    pub(super) async fn take_over(&self, target: &Target) -> Result<(), Failure> {
        let failure = |error: &kube::Error| Failure::new(target.kind, &target.name, Failed::of(error), error);
        let live = self.get(target.kind, &target.namespace, &target.name).await.map_err(|error| failure(&error))?;
        let mut patch = conditions(&live);
        let managed = live.pointer("/metadata/managedFields").and_then(Value::as_array);
        if let Some(fields) = managed.and_then(|entries| handed_over(entries)) {
            patch.push(json!({"op": "replace", "path": "/metadata/managedFields", "value": fields}));
        }
        patch.extend(released(&live));
        self.patch_json(target, patch).await.map_err(|error| failure(&error))
    }

    /// Strips the finalizer that would keep a child we delete.
    pub(super) async fn release(&self, target: &Target) -> Result<(), kube::Error> {
        if !self.has_finalizer(target) {
            return Ok(());
        }
        let live = match self.get(target.kind, &target.namespace, &target.name).await {
            Ok(live) => live,
            Err(error) if Failed::of(&error) == Failed::Gone => return Ok(()),
            Err(error) => return Err(error),
        };
        let mut patch = conditions(&live);
        patch.extend(released(&live));
        self.patch_json(target, patch).await
    }

    pub(super) async fn patch_json(&self, target: &Target, operations: Vec<Value>) -> Result<(), kube::Error> {
        // Conditions alone change nothing.
        if operations.iter().all(|o| o.get("op").and_then(Value::as_str) == Some("test")) {
            return Ok(());
        }
        let patch = serde_json::from_value(Value::Array(operations)).map_err(kube::Error::SerdeError)?;
        let params = PatchParams { field_manager: Some(keys::FIELD_MANAGER.into()), ..PatchParams::default() };
        let request = kube::core::Request::new(super::children::collection(target.kind, &target.namespace))
            .patch(&target.name, &params, &Patch::Json::<()>(patch))
            .map_err(kube::Error::BuildRequest)?;
        let answer: Value = self.client.request(request).await?;
        self.metrics.wrote(target.kind.into(), Verb::Patch);
        self.cache(target.kind, answer).map_err(kube::Error::SerdeError)
    }
}

/// Nobody else wrote since we looked.
pub(super) fn conditions(live: &Value) -> Vec<Value> {
    ["/metadata/uid", "/metadata/resourceVersion"]
        .into_iter()
        .filter_map(|path| Some(json!({"op": "test", "path": path, "value": live.pointer(path)?})))
        .collect()
}

/// Removes Kong's finalizer.
fn released(live: &Value) -> Option<Value> {
    let finalizers = live.pointer("/metadata/finalizers")?.as_array()?;
    let kept: Vec<&Value> = finalizers.iter().filter(|f| f.as_str() != Some(keys::WAIT_FOR_OWNER)).collect();
    (kept.len() != finalizers.len()).then(|| json!({"op": "replace", "path": "/metadata/finalizers", "value": kept}))
}

/// The entries with those of the former operator made ours. The former operator is whoever set the owner reference: no other writer of
/// a child does that. Entries for subresources stay.
fn handed_over(entries: &[Value]) -> Option<Vec<Value>> {
    let text = |entry: &Value, field: &str| entry.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let owns = |entry: &&Value| entry.pointer("/fieldsV1/f:metadata/f:ownerReferences").is_some();
    let former = entries.iter().filter(owns).map(|e| text(e, "manager")).find(|manager| manager != keys::FIELD_MANAGER)?;
    let is_ours = |e: &Value| text(e, "manager") == keys::FIELD_MANAGER && text(e, "operation") == "Apply";
    let moves = |e: &Value| text(e, "subresource").is_empty() && (text(e, "manager") == former || is_ours(e));
    let (moving, mut kept): (Vec<&Value>, Vec<Value>) = entries.iter().fold((Vec::new(), Vec::new()), |(mut moving, mut kept), entry| {
        if moves(entry) {
            moving.push(entry)
        } else {
            kept.push(entry.clone())
        }
        (moving, kept)
    });
    let mut fields = Map::new();
    for entry in &moving {
        if let Some(more) = entry.get("fieldsV1").and_then(Value::as_object) {
            owned::merge(&mut fields, more);
        }
    }
    let mut ours = (*moving.first()?).clone();
    if let Some(entry) = ours.as_object_mut() {
        entry.insert("manager".into(), keys::FIELD_MANAGER.into());
        entry.insert("operation".into(), "Apply".into());
        entry.insert("fieldsV1".into(), fields.into());
    }
    kept.push(ours);
    Some(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_creators_fields_become_ours_and_others_stay() {
        let entries = [
            json!({"manager": "manager", "operation": "Update", "apiVersion": "apps/v1", "fieldsType": "FieldsV1",
                   "fieldsV1": {"f:metadata": {"f:ownerReferences": {".": {}}}, "f:spec": {"f:replicas": {}}}}),
            json!({"manager": "manager", "operation": "Update", "subresource": "status", "fieldsV1": {"f:status": {}}}),
            json!({"manager": "kubectl", "operation": "Update", "fieldsV1": {"f:metadata": {"f:labels": {}}}}),
            json!({"manager": "weir", "operation": "Apply", "fieldsV1": {"f:spec": {"f:template": {}}}}),
        ];
        let after = handed_over(&entries).unwrap();
        assert_eq!(after.len(), 3);
        assert_eq!(after[0]["subresource"], "status");
        assert_eq!(after[1]["manager"], "kubectl");
        assert_eq!(after[2]["manager"], "weir");
        assert_eq!(after[2]["operation"], "Apply");
        assert_eq!(after[2]["fieldsV1"]["f:spec"], json!({"f:replicas": {}, "f:template": {}}));
    }

    #[test]
    fn nothing_is_handed_over_where_nobody_else_made_the_child() {
        assert_eq!(
            handed_over(&[json!({"manager": "weir", "operation": "Apply", "fieldsV1": {"f:metadata": {"f:ownerReferences": {}}}})]),
            None
        );
        assert_eq!(released(&json!({"metadata": {"finalizers": ["other"]}})), None);
        let live = json!({"metadata": {"finalizers": ["other", keys::WAIT_FOR_OWNER]}});
        assert_eq!(released(&live).unwrap()["value"], json!(["other"]));
    }
}
