//! Rule merge.

use super::*;

fn env(name: &str, claims: Vec<Claim>) -> Resolution {
    defaults(&conflict(SubjectKind::EnvVar, name, claims))
}

fn merge(text: &str) -> Verdict {
    Verdict::Merge(text.into())
}

fn reference(origin: Origin) -> Claim {
    let value = ClaimValue::Object(r#"{"configMapKeyRef": {"name": "x", "key": "y"}}"#.into());
    Claim { value, ..sample::claim(origin, "spec.deployment", "") }
}

#[test]
fn plugin_lists_are_united_in_order() {
    let it = env("KONG_PLUGINS", vec![generated("bundled, mine ,acl"), default("bundled")]);
    assert_eq!((it.verdict.clone(), about(&it)), (merge("bundled,mine,acl"), (Severity::Info, "Merged", "env.KONG_PLUGINS")));
}

#[test]
fn the_users_entries_come_first() {
    assert_eq!(env("KONG_PLUGINS", vec![user("b,a"), policy("c,a"), generated("d")]).verdict, merge("b,a,c,d"));
    assert_eq!(env("KONG_PLUGINS", vec![policy("c"), user("a")]).verdict, merge("a,c"), "even if the question says otherwise");
}

#[test]
fn a_user_who_left_bundled_out_meant_it() {
    let it = env("KONG_PLUGINS", vec![user("mine"), generated("installed"), default("bundled")]);
    assert_eq!(it.verdict, merge("mine,installed"));
    assert_eq!(it.findings[0].message, "the claims are merged, not defaults (default)");
}

#[test]
fn user_against_default_alone_is_an_override() {
    let it = env("KONG_PLUGINS", vec![user(" mine"), default("bundled")]);
    assert_eq!((it.verdict.clone(), about(&it)), (Verdict::Keep(0), (Severity::Info, "UserOverride", "env.KONG_PLUGINS")));
}

#[test]
fn off_means_none() {
    let it = env("KONG_PLUGINS", vec![user("off"), generated("installed")]);
    assert_eq!((it.verdict.clone(), about(&it).1), (Verdict::Keep(0), "UserOverride"));
    assert_eq!(env("KONG_PLUGINS", vec![generated("off"), default("bundled")]).verdict, merge("bundled"));
    assert_eq!(env("KONG_PLUGINS", vec![generated("off"), default(" off ")]).verdict, merge("off"));
}

#[test]
fn package_paths_are_united_and_the_default_path_comes_last() {
    let name = "KONG_LUA_PACKAGE_PATH";
    assert_eq!(env(name, vec![user("/u/?.lua;;"), generated("/g/?.lua;/u/?.lua;")]).verdict, merge("/u/?.lua;/g/?.lua;;"));
    assert_eq!(env(name, vec![policy(";;/p/?.lua"), generated("/g/?.lua;;")]).verdict, merge("/p/?.lua;/g/?.lua;;"));
    assert_eq!(env(name, vec![policy("/p/?.lua"), generated("/g/?.lua")]).verdict, merge("/p/?.lua;/g/?.lua"));
    assert_eq!(env(name, vec![policy(";;"), generated("")]).verdict, merge(";;"));
    assert_eq!(env(name, vec![user("/u/?.lua"), default("./?.lua;;")]).verdict, Verdict::Keep(0));
}

#[test]
fn references_cannot_be_merged() {
    let it = env("KONG_PLUGINS", vec![reference(Origin::User), generated("installed")]);
    assert_eq!((it.verdict.clone(), about(&it)), (Verdict::Keep(0), (Severity::Warning, "CannotMerge", "env.KONG_PLUGINS")));
    let it = env("KONG_PLUGINS", vec![user("mine"), reference(Origin::Default), generated("installed")]);
    assert_eq!((it.verdict.clone(), about(&it).1), (Verdict::Keep(0), "CannotMerge"), "the host allows merge for literal values only");
    let it = env("KONG_PLUGINS", vec![policy("a"), reference(Origin::Generated)]);
    assert_eq!((it.verdict.clone(), about(&it).1), (Verdict::Keep(0), "CannotMerge"));
}

#[test]
fn values_over_the_hosts_limit_are_not_merged() {
    let long = |c: &str| c.repeat(20_000);
    let it = env("KONG_PLUGINS", vec![user(&long("a")), generated(&long("b"))]);
    assert_eq!((it.verdict.clone(), about(&it).1), (Verdict::Keep(0), "CannotMerge"));
}

#[test]
fn settings_merge_other_lists_and_keep_these() {
    let rules = settings(r#"{"env": {"KONG_PLUGINS": "keepUser", "KONG_TRUSTED_IPS": "merge", "KONG_LUA_PACKAGE_CPATH": "merge"}}"#);
    let verdict =
        |name: &str, a: &str, b: &str| with_settings(&conflict(SubjectKind::EnvVar, name, vec![user(a), policy(b)]), &rules).verdict;
    assert_eq!(verdict("KONG_PLUGINS", "a", "b"), Verdict::Keep(0));
    assert_eq!(verdict("KONG_TRUSTED_IPS", "10.0.0.0/8, off", "::1"), merge("10.0.0.0/8,off,::1"));
    assert_eq!(verdict("KONG_LUA_PACKAGE_CPATH", "/a.so;;", "/b.so"), merge("/a.so;/b.so;;"));
}
