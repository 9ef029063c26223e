//! The pod template: what the API server would refuse or Kong would misread, said before anything is sent.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::{
    api::core::v1::{Container, PodSpec, ResourceRequirements},
    apimachinery::pkg::api::resource::Quantity,
};
use weir_api::{names, quantity};

use super::{
    super::objects::{konnect_certificate, proxy},
    Konnect, PROXY, Report, Validated, unions,
};
use crate::{
    image::{self, ImageVersion},
    plan::HeldPart,
    policy::Severity,
};

pub(super) const SPEC: &str = "spec.deployment.podTemplateSpec.spec";
/// Volumes that this pod gets from the operator: a mount may name them. What a policy will bring is not known yet; a mount of a volume that
/// it does not bring is dropped with a finding (`conflicts::settle`).
fn generated_volumes(validated: &Validated<'_>) -> Vec<&'static str> {
    let mut volumes = vec![proxy::CLUSTER_CERTIFICATE_VOLUME];
    if proxy::hardened(validated) {
        volumes.extend(["tmp", "var-kong"]);
    }
    if konnect_certificate::options(validated).is_some() {
        volumes.push(konnect_certificate::VOLUME);
    }
    if validated.konnect != Konnect::None {
        volumes.push("kong-cluster-cert");
    }
    volumes
}

pub(crate) fn check(validated: &Validated<'_>, report: &mut Report) {
    let Some(template) = validated.template() else {
        report.problem(HeldPart::PodTemplate, "spec.deployment.podTemplateSpec", "add a container named `proxy` with an image");
        return;
    };
    let Some(spec) = &template.spec else {
        report.problem(HeldPart::PodTemplate, SPEC, "add a container named `proxy` with an image");
        return;
    };
    check_image(validated, report);
    if spec.restart_policy.as_deref().is_some_and(|p| p != "Always") {
        report.problem(HeldPart::PodTemplate, format!("{SPEC}.restartPolicy"), "a Deployment's pods restart Always: remove the field");
    }
    check_metadata(template.metadata.as_ref(), report);
    unique(report, format!("{SPEC}.containers"), "container", all_containers(spec).map(|(_, c)| c.name.as_str()));
    let volumes = spec.volumes.as_deref().unwrap_or_default();
    unique(report, format!("{SPEC}.volumes"), "volume", volumes.iter().map(|v| v.name.as_str()));
    for (index, volume) in volumes.iter().enumerate() {
        if !names::is_dns_label(&volume.name) {
            report.problem(HeldPart::PodTemplate, format!("{SPEC}.volumes[{index}].name"), format!("{:?} is no DNS label", volume.name));
        }
        if let Some(limit) = volume.empty_dir.as_ref().and_then(|e| e.size_limit.as_ref()) {
            check_quantity(report, format!("{SPEC}.volumes[{index}].emptyDir.sizeLimit"), limit);
        }
    }
    let known: BTreeSet<&str> = volumes.iter().map(|v| v.name.as_str()).chain(generated_volumes(validated)).collect();
    for (path, container) in all_containers(spec) {
        check_container(&format!("{SPEC}.{path}"), container, &known, report);
    }
    unions::check(spec, report);
    check_database(spec, report);
    if proxy::hardened(validated) && validated.proxy().and_then(|c| c.security_context.as_ref()).is_some_and(|s| s.privileged == Some(true))
    {
        let path = format!("{SPEC}.containers[name={PROXY}].securityContext.privileged");
        report.problem(HeldPart::PodTemplate, path, "contradicts spec.deployment.hardened: remove one of them");
    }
}

fn all_containers(spec: &PodSpec) -> impl Iterator<Item = (String, &Container)> {
    let named = |list: &'static str| move |(index, container)| (format!("{list}[{index}]"), container);
    let init = spec.init_containers.iter().flatten().enumerate().map(named("initContainers"));
    spec.containers.iter().enumerate().map(named("containers")).chain(init)
}

fn check_image(validated: &Validated<'_>, report: &mut Report) {
    let path = format!("{SPEC}.containers[name={PROXY}].image");
    match image::version(validated.image()) {
        ImageVersion::Served => {}
        ImageVersion::Unknown => {
            let message = "the version cannot be read from the reference: the image is accepted; it has to be Kong 3.0.0 or later";
            report.finding(Severity::Info, "UnknownImageVersion", path, message);
        }
        ImageVersion::TooOld(version) => {
            if validated.snapshot.operator.validate_images {
                let message = format!("Kong {version} is below 3.0.0, the first version that is served: use a later image");
                report.problem(HeldPart::PodTemplate, path, message);
            } else {
                report.finding(Severity::Warning, "OldImage", path, "below Kong 3.0.0; accepted because image validation is off");
            }
        }
        ImageVersion::Malformed(message) => report.problem(HeldPart::PodTemplate, path, message),
    }
}

fn check_metadata(meta: Option<&k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta>, report: &mut Report) {
    let Some(meta) = meta else { return };
    let path = "spec.deployment.podTemplateSpec.metadata";
    for (key, value) in meta.labels.iter().flatten() {
        if !names::is_label_key(key) || !names::is_label_value(value) {
            report.problem(HeldPart::PodTemplate, format!("{path}.labels[{key:?}]"), "is no label: check key and value");
        }
    }
    for key in meta.annotations.iter().flat_map(|m| m.keys()).filter(|key| !super::is_annotation_key(key)) {
        report.problem(HeldPart::PodTemplate, format!("{path}.annotations[{key:?}]"), "is no qualified name");
    }
}

fn check_container(path: &str, container: &Container, volumes: &BTreeSet<&str>, report: &mut Report) {
    unions::check_container(path, container, report);
    if !names::is_dns_label(&container.name) {
        report.problem(HeldPart::PodTemplate, format!("{path}.name"), format!("{:?} is no DNS label", container.name));
    }
    let env = container.env.as_deref().unwrap_or_default();
    unique(report, format!("{path}.env"), "variable", env.iter().map(|e| e.name.as_str()));
    for (index, var) in env.iter().enumerate() {
        if var.name.is_empty() || var.name.contains('=') || var.name.chars().any(char::is_control) {
            report.problem(HeldPart::PodTemplate, format!("{path}.env[{index}].name"), "is no name of a variable");
        }
        if var.value.as_deref().is_some_and(|v| !v.is_empty()) && var.value_from.is_some() {
            report.problem(
                HeldPart::PodTemplate,
                format!("{path}.env[{index}]"),
                format!("{} has both value and valueFrom: keep one", var.name),
            );
        }
    }
    let mounts = container.volume_mounts.as_deref().unwrap_or_default();
    unique(report, format!("{path}.volumeMounts"), "mount path", mounts.iter().map(|m| m.mount_path.as_str()));
    for (index, mount) in mounts.iter().enumerate().filter(|(_, m)| !volumes.contains(m.name.as_str())) {
        let message = format!("names volume {:?}, which the pod does not have: add it to {SPEC}.volumes", mount.name);
        report.problem(HeldPart::PodTemplate, format!("{path}.volumeMounts[{index}].name"), message);
    }
    let names_of_ports = container.ports.iter().flatten().filter_map(|p| p.name.as_deref());
    unique(report, format!("{path}.ports"), "port name", names_of_ports);
    let mut ports = BTreeSet::new();
    for (index, port) in container.ports.iter().flatten().enumerate() {
        if !(1..=65535).contains(&port.container_port) {
            report.problem(HeldPart::PodTemplate, format!("{path}.ports[{index}].containerPort"), "is not between 1 and 65535");
        }
        if port.name.as_deref().is_some_and(|name| !names::is_port_name(name)) {
            report.problem(
                HeldPart::PodTemplate,
                format!("{path}.ports[{index}].name"),
                "is no port name: at most 15 lower-case letters, digits and `-`",
            );
        }
        if !ports.insert((port.container_port, port.protocol.as_deref().unwrap_or("TCP"))) {
            report.problem(
                HeldPart::PodTemplate,
                format!("{path}.ports[{index}]"),
                format!("port {} is there twice: remove one", port.container_port),
            );
        }
    }
    if let Some(resources) = &container.resources {
        check_resources(&format!("{path}.resources"), resources, report);
    }
}

fn check_resources(path: &str, resources: &ResourceRequirements, report: &mut Report) {
    let empty = BTreeMap::new();
    let limits = resources.limits.as_ref().unwrap_or(&empty);
    for (name, value) in limits {
        check_quantity(report, format!("{path}.limits[{name:?}]"), value);
    }
    for (name, value) in resources.requests.iter().flatten() {
        check_quantity(report, format!("{path}.requests[{name:?}]"), value);
        let limit = limits.get(name).and_then(|limit| quantity::parse(&limit.0));
        if let (Some(request), Some(limit)) = (quantity::parse(&value.0), limit)
            && request > limit
        {
            report.problem(HeldPart::PodTemplate, format!("{path}.requests[{name:?}]"), "is above the limit of the same resource");
        }
    }
}

fn check_quantity(report: &mut Report, path: String, value: &Quantity) {
    match quantity::parse(&value.0) {
        None => report.problem(HeldPart::PodTemplate, path, format!("{:?} is no quantity: write for example `500m` or `2Gi`", value.0)),
        Some(quantity) if quantity.is_negative() => report.problem(HeldPart::PodTemplate, path, format!("{:?} is below 0", value.0)),
        Some(_) => {}
    }
}

/// The CRD's rule only reaches the first container (its cost budget); here every position counts.
fn check_database(spec: &PodSpec, report: &mut Report) {
    let Some((index, proxy)) = spec.containers.iter().enumerate().find(|(_, c)| c.name == PROXY) else { return };
    let Some(var) = proxy.env.iter().flatten().find(|e| e.name == "KONG_DATABASE") else { return };
    let path = format!("{SPEC}.containers[{index}].env[KONG_DATABASE]");
    match (var.value.as_deref(), &var.value_from) {
        (_, Some(_)) => report.finding(Severity::Warning, "UnknownDatabase", path, "comes from elsewhere: only `off` works"),
        (None | Some("" | "off"), None) => {}
        (Some(value), None) => report.problem(HeldPart::PodTemplate, path, format!("is {value:?}: only `off` is served")),
    }
}

fn unique<'a>(report: &mut Report, path: String, what: &str, items: impl Iterator<Item = &'a str>) {
    let mut seen = BTreeSet::new();
    let mut said = BTreeSet::new();
    for item in items {
        if !seen.insert(item) && said.insert(item) {
            report.problem(HeldPart::PodTemplate, path.clone(), format!("{what} {item:?} is there twice: remove one"));
        }
    }
}
