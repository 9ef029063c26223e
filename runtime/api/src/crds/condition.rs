//! Conditions: Kubernetes' Go types bound their fields, the schema in `k8s-openapi` does not.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{JSON, JSONSchemaProps};

use super::node;

/// Bounds and descriptions for one condition.
pub(super) fn complete(condition: &mut JSONSchemaProps) {
    condition.description = Some("How one aspect of the object stands.".to_owned());
    for (name, field) in node::children(condition) {
        let description = match name {
            "lastTransitionTime" => "When `status` last changed.",
            "message" => {
                field.max_length = Some(32_768);
                "The details, for people. May be empty."
            }
            "observedGeneration" => {
                field.minimum = Some(0.0);
                "The `metadata.generation` this was found at. Below the current one, the finding is out of date."
            }
            "reason" => {
                field.min_length = Some(1);
                field.max_length = Some(1024);
                field.pattern = Some("^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$".to_owned());
                "Why `status` is what it is, in one word, for programs."
            }
            "status" => {
                field.enum_ = Some(["True", "False", "Unknown"].map(|value| JSON(value.into())).to_vec());
                "Whether what `type` says is so: `True`, `False` or `Unknown`."
            }
            "type" => {
                field.max_length = Some(316);
                field.pattern = Some(TYPE.to_owned());
                "What the condition is about. No two conditions of an object have the same type."
            }
            _ => continue,
        };
        field.description = Some(description.to_owned());
    }
}

/// A label key whose name part has no bound of its own.
const TYPE: &str = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$";
