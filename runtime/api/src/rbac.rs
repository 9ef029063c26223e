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
    /// Namespaces beside its own where Services of remote plugins are looked for (`--plugin-namespace`).
    pub plugin_namespaces: Vec<String>,
}

impl Default for Install {
    /// `weir` in `weir-system`, with remote plugins there only.
    fn default() -> Self {
        Self { namespace: "weir-system".into(), name: "weir".into(), plugin_namespaces: Vec::new() }
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
    /// Where it is needed when the operator watches some namespaces only.
    pub reach: Reach,
}

/// Where a rule is needed when the operator watches some namespaces only. Without such a limit every rule is for the whole cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// In the watched namespaces.
    Watched,
    /// In the watched namespaces, and in the operator's own, watched or not: its CA and keys, and the policies for all.
    WatchedAndOwn,
    /// In the whole cluster all the same.
    Cluster,
}

impl Reach {
    /// The word the chart reads.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Watched => "Watched",
            Self::WatchedAndOwn => "WatchedAndOwn",
            Self::Cluster => "Cluster",
        }
    }
}

const READ: &[&str] = &["get", "list", "watch"];
const OWN: &[&str] = &["get", "list", "watch", "create", "patch", "delete"];

const fn rule(why: &'static str, group: &'static str, resources: &'static [&'static str], verbs: &'static [&'static str]) -> Rule {
    Rule { why, group, resources, verbs, names: &[], reach: Reach::Watched }
}

impl Rule {
    const fn reach(mut self, reach: Reach) -> Self {
        self.reach = reach;
        self
    }

    const fn only(mut self, names: &'static [&'static str]) -> Self {
        self.names = names;
        self
    }
}

/// Rules for the whole cluster (or every watched namespace).
pub const CLUSTER: [Rule; 20] = [
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
    rule("policies; patch for one-time annotations", keys::WEIR_GROUP, &["reconcilepolicies"], &["get", "list", "watch", "patch"])
        .reach(Reach::WatchedAndOwn),
    rule("their status", keys::WEIR_GROUP, &["reconcilepolicies/status"], &["patch"]).reach(Reach::WatchedAndOwn),
    // Needed where the admission plugin OwnerReferencesPermissionEnforcement is on.
    rule("owner references to them", keys::GATEWAY_OPERATOR_GROUP, &["dataplanes/finalizers"], &["update"]),
    rule("children", "apps", &["deployments"], OWN),
    rule("which certificate and which plugin is still in use", "apps", &["replicasets"], &["list", "watch"]),
    rule("children", "", &["services"], OWN),
    rule("admin certificates; client certificates and pull Secrets are read, metadata of the others is watched", "", &["secrets"], OWN)
        .reach(Reach::WatchedAndOwn),
    rule("content of plugins; CA bundles that policies name; of the others nothing is read", "", &["configmaps"], OWN)
        .reach(Reach::WatchedAndOwn),
    rule("references across namespaces, where the Gateway API is installed", "gateway.networking.k8s.io", &["referencegrants"], READ),
    rule("labels of namespaces, for policies", "", &["namespaces"], &["list", "watch"]).reach(Reach::Cluster),
    rule("children", "autoscaling", &["horizontalpodautoscalers"], OWN),
    rule("children", "policy", &["poddisruptionbudgets"], OWN),
    // One watch finds out whether cert-manager is there, wherever its certificates are.
    rule("client certificates by cert-manager, where it is installed", "cert-manager.io", &["certificates"], READ).reach(Reach::Cluster),
    rule("the same, written", "cert-manager.io", &["certificates"], &["create", "patch", "delete"]),
    rule("what happened, for people", "events.k8s.io", &["events"], &["create", "patch"]).reach(Reach::WatchedAndOwn),
    rule("who asks for a snapshot (--snapshot-bind-address)", "authentication.k8s.io", &["tokenreviews"], &["create"])
        .reach(Reach::Cluster),
    rule("whether they may have it", "authorization.k8s.io", &["subjectaccessreviews"], &["create"]).reach(Reach::Cluster),
];

/// Whether Kong's own operator runs.
pub const KONG_LEASE: Rule = rule("whether Kong's own operator still runs", "coordination.k8s.io", &["leases"], READ)
    .only(&["a7feedc84.konghq.com"])
    .reach(Reach::Cluster);

/// Rules in the operator's own namespace.
pub const OWN_NAMESPACE: [Rule; 1] = [rule("leader election", "coordination.k8s.io", &["leases"], &["get", "create", "update"])];

/// What `weir crds apply` may do, in the chart's hook before an upgrade. An account of its own: the operator never writes a CRD. Names are
/// no limit here: a request that creates has none that the API server could compare.
pub const CRDS: [Rule; 1] =
    [rule("the CRDs it installs and upgrades", "apiextensions.k8s.io", &["customresourcedefinitions"], &["get", "create", "patch"])];

/// What `weir cleanup` may do, in the chart's hook before an uninstall, in every namespace the operator wrote to.
pub const CLEANUP: [Rule; 1] =
    [rule("finalizers that nobody would take off any more", keys::GATEWAY_OPERATOR_GROUP, &["konnectextensions"], &["list", "patch"])];

/// What it may do in the operator's own namespace. The chart adds the name of the Deployment.
pub const CLEANUP_OWN: [Rule; 2] = [
    rule("the operator stops first, or it would set its finalizers again", "apps", &["deployments"], &["get"]),
    rule("the same", "apps", &["deployments/scale"], &["patch"]),
];

/// What people who may view, edit or administrate a namespace may do with our kinds, as an addition to Kubernetes' roles of these names.
pub const PEOPLE: [(&str, &[&str]); 2] =
    [("view", READ), ("edit", &["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"])];

/// Kinds that people write, by group.
pub const KINDS: [(&str, &[&str]); 2] = [
    (keys::GATEWAY_OPERATOR_GROUP, &["dataplanes", "konnectextensions", "kongplugininstallations"]),
    (keys::WEIR_GROUP, &["reconcilepolicies"]),
];

/// What the chart makes its roles of: per list the rules, each with its reason and its reach.
#[must_use]
pub fn chart() -> Value {
    let rules = |rules: &[Rule]| -> Vec<Value> {
        rules.iter().map(|rule| json!({"why": rule.why, "reach": rule.reach.as_str(), "rule": rule.to_json()})).collect()
    };
    let operator: Vec<Rule> = CLUSTER.into_iter().chain([KONG_LEASE]).collect();
    let people: serde_json::Map<String, Value> = PEOPLE
        .into_iter()
        .map(|(role, verbs)| {
            let rules: Vec<Value> =
                KINDS.iter().map(|(group, kinds)| json!({"apiGroups": [group], "resources": kinds, "verbs": verbs})).collect();
            (role.to_owned(), rules.into())
        })
        .collect();
    json!({
        "operator": rules(&operator),
        "ownNamespace": rules(&OWN_NAMESPACE),
        "pluginNamespace": rules(&PLUGIN_NAMESPACE),
        "crds": rules(&CRDS),
        "cleanup": rules(&CLEANUP),
        "cleanupOwnNamespace": rules(&CLEANUP_OWN),
        "people": people,
    })
}

/// Rules in every namespace of remote plugins, the operator's own among them: nothing of a plugin is read elsewhere.
pub const PLUGIN_NAMESPACE: [Rule; 5] = [
    rule("Services of remote plugins", "", &["services"], READ),
    rule("what is said on them, in conditions", "", &["services/status"], &["patch"]),
    rule("certificates and keys of remote plugins", "", &["secrets"], READ),
    rule("which pods of them are ready", "discovery.k8s.io", &["endpointslices"], READ),
    rule("what happened, for people", "events.k8s.io", &["events"], &["create", "patch"]),
];

impl Rule {
    /// As RBAC has it.
    #[must_use]
    pub fn to_json(self) -> Value {
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
    let Install { namespace, name, plugin_namespaces } = install;
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
    let own: Vec<Value> = OWN_NAMESPACE.iter().chain(&PLUGIN_NAMESPACE).map(|r| r.to_json()).collect();
    let plugin: Vec<Value> = PLUGIN_NAMESPACE.iter().map(|r| r.to_json()).collect();
    let reference = |kind: &str| json!({"roleRef": {"apiGroup": rbac, "kind": kind, "name": name}, "subjects": subjects});
    let elsewhere = |(namespace, mut object): (&String, Value)| {
        // Another name, so that two installs may share a namespace of plugins.
        if let Some(meta) = object.pointer_mut("/metadata").and_then(Value::as_object_mut) {
            meta.insert("namespace".into(), json!(namespace));
            meta.insert("name".into(), json!(format!("{name}-plugins")));
        }
        if let Some(role) = object.pointer_mut("/roleRef/name") {
            *role = json!(format!("{name}-plugins"));
        }
        object
    };
    let others = plugin_namespaces.iter().filter(|other| *other != namespace);
    let of_plugins = others.flat_map(|other| {
        [(other, object("Role", true, json!({"rules": plugin}))), (other, object("RoleBinding", true, reference("Role")))]
    });
    let of_plugins: Vec<Value> = of_plugins.map(elsewhere).collect();
    let mut all = vec![
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta(true)}),
        object("ClusterRole", false, json!({"rules": cluster})),
        object("ClusterRoleBinding", false, reference("ClusterRole")),
        object("Role", true, json!({"rules": own})),
        object("RoleBinding", true, reference("Role")),
    ];
    all.extend(of_plugins);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_allowed_wholesale() {
        let own = OWN_NAMESPACE.iter().chain(&PLUGIN_NAMESPACE);
        for rule in CLUSTER.iter().chain([&KONG_LEASE]).chain(own).chain(&CRDS).chain(&CLEANUP).chain(&CLEANUP_OWN) {
            assert!(!rule.why.is_empty());
            assert!(rule.verbs.iter().chain(rule.resources).all(|word| !word.contains('*')), "{rule:?}");
        }
    }

    #[test]
    fn the_chart_gets_every_rule_and_what_has_no_namespace_is_for_the_whole_cluster() {
        let chart = chart();
        let operator = chart["operator"].as_array().unwrap();
        assert_eq!(operator.len(), CLUSTER.len() + 1);
        for rule in operator {
            if rule["rule"]["resources"] == json!(["namespaces"]) {
                assert_eq!(rule["reach"], "Cluster");
            }
        }
        assert_eq!(chart["people"]["edit"].as_array().unwrap().len(), KINDS.len());
    }

    #[test]
    fn the_lease_is_in_the_operators_namespace_only() {
        let all = manifests(&Install { namespace: "ns".into(), name: "w".into(), ..Install::default() });
        assert_eq!(all.len(), 5);
        assert_eq!(all[3].pointer("/metadata/namespace"), Some(&json!("ns")));
        assert_eq!(all[1].pointer("/rules/20/resourceNames/0"), Some(&json!("a7feedc84.konghq.com")));
        assert!(all[1].pointer("/metadata/namespace").is_none());
    }

    #[test]
    fn each_namespace_of_plugins_has_a_role_of_its_own_and_the_operators_has_it_anyway() {
        let plugin_namespaces = vec!["ns".to_owned(), "plugins".to_owned()];
        let all = manifests(&Install { namespace: "ns".into(), name: "w".into(), plugin_namespaces });
        let text = |value: &Value, pointer: &str| value.pointer(pointer).and_then(Value::as_str).map(String::from);
        assert_eq!(all.len(), 7);
        for object in &all[5..] {
            assert_eq!(text(object, "/metadata/namespace").as_deref(), Some("plugins"));
            assert_eq!(text(object, "/metadata/name").as_deref(), Some("w-plugins"));
        }
        assert_eq!(text(&all[6], "/roleRef/name").as_deref(), Some("w-plugins"));
        assert_eq!(text(&all[6], "/subjects/0/namespace").as_deref(), Some("ns"));
        let rules = |at: usize| all[at].pointer("/rules").and_then(Value::as_array).map_or(0, Vec::len);
        assert_eq!((rules(3), rules(5)), (OWN_NAMESPACE.len() + PLUGIN_NAMESPACE.len(), PLUGIN_NAMESPACE.len()));
    }
}
