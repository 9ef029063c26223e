//! Extensions that manifests have, and the Secrets these name.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use weir_api::{dataplane::DataPlane, konnect_v2};
use weir_core::{
    dataplane::snapshot::{Lookup, SecretFacts},
    konnect::{Extension, Sort},
};

use super::gather::{World, find};
use crate::record::facts::Recorded;

impl World<'_> {
    /// The extension that a DataPlane names, and whether the other group has one of that name.
    pub(super) fn extension(&self, data_plane: &DataPlane, recorded: &Recorded) -> (Lookup<Extension>, bool) {
        let reference = data_plane.spec.extensions.iter().flatten().next();
        let Some((reference, sort)) = reference.and_then(|r| Some((r, Sort::of(r)?))) else { return (Lookup::Missing, false) };
        let meta =
            ObjectMeta { name: Some(reference.name.clone()), namespace: data_plane.metadata.namespace.clone(), ..ObjectMeta::default() };
        let none = if recorded.unknown.contains("extension") { Lookup::Unknown } else { Lookup::Missing };
        let found = self.find_extension(sort, &meta).map_or(none, Lookup::Found);
        (found, recorded.namesake || self.find_extension(sort.other(), &meta).is_some())
    }

    fn find_extension(&self, sort: Sort, meta: &ObjectMeta) -> Option<Extension> {
        match sort {
            Sort::TokenFree => {
                let found = find(&self.desired.konnect_extensions, meta).or_else(|| find(&self.observed.konnect_extensions, meta));
                found.map(|extension| Extension::TokenFree(Box::new(extension.clone())))
            }
            Sort::ApiDriven => {
                let (desired, live) = (find(&self.desired.konnect_v2_extensions, meta), find(&self.observed.konnect_v2_extensions, meta));
                let found = match (desired, live) {
                    (Some(desired), Some(live)) => edited(desired, live),
                    (Some(one), None) | (None, Some(one)) => one.clone(),
                    (None, None) => return None,
                };
                Some(Extension::ApiDriven(Box::new(found)))
            }
        }
    }

    /// A Secret that no manifest has is unknown, not missing: nobody keeps certificates beside manifests.
    pub(super) fn secrets(
        &self,
        namespace: &str,
        extension: &Lookup<Extension>,
        recorded: &Recorded,
    ) -> BTreeMap<String, Lookup<SecretFacts>> {
        let Lookup::Found(extension) = extension else { return BTreeMap::new() };
        let Some(name) = extension.secret_name() else { return BTreeMap::new() };
        let meta = ObjectMeta { name: Some(name.to_owned()), namespace: Some(namespace.to_owned()), ..ObjectMeta::default() };
        let none = if recorded.missing.contains(name) { Lookup::Missing } else { Lookup::Unknown };
        let facts = self.secret(&meta).map_or(none, Lookup::Found);
        BTreeMap::from([(name.to_owned(), facts)])
    }
}

/// What the extension will be once its manifest is applied: the live status, which is no part of a manifest, and a generation more where
/// the manifest changes what is read of the spec.
fn edited(desired: &konnect_v2::KonnectExtension, live: &konnect_v2::KonnectExtension) -> konnect_v2::KonnectExtension {
    let mut extension = konnect_v2::KonnectExtension { spec: desired.spec.clone(), ..live.clone() };
    let edits = i64::from(desired.spec != live.spec);
    extension.metadata.generation = live.metadata.generation.map(|generation| generation.saturating_add(edits));
    extension
}
