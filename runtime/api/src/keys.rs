//! Every label, annotation and finalizer key, group name and other fixed name the operator shares with a cluster.
//!
//! Kong's keys are spelled exactly as Kong Operator spells them, so that objects, selectors and scripts made for it keep working.

/// API group of DataPlane, KongPluginInstallation and the token-free KonnectExtension.
pub const GATEWAY_OPERATOR_GROUP: &str = "gateway-operator.konghq.com";
/// API group of the Konnect kinds that need an account token.
pub const KONNECT_GROUP: &str = "konnect.konghq.com";
/// API group of Weir's own kinds.
pub const WEIR_GROUP: &str = "weir.dev";
/// Name under which every apply is recorded in `metadata.managedFields`.
pub const FIELD_MANAGER: &str = "weir";

/// Label: the common name of an application. On pods it carries the name of the DataPlane.
pub const APP: &str = "app";
/// Label on every child: the sort of owner, for a DataPlane [`MANAGED_BY_DATAPLANE`].
pub const MANAGED_BY: &str = "gateway-operator.konghq.com/managed-by";
/// Value of [`MANAGED_BY`] on children of a DataPlane.
pub const MANAGED_BY_DATAPLANE: &str = "dataplane";
/// Label on a Service: what it serves, [`SERVICE_TYPE_ADMIN`] or [`SERVICE_TYPE_INGRESS`].
pub const DATAPLANE_SERVICE_TYPE: &str = "gateway-operator.konghq.com/dataplane-service-type";
/// Value of [`DATAPLANE_SERVICE_TYPE`] for the Service of Kong's admin API.
pub const SERVICE_TYPE_ADMIN: &str = "admin";
/// Value of [`DATAPLANE_SERVICE_TYPE`] for the Service that takes traffic.
pub const SERVICE_TYPE_INGRESS: &str = "ingress";
/// Label on a Service: which half of a blue/green pair it belongs to, [`STATE_LIVE`] or [`STATE_PREVIEW`].
pub const DATAPLANE_SERVICE_STATE: &str = "gateway-operator.konghq.com/dataplane-service-state";
/// Label on a Deployment: which half of a blue/green pair it is, [`STATE_LIVE`] or [`STATE_PREVIEW`].
pub const DATAPLANE_DEPLOYMENT_STATE: &str = "gateway-operator.konghq.com/dataplane-deployment-state";
/// Value of the state labels for what takes traffic.
pub const STATE_LIVE: &str = "live";
/// Value of the state labels for what waits to be promoted.
pub const STATE_PREVIEW: &str = "preview";
/// Label on a Deployment and its pods, and in the selectors of its Services: the id from `status.selector`.
pub const SELECTOR: &str = "gateway-operator.konghq.com/selector";
/// Label on a certificate Secret: name of the admin Service it was made for.
pub const SERVICE_SECRET: &str = "gateway-operator.konghq.com/service-secret";
/// Label on a cert-manager Certificate: what it is for, see [`CERT_PURPOSE_KONNECT`].
pub const CERT_PURPOSE: &str = "gateway-operator.konghq.com/cert-purpose";
/// Value of [`CERT_PURPOSE`] for a client certificate that a DataPlane presents to Konnect.
pub const CERT_PURPOSE_KONNECT: &str = "konnect-dataplane";
/// Label on a cert-manager Certificate: UID of the DataPlane it was made for.
pub const OWNER_ID: &str = "gateway-operator.konghq.com/owner-id";
/// Annotation on a DataPlane: `"true"` lets a waiting blue/green preview take over.
pub const PROMOTE_WHEN_READY: &str = "gateway-operator.konghq.com/promote-when-ready";
/// Annotation on a DataPlane: `key=value` pairs joined by commas that replace the selector of both its Services.
pub const SERVICE_SELECTOR_OVERRIDE: &str = "gateway-operator.konghq.com/service-selector-override";
/// Finalizer Kong Operator leaves on a DataPlane's Services, Deployments and Secrets so that they outlive their owner's deletion request.
pub const WAIT_FOR_OWNER: &str = "gateway-operator.konghq.com/wait-for-owner";
/// Finalizer on a KonnectExtension that a DataPlane uses: without it the pods could lose the certificate they run with.
pub const EXTENSION_IN_USE: &str = "gateway-operator.konghq.com/extension-in-use";
/// Annotation on a certificate Secret: when the certificate in it ends, as an RFC 3339 time.
pub const CERT_EXPIRES_AT: &str = "konghq.com/cert-expires-at";
/// Label a Secret needs to be seen at all: `"true"` for users' Secrets, `"internal"` for generated ones.
pub const SECRET: &str = "konghq.com/secret";

/// Annotation on a child: digest of what was last applied. Tells "nothing to write" from "somebody else changed it".
pub const APPLIED: &str = "weir.dev/applied";
/// Annotation on a Deployment: the answers in force of every slot, signed, so that they survive a restart of the operator.
pub const DECISIONS: &str = "weir.dev/decisions";
/// Annotation on a DataPlane: `Manual` holds changes of the pods that do not come from its own spec.
pub const ROLLOUT: &str = "weir.dev/rollout";
/// Annotation on a DataPlane: digest of the one held change that may go.
pub const APPROVED_ROLLOUT: &str = "weir.dev/approved-rollout";
/// Annotation on a DataPlane: `"true"` stops every write besides its status.
pub const PAUSED: &str = "weir.dev/paused";
/// Annotation on any object of ours: a new value asks for a pass at once, without waiting for a backoff.
pub const CHECK_AT: &str = "weir.dev/check-at";
/// Annotation on any object of ours: the value of [`CHECK_AT`] that was last answered by a pass.
pub const CHECKED_AT: &str = "weir.dev/checked-at";
/// Annotation on a Deployment: generation its DataPlane had when the Deployment was taken over from Kong Operator. Until the DataPlane
/// itself changes, the pods stay as they were.
pub const TAKEOVER_GENERATION: &str = "weir.dev/takeover-generation";
/// Annotation on a token-free KonnectExtension: replaces the control plane id in the host names of Konnect's endpoints.
pub const ENDPOINT_PREFIX: &str = "weir.dev/endpoint-prefix";
/// Annotation on a token-free KonnectExtension: the sort of control plane, for example `ControlPlane` or `K8SIngressController`.
pub const CLUSTER_TYPE: &str = "weir.dev/cluster-type";
/// Annotation on a pod template: digest of the Konnect client certificate the pods were started with; a new one rolls them.
pub const KONNECT_CERTIFICATE_DIGEST: &str = "weir.dev/konnect-certificate-digest";
/// Annotation on a certificate Secret: marks the issue the certificate belongs to; a new value asks for a new certificate.
pub const RENEWAL: &str = "weir.dev/renewal";
/// Annotation: name of the plugin in an artifact, on the installation or on the artifact; a Kubernetes name cannot have `_`. Label on a
/// Service in a plugin namespace: it is a remote plugin, and this is its name.
pub const PLUGIN_NAME: &str = "weir.dev/plugin-name";
/// Annotation on an installation with [`ROLLOUT`] `Manual`: the manifest digest that may be installed.
pub const APPROVED_DIGEST: &str = "weir.dev/approved-digest";
/// Annotation on an installation: how often a tag is looked up again, for example `10m`. Left out: never.
pub const RESYNC: &str = "weir.dev/resync";
/// Annotation on an installation: the DataPlanes that name it, since when, and whether they may use it.
pub const CLAIMS: &str = "weir.dev/claims";
/// Annotation on an installation, for machines: image, digest, plugins and versions in force.
pub const ARTIFACT: &str = "weir.dev/artifact";
/// Annotation on a DataPlane, for machines: per plugin whether it is fetched, configured and rolled out, with digest and version.
pub const PLUGINS: &str = "weir.dev/plugins";
/// Label on ConfigMaps with plugin content: the first 32 digits of its hash.
pub const PLUGIN_CONTENT: &str = "weir.dev/plugin-content";
/// Annotation on a Deployment: generation of the DataPlane that its pod template was last rendered for.
pub const ROLLED_GENERATION: &str = "weir.dev/rolled-generation";
/// Annotation on a Deployment whose owner holds changes: version of the operator that rendered its pod template.
pub const OPERATOR_VERSION: &str = "weir.dev/operator-version";
/// Annotation on a Deployment: digest of what the DataPlane's spec said about the pods when its pod template was rendered. Scaling is no part.
pub const ROLLED_SPEC: &str = "weir.dev/rolled-spec";
/// Annotation on a Deployment: how many pod templates it has had from us; left out for the first. The Deployment controller copies it to the
/// ReplicaSet, and whoever undoes a rollout copies it back: then a ReplicaSet has a higher number than its Deployment.
pub const TEMPLATE_NUMBER: &str = "weir.dev/template-number";
/// Annotation on a Deployment whose rollout was undone: number of the template that somebody went back from, and its [`ROLLED_SPEC`].
pub const ROLLED_BACK: &str = "weir.dev/rolled-back";
/// Annotation on a Deployment whose owner holds changes: the extension that its Konnect environment is of, as `group/kind/name`.
pub const KONNECT_EXTENSION: &str = "weir.dev/konnect-extension";
/// Annotation on a Deployment: when the Konnect client certificate ends that [`KONNECT_CERTIFICATE_DIGEST`] names, as an RFC 3339 time.
pub const KONNECT_CERTIFICATE_ENDS: &str = "weir.dev/konnect-certificate-ends";
/// Annotation on a CRD: version of Weir that made it. Tells ours from those that somebody else installed for the same kinds.
pub const CRDS: &str = "weir.dev/crds";

/// Annotation on the Service of a remote plugin: the port of the Service, a number.
pub const PLUGIN_PORT: &str = "weir.dev/plugin-port";
/// Annotation on the Service of a remote plugin: the name its certificate is checked for, in place of the Service's own names.
pub const PLUGIN_SERVER_NAME: &str = "weir.dev/plugin-server-name";
/// Annotation on the Service of a remote plugin: the Secret in its namespace with the certificate and key that the operator shows.
pub const PLUGIN_CLIENT_SECRET: &str = "weir.dev/plugin-client-secret";
/// Annotation on the Service of a remote plugin: the Secret in its namespace with the certificates that the operator trusts.
pub const PLUGIN_SERVER_SECRET: &str = "weir.dev/plugin-server-secret";
/// Annotation on the Service of a remote plugin: namespaces whose policies may use it, joined by commas, or `*`. Left out: only the
/// operator's own.
pub const PLUGIN_TENANTS: &str = "weir.dev/plugin-tenants";
/// Label on the Service of a CNPG-I plugin: its name.
pub const CNPG_PLUGIN_NAME: &str = "cnpg.io/pluginName";
/// What [`PLUGIN_PORT`] is on the Service of a CNPG-I plugin.
pub const CNPG_PLUGIN_PORT: &str = "cnpg.io/pluginPort";
/// What [`PLUGIN_SERVER_NAME`] is on the Service of a CNPG-I plugin.
pub const CNPG_PLUGIN_SERVER_NAME: &str = "cnpg.io/pluginServerName";
/// What [`PLUGIN_CLIENT_SECRET`] is on the Service of a CNPG-I plugin.
pub const CNPG_PLUGIN_CLIENT_SECRET: &str = "cnpg.io/pluginClientSecret";
/// What [`PLUGIN_SERVER_SECRET`] is on the Service of a CNPG-I plugin.
pub const CNPG_PLUGIN_SERVER_SECRET: &str = "cnpg.io/pluginServerSecret";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names;

    #[test]
    fn every_key_is_one_the_api_server_takes() {
        for key in [
            APP,
            MANAGED_BY,
            DATAPLANE_SERVICE_TYPE,
            DATAPLANE_SERVICE_STATE,
            DATAPLANE_DEPLOYMENT_STATE,
            SELECTOR,
            SERVICE_SECRET,
            CERT_PURPOSE,
            OWNER_ID,
            PROMOTE_WHEN_READY,
            SERVICE_SELECTOR_OVERRIDE,
            WAIT_FOR_OWNER,
            CERT_EXPIRES_AT,
            SECRET,
            APPLIED,
            DECISIONS,
            ROLLOUT,
            APPROVED_ROLLOUT,
            PAUSED,
            CHECK_AT,
            CHECKED_AT,
            PLUGIN_PORT,
            PLUGIN_SERVER_NAME,
            PLUGIN_CLIENT_SECRET,
            PLUGIN_SERVER_SECRET,
            PLUGIN_TENANTS,
            CNPG_PLUGIN_NAME,
            CNPG_PLUGIN_PORT,
            CNPG_PLUGIN_SERVER_NAME,
            CNPG_PLUGIN_CLIENT_SECRET,
            CNPG_PLUGIN_SERVER_SECRET,
            TAKEOVER_GENERATION,
            EXTENSION_IN_USE,
            ENDPOINT_PREFIX,
            CLUSTER_TYPE,
            KONNECT_CERTIFICATE_DIGEST,
            RENEWAL,
            PLUGIN_NAME,
            APPROVED_DIGEST,
            RESYNC,
            CLAIMS,
            ARTIFACT,
            PLUGINS,
            PLUGIN_CONTENT,
            ROLLED_GENERATION,
            OPERATOR_VERSION,
            ROLLED_SPEC,
            TEMPLATE_NUMBER,
            ROLLED_BACK,
            KONNECT_EXTENSION,
            KONNECT_CERTIFICATE_ENDS,
            CRDS,
        ] {
            assert!(names::is_label_key(key), "{key}");
        }
        for value in [MANAGED_BY_DATAPLANE, SERVICE_TYPE_ADMIN, SERVICE_TYPE_INGRESS, STATE_LIVE, STATE_PREVIEW, CERT_PURPOSE_KONNECT] {
            assert!(names::is_label_value(value), "{value}");
        }
    }
}
