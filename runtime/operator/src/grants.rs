//! ReferenceGrants of the Gateway API: what the owner of a namespace lets others name in it. Both served versions say the same; a cluster
//! has one of them, both or none.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};

use crate::{
    cache::Cached,
    world::{World, identity},
};

/// Who may name something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct From {
    /// API group.
    #[serde(default)]
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Namespace.
    pub namespace: String,
}

/// What may be named.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct To {
    /// API group; empty for Secrets.
    #[serde(default)]
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Name; without one all of the kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// The version that is served since the Gateway API's release 1.5.
pub mod v1 {
    use super::{Deserialize, From, Serialize, To};

    /// Who may name what in the namespace of the grant.
    #[derive(kube::CustomResource, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[kube(group = "gateway.networking.k8s.io", version = "v1", kind = "ReferenceGrant", namespaced, schema = "disabled")]
    pub struct ReferenceGrantSpec {
        /// Any of these.
        #[serde(default)]
        pub from: Vec<From>,
        /// Any of these.
        #[serde(default)]
        pub to: Vec<To>,
    }
}

/// The version that older releases serve.
pub mod v1beta1 {
    use super::{Deserialize, From, Serialize, To};

    /// Who may name what in the namespace of the grant.
    #[derive(kube::CustomResource, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[kube(group = "gateway.networking.k8s.io", version = "v1beta1", kind = "ReferenceGrant", namespaced, schema = "disabled")]
    pub struct ReferenceGrantSpec {
        /// Any of these.
        #[serde(default)]
        pub from: Vec<From>,
        /// Any of these.
        #[serde(default)]
        pub to: Vec<To>,
    }
}

/// A grant of either version, reduced.
#[derive(Debug)]
pub struct Grant {
    metadata: ObjectMeta,
    from: Vec<From>,
    to: Vec<To>,
}

impl Cached for Grant {
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }
}

impl Grant {
    /// One of v1.
    #[must_use]
    pub fn v1(grant: v1::ReferenceGrant) -> Self {
        Self { metadata: identity(grant.metadata), from: grant.spec.from, to: grant.spec.to }
    }

    /// One of v1beta1.
    #[must_use]
    pub fn v1beta1(grant: v1beta1::ReferenceGrant) -> Self {
        Self { metadata: identity(grant.metadata), from: grant.spec.from, to: grant.spec.to }
    }

    fn permits(&self, reference: &Reference<'_>) -> bool {
        let from = |f: &From| f.group == reference.from.0 && f.kind == reference.from.1 && f.namespace == reference.from.2;
        let to =
            |t: &To| t.group == reference.to.0 && t.kind == reference.to.1 && t.name.as_ref().is_none_or(|name| name == reference.to.3);
        self.from.iter().any(from) && self.to.iter().any(to)
    }
}

/// A reference into another namespace.
#[derive(Debug, Clone, Copy)]
pub struct Reference<'a> {
    /// Group, kind and namespace of who names something.
    pub from: (&'a str, &'a str, &'a str),
    /// Group, kind, namespace and name of what is named.
    pub to: (&'a str, &'a str, &'a str, &'a str),
}

/// Whether a grant permits a reference.
#[must_use]
pub fn permitted(world: &World, reference: &Reference<'_>) -> bool {
    let namespace = reference.to.2;
    let both = [&world.grants, &world.beta_grants];
    both.into_iter().any(|grants| grants.beginning(namespace, "").iter().any(|grant| grant.permits(reference)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(to: Option<&str>) -> Grant {
        let from = From { group: "g".into(), kind: "A".into(), namespace: "from".into() };
        let to = To { group: String::new(), kind: "Secret".into(), name: to.map(String::from) };
        let metadata = ObjectMeta { namespace: Some("to".into()), name: Some("grant".into()), ..ObjectMeta::default() };
        Grant { metadata, from: vec![from], to: vec![to] }
    }

    fn reference<'a>(from: &'a str, kind: &'a str, namespace: &'a str, name: &'a str) -> Reference<'a> {
        Reference { from: ("g", "A", from), to: ("", kind, namespace, name) }
    }

    #[test]
    fn a_grant_permits_what_it_says_and_nothing_else() {
        for (named, only_one) in [(None, false), (Some("a"), true)] {
            let world = World::default();
            world.beta_grants.apply(grant(named));
            assert!(permitted(&world, &reference("from", "Secret", "to", "a")));
            assert_eq!(permitted(&world, &reference("from", "Secret", "to", "b")), !only_one);
            assert!(!permitted(&world, &reference("other", "Secret", "to", "a")));
            assert!(!permitted(&world, &reference("from", "ConfigMap", "to", "a")));
            assert!(!permitted(&world, &reference("from", "Secret", "elsewhere", "a")));
        }
    }

    #[test]
    fn a_grant_is_read_as_the_gateway_api_writes_it() {
        let text = r#"{"apiVersion": "gateway.networking.k8s.io/v1", "kind": "ReferenceGrant", "metadata": {"name": "g", "namespace": "to"},
            "spec": {"from": [{"group": "g", "kind": "A", "namespace": "from"}], "to": [{"group": "", "kind": "Secret"}]}}"#;
        let world = World::default();
        world.grants.apply(Grant::v1(serde_json::from_str(text).unwrap()));
        assert!(permitted(&world, &reference("from", "Secret", "to", "a")));
    }
}
