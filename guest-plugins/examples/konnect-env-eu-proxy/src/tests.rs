use weir_policy_sdk::{parse_settings, sample};

use super::*;

fn answer(region: Option<&str>, document: &str) -> Answer {
    let settings = parse_settings::<EuProxy>(document).unwrap().0;
    let input = Input { region: region.map(Into::into), ..sample::konnect_env() };
    <EuProxy as KonnectEnv>::evaluate(input, settings).unwrap()
}

fn value(answer: &Answer, name: &str) -> Option<String> {
    answer.env.iter().find(|e| e.name == name).map(|e| e.value.clone())
}

#[test]
fn only_the_named_regions_take_the_proxy() {
    let eu = answer(Some("eu"), "{}");
    assert_eq!(value(&eu, "KONG_PROXY_SERVER").as_deref(), Some("http://egress-proxy.weir-system.svc:3128"));
    assert_eq!(value(&eu, "KONG_CLUSTER_USE_PROXY").as_deref(), Some("on"));
    assert_eq!(value(&eu, "KONG_PROXY_SERVER_SSL_VERIFY").as_deref(), Some("on"));
    assert_eq!(eu.findings[0].code, "ProxyUsed");
    assert!(eu.env.is_sorted_by_key(|e| &e.name));
    assert_eq!(value(&answer(Some("us"), "{}"), "KONG_PROXY_SERVER"), None);
}

#[test]
fn an_unknown_region_takes_the_proxy() {
    let unknown = answer(None, "{}");
    assert_eq!(value(&unknown, "KONG_CLUSTER_USE_PROXY").as_deref(), Some("on"));
    assert_eq!(unknown.findings[0].code, "RegionUnknown");
}

#[test]
fn the_rest_is_the_default_policy() {
    let us = answer(Some("us"), r#"{"base": {"vitals": true}}"#);
    let settings = konnect_env::Settings { vitals: true, ..Default::default() };
    let input = Input { region: Some("us".into()), ..sample::konnect_env() };
    assert_eq!(us, konnect_env::evaluate(&input, &settings).unwrap());
}

#[test]
fn no_variable_twice() {
    let eu = answer(Some("eu"), r#"{"base": {"extraEnv": {"KONG_PROXY_SERVER": "http://x:1"}}}"#);
    assert_eq!(eu.env.iter().filter(|e| e.name == "KONG_PROXY_SERVER").count(), 1);
}

#[test]
fn proxies_that_cannot_work_are_found() {
    let code = |proxy: &str| bad_proxy(proxy).map(|(code, _)| code);
    assert_eq!(code("http://proxy:3128"), None);
    assert_eq!(code("proxy:3128"), Some("InvalidProxy"));
    assert_eq!(code("http://proxy"), Some("InvalidProxy"));
    assert_eq!(code("http://proxy:3128/path"), Some("InvalidProxy"));
    assert_eq!(code("http://user:secret@proxy:3128"), Some("SecretInSettings"));
    let findings = parse_settings::<EuProxy>(r#"{"base": {"extraEnv": {"KONG_ROLE": "x"}}}"#).unwrap_err();
    assert_eq!(findings[0].path, "base.extraEnv.KONG_ROLE");
}
