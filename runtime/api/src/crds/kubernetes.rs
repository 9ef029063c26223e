//! Types of Kubernetes' own inside our kinds.
//!
//! `k8s-openapi` generates their fields and types but not how lists merge, nor the bounds of quantities. Without the former a server-side
//! apply by two owners replaces whole lists: a second manager's environment variable would remove those of the first.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{JSON, JSONSchemaProps};

use super::node;

/// A quantity in any of its three notations.
const QUANTITY: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

const ATOMIC: &str = "atomic";

/// How the elements of a list are told apart.
enum Merge {
    /// By these fields.
    Map(&'static [&'static str]),
    /// By their value.
    Set,
    /// Not at all: the list is replaced as a whole.
    Atomic,
}

/// Completes the schema of a Kubernetes type.
///
/// Descriptions below it are dropped: `kubectl explain` has them for the original kind, and with them the CRD would be too large for a
/// client-side `kubectl apply`, which keeps a copy in an annotation of at most 256 KiB. The node's own description stays, it is ours.
pub(super) fn embed(schema: &mut JSONSchemaProps) {
    let description = schema.description.take();
    complete("", schema);
    schema.description = description;
}

fn complete(name: &str, schema: &mut JSONSchemaProps) {
    schema.description = None;
    if schema.items.is_some() {
        match merge(name) {
            Merge::Map(keys) => {
                schema.x_kubernetes_list_type = Some("map".to_owned());
                schema.x_kubernetes_list_map_keys = Some(keys.iter().map(|key| (*key).to_owned()).collect());
            }
            Merge::Set => schema.x_kubernetes_list_type = Some("set".to_owned()),
            Merge::Atomic => schema.x_kubernetes_list_type = Some(ATOMIC.to_owned()),
        }
    }
    if replaced_as_a_whole(name, schema) {
        schema.x_kubernetes_map_type = Some(ATOMIC.to_owned());
    }
    // Every number-or-text inside these types is a quantity, except ports.
    if schema.x_kubernetes_int_or_string == Some(true) && name != "port" {
        schema.pattern = Some(QUANTITY.to_owned());
    }
    // Belongs to an object in the store; a template with it can only be a mistake.
    if name == "metadata" {
        schema.properties.iter_mut().for_each(|fields| fields.retain(|field, _| field != "managedFields"));
    }
    // A list that merges by a field needs the field in every element, so those that may be left out get the default Kubernetes has.
    match name {
        "ports" => node::change(schema, "[].protocol", |protocol| protocol.default = Some(JSON("TCP".into()))),
        "imagePullSecrets" => node::change(schema, "[].name", |name| name.default = Some(JSON("".into()))),
        _ => {}
    }
    node::children(schema).for_each(|(name, child)| complete(name, child));
}

fn merge(list: &str) -> Merge {
    match list {
        "containers"
        | "initContainers"
        | "ephemeralContainers"
        | "volumes"
        | "env"
        | "imagePullSecrets"
        | "resourceClaims"
        | "claims"
        | "schedulingGates" => Merge::Map(&["name"]),
        "ports" => Merge::Map(&["containerPort", "protocol"]),
        "volumeMounts" => Merge::Map(&["mountPath"]),
        "volumeDevices" => Merge::Map(&["devicePath"]),
        "hostAliases" => Merge::Map(&["ip"]),
        "topologySpreadConstraints" => Merge::Map(&["topologyKey", "whenUnsatisfiable"]),
        "ownerReferences" => Merge::Map(&["uid"]),
        "finalizers" => Merge::Set,
        _ => Merge::Atomic,
    }
}

/// Whether an object is one value rather than a set of fields that different owners may set.
fn replaced_as_a_whole(name: &str, schema: &JSONSchemaProps) -> bool {
    let has = |field: &str| schema.properties.as_ref().is_some_and(|fields| fields.contains_key(field));
    match name {
        "nodeSelector"
        | "configMapKeyRef"
        | "secretKeyRef"
        | "fieldRef"
        | "resourceFieldRef"
        | "fileKeyRef"
        | "preference"
        | "dataSource"
        | "nodePublishSecretRef" => true,
        // With `optional` it is a source of variables, not a mere reference.
        "secretRef" => !has("optional"),
        // A label selector, or the node selector of an affinity.
        _ => (has("matchExpressions") && (has("matchLabels") || has("matchFields"))) || has("nodeSelectorTerms"),
    }
}
