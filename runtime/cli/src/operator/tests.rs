use clap::Parser;

use super::*;
use crate::args::{Cli, Command};

fn parse(more: &[&str]) -> Box<Args> {
    let cli = Cli::parse_from(["weir", "operator"].iter().chain(more));
    let Command::Operator(args) = cli.command else { panic!("not the operator") };
    args
}

#[test]
fn every_flag_is_an_environment_variable_and_is_printed() {
    let cli = <Cli as clap::CommandFactory>::command();
    let operator = cli.find_subcommand("operator").unwrap();
    let printed = print(&parse(&[]));
    for arg in operator.get_arguments().filter(|a| !["help", "version", "print-config"].contains(&a.get_id().as_str())) {
        let Some(flag) = arg.get_long().filter(|f| *f != "print-config") else { continue };
        let variable = format!("WEIR_{}", flag.replace('-', "_").to_uppercase());
        assert_eq!(arg.get_env().and_then(|v| v.to_str()), Some(variable.as_str()), "{flag}");
        assert!(printed.get(flag).is_some(), "{flag}");
    }
}

#[test]
fn durations_are_as_kubernetes_writes_them() {
    assert_eq!(duration("87600h"), Ok(Duration::from_secs(87_600 * 3_600)));
    assert_eq!(duration("1m30s"), Ok(Duration::from_secs(90)));
    assert!(duration("-1s").is_err() && duration("soon").is_err());
}

#[test]
fn proxies_are_taken_from_the_environment_and_not_printed() {
    let set = |name: &str| (name == "https_proxy" || name == "NO_PROXY").then(|| format!("http://user:pssst@{name}"));
    let found = proxies(set);
    assert_eq!(found.https.as_deref(), Some("http://user:pssst@https_proxy"));
    assert_eq!((found.http.as_deref(), found.no_proxy.as_deref()), (None, Some("http://user:pssst@NO_PROXY")));
    assert!(!format!("{:?}", found.https.map(|https| Proxies { https: Some(https), ..Proxies::default() })).contains("pssst"));
}

#[test]
fn registries_are_lists_and_empty_variables_are_none() {
    let config = config(&parse(&["--insecure-registry", "a:1,b", "--insecure-registry", "c", "--allowed-registries", ""])).unwrap();
    assert_eq!(config.insecure_registries, ["a:1", "b", "c"]);
    assert!(config.allowed_registries.is_empty() && config.plugin_installations && !config.cross_namespace_plugins);
    let config = self::config(&parse(&["--allow-cross-namespace-plugins", "--enable-plugin-installations", "false"])).unwrap();
    assert!(config.cross_namespace_plugins && !config.plugin_installations);
}

#[test]
fn paths_of_hooks_are_patterns_and_empty_variables_are_none() {
    let config = config(&parse(&["--hook-path", "Deployment=default,Deployment=/spec/template/spec/hostAliases/**"])).unwrap();
    let words: Vec<String> = config.hook_paths.iter().map(ToString::to_string).collect();
    assert_eq!(words, ["Deployment=default", "Deployment=/spec/template/spec/hostAliases/**"]);
    assert!(self::config(&parse(&["--hook-path", ""])).unwrap().hook_paths.is_empty());
    for wrong in ["Secret=/data/*", "Deployment", "Deployment=spec"] {
        assert!(Cli::try_parse_from(["weir", "operator", "--hook-path", wrong]).is_err(), "{wrong}");
    }
}

#[test]
fn a_margin_that_eats_the_lifetime_is_refused() {
    assert!(config(&parse(&["--cert-ttl", "1h", "--cert-expiration-margin", "1h"])).is_err());
    let config = config(&parse(&["--watch-namespace", "a", "--watch-namespace", "b", "--leader-elect", "false"])).unwrap();
    assert_eq!(config.watch_namespaces, ["a", "b"]);
    assert!(config.leader.is_none());
}

#[test]
fn names_that_nothing_can_have_are_refused_at_the_start() {
    let long = "a".repeat(254);
    let refused = [
        ("--namespace", "Weir_System", "a namespace has 1 to 63"),
        ("--namespace", "", "a namespace has 1 to 63"),
        ("--watch-namespace", "good,team.a", "a namespace has 1 to 63"),
        ("--leader-election-id", "weir/lease", "a name has at most 253"),
        ("--cluster-ca-secret", long.as_str(), "a name has at most 253"),
        ("--cluster-ca-secret", "", "a name has at most 253"),
        ("--secret-label", "konghq.com/", "a label key has at most 63"),
        ("--cluster-name", "eu west", "it has at most 63"),
        ("--cluster-label", "tier", "write KEY=VALUE"),
        ("--cluster-label", "-tier=gold", "a label key has at most 63"),
        ("--cluster-label", "tier=gold plus", "the value of \"tier\": it has at most 63"),
    ];
    for (flag, value, words) in refused {
        let error = Cli::try_parse_from(["weir", "operator", format!("{flag}={value}").as_str()]).map(drop).unwrap_err();
        let text = error.to_string();
        assert_eq!(error.exit_code(), 2, "{text}");
        assert!(text.contains(flag) && text.contains(words), "{text}");
    }
}

#[test]
fn names_that_clusters_have_are_taken() {
    let args = [
        "--namespace=weir-1",
        "--watch-namespace=",
        "--watch-namespace=0,team-a",
        "--leader-election-id=weir.blue",
        "--cluster-ca-secret=ca.example.com",
        "--secret-label=example.com/secret",
        "--cluster-name=EU_west.1",
        "--cluster-label=example.com/tier=Gold,empty=",
    ];
    let config = config(&parse(&args)).unwrap();
    assert_eq!(config.watch_namespaces, ["0", "team-a"]);
    assert_eq!(
        config.cluster_labels.into_iter().collect::<Vec<_>>(),
        [("empty".to_owned(), String::new()), ("example.com/tier".to_owned(), "Gold".to_owned())]
    );
    assert_eq!((config.leader.unwrap().name.as_str(), config.ca_secret.as_str()), ("weir.blue", "ca.example.com"));
}

#[test]
fn files_of_registries_are_named_and_empty_variables_name_none() {
    let none = config(&parse(&["--registries-file=", "--registry-auth-file=", "--verification-file=", "--trust-root="])).unwrap();
    assert_eq!((none.registries_file, none.registry_auth_file, none.verification_file, none.trust_root), (None, None, None, None));
    let args = ["--registries-file", "r.yaml", "--registry-auth-file", "a.json", "--verification-file", "v.yaml", "--trust-root", "t.json"];
    let all = config(&parse(&[args.as_slice(), &["--credential-helpers", "ghcr.io,quay.io/a"]].concat())).unwrap();
    let files = [all.registries_file, all.registry_auth_file, all.verification_file, all.trust_root].map(|path| path.unwrap());
    assert_eq!(files, ["r.yaml", "a.json", "v.yaml", "t.json"].map(PathBuf::from));
    assert_eq!(all.credential_helpers, ["ghcr.io", "quay.io/a"]);
}

#[test]
fn the_api_servers_own_address_is_one_of_the_clusters() {
    let given = ["10.96.0.0/12".to_owned(), String::new()];
    let with = |host: &'static str| ranges(&given, move |name| (name == "KUBERNETES_SERVICE_HOST").then(|| host.to_owned()));
    assert_eq!(with("10.96.0.1"), ["10.96.0.0/12", "10.96.0.1"]);
    assert_eq!(with("fd10::1"), ["10.96.0.0/12", "fd10::1"]);
    assert_eq!(with("kubernetes.example.com"), ["10.96.0.0/12"]);
    assert_eq!(ranges(&[], |_| None), Vec::<String>::new());
}
