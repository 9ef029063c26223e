//! ConfigMaps of the installation's own set. Nobody mounts them: they are the copy that sets in other namespaces are made from.

use k8s_openapi::{
    ByteString,
    api::core::v1::ConfigMap,
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
};
use weir_api::keys;

use super::{
    content::{self, Content, Files},
    validate::Validated,
};
use crate::policy::Pairs;

/// Value of label `managed-by` on children of an installation (facts/kong-operator.md 2.4).
pub(super) const MANAGED_BY_INSTALLATION: &str = "kong-plugin-installation";
/// Label that makes Kong's tools see a ConfigMap.
const CONFIG_MAP: &str = "konghq.com/configmap";
/// Value of [`CONFIG_MAP`] on what an operator keeps for itself.
const INTERNAL: &str = "internal";
/// Annotation on ConfigMaps with plugin content: `namespace/name` of the installation.
const MAPPED_TO: &str = "gateway-operator.konghq.com/mapped-to-kong-plugin-installation";

/// The whole set, in order.
pub(super) fn config_maps(installation: &Validated<'_>, content: &Content, files: &[Files]) -> Vec<ConfigMap> {
    let names = content::own_names(installation.name, content);
    names.into_iter().zip(files).map(|(name, files)| config_map(installation, name, content, files)).collect()
}

fn config_map(installation: &Validated<'_>, name: String, content: &Content, files: &Files) -> ConfigMap {
    let mut object = ConfigMap { metadata: meta(installation, name, content), immutable: Some(true), ..ConfigMap::default() };
    for (key, bytes) in files {
        match std::str::from_utf8(bytes) {
            Ok(text) => {
                object.data.get_or_insert_default().insert(key.clone(), text.to_owned());
            }
            Err(_) => {
                object.binary_data.get_or_insert_default().insert(key.clone(), ByteString(bytes.clone()));
            }
        }
    }
    object
}

fn meta(installation: &Validated<'_>, name: String, content: &Content) -> ObjectMeta {
    ObjectMeta {
        name: Some(name),
        namespace: Some(installation.namespace.into()),
        labels: Some(Pairs::from([
            (keys::MANAGED_BY.into(), MANAGED_BY_INSTALLATION.into()),
            (CONFIG_MAP.into(), INTERNAL.into()),
            (keys::PLUGIN_CONTENT.into(), content.label()),
        ])),
        annotations: Some(Pairs::from([(MAPPED_TO.into(), format!("{}/{}", installation.namespace, installation.name))])),
        owner_references: Some(vec![OwnerReference {
            api_version: format!("{}/v1alpha1", keys::GATEWAY_OPERATOR_GROUP),
            kind: "KongPluginInstallation".into(),
            name: installation.name.into(),
            uid: installation.uid.into(),
            controller: Some(true),
            block_owner_deletion: None,
        }]),
        ..ObjectMeta::default()
    }
}
