//! Each rule, on each kind it can meet.

use weir_policy_sdk::{
    Policy,
    conflict_resolution::{Claim, ClaimValue},
    parse_settings, sample,
};

use super::*;

mod installations;
mod merging;

fn conflict(kind: SubjectKind, subject: &str, claims: Vec<Claim>) -> Conflict {
    Conflict { kind, subject: subject.into(), claims, extensions: Vec::new() }
}

fn settings(document: &str) -> Settings {
    parse_settings::<DefaultPolicy>(document).unwrap().0
}

/// Resolves for DataPlane `demo/gateway`.
fn with_settings(conflict: &Conflict, settings: &Settings) -> Resolution {
    resolve(conflict, &sample::context(), settings)
}

fn defaults(conflict: &Conflict) -> Resolution {
    with_settings(conflict, &Settings::default())
}

fn user(value: &str) -> Claim {
    sample::claim(Origin::User, "spec.deployment", value)
}

fn generated(value: &str) -> Claim {
    sample::claim(Origin::Generated, "certificate", value)
}

fn policy(value: &str) -> Claim {
    sample::claim(Origin::Policy, "konnect-env", value)
}

fn default(value: &str) -> Claim {
    sample::claim(Origin::Default, "defaults", value)
}

fn since(who: &str, since: Option<&str>) -> Claim {
    Claim { since: since.map(Into::into), ..sample::claim(Origin::User, who, "") }
}

/// The one finding of a resolution: severity, code, path.
fn about(resolution: &Resolution) -> (Severity, &str, &str) {
    let [finding] = resolution.findings.as_slice() else { panic!("one finding: {resolution:?}") };
    (finding.severity.clone(), &finding.code, &finding.path)
}

#[test]
fn a_user_overrides_a_default_quietly_and_others_with_a_warning() {
    for (other, severity) in [(default("b"), Severity::Info), (generated("b"), Severity::Warning), (policy("b"), Severity::Warning)] {
        let it = defaults(&conflict(SubjectKind::EnvVar, "KONG_ROLE", vec![user("a"), other]));
        assert_eq!(it.verdict, Verdict::Keep(0));
        assert_eq!(about(&it), (severity, "UserOverride", "env.KONG_ROLE"));
    }
    let it = defaults(&conflict(SubjectKind::EnvVar, "KONG_ROLE", vec![user("a"), policy("b"), default("c")]));
    assert_eq!(about(&it).0, Severity::Warning);
}

#[test]
fn findings_name_the_loser_and_no_value() {
    let it = defaults(&conflict(SubjectKind::EnvVar, "KONG_PG_PASSWORD", vec![user("s3cret"), generated("other")]));
    let message = &it.findings[0].message;
    assert_eq!(message, "variable KONG_PG_PASSWORD: the user's claim wins: spec.deployment (user) is kept, not certificate (generated)");
}

#[test]
fn without_a_user_the_strongest_wins() {
    let it = defaults(&conflict(SubjectKind::EnvVar, "KONG_ROLE", vec![policy("a"), generated("b"), default("c")]));
    assert_eq!((it.verdict.clone(), about(&it)), (Verdict::Keep(0), (Severity::Info, "StrongestKept", "env.KONG_ROLE")));
}

#[test]
fn volumes_and_mounts_keep_the_user_with_a_warning() {
    for (kind, path) in [(SubjectKind::Volume, "volumes.x"), (SubjectKind::VolumeMount, "volumeMounts.x")] {
        let it = defaults(&conflict(kind.clone(), "x", vec![user("a"), default("b")]));
        assert_eq!((it.verdict.clone(), about(&it)), (Verdict::Keep(0), (Severity::Warning, "UserOverride", path)));
        let it = defaults(&conflict(kind, "x", vec![policy("a"), generated("b")]));
        assert_eq!((it.verdict.clone(), about(&it)), (Verdict::Keep(0), (Severity::Info, "StrongestKept", path)));
    }
}

#[test]
fn the_oldest_plugin_wins() {
    let claims =
        vec![since("ns/unknown", None), since("ns/late", Some("2026-02-01T00:00:00Z")), since("ns/early", Some("2026-01-01T00:00:00Z"))];
    let it = defaults(&conflict(SubjectKind::PluginName, "x", claims));
    assert_eq!((it.verdict.clone(), about(&it)), (Verdict::Keep(2), (Severity::Warning, "OldestKept", "plugins.x")));
    assert!(it.findings[0].message.ends_with("not ns/unknown (user), ns/late (user)"), "{}", it.findings[0].message);
}

#[test]
fn names_decide_between_equal_ages() {
    for at in [Some("2026-01-01T00:00:00Z"), None, Some("no time")] {
        let it = defaults(&conflict(SubjectKind::PluginName, "x", vec![since("ns/b", at), since("ns/a", at)]));
        assert_eq!(it.verdict, Verdict::Keep(1));
    }
}

#[test]
fn an_installation_shadows_a_bundled_plugin() {
    for installation in [user(""), generated(""), policy("")] {
        let it = defaults(&conflict(SubjectKind::BundledPlugin, "acl", vec![default(""), installation]));
        assert_eq!((it.verdict.clone(), about(&it)), (Verdict::Keep(1), (Severity::Warning, "ShadowsBundled", "plugins.acl")));
    }
}

#[test]
fn unknown_kinds_wait() {
    let it = defaults(&conflict(SubjectKind::Other("port".into()), "8000", vec![user("a"), default("b")]));
    let Verdict::Hold(message) = it.verdict else { panic!("{it:?}") };
    assert!(message.contains("port 8000") && message.contains("spec.deployment (user)"), "{message}");
}

#[test]
fn settings_change_each_kind() {
    let claims = || vec![user("a"), generated("b"), default("c")];
    let rules = r#"{"default": "keepGenerated", "volumes": "hold", "mounts": "reject", "pluginNames": "keepUser", "bundledPlugins": "keepGenerated", "pluginInstallations": "hold"}"#;
    let at = |kind| with_settings(&conflict(kind, "x", claims()), &settings(rules)).verdict;
    assert_eq!(at(SubjectKind::EnvVar), Verdict::Keep(1));
    assert!(matches!(at(SubjectKind::Volume), Verdict::Hold(_)));
    assert!(matches!(at(SubjectKind::VolumeMount), Verdict::Reject(_)));
    assert_eq!(at(SubjectKind::PluginName), Verdict::Keep(0));
    assert_eq!(at(SubjectKind::BundledPlugin), Verdict::Keep(1));
    assert!(matches!(at(SubjectKind::PluginInstallation), Verdict::Hold(_)));
}

#[test]
fn the_default_rule_serves_volumes_and_mounts_too() {
    for kind in [SubjectKind::Volume, SubjectKind::VolumeMount] {
        let it = with_settings(&conflict(kind, "x", vec![user("a"), default("b")]), &settings(r#"{"default": "keepGenerated"}"#));
        assert_eq!((it.verdict.clone(), about(&it).1), (Verdict::Keep(1), "UserOverruled"));
    }
}

#[test]
fn the_exact_name_comes_before_the_longest_prefix() {
    let settings = settings(r#"{"default": "hold", "env": {"*": "keepUser", "KONG_*": "reject", "KONG_ROLE": "keepGenerated"}}"#);
    let verdict = |name: &str| with_settings(&conflict(SubjectKind::EnvVar, name, vec![user("a"), default("b")]), &settings).verdict;
    assert_eq!(verdict("KONG_ROLE"), Verdict::Keep(1));
    assert!(matches!(verdict("KONG_ROLES"), Verdict::Reject(_)));
    assert!(matches!(verdict("KONG_PLUGINS"), Verdict::Reject(_)), "a prefix comes before the built-in merge");
    assert_eq!(verdict("OTHER"), Verdict::Keep(0));
}

#[test]
fn rejections_say_who_and_what_to_change() {
    let it = with_settings(
        &conflict(SubjectKind::EnvVar, "KONG_ROLE", vec![user("a"), policy("b")]),
        &settings(r#"{"env": {"KONG_ROLE": "reject"}}"#),
    );
    let expected = "variable KONG_ROLE is claimed by spec.deployment (user), konnect-env (policy), and the rule of this policy is reject: \
                    remove the claims but one, or give env.KONG_ROLE another rule in the settings";
    assert_eq!(it.verdict, Verdict::Reject(expected.into()));
}

#[test]
fn the_setting_that_a_message_names_is_one_of_the_schema() {
    let schema: serde_json::Value = serde_json::from_str(DefaultPolicy::schema()).unwrap();
    for (kind, setting) in [
        (SubjectKind::EnvVar, "env"),
        (SubjectKind::Volume, "volumes"),
        (SubjectKind::VolumeMount, "mounts"),
        (SubjectKind::PluginName, "pluginNames"),
        (SubjectKind::BundledPlugin, "bundledPlugins"),
        (SubjectKind::PluginInstallation, "pluginInstallations"),
    ] {
        assert!(schema["properties"][setting].is_object(), "{setting}");
        for rule in ["reject", "hold"] {
            let (named, document) = match setting {
                "env" => ("env.X", format!(r#"{{"env": {{"X": "{rule}"}}}}"#)),
                other => (other, format!(r#"{{"{other}": "{rule}"}}"#)),
            };
            let it = with_settings(&conflict(kind.clone(), "X", vec![user("a"), generated("b")]), &settings(&document));
            let (Verdict::Reject(message) | Verdict::Hold(message)) = &it.verdict else { panic!("{it:?}") };
            let cure =
                format!("the rule of this policy is {rule}: remove the claims but one, or give {named} another rule in the settings");
            assert!(message.ends_with(&cure), "{message}");
        }
    }
}

#[test]
fn messages_stay_within_the_hosts_limits() {
    let name = "é".repeat(5000);
    let claims = vec![sample::claim(Origin::User, &name, ""); 40];
    for rule in ["keepUser", "reject", "hold"] {
        let it = with_settings(&conflict(SubjectKind::Volume, &name, claims.clone()), &settings(&format!(r#"{{"volumes": "{rule}"}}"#)));
        let message = match &it.verdict {
            Verdict::Reject(message) | Verdict::Hold(message) => message,
            Verdict::Keep(_) | Verdict::KeepSome(_) | Verdict::Merge(_) | Verdict::Other(_) => &it.findings[0].message,
        };
        assert!(message.len() <= 1024, "{rule}: {}", message.len());
        assert!(it.findings.iter().all(|f| f.path.len() <= 512));
    }
}

#[test]
fn every_conflict_is_answered_in_order() {
    let conflicts = vec![
        conflict(SubjectKind::EnvVar, "A", vec![user("a"), default("b")]),
        conflict(SubjectKind::BundledPlugin, "acl", vec![generated(""), default("")]),
        conflict(SubjectKind::Volume, "none", Vec::new()),
    ];
    let input = Input { context: sample::context(), conflicts, extensions: Vec::new() };
    let answer = <DefaultPolicy as ConflictResolution>::evaluate(input, Settings::default()).unwrap();
    let codes: Vec<_> = answer.resolutions.iter().map(|r| r.findings.first().map(|f| f.code.as_str())).collect();
    assert_eq!(codes, [Some("UserOverride"), Some("ShadowsBundled"), None]);
    assert!(matches!(answer.resolutions[2].verdict, Verdict::Hold(_)), "without claims there is nothing to keep");
}

#[test]
fn illegal_settings_are_found() {
    let found = |document: &str| {
        let findings = parse_settings::<DefaultPolicy>(document).unwrap_err();
        findings.into_iter().map(|f| (f.code, f.path)).collect::<Vec<_>>()
    };
    let pair = |code: &str, path: &str| (code.to_owned(), path.to_owned());
    assert_eq!(found(r#"{"default": "merge", "mounts": "merge"}"#), [pair("IllegalRule", "default"), pair("IllegalRule", "mounts")]);
    assert_eq!(found(r#"{"env": {"A*B": "hold", "": "hold"}}"#), [pair("InvalidPattern", "env."), pair("InvalidPattern", "env.A*B")]);
    assert_eq!(found(r#"{"default": "keepuser"}"#)[0].0, "InvalidSettings");
    assert_eq!(found(r#"{"volume": "hold"}"#)[0].0, "InvalidSettings");
    assert!(settings(r#"{"env": {"*": "merge", "A_*": "hold", "A": "merge"}}"#).validate().is_empty());
}

#[test]
fn schema_is_json_and_names_every_setting() {
    let schema: serde_json::Value = serde_json::from_str(DefaultPolicy::schema()).unwrap();
    let names: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["bundledPlugins", "default", "env", "mounts", "pluginInstallations", "pluginNames", "volumes"]);
}
