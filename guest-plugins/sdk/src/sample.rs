//! Inputs to test policies with.

use crate::{
    Context, ObjectMeta,
    conflict_resolution::{Claim, ClaimValue, Origin},
    konnect_env::{Certificate, ClusterType, Endpoints, Input},
    object_hook::{self, Operation},
    plugin_packaging,
};

/// A DataPlane `demo/gateway` of a cluster `test`.
#[must_use]
pub fn context() -> Context {
    Context {
        contract_version: "0.1.0".into(),
        operator_version: "0.1.0".into(),
        cluster_name: "test".into(),
        cluster_labels: Vec::new(),
        object: ObjectMeta {
            kind: "DataPlane".into(),
            namespace: "demo".into(),
            name: "gateway".into(),
            labels: Vec::new(),
            annotations: Vec::new(),
            extensions: Vec::new(),
        },
        namespace_labels: Vec::new(),
        extensions: Vec::new(),
    }
}

/// That DataPlane with a hybrid control plane in region `us`.
///
/// ```
/// let input = weir_policy_sdk::sample::konnect_env();
/// assert_eq!(input.endpoints.control_plane, "abc.us.cp0.konghq.com");
/// ```
#[must_use]
pub fn konnect_env() -> Input {
    Input {
        context: context(),
        control_plane_id: "11111111-2222-3333-4444-555555555555".into(),
        cluster_type: ClusterType::ControlPlane,
        endpoints: Endpoints {
            control_plane: "abc.us.cp0.konghq.com".into(),
            telemetry: "abc.us.tp0.konghq.com".into(),
            extensions: Vec::new(),
        },
        region: Some("us".into()),
        certificate: Certificate {
            secret_name: "konnect-cert".into(),
            mount_path: "/etc/secrets/kong-cluster-cert".into(),
            extensions: Vec::new(),
        },
        data_plane_labels: Vec::new(),
        image: "kong/kong-gateway:3.15".into(),
        extensions: Vec::new(),
    }
}

/// A claim with a literal value and no date.
///
/// ```
/// use weir_policy_sdk::{conflict_resolution::Origin, sample};
/// assert_eq!(sample::claim(Origin::User, "spec", "x").since, None);
/// ```
#[must_use]
pub fn claim(origin: Origin, who: &str, value: &str) -> Claim {
    Claim { who: who.into(), since: None, origin, value: ClaimValue::Text(value.into()), extensions: Vec::new() }
}

/// An artifact `registry.example/plugin:1.0.0` with these files, fetched for a KongPluginInstallation `demo/plugin`.
///
/// ```
/// use weir_policy_sdk::sample;
/// let input = sample::plugin_packaging(vec![sample::file("handler.lua", "return {}")]);
/// assert_eq!(input.files[0].size, 9);
/// ```
#[must_use]
pub fn plugin_packaging(files: Vec<plugin_packaging::File>) -> plugin_packaging::Input {
    let context = context();
    let object = ObjectMeta { kind: "KongPluginInstallation".into(), name: "plugin".into(), ..context.object };
    plugin_packaging::Input {
        context: Context { object, ..context },
        reference: "registry.example/plugin:1.0.0".into(),
        digest: DIGEST.into(),
        annotations: Vec::new(),
        signers: Vec::new(),
        files,
        bundled: vec!["acl".into(), "rate-limiting".into()],
        extensions: Vec::new(),
    }
}

/// A file of an artifact; its digest is made up.
#[must_use]
pub fn file(path: &str, text: &str) -> plugin_packaging::File {
    plugin_packaging::File {
        path: path.into(),
        size: text.len() as u64,
        digest: DIGEST.into(),
        text: Some(text.into()),
        extensions: Vec::new(),
    }
}

/// That DataPlane's ingress Service, which does not exist yet, with the paths that may change where nothing else is configured.
///
/// ```
/// assert_eq!(weir_policy_sdk::sample::object_hook().kind, "Service");
/// ```
#[must_use]
pub fn object_hook() -> object_hook::Input {
    let object = r#"{"apiVersion":"v1","kind":"Service","metadata":{"name":"dataplane-ingress-gateway","namespace":"demo","labels":{"app":"gateway"},"annotations":{}},"spec":{"type":"LoadBalancer"}}"#;
    let owner = r#"{"apiVersion":"gateway-operator.konghq.com/v1beta1","kind":"DataPlane","metadata":{"name":"gateway","namespace":"demo"},"spec":{}}"#;
    object_hook::Input {
        context: context(),
        operation: Operation::Create,
        api_version: "v1".into(),
        kind: "Service".into(),
        object: object.into(),
        owner: owner.into(),
        paths: vec!["/metadata/labels/*".into(), "/metadata/annotations/*".into()],
        extensions: Vec::new(),
    }
}

const DIGEST: &str = "sha256:0000000000000000000000000000000000000000000000000000000000000000";
