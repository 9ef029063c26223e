//! Services: ports, names, selectors.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use weir_api::{
    dataplane::{DataPlaneSpec, Protocol, ServicePort},
    names,
};

use super::Report;
use crate::{
    plan::HeldPart,
    policy::{Pairs, Severity},
};

/// A port of the ingress Service, complete.
#[derive(Debug, Clone, PartialEq)]
pub struct IngressPort {
    /// Name; needed when there are several ports.
    pub name: Option<String>,
    /// Port of the Service.
    pub port: i32,
    /// Port of the container.
    pub target: IntOrString,
    /// Port of the nodes.
    pub node_port: Option<i32>,
    /// Protocol.
    pub protocol: Protocol,
}

/// The ports in force: the user's, which replace the defaults (facts/kong-operator.md 1.3.2).
#[must_use]
pub fn ports(spec: &DataPlaneSpec) -> Vec<IngressPort> {
    let given = spec.network.as_ref().and_then(|n| n.services.as_ref()).and_then(|s| s.ingress.as_ref()).and_then(|i| i.ports.as_ref());
    match given.filter(|p| !p.is_empty()) {
        None => vec![default_port("http", 80, 8000), default_port("https", 443, 8443)],
        Some(given) => given.iter().map(|p| complete(p, given.len() > 1)).collect(),
    }
}

fn default_port(name: &str, port: i32, target: i32) -> IngressPort {
    IngressPort { name: Some(name.into()), port, target: IntOrString::Int(target), node_port: None, protocol: Protocol::Tcp }
}

/// A port without a name beside others gets one, since the API server asks for it.
fn complete(port: &ServicePort, named: bool) -> IngressPort {
    let protocol = port.protocol.unwrap_or(Protocol::Tcp);
    let given = port.name.clone().filter(|n| !n.is_empty());
    let name = given.or_else(|| named.then(|| format!("{}-{}", protocol.as_str().to_lowercase(), port.port)));
    IngressPort {
        name,
        port: port.port,
        target: port.target_port.clone().unwrap_or(IntOrString::Int(8000)),
        node_port: port.node_port,
        protocol,
    }
}

pub(crate) fn check(spec: &DataPlaneSpec, report: &mut Report) -> Vec<IngressPort> {
    let ports = ports(spec);
    let (mut numbers, mut port_names, mut node_ports) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for (index, port) in ports.iter().enumerate() {
        let path = |field: &str| format!("spec.network.services.ingress.ports[{index}].{field}");
        let mut refuse = |field: &str, message: String| report.problem(HeldPart::IngressService, path(field), message);
        if !(1..=65535).contains(&port.port) {
            refuse("port", format!("{} is not between 1 and 65535", port.port));
        }
        if !numbers.insert((port.port, port.protocol.as_str())) {
            refuse("port", format!("{}/{} is there twice: remove one", port.port, port.protocol.as_str()));
        }
        match &port.target {
            IntOrString::Int(target) if !(1..=65535).contains(target) => {
                refuse("targetPort", format!("{target} is not between 1 and 65535"))
            }
            IntOrString::String(target) if !names::is_port_name(target) => {
                refuse("targetPort", format!("{target:?} is no name of a container port"))
            }
            IntOrString::Int(_) | IntOrString::String(_) => {}
        }
        if let Some(node_port) = port.node_port.filter(|p| *p != 0) {
            if !(1..=65535).contains(&node_port) {
                refuse("nodePort", format!("{node_port} is not between 1 and 65535"));
            }
            if !node_ports.insert((node_port, port.protocol.as_str())) {
                refuse("nodePort", format!("{node_port} is there twice: remove one"));
            }
        }
        if let Some(name) = &port.name {
            if !names::is_dns_label(name) {
                refuse("name", format!("{name:?} is no DNS label"));
            }
            if !port_names.insert(name.clone()) {
                refuse("name", format!("{name:?} is there twice: rename one"));
            }
        }
    }
    check_name(spec, report);
    check_metadata(spec, report);
    ports
}

fn check_name(spec: &DataPlaneSpec, report: &mut Report) {
    let ingress = spec.network.as_ref().and_then(|n| n.services.as_ref()).and_then(|s| s.ingress.as_ref());
    if let Some(name) = ingress.and_then(|i| i.name.as_deref()).filter(|n| !n.is_empty())
        && !names::is_dns_1035(name)
    {
        let message = format!("{name:?} is no name of a Service: lower-case letters, digits and `-`, first a letter, at most 63");
        report.problem(HeldPart::IngressService, "spec.network.services.ingress.name", message);
    }
    if spec.network.as_ref().and_then(|n| n.konnect_certificate.as_ref()).is_some_and(|c| c.issuer.name.is_empty()) {
        report.problem(HeldPart::PodTemplate, "spec.network.konnectCertificate.issuer.name", "name the issuer");
    }
}

fn check_metadata(spec: &DataPlaneSpec, report: &mut Report) {
    let Some(ingress) = spec.network.as_ref().and_then(|n| n.services.as_ref()).and_then(|s| s.ingress.as_ref()) else { return };
    for (field, map) in [("labels", &ingress.labels), ("annotations", &ingress.annotations)] {
        for key in map.iter().flat_map(|m| m.keys()) {
            let path = format!("spec.network.services.ingress.{field}[{key:?}]");
            if super::is_reserved(key) {
                report.finding(Severity::Warning, "ReservedKey", path, "this key belongs to the operator and is left out");
            } else if !super::is_annotation_key(key) {
                report.problem(HeldPart::IngressService, path, "is no qualified name");
            }
        }
    }
}

/// `k=v,k2=v2` of annotation service-selector-override. It replaces the selectors of both Services.
pub(crate) fn selector_override(text: Option<&str>, report: &mut Report) -> Option<Pairs> {
    let text = text.filter(|t| !t.is_empty())?;
    let mut pairs = Pairs::new();
    for part in text.split(',') {
        match part.split_once('=') {
            Some((key, value)) if names::is_label_key(key.trim()) && names::is_label_value(value.trim()) => {
                pairs.insert(key.trim().to_owned(), value.trim().to_owned());
            }
            _ => {
                for held in [HeldPart::AdminService, HeldPart::IngressService] {
                    let message = format!("{part:?} is not KEY=VALUE with a label's key and value: write `k=v,k2=v2`");
                    report.problem(held, format!("metadata.annotations[{:?}]", weir_api::keys::SERVICE_SELECTOR_OVERRIDE), message);
                }
                return None;
            }
        }
    }
    Some(pairs)
}
