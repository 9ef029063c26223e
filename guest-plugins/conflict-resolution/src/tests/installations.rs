//! The rules of an installation that several gateways claim.

use weir_policy_sdk::{Context, ObjectMeta};

use super::*;

/// Installation `plugins/oidc`, claimed by these at these times.
fn claimed(claims: &[(&str, Option<&str>)]) -> Conflict {
    let claims = claims.iter().map(|(who, at)| since(who, *at)).collect();
    conflict(SubjectKind::PluginInstallation, "plugins/oidc", claims)
}

/// Resolves with a rule, asked about the installation itself.
fn with(rule: &str, conflict: &Conflict) -> Resolution {
    let context = sample::context();
    let object = ObjectMeta { kind: "KongPluginInstallation".into(), namespace: "plugins".into(), name: "oidc".into(), ..context.object };
    resolve(conflict, &Context { object, ..context }, &settings(&format!(r#"{{"pluginInstallations": "{rule}"}}"#)))
}

fn two_teams() -> Conflict {
    claimed(&[("team-a/edge", Some("2026-02-01T00:00:00Z")), ("team-b/edge", Some("2026-01-01T00:00:00Z"))])
}

const WHERE: &str = "pluginInstallations.plugins/oidc";

#[test]
fn gateways_share_an_installation_without_a_word() {
    for it in [defaults(&two_teams()), with("shared", &two_teams())] {
        assert_eq!((it.verdict, it.findings), (Verdict::KeepSome(vec![0, 1]), Vec::new()));
    }
}

#[test]
fn the_default_rule_is_not_for_installations() {
    let it = resolve(&two_teams(), &sample::context(), &settings(r#"{"default": "reject"}"#));
    assert_eq!(it.verdict, Verdict::KeepSome(vec![0, 1]));
}

#[test]
fn the_first_owner_keeps_it_and_the_others_are_named() {
    let it = with("firstOwner", &two_teams());
    assert_eq!((it.verdict.clone(), about(&it)), (Verdict::Keep(1), (Severity::Warning, "OldestKept", WHERE)));
    let message = &it.findings[0].message;
    assert_eq!(message, "plugin installation plugins/oidc: the oldest claim wins: team-b/edge (user) is kept, not team-a/edge (user)");
}

#[test]
fn an_owner_without_a_date_was_not_first() {
    let it = with("firstOwner", &claimed(&[("ns/a", None), ("ns/b", Some("2026-01-01T00:00:00Z"))]));
    assert_eq!(it.verdict, Verdict::Keep(1));
}

#[test]
fn gateways_of_the_installations_namespace_share_it() {
    let it = with("sameNamespace", &claimed(&[("team-a/edge", None), ("plugins/b", None), ("plugins/a", None), ("team-b/edge", None)]));
    assert_eq!((it.verdict.clone(), about(&it)), (Verdict::KeepSome(vec![1, 2]), (Severity::Warning, "OtherNamespace", WHERE)));
    let expected = "plugin installation plugins/oidc: the rule of this policy is sameNamespace: only claims from namespace plugins are \
                    kept, not team-a/edge (user), team-b/edge (user)";
    assert_eq!(it.findings[0].message, expected);
}

#[test]
fn nobody_is_left_out_where_all_are_in_the_namespace() {
    let it = with("sameNamespace", &claimed(&[("plugins/b", None), ("plugins/a", None)]));
    assert_eq!((it.verdict, it.findings), (Verdict::KeepSome(vec![0, 1]), Vec::new()));
}

#[test]
fn a_namespace_is_a_whole_name() {
    let it = with("sameNamespace", &claimed(&[("plugins/a", None), ("plugins-2/a", None), ("plugins", None), ("a/plugins", None)]));
    assert_eq!(it.verdict, Verdict::KeepSome(vec![0]));
}

#[test]
fn claims_from_elsewhere_alone_are_rejected_with_a_cure() {
    let it = with("sameNamespace", &two_teams());
    let expected = "plugin installation plugins/oidc is claimed by team-a/edge (user), team-b/edge (user), none of them in its namespace \
                    plugins as rule sameNamespace wants: create the installation in their namespaces, or change pluginInstallations in \
                    the settings";
    assert_eq!((it.verdict, it.findings), (Verdict::Reject(expected.into()), Vec::new()));
}

#[test]
fn reject_and_hold_name_the_setting() {
    let expected = "plugin installation plugins/oidc is claimed by team-a/edge (user), team-b/edge (user), and the rule of this policy is \
                    reject: remove the claims but one, or give pluginInstallations another rule in the settings";
    assert_eq!(with("reject", &two_teams()).verdict, Verdict::Reject(expected.into()));
    assert!(matches!(with("hold", &two_teams()).verdict, Verdict::Hold(message) if message.contains("give pluginInstallations another")));
}

#[test]
fn without_claims_there_is_nothing_to_share() {
    for rule in ["shared", "firstOwner", "sameNamespace"] {
        assert!(matches!(with(rule, &claimed(&[])).verdict, Verdict::Hold(_)), "{rule}");
    }
}

#[test]
fn messages_stay_within_the_hosts_limits() {
    let name = "é".repeat(5000);
    let elsewhere = conflict(SubjectKind::PluginInstallation, &name, vec![since(&name, None); 40]);
    let mut partly = elsewhere.clone();
    partly.claims.push(since(&format!("{name}/a"), None));
    let context = sample::context();
    let context = Context { object: ObjectMeta { namespace: name.clone(), ..context.object }, ..context };
    for rule in ["firstOwner", "sameNamespace", "reject", "hold"] {
        for conflict in [&elsewhere, &partly] {
            let it = resolve(conflict, &context, &settings(&format!(r#"{{"pluginInstallations": "{rule}"}}"#)));
            let message = match &it.verdict {
                Verdict::Reject(message) | Verdict::Hold(message) => message,
                Verdict::Keep(_) | Verdict::KeepSome(_) | Verdict::Merge(_) | Verdict::Other(_) => &it.findings[0].message,
            };
            assert!(message.len() <= 1024, "{rule}: {}", message.len());
        }
    }
}

#[test]
fn the_rules_of_other_kinds_are_illegal() {
    for rule in ["keepOldest", "keepUser", "keepGenerated", "merge", "firstowner", ""] {
        let findings = parse_settings::<DefaultPolicy>(&format!(r#"{{"pluginInstallations": "{rule}"}}"#)).unwrap_err();
        let [finding] = findings.as_slice() else { panic!("one finding: {findings:?}") };
        assert_eq!((finding.severity.clone(), finding.code.as_str()), (Severity::Error, "InvalidSettings"));
        assert!(finding.message.contains("`shared`, `firstOwner`, `sameNamespace`, `reject`, `hold`"), "{}", finding.message);
    }
    for field in ["default", "volumes", "mounts", "pluginNames", "bundledPlugins"] {
        assert!(parse_settings::<DefaultPolicy>(&format!(r#"{{"{field}": "shared"}}"#)).is_err(), "{field}");
    }
}

#[test]
fn the_schema_offers_exactly_these_rules() {
    let schema: serde_json::Value = serde_json::from_str(DefaultPolicy::schema()).unwrap();
    let setting = &schema["properties"]["pluginInstallations"];
    let offered: Vec<InstallationRule> = serde_json::from_value(setting["enum"].clone()).unwrap();
    use InstallationRule::{FirstOwner, Hold, Reject, SameNamespace, Shared};
    assert_eq!(offered, [Shared, FirstOwner, SameNamespace, Reject, Hold]);
    assert_eq!(serde_json::from_value::<InstallationRule>(setting["default"].clone()).unwrap(), InstallationRule::default());
}
