//! Moving about in a schema.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool};

/// Step to the elements of a list.
const ELEMENT: &str = "[]";
/// Step to the values of a map.
const VALUE: &str = "{}";

/// Everything directly below a node, with its name: a field's own, or [`ELEMENT`] or [`VALUE`].
pub(super) fn children(node: &mut JSONSchemaProps) -> impl Iterator<Item = (&str, &mut JSONSchemaProps)> {
    let items = match &mut node.items {
        Some(JSONSchemaPropsOrArray::Schema(items)) => Some(&mut **items),
        // A list with a schema per position is not structural; no CRD may have one.
        Some(JSONSchemaPropsOrArray::Schemas(_)) | None => None,
    };
    let values = match &mut node.additional_properties {
        Some(JSONSchemaPropsOrBool::Schema(values)) => Some(&mut **values),
        Some(JSONSchemaPropsOrBool::Bool(_)) | None => None,
    };
    let fields = node.properties.iter_mut().flatten().map(|(name, field)| (name.as_str(), field));
    fields.chain(items.map(|items| (ELEMENT, items))).chain(values.map(|values| (VALUE, values)))
}

/// Changes the node at a path of steps joined by dots. Nothing happens where there is no such node; the test of the schemas notices.
pub(super) fn change(root: &mut JSONSchemaProps, path: &str, change: impl FnOnce(&mut JSONSchemaProps)) {
    let found = path.split('.').try_fold(root, |node, step| children(node).find(|(name, _)| *name == step).map(|(_, child)| child));
    if let Some(node) = found {
        change(node);
    }
}

/// Makes a field required. One with a default can be: the API server fills it in before it looks.
pub(super) fn require(node: &mut JSONSchemaProps, field: &str) {
    let required = node.required.get_or_insert_default();
    if !required.iter().any(|name| name == field) {
        required.push(field.to_owned());
        required.sort();
    }
}
