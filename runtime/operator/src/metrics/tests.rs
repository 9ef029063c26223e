use std::{sync::Arc, time::Duration};

use kube::core::Status;
use weir_core::policy::SlotName;

use super::{collect, *};
use crate::cache::Key;

fn metrics() -> Metrics {
    Metrics::new(Arc::new(Counters::default()))
}

fn value(text: &str, series: &str) -> Option<String> {
    text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' ').map(str::to_owned))
}

#[test]
fn what_is_counted_is_shown_under_its_name() {
    let metrics = metrics();
    metrics.reconciled(Kind::DataPlane, Outcome::Done, Duration::from_millis(3));
    metrics.reconciled(Kind::DataPlane, Outcome::Held, Duration::from_secs(30));
    metrics.failed(Kind::KonnectExtension, ErrorReason::Conflict);
    metrics.wrote(ObjectKind::Deployment, Verb::Apply);
    metrics.wrote(ObjectKind::DataPlane, Verb::PatchStatus);
    metrics.watch_failed(ObjectKind::Secret);
    metrics.event_dropped();
    metrics.queue(Kind::DataPlane, 7);
    metrics.objects(Kind::DataPlane, 200);
    metrics.leading(true);
    metrics.pulls.ended(PullOutcome::NotFound);
    metrics.pulls.took(Duration::from_secs(2));
    metrics.pulls.kept(5);
    metrics.shadows.clone().ended(SlotName::KonnectEnv, ShadowOutcome::Differs);
    metrics.policies.swapped(SlotName::KonnectEnv, Swap::RolledBack);
    metrics.policies.tripped(SlotName::KonnectEnv);
    metrics.policies.took(Duration::from_secs(3));
    metrics.verified(Signed::Plugin, VerifyOutcome::NotSigned);
    metrics.settings.is_valid(SettingsFile::Registries, false);
    metrics.settings.loaded(SettingsFile::Registries, false);
    metrics.remote.acquired("Acquired", Some(Duration::from_millis(2)));
    metrics.remote.acquired("Busy", None);
    metrics.remote.called("KonnectEnv/Evaluate", "Answered", Duration::from_millis(1));
    metrics.remote.connected("ServerNotTrusted");
    metrics.remote.evicted("idle");
    let text = metrics.encode();
    for (series, expected) in [
        ("weir_reconcile_total{kind=\"DataPlane\",outcome=\"Done\"}", "1"),
        ("weir_reconcile_total{kind=\"KonnectExtension\",outcome=\"Failed\"}", "0"),
        ("weir_reconcile_duration_seconds_count{kind=\"DataPlane\"}", "2"),
        ("weir_reconcile_duration_seconds_bucket{le=\"0.005\",kind=\"DataPlane\"}", "1"),
        ("weir_reconcile_errors_total{kind=\"KonnectExtension\",reason=\"Conflict\"}", "1"),
        ("weir_writes_total{object=\"Deployment\",verb=\"Apply\"}", "1"),
        ("weir_writes_total{object=\"DataPlane\",verb=\"PatchStatus\"}", "1"),
        ("weir_watch_errors_total{object=\"Secret\"}", "1"),
        ("weir_events_dropped_total", "1"),
        ("weir_queue_depth{kind=\"DataPlane\"}", "7"),
        ("weir_objects{kind=\"DataPlane\"}", "200"),
        ("weir_leader", "1"),
        ("weir_plugin_pulls_total{outcome=\"not_found\"}", "1"),
        ("weir_plugin_pulls_total{outcome=\"fetched\"}", "0"),
        ("weir_plugin_pull_duration_seconds_count", "1"),
        ("weir_plugin_cache_bytes", "5"),
        ("weir_shadow_questions_total{slot=\"konnect-env\",outcome=\"differs\"}", "1"),
        ("weir_shadow_questions_total{slot=\"conflict-resolution\",outcome=\"dropped\"}", "0"),
        ("weir_policy_swaps_total{slot=\"konnect-env\",outcome=\"RolledBack\"}", "1"),
        ("weir_policy_swaps_total{slot=\"plugin-packaging\",outcome=\"Activated\"}", "0"),
        ("weir_policy_breaker_trips_total{slot=\"konnect-env\"}", "1"),
        ("weir_policy_activation_seconds_count", "1"),
        ("weir_verifications_total{artifact=\"Plugin\",outcome=\"NotSigned\"}", "1"),
        ("weir_verifications_total{artifact=\"Policy\",outcome=\"Verified\"}", "0"),
        ("weir_settings_file_valid{file=\"Registries\"}", "0"),
        ("weir_settings_file_loads_total{file=\"Registries\",outcome=\"Failed\"}", "1"),
        ("weir_remote_acquires_total{outcome=\"Busy\"}", "1"),
        ("weir_remote_acquire_seconds_count", "1"),
        ("weir_remote_call_seconds_count{method=\"KonnectEnv/Evaluate\",outcome=\"Answered\"}", "1"),
        ("weir_remote_connects_total{outcome=\"ServerNotTrusted\"}", "1"),
        ("weir_remote_evictions_total{reason=\"idle\"}", "1"),
        ("weir_queue_depth{kind=\"RemotePlugin\"}", "0"),
        ("weir_policy_calls_total{slot=\"konnect-env\",outcome=\"Answered\"}", "0"),
        ("weir_policy_call_seconds_total{slot=\"konnect-env\"}", "0.0"),
    ] {
        assert_eq!(value(&text, series).as_deref(), Some(expected), "{series}\n{text}");
    }
    assert!(text.contains("weir_build_info{version=\""), "{text}");
    assert!(text.ends_with("# EOF\n"));
    assert!(value(&text, "process_resident_memory_bytes").is_some_and(|v| v.parse::<u64>().is_ok_and(|b| b > 1_000_000)), "{text}");
    assert!(value(&text, "process_cpu_seconds_total").is_some(), "{text}");
}

#[test]
fn what_is_in_force_has_one_series_per_policy_that_goes_with_it() {
    let metrics = metrics();
    let in_force = |digest: &str, runs| InForce { slot: SlotName::KonnectEnv, digest: digest.into(), runs };
    let series = || metrics.encode().lines().filter(|line| line.starts_with("weir_policy_active{")).map(str::to_owned).collect::<Vec<_>>();
    assert!(series().is_empty());
    metrics.policies.in_force([(Key::new("n", "a"), in_force("sha256:1", true)), (Key::new("n", "b"), in_force("sha256:2", false))].into());
    assert_eq!(
        series(),
        [
            "weir_policy_active{namespace=\"n\",name=\"a\",slot=\"konnect-env\",digest=\"sha256:1\"} 1",
            "weir_policy_active{namespace=\"n\",name=\"b\",slot=\"konnect-env\",digest=\"sha256:2\"} 0",
        ]
    );
    metrics.policies.in_force([(Key::new("n", "a"), in_force("sha256:3", true))].into());
    assert_eq!(series().len(), 1, "neither a former digest nor a policy that is gone stays: {:?}", series());
}

#[test]
fn the_number_of_series_does_not_grow_with_use() {
    let metrics = metrics();
    let series = || metrics.encode().lines().filter(|line| !line.starts_with('#')).count();
    let before = series();
    for _ in 0..100 {
        metrics.failed(Kind::DataPlane, ErrorReason::Other);
        metrics.reconciled(Kind::DataPlane, Outcome::Failed, Duration::ZERO);
    }
    // One histogram: its buckets, the one without an end, sum and count.
    assert_eq!(series(), before + SECONDS.len() + 3);
}

#[test]
fn answers_of_the_api_server_have_reasons() {
    let of = |code: u16| ErrorReason::of(&kube::Error::Api(Status { code, ..Status::default() }.boxed()));
    let expected = [
        (401, ErrorReason::Forbidden),
        (403, ErrorReason::Forbidden),
        (404, ErrorReason::NotFound),
        (409, ErrorReason::Conflict),
        (410, ErrorReason::Other),
        (422, ErrorReason::Invalid),
        (429, ErrorReason::Throttled),
        (500, ErrorReason::Unavailable),
        (503, ErrorReason::Unavailable),
        (504, ErrorReason::Timeout),
        (0, ErrorReason::Other),
    ];
    for (code, reason) in expected {
        assert_eq!(of(code), reason, "{code}");
    }
}

#[test]
fn a_cause_deep_down_is_found() {
    let service = |error: std::io::Error| ErrorReason::of(&kube::Error::Service(Box::new(error)));
    assert_eq!(service(std::io::ErrorKind::ConnectionRefused.into()), ErrorReason::Unavailable);
    assert_eq!(service(std::io::Error::other(std::io::Error::from(std::io::ErrorKind::TimedOut))), ErrorReason::Timeout);
    let tls = rustls::Error::InvalidCertificate(rustls::CertificateError::Expired);
    assert_eq!(service(std::io::Error::new(std::io::ErrorKind::InvalidData, tls)), ErrorReason::Certificate);
}

#[test]
fn proc_files_are_read_by_name_and_place() {
    assert_eq!(collect::resident_bytes("Name:\tweir\nVmRSS:\t   2048 kB\n"), Some(2_097_152));
    assert_eq!(collect::resident_bytes("Name:\tweir\n"), None);
    let stat = "12 (we) ir) x) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20";
    assert_eq!(collect::cpu_seconds(stat), Some(2.0));
    assert_eq!(collect::cpu_seconds("12 weir"), None);
}

/// Words of a text that look like the name of one of our series.
fn names(text: &str) -> std::collections::BTreeSet<&str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| ["weir_", "process_"].iter().any(|start| word.starts_with(start))).collect()
}

#[test]
fn alerts_and_dashboard_ask_for_series_that_exist() {
    let metrics = metrics();
    metrics.reconciled(Kind::DataPlane, Outcome::Done, Duration::from_millis(3));
    metrics.wrote(ObjectKind::Deployment, Verb::Apply);
    metrics.watched(ObjectKind::Secret);
    metrics.objects(Kind::DataPlane, 1);
    let text = metrics.encode();
    let served: std::collections::BTreeSet<&str> =
        text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split(['{', ' ']).next()).collect();
    for (file, asked) in [
        ("alerts.yaml", include_str!("../../../../charts/weir/files/alerts.yaml")),
        ("dashboard.json", include_str!("../../../../charts/weir/files/dashboard.json")),
    ] {
        let asked = names(asked);
        assert!(asked.len() > 5, "{file} asks for {asked:?}");
        let missing: Vec<_> = asked.iter().filter(|name| !served.contains(**name)).collect();
        assert!(missing.is_empty(), "{file} asks for {missing:?}; there are {served:?}");
    }
}
