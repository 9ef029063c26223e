//! The user's podTemplateSpec over the base: `k8s_openapi::DeepMerge` plus one table of exceptions.
//!
//! | what | why `DeepMerge` is wrong | what happens instead |
//! |---|---|---|
//! | value/valueFrom of a variable, source of a volume | merging would set both halves of a union | the winner of the conflict stands whole |
//! | handler of a probe or of a lifecycle hook | the same | a handler of the user's replaces the base's; timings merge |
//! | an explicitly empty probe | merging would keep the base's | the probe is removed |
//! | container ports | merged by number alone, TCP 53 and UDP 53 would become one | by number and protocol |
//! | topologySpreadConstraints, hostAliases | merged by one key although several entries may have it | the user's list as it is |
//! | order of containers and init containers | the base would come first | the user's order comes first |
//! | default requests and limits | a user's limit below the default request is no valid pod | the default gives way |

use std::collections::BTreeMap;

use k8s_openapi::{
    DeepMerge,
    api::core::v1::{Container, ContainerPort, Lifecycle, LifecycleHandler, PodSpec, PodTemplateSpec, Probe, ResourceRequirements},
    apimachinery::pkg::{api::resource::Quantity, apis::meta::v1::ObjectMeta},
};
use weir_api::quantity;

use crate::dataplane::validate::PROXY;

/// Lays `user` over `base`. Variables, volumes and mounts of the proxy container are settled elsewhere and left out here.
#[must_use]
pub fn overlay(mut base: PodTemplateSpec, user: Option<&PodTemplateSpec>) -> PodTemplateSpec {
    let Some(mut user) = user.cloned() else { return base };
    user.metadata = user.metadata.map(|meta| ObjectMeta { labels: meta.labels, annotations: meta.annotations, ..ObjectMeta::default() });
    let order: Vec<String> = user.spec.iter().flat_map(|s| s.containers.iter()).map(|c| c.name.clone()).collect();
    let mut verbatim = Verbatim::default();
    if let Some(spec) = &mut user.spec {
        verbatim = Verbatim::take(spec);
        if let (Some(theirs), Some(ours)) = (proxy(spec), base.spec.as_mut().and_then(proxy)) {
            prepare(ours, theirs);
        }
    }
    base.merge_from(user);
    if let Some(spec) = &mut base.spec {
        verbatim.put(spec);
        spec.containers.sort_by_key(|c| order.iter().position(|name| *name == c.name).unwrap_or(usize::MAX));
    }
    base
}

fn proxy(spec: &mut PodSpec) -> Option<&mut Container> {
    spec.containers.iter_mut().find(|c| c.name == PROXY)
}

/// Lists of the user that are not merged.
#[derive(Default)]
struct Verbatim {
    spec: PodSpec,
}

impl Verbatim {
    fn take(spec: &mut PodSpec) -> Self {
        spec.volumes = None;
        let spec = PodSpec {
            topology_spread_constraints: spec.topology_spread_constraints.take(),
            host_aliases: spec.host_aliases.take(),
            init_containers: spec.init_containers.take(),
            ..PodSpec::default()
        };
        Self { spec }
    }

    fn put(self, spec: &mut PodSpec) {
        spec.topology_spread_constraints = self.spec.topology_spread_constraints;
        spec.host_aliases = self.spec.host_aliases;
        spec.init_containers = self.spec.init_containers;
    }
}

/// Applies the exceptions to both sides of the proxy container, so that merging them is right.
fn prepare(ours: &mut Container, theirs: &mut Container) {
    theirs.env = None;
    theirs.volume_mounts = None;
    theirs.ports = Some(ports(ours.ports.take().unwrap_or_default(), theirs.ports.take().unwrap_or_default()));
    probe(&mut ours.liveness_probe, &mut theirs.liveness_probe);
    probe(&mut ours.readiness_probe, &mut theirs.readiness_probe);
    probe(&mut ours.startup_probe, &mut theirs.startup_probe);
    lifecycle(ours.lifecycle.as_mut(), theirs.lifecycle.as_ref());
    resources(ours.resources.as_mut(), theirs.resources.as_ref());
}

fn probe(ours: &mut Option<Probe>, theirs: &mut Option<Probe>) {
    let Some(their) = theirs else { return };
    if *their == Probe::default() {
        *ours = None;
        *theirs = None;
    } else if let Some(our) = ours
        && (their.exec.is_some() || their.grpc.is_some() || their.http_get.is_some() || their.tcp_socket.is_some())
    {
        our.exec = None;
        our.grpc = None;
        our.http_get = None;
        our.tcp_socket = None;
    }
}

fn lifecycle(ours: Option<&mut Lifecycle>, theirs: Option<&Lifecycle>) {
    let (Some(ours), Some(theirs)) = (ours, theirs) else { return };
    let replace = |our: &mut Option<LifecycleHandler>, their: &Option<LifecycleHandler>| {
        if their.as_ref().is_some_and(|handler| *handler != LifecycleHandler::default()) {
            *our = None;
        }
    };
    replace(&mut ours.pre_stop, &theirs.pre_stop);
    replace(&mut ours.post_start, &theirs.post_start);
}

/// The base's ports, replaced by the user's of the same number and protocol or the same name, then the user's others in their order.
fn ports(base: Vec<ContainerPort>, user: Vec<ContainerPort>) -> Vec<ContainerPort> {
    let protocol = |p: &ContainerPort| p.protocol.clone().unwrap_or_else(|| "TCP".into());
    let same = |a: &ContainerPort, b: &ContainerPort| {
        (a.container_port == b.container_port && protocol(a) == protocol(b)) || (a.name.is_some() && a.name == b.name)
    };
    let mut rest: Vec<ContainerPort> = base
        .into_iter()
        .filter_map(|mut ours| match user.iter().find(|theirs| same(&ours, theirs)) {
            None => Some(ours),
            Some(theirs) if theirs.container_port == ours.container_port && theirs.name.is_none() => {
                // The user names the port by number only: keep the base's name, which Services and scrapers use, unless it moved to another port.
                if user.iter().any(|other| other.name.is_some() && other.name == ours.name) {
                    ours.name = None;
                }
                ours.merge_from(theirs.clone());
                Some(ours)
            }
            Some(_) => None,
        })
        .collect();
    let mut all: Vec<ContainerPort> = user
        .into_iter()
        .filter(|theirs| !rest.iter().any(|ours| ours.container_port == theirs.container_port && protocol(ours) == protocol(theirs)))
        .collect();
    for port in &mut all {
        port.protocol = Some(protocol(port));
    }
    all.append(&mut rest);
    all
}

fn resources(ours: Option<&mut ResourceRequirements>, theirs: Option<&ResourceRequirements>) {
    let (Some(ours), Some(theirs)) = (ours, theirs) else { return };
    let conflict = |request: &Quantity, limit: &Quantity| matches!((quantity::parse(&request.0), quantity::parse(&limit.0)), (Some(r), Some(l)) if r > l);
    let empty = BTreeMap::new();
    let (requests, limits) = (theirs.requests.as_ref().unwrap_or(&empty), theirs.limits.as_ref().unwrap_or(&empty));
    if let Some(defaults) = &mut ours.requests {
        for (name, request) in defaults.iter_mut() {
            if let Some(limit) = limits.get(name).filter(|limit| conflict(request, limit)) {
                *request = limit.clone();
            }
        }
    }
    if let Some(defaults) = &mut ours.limits {
        defaults.retain(|name, limit| !requests.get(name).is_some_and(|request| conflict(request, limit)));
    }
}
