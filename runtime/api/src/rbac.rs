//! What the operator may do in a cluster, in one list. The manifests, the chart and the tests (which run the operator as this
//! ServiceAccount's user) are made of it.

use serde_json::{Value, json};

use crate::keys;

/// Where and under which name the operator is installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Install {
    /// Namespace of the operator.
    pub namespace: String,
    /// Name of the ServiceAccount and of all RBAC objects.
    pub name: String,
}

impl Default for Install {
    /// `weir` in `weir-system`.
    fn default() -> Self {
        Self { namespace: "weir-system".into(), name: "weir".into() }
    }
}

/// What is allowed, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// Why it is needed.
    pub why: &'static str,
    /// API group.
    pub group: &'static str,
    /// Resources.
    pub resources: &'static [&'static str],
    /// Verbs.
    pub verbs: &'static [&'static str],
    /// Names it is limited to; none for all.
    pub names: &'static [&'static str],
}

const READ: &[&str] = &["get", "list", "watch"];
const OWN: &[&str] = &["get", "list", "watch", "create", "patch", "delete"];

const fn rule(why: &'static str, group: &'static str, resources: &'static [&'static str], verbs: &'static [&'static str]) -> Rule {
    Rule { why, group, resources, verbs, names: &[] }
}

/// Rules for the whole cluster (or every watched namespace).
pub const CLUSTER: [Rule; 17] = [
    rule(
        "the objects it serves; patch for one-time annotations and finalizers",
        keys::GATEWAY_OPERATOR_GROUP,
        &["dataplanes", "konnectextensions", "kongplugininstallations"],
        &["get", "list", "watch", "patch"],
    ),
    rule(
        "their status",
        keys::GATEWAY_OPERATOR_GROUP,
        &["dataplanes/status", "konnectextensions/status", "kongplugininstallations/status"],
        &["patch"],
    ),
    rule("extensions that Kong's operator fills in, where their kind is served", keys::KONNECT_GROUP, &["konnectextensions"], READ),
    rule("policies; patch for one-time annotations", keys::WEIR_GROUP, &["reconcilepolicies"], &["get", "list", "watch", "patch"]),
    rule("their status", keys::WEIR_GROUP, &["reconcilepolicies/status"], &["patch"]),
    // Needed where the admission plugin OwnerReferencesPermissionEnforcement is on.
    rule("owner references to them", keys::GATEWAY_OPERATOR_GROUP, &["dataplanes/finalizers"], &["update"]),
    rule("children", "apps", &["deployments"], OWN),
    rule("which certificate and which plugin is still in use", "apps", &["replicasets"], &["list", "watch"]),
    rule("children", "", &["services"], OWN),
    rule("admin certificates; client certificates and pull Secrets are read, metadata of the others is watched", "", &["secrets"], OWN),
    rule("content of plugins; CA bundles that policies name; of the others nothing is read", "", &["configmaps"], OWN),
    rule("references across namespaces, where the Gateway API is installed", "gateway.networking.k8s.io", &["referencegrants"], READ),
    rule("labels of namespaces, for policies", "", &["namespaces"], &["list", "watch"]),
    rule("children", "autoscaling", &["horizontalpodautoscalers"], OWN),
    rule("children", "policy", &["poddisruptionbudgets"], OWN),
    rule("client certificates by cert-manager, where it is installed", "cert-manager.io", &["certificates"], OWN),
    rule("what happened, for people", "events.k8s.io", &["events"], &["create", "patch"]),
];

/// Whether Kong's own operator runs.
pub const KONG_LEASE: Rule = Rule {
    why: "whether Kong's own operator still runs",
    group: "coordination.k8s.io",
    resources: &["leases"],
    verbs: READ,
    names: &["a7feedc84.konghq.com"],
};

/// Rules in the operator's own namespace.
pub const OWN_NAMESPACE: [Rule; 1] = [rule("leader election", "coordination.k8s.io", &["leases"], &["get", "create", "update"])];

impl Rule {
    fn to_json(self) -> Value {
        let mut rule = json!({"apiGroups": [self.group], "resources": self.resources, "verbs": self.verbs});
        if let Some(rule) = rule.as_object_mut().filter(|_| !self.names.is_empty()) {
            rule.insert("resourceNames".into(), json!(self.names));
        }
        rule
    }
}

/// ServiceAccount, roles and bindings. Without the namespace itself.
#[must_use]
pub fn manifests(install: &Install) -> Vec<Value> {
    let Install { namespace, name } = install;
    let labels = json!({"app.kubernetes.io/name": "weir", "app.kubernetes.io/instance": name});
    let meta = |namespaced: bool| {
        let mut meta = json!({"name": name, "labels": labels});
        if let Some(meta) = meta.as_object_mut().filter(|_| namespaced) {
            meta.insert("namespace".into(), json!(namespace));
        }
        meta
    };
    let subjects = json!([{"kind": "ServiceAccount", "name": name, "namespace": namespace}]);
    let rbac = "rbac.authorization.k8s.io";
    let object = |kind: &str, namespaced: bool, rest: Value| {
        let mut object = json!({"apiVersion": format!("{rbac}/v1"), "kind": kind, "metadata": meta(namespaced)});
        if let (Some(object), Value::Object(rest)) = (object.as_object_mut(), rest) {
            object.extend(rest);
        }
        object
    };
    let cluster: Vec<Value> = CLUSTER.iter().chain([&KONG_LEASE]).map(|r| r.to_json()).collect();
    let own: Vec<Value> = OWN_NAMESPACE.iter().map(|r| r.to_json()).collect();
    let reference = |kind: &str| json!({"roleRef": {"apiGroup": rbac, "kind": kind, "name": name}, "subjects": subjects});
    vec![
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta(true)}),
        object("ClusterRole", false, json!({"rules": cluster})),
        object("ClusterRoleBinding", false, reference("ClusterRole")),
        object("Role", true, json!({"rules": own})),
        object("RoleBinding", true, reference("Role")),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_allowed_wholesale() {
        for rule in CLUSTER.iter().chain([&KONG_LEASE]).chain(&OWN_NAMESPACE) {
            assert!(!rule.why.is_empty());
            assert!(rule.verbs.iter().chain(rule.resources).all(|word| !word.contains('*')), "{rule:?}");
        }
    }

    #[test]
    fn the_lease_is_in_the_operators_namespace_only() {
        let all = manifests(&Install { namespace: "ns".into(), name: "w".into() });
        assert_eq!(all.len(), 5);
        assert_eq!(all[3].pointer("/metadata/namespace"), Some(&json!("ns")));
        assert_eq!(all[1].pointer("/rules/17/resourceNames/0"), Some(&json!("a7feedc84.konghq.com")));
        assert!(all[1].pointer("/metadata/namespace").is_none());
    }
}
