//! Conditions on the Service of a remote plugin. The Service is its owner's: by server-side apply only our entries of the list are ours, and
//! only they come and go.

use k8s_openapi::{api::core::v1::Service, apimachinery::pkg::apis::meta::v1::Condition};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::json;
use weir_api::keys;
use weir_core::remote::Key;

use super::{Patched, Writer};
use crate::metrics::{ObjectKind, Verb};

impl Writer {
    /// Writes our conditions; none takes them away. With `uid`, only of this very Service.
    pub async fn plugin(&self, service: &Key, uid: Option<&str>, conditions: &[Condition]) -> Patched {
        let (namespace, name) = service;
        let mut metadata = json!({"name": name, "namespace": namespace});
        if let (Some(metadata), Some(uid)) = (metadata.as_object_mut(), uid) {
            metadata.insert("uid".into(), uid.into());
        }
        let body = json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "status": {"conditions": conditions}});
        // The types carry our domain: whoever else writes them means ours.
        let params = PatchParams::apply(keys::FIELD_MANAGER).force();
        match Api::<Service>::namespaced(self.client.clone(), namespace).patch_status(name, &params, &Patch::Apply(&body)).await {
            Ok(_) => {
                self.metrics.wrote(ObjectKind::Service, Verb::PatchStatus);
                Patched::Done
            }
            Err(error) => Patched::of(error),
        }
    }
}
