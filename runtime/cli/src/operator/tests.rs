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
fn a_margin_that_eats_the_lifetime_is_refused() {
    assert!(config(&parse(&["--cert-ttl", "1h", "--cert-expiration-margin", "1h"])).is_err());
    let config = config(&parse(&["--watch-namespace", "a", "--watch-namespace", "b", "--leader-elect", "false"])).unwrap();
    assert_eq!(config.watch_namespaces, ["a", "b"]);
    assert!(config.leader.is_none());
}
