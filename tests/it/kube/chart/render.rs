//! What the chart renders, without a cluster.

use std::collections::BTreeSet;

use clap::Parser;
use libtest_mimic::Trial;
use serde_json::{Value, json};
use weir_api::rbac;
use weir_cli::args::Cli;

use super::{
    NAMESPACE,
    helm::{Helm, chart, of_kind, text, values, values_of},
    tools,
};
use crate::support::test;

pub(super) fn tests() -> Vec<Trial> {
    vec![
        rendered("lints strictly with every file of values", |helm| values().iter().for_each(|file| helm.lint(file))),
        rendered("renders with every file of values", renders),
        rendered("refuses values that nobody reads", typos),
        rendered("gives the operator the rules of the one list", list),
        rendered("in some namespaces has no rule for all of them", namespaced),
        rendered("gives namespaces of remote plugins their rules", plugins),
        rendered("has a page for every alert", alerts),
        rendered("mounts the files that say how registries are reached and whose signatures count", mounted),
        rendered("makes client certificates for remote plugins, or asks cert-manager", certificates),
    ]
}

fn rendered(name: &'static str, body: fn(&Helm)) -> Trial {
    test(format!("kube chart {name}"), move || {
        if let Some(helm) = tools(&format!("kube chart {name}")) {
            body(&helm);
        }
    })
}

fn renders(helm: &Helm) {
    for file in values() {
        let all = helm.template(&file, &[]);
        let mut names = BTreeSet::new();
        for object in &all {
            let meta = &object["metadata"];
            let id = format!("{} {}/{}", object["kind"], meta["namespace"], meta["name"]);
            assert!(names.insert(id.clone()), "{}: two of {id}", file.display());
            assert!(meta["labels"]["app.kubernetes.io/instance"] == "weir", "{}: {id} has no labels", file.display());
        }
        let pods: Vec<&Value> = all.iter().filter_map(pod_spec).collect();
        assert!(!pods.is_empty());
        for pod in pods {
            restricted(pod);
            for container in pod["containers"].as_array().unwrap() {
                understood(container);
            }
        }
    }
}

/// The pod of an object that makes one.
fn pod_spec(object: &Value) -> Option<&Value> {
    match object["kind"].as_str()? {
        "Deployment" | "Job" => object.pointer("/spec/template/spec"),
        "Pod" => object.get("spec"),
        _ => None,
    }
}

/// What the Pod Security Standard of this name asks for, and a root file system that cannot be written.
fn restricted(pod: &Value) {
    let whole = &pod["securityContext"];
    assert_eq!(whole["runAsNonRoot"], true, "{pod:#}");
    assert_eq!(whole["seccompProfile"]["type"], "RuntimeDefault", "{pod:#}");
    for container in pod["containers"].as_array().unwrap() {
        let own = &container["securityContext"];
        assert_eq!(own["allowPrivilegeEscalation"], false, "{container:#}");
        assert_eq!(own["readOnlyRootFilesystem"], true, "{container:#}");
        assert_eq!(own["capabilities"]["drop"], json!(["ALL"]), "{container:#}");
    }
    for volume in pod["volumes"].as_array().into_iter().flatten() {
        assert!(volume.get("hostPath").is_none(), "{volume:#}");
    }
}

/// The binary of this version knows every word.
fn understood(container: &Value) {
    let words = args(container);
    let parsed = Cli::try_parse_from(std::iter::once("weir".to_owned()).chain(words.clone()));
    assert!(parsed.is_ok(), "{words:?}: {}", parsed.unwrap_err());
}

/// The arguments of a container in the release's namespace.
pub(super) fn args(container: &Value) -> Vec<String> {
    let words = container["args"].as_array().unwrap().iter();
    words.map(|word| word.as_str().unwrap().replace("$(POD_NAMESPACE)", NAMESPACE)).collect()
}

fn typos(helm: &Helm) {
    let chart = text(&chart());
    for (set, words) in [
        ("replica=2", "replica"),
        ("image.name=a", "name"),
        ("operator.logs.format=json", "logs"),
        ("operator.log.format=yaml", "format"),
        ("settings.konnect.a=b", "konnect"),
        ("watchNamespaces[0]=Not_A_Name", "watchNamespaces"),
        ("prometheusRule.disabled[0]=weirAbsent", "disabled"),
        ("policies[0].name=a", "spec"),
        ("pullSecrets[0].name=a", "pullSecrets"),
        ("registries.ca.key=a", "ca"),
        ("registries.file.key=a", "file"),
        ("registries.authFile.configMap=a", "authFile"),
        ("verification.trustRoots.secret=a", "trustRoots"),
        ("remotePlugins.clientCertificates[0].days=3", "name"),
        ("metrics.port=70000", "port"),
        ("cache.sizeLimit=2Gb", "sizeLimit"),
        ("podDisruptionBudget.maxUnavailable=half", "maxUnavailable"),
    ] {
        let said = helm.fails(&["template", "weir", &chart, "--kube-version", "1.36.0", "--set", set]);
        assert!(said.contains(words) && said.contains("schema"), "{set}: {said}");
    }
    // What a switch needs is said, where a schema cannot.
    let monitor = ["--set", "serviceMonitor.enabled=true", "--set", "metrics.service.enabled=false"];
    let said = helm.fails(&[&["template", "weir", &chart, "--kube-version", "1.36.0"], monitor.as_slice()].concat());
    assert!(said.contains("metrics.service.enabled"), "{said}");
}

/// Rules of roles, as sorted text.
fn rules_of<'a>(roles: impl IntoIterator<Item = &'a Value>) -> BTreeSet<String> {
    roles.into_iter().flat_map(|role| role["rules"].as_array().unwrap()).map(Value::to_string).collect()
}

fn listed(rules: impl IntoIterator<Item = rbac::Rule>) -> BTreeSet<String> {
    rules.into_iter().map(|rule| rule.to_json().to_string()).collect()
}

/// Roles and ClusterRoles with this name.
fn roles<'a>(all: &'a [Value], kind: &str, namespace: &str, name: &str) -> Vec<&'a Value> {
    let named = |role: &&Value| role["metadata"]["name"] == name && role["metadata"]["namespace"].as_str().unwrap_or_default() == namespace;
    of_kind(all, kind).into_iter().filter(named).collect()
}

fn list(helm: &Helm) {
    let all = helm.template(&values_of("default"), &[]);
    assert_eq!(rules_of(roles(&all, "ClusterRole", "", "weir:weir-system")), listed(rbac::CLUSTER.into_iter().chain([rbac::KONG_LEASE])));
    assert_eq!(rules_of(roles(&all, "Role", NAMESPACE, "weir")), listed(rbac::OWN_NAMESPACE.into_iter().chain(rbac::PLUGIN_NAMESPACE)));
    assert_eq!(rules_of(roles(&all, "ClusterRole", "", "weir:weir-system:crds")), listed(rbac::CRDS));
    assert_eq!(rules_of(roles(&all, "ClusterRole", "", "weir:weir-system:cleanup")), listed(rbac::CLEANUP));
    // Every binding is to an account of this release.
    for kind in ["ClusterRoleBinding", "RoleBinding"] {
        for binding in of_kind(&all, kind) {
            let subject = &binding["subjects"][0];
            assert_eq!(subject["namespace"], NAMESPACE, "{binding:#}");
            assert!(["weir", "weir-crds", "weir-cleanup"].iter().any(|name| subject["name"] == *name), "{binding:#}");
        }
    }
}

fn plugins(helm: &Helm) {
    let all = helm.template(&values_of("everything"), &[]);
    for namespace in ["plugins", "more-plugins"] {
        let found = roles(&all, "Role", namespace, "weir:weir-system-plugins");
        assert_eq!(rules_of(found), listed(rbac::PLUGIN_NAMESPACE), "{namespace}");
    }
    let words = args(&of_kind(&all, "Deployment")[0]["spec"]["template"]["spec"]["containers"][0]);
    for word in ["--plugin-namespace=plugins", "--plugin-namespace=more-plugins", "--cnpg-plugins=true"] {
        assert!(words.iter().any(|found| found == word), "{word}: {words:?}");
    }
}

fn namespaced(helm: &Helm) {
    let all = helm.template(&values_of("namespaced"), &[]);
    let reach = |reach: rbac::Reach| rbac::CLUSTER.into_iter().chain([rbac::KONG_LEASE]).filter(move |rule| rule.reach == reach);
    assert_eq!(rules_of(roles(&all, "ClusterRole", "", "weir:weir-system")), listed(reach(rbac::Reach::Cluster)));
    let own = listed(rbac::OWN_NAMESPACE.into_iter().chain(rbac::PLUGIN_NAMESPACE).chain(reach(rbac::Reach::WatchedAndOwn)));
    assert_eq!(rules_of(roles(&all, "Role", NAMESPACE, "weir")), own);
    let watched = listed(reach(rbac::Reach::Watched).chain(reach(rbac::Reach::WatchedAndOwn)));
    for namespace in ["team-a", "team-b"] {
        assert_eq!(rules_of(roles(&all, "Role", namespace, "weir:weir-system")), watched, "{namespace}");
        assert_eq!(rules_of(roles(&all, "Role", namespace, "weir:weir-system:cleanup")), listed(rbac::CLEANUP));
    }
    assert!(roles(&all, "ClusterRole", "", "weir:weir-system:cleanup").is_empty());
    let words = args(&of_kind(&all, "Deployment")[0]["spec"]["template"]["spec"]["containers"][0]);
    assert!(words.contains(&"--watch-namespace=team-a".to_owned()) && words.contains(&"--watch-namespace=team-b".to_owned()), "{words:?}");

    // Its own namespace is one of the watched ones: one Role there has everything.
    let all = helm.template(&values_of("own-namespace"), &["-n", "default"]);
    let every =
        reach(rbac::Reach::Watched).chain(reach(rbac::Reach::WatchedAndOwn)).chain(rbac::OWN_NAMESPACE).chain(rbac::PLUGIN_NAMESPACE);
    assert_eq!(rules_of(roles(&all, "Role", "default", "weir")), listed(every));
}

fn alerts(helm: &Helm) {
    let all = helm.template(&values_of("everything"), &["--set", "prometheusRule.disabled=null"]);
    let rule = of_kind(&all, "PrometheusRule");
    let groups = rule[0]["spec"]["groups"][0]["rules"].as_array().unwrap();
    assert!(groups.len() >= 10, "{groups:#?}");
    let pages = std::fs::read_to_string(crate::support::root().join("docs/operate.md")).unwrap();
    for alert in groups {
        let name = alert["alert"].as_str().unwrap();
        assert!(pages.contains(&format!("## {name}\n")), "docs/operate.md has no page for {name}");
        let expression = alert["expr"].as_str().unwrap();
        assert!(
            !expression.contains("$SERIES") && expression.contains("namespace=\"weir-system\",service=\"weir-metrics\""),
            "{expression}"
        );
        assert_eq!(alert["annotations"]["runbook_url"], format!("https://docs.example.com/operate.md#{}", name.to_lowercase()));
    }
    let some = helm.template(&values_of("everything"), &[]);
    let some = of_kind(&some, "PrometheusRule")[0]["spec"]["groups"][0]["rules"].as_array().unwrap().len();
    assert_eq!(some, groups.len() - 1, "prometheusRule.disabled leaves one out");
    let dashboard = of_kind(&all, "ConfigMap").into_iter().find_map(|map| map["data"]["weir.json"].as_str()).unwrap();
    let dashboard: Value = serde_json::from_str(dashboard).unwrap();
    let rows: Vec<_> = dashboard["panels"].as_array().unwrap().iter().filter(|p| p["type"] == "row").map(|p| p["title"].clone()).collect();
    for row in ["Reconciles", "Policies", "Plugins", "Rollouts"] {
        assert!(rows.contains(&json!(row)), "{rows:?}");
    }
}

/// Where a volume of the operator's pod comes from.
fn volume<'a>(pod: &'a Value, name: &str) -> &'a Value {
    pod["volumes"].as_array().unwrap().iter().find(|volume| volume["name"] == name).unwrap()
}

fn mounted(helm: &Helm) {
    let all = helm.template(&values_of("everything"), &[]);
    let pod = pod_spec(of_kind(&all, "Deployment")[0]).unwrap();
    let words = args(&pod["containers"][0]);
    for (flag, name, file, source) in [
        ("registries-file", "registries", "registries.yaml", json!({"configMap": {"name": "registries"}})),
        ("registry-auth-file", "registry-auth", ".dockerconfigjson", json!({"secret": {"secretName": "registry-auth"}})),
        ("verification-file", "verification", "list.yaml", json!({"secret": {"secretName": "verification"}})),
        ("trust-root", "trust-root", "trusted_root.json", json!({"configMap": {"name": "sigstore"}})),
    ] {
        assert!(words.contains(&format!("--{flag}=/etc/weir/{name}/{file}")), "{words:?}");
        let volume = volume(pod, name);
        assert!(source.as_object().unwrap().iter().all(|(kind, what)| volume[kind] == *what), "{volume:#}");
        // A directory as a whole, without subPath: only that follows its source.
        let mounts = pod["containers"][0]["volumeMounts"].as_array().unwrap();
        let mount = mounts.iter().find(|mount| mount["name"] == name).unwrap();
        assert_eq!(*mount, json!({"name": name, "mountPath": format!("/etc/weir/{name}"), "readOnly": true}));
    }
}

fn certificates(helm: &Helm) {
    let all = helm.template(&values_of("everything"), &[]);
    let secrets = of_kind(&all, "Secret");
    let made = secrets.iter().find(|secret| secret["metadata"]["name"] == "weir-client").unwrap();
    assert_eq!(made["type"], "kubernetes.io/tls");
    assert!(["tls.crt", "tls.key"].iter().all(|key| made["data"][key].as_str().is_some_and(|data| data.len() > 100)), "{:#}", made["data"]);
    let issued = of_kind(&all, "Certificate")[0];
    assert_eq!(issued["spec"]["secretName"], "weir-client-issued");
    assert_eq!(issued["spec"]["issuerRef"], json!({"name": "internal", "kind": "ClusterIssuer"}));
    assert!(issued["spec"]["usages"].as_array().unwrap().contains(&json!("client auth")));
}
