//! Unions of the pod spec: exactly one member. The schema cannot say it, the API server refuses it, and by then it is too late to tell the user.

use k8s_openapi::api::core::v1::{Container, EnvVarSource, PodSpec, Probe, Volume};
use serde::Serialize;
use serde_json::Value;

use super::{PROXY, Report, pod::SPEC};
use crate::plan::HeldPart;

pub(crate) fn check(spec: &PodSpec, report: &mut Report) {
    for (index, volume) in spec.volumes.iter().flatten().enumerate() {
        let sources = members(volume, &["name"]);
        if sources != 1 {
            let message = format!("volume {:?} has {sources} sources: it needs exactly one", volume.name);
            report.problem(HeldPart::PodTemplate, format!("{SPEC}.volumes[{index}]"), message);
        }
        if volume.secret.as_ref().is_some_and(|s| s.secret_name.as_deref().unwrap_or_default().is_empty()) {
            report.problem(HeldPart::PodTemplate, format!("{SPEC}.volumes[{index}].secret.secretName"), "name the Secret");
        }
        bad_paths(volume, &format!("{SPEC}.volumes[{index}]"), report);
    }
}

/// Items must stay in their volume.
fn bad_paths(volume: &Volume, path: &str, report: &mut Report) {
    let secret = volume.secret.iter().flat_map(|s| s.items.iter().flatten());
    let config = volume.config_map.iter().flat_map(|c| c.items.iter().flatten());
    for item in secret.chain(config).filter(|item| leaves(&item.path) || item.path.is_empty()) {
        report.problem(HeldPart::PodTemplate, format!("{path}.items[{}].path", item.key), "is not a relative path inside the volume");
    }
}

pub(crate) fn check_container(path: &str, container: &Container, report: &mut Report) {
    let mut refuse = |field: String, message: &str| report.problem(HeldPart::PodTemplate, format!("{path}.{field}"), message);
    if container.name != PROXY && container.image.as_deref().unwrap_or_default().is_empty() {
        refuse("image".into(), "is missing: every container needs an image");
    }
    if container.image_pull_policy.as_deref().is_some_and(|p| !matches!(p, "Always" | "IfNotPresent" | "Never")) {
        refuse("imagePullPolicy".into(), "is Always, IfNotPresent or Never");
    }
    for (index, mount) in container.volume_mounts.iter().flatten().enumerate() {
        if mount.mount_path.is_empty() || mount.mount_path.contains(':') {
            refuse(format!("volumeMounts[{index}].mountPath"), "is a path without `:`");
        }
        if mount.sub_path.as_deref().is_some_and(leaves) {
            refuse(format!("volumeMounts[{index}].subPath"), "leaves its volume");
        }
    }
    for (index, port) in container.ports.iter().flatten().enumerate() {
        if port.protocol.as_deref().is_some_and(|p| !matches!(p, "TCP" | "UDP" | "SCTP")) {
            refuse(format!("ports[{index}].protocol"), "is TCP, UDP or SCTP");
        }
        if port.host_port.is_some_and(|p| !(0..=65535).contains(&p)) {
            refuse(format!("ports[{index}].hostPort"), "is not between 1 and 65535");
        }
    }
    for var in container.env.iter().flatten() {
        if var.value_from.as_ref().is_some_and(|source: &EnvVarSource| members(source, &[]) != 1) {
            refuse(format!("env[{}].valueFrom", var.name), "needs exactly one source");
        }
    }
    for (field, probe) in [
        ("livenessProbe", &container.liveness_probe),
        ("readinessProbe", &container.readiness_probe),
        ("startupProbe", &container.startup_probe),
    ] {
        if let Some(probe) = probe.as_ref().filter(|p| **p != Probe::default()) {
            check_probe(field, probe, container.name == PROXY, &mut refuse);
        }
    }
    let security = container.security_context.as_ref();
    if security.is_some_and(|s| s.privileged == Some(true) && s.allow_privilege_escalation == Some(false)) {
        refuse("securityContext".into(), "is privileged without privilege escalation: it can only be one of them");
    }
    if security.is_some_and(|s| [s.run_as_user, s.run_as_group].into_iter().flatten().any(|id| id < 0)) {
        refuse("securityContext".into(), "has a user or group below 0");
    }
}

fn check_probe(field: &str, probe: &Probe, is_proxy: bool, refuse: &mut impl FnMut(String, &str)) {
    let handlers = [probe.exec.is_some(), probe.grpc.is_some(), probe.http_get.is_some(), probe.tcp_socket.is_some()];
    let count = handlers.into_iter().filter(|has| *has).count();
    // The proxy's readiness probe has a handler of ours below it.
    let needed = usize::from(!(is_proxy && field == "readinessProbe"));
    if count > 1 || count < needed {
        refuse(field.to_owned(), "needs exactly one of exec, grpc, httpGet and tcpSocket");
    }
    let numbers =
        [probe.period_seconds, probe.timeout_seconds, probe.success_threshold, probe.failure_threshold, probe.initial_delay_seconds];
    if numbers.into_iter().flatten().any(|n| n < 0) {
        refuse(field.to_owned(), "has a number below 0");
    }
    if field != "readinessProbe" && probe.success_threshold.is_some_and(|n| n > 1) {
        refuse(format!("{field}.successThreshold"), "is 1 for liveness and startup probes");
    }
}

/// Members of a union that are there.
fn members(value: &impl Serialize, besides: &[&str]) -> usize {
    match serde_json::to_value(value) {
        Ok(Value::Object(map)) => map.keys().filter(|key| !besides.contains(&key.as_str())).count(),
        Ok(_) | Err(_) => 0,
    }
}

fn leaves(path: &str) -> bool {
    path.starts_with('/') || path.split('/').any(|part| part == "..")
}
