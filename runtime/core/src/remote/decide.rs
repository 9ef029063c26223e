//! Which Service is the plugin of a name, and what is dialled. Bad input keeps the last good state: a plugin that was in use stays so, with the
//! certificates that were good, until they end.

mod certificates;

use core::net::IpAddr;
use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Service;

use self::certificates::{client, server};
use super::{
    Key, MAX_PLUGINS,
    endpoints::endpoints,
    reason::{Problem, Reason},
    shown,
    snapshot::Snapshot,
    validate::{Validated, Wanted},
};

/// Where a plugin is dialled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoints {
    /// At its ready pods; empty where none is.
    Pods(Vec<(IpAddr, u16)>),
    /// By the DNS name of its Service.
    Dns,
}

/// What one Secret gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Material {
    /// The Secret.
    pub secret: Key,
    /// Digest of all keys of it that are used.
    pub digest: String,
    /// When it is of no more use.
    pub ends: Timestamp,
    /// When the certificate in it ends that people renew: earlier than `ends` where a CA stands beside it.
    pub renew_by: Timestamp,
}

/// A plugin, ready to be dialled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// Its name; it has to call itself so.
    pub name: String,
    /// Its Service.
    pub service: Key,
    /// UID of the Service.
    pub uid: String,
    /// Port of the Service.
    pub port: u16,
    /// The name that its certificate is checked for; none for the names of the Service.
    pub server_name: Option<String>,
    /// Where it is dialled.
    pub endpoints: Endpoints,
    /// What the operator shows.
    pub client: Material,
    /// What the operator trusts.
    pub server: Material,
}

/// What becomes of a labelled Service.
#[derive(Debug, Clone, PartialEq)]
pub enum Fate {
    /// It is not the plugin of its name.
    Refused(Problem),
    /// It is, and cannot be used as it stands.
    Broken {
        /// Why.
        problem: Problem,
        /// What stays in use.
        kept: Option<Box<Spec>>,
    },
    /// It is dialled.
    Configured(Box<Spec>),
}

/// A labelled Service and what becomes of it.
#[derive(Debug, Clone)]
pub struct Plugin<'a> {
    /// What it says.
    pub validated: Validated<'a>,
    /// What becomes of it.
    pub fate: Fate,
}

impl Plugin<'_> {
    /// What is dialled.
    #[must_use]
    pub fn spec(&self) -> Option<&Spec> {
        match &self.fate {
            Fate::Refused(_) => None,
            Fate::Broken { problem: _, kept } => kept.as_deref(),
            Fate::Configured(spec) => Some(spec),
        }
    }
}

/// Decides about every labelled Service. They come out by name of the plugin, the one that has the name first.
#[must_use]
pub fn decide<'a>(snapshot: &Snapshot, validated: Vec<Validated<'a>>) -> Vec<Plugin<'a>> {
    let mut by_name: BTreeMap<&str, Vec<Validated<'a>>> = BTreeMap::new();
    for one in validated {
        by_name.entry(one.name).or_default().push(one);
    }
    for all in by_name.values_mut() {
        all.sort_by_key(|one| rank(one));
    }
    let served = oldest(&by_name);
    let mut plugins = Vec::new();
    for (name, all) in by_name {
        let winner = all.first().map(|first| first.key.clone()).unwrap_or_default();
        for one in all {
            let fate = match refusal(&one, name, &winner, &served) {
                Some(problem) => Fate::Refused(problem),
                None => fate(snapshot, &one),
            };
            plugins.push(Plugin { validated: one, fate });
        }
    }
    plugins
}

/// The smallest has the name: the oldest, and before it nothing that is on its way out.
fn rank(one: &Validated<'_>) -> impl Ord + use<> {
    let meta = &one.service.metadata;
    let created = meta.creation_timestamp.as_ref().map(|time| time.0);
    (meta.deletion_timestamp.is_some(), created.is_none(), created, one.key.clone())
}

/// Names that are served.
fn oldest<'a>(by_name: &BTreeMap<&'a str, Vec<Validated<'a>>>) -> BTreeSet<&'a str> {
    let mut firsts: Vec<_> =
        by_name.iter().filter(|(name, _)| !name.is_empty()).filter_map(|(name, all)| Some((rank(all.first()?), *name))).collect();
    firsts.sort();
    firsts.into_iter().take(MAX_PLUGINS).map(|(_, name)| name).collect()
}

fn refusal(one: &Validated<'_>, name: &str, winner: &Key, served: &BTreeSet<&str>) -> Option<Problem> {
    if name.is_empty() {
        let message = "the label that makes this Service a remote plugin is empty: its value is the name of the plugin";
        return Some(Problem::new(Reason::InvalidName, message));
    }
    if one.key != *winner {
        let message = format!(
            "Service {} is plugin {name} and older: give this one another name, or remove the label there; it takes over when that one goes",
            shown(winner)
        );
        return Some(Problem::new(Reason::Conflict, message));
    }
    if !served.contains(name) {
        let message =
            format!("there are more than {MAX_PLUGINS} plugins, and the oldest count: remove the label from Services that are not used");
        return Some(Problem::new(Reason::TooMany, message));
    }
    None
}

fn fate(snapshot: &Snapshot, one: &Validated<'_>) -> Fate {
    let problem = match &one.wanted {
        Err(problem) => problem.clone(),
        Ok(wanted) => match spec(snapshot, one, wanted) {
            Ok(spec) => return Fate::Configured(Box::new(spec)),
            Err(problem) => problem,
        },
    };
    let uid = one.service.metadata.uid.as_deref().unwrap_or_default();
    let last = snapshot.kept.get(one.name).filter(|last| last.uid == uid && last.service == one.key);
    let good = last.filter(|last| last.client.ends > snapshot.now && last.server.ends > snapshot.now);
    let kept = good.map(|last| {
        // The pods come and go whatever the annotations say.
        let endpoints = reached(snapshot, one.service, &one.key, last.port);
        Box::new(Spec { endpoints, ..last.clone() })
    });
    Fate::Broken { problem, kept }
}

fn spec(snapshot: &Snapshot, one: &Validated<'_>, wanted: &Wanted) -> Result<Spec, Problem> {
    // The server's first: without it there is nobody to show anything to.
    let server = server(snapshot, wanted)?;
    let client = client(snapshot, wanted)?;
    Ok(Spec {
        name: one.name.to_owned(),
        service: one.key.clone(),
        uid: one.service.metadata.uid.clone().unwrap_or_default(),
        port: wanted.port,
        server_name: wanted.server_name.clone(),
        endpoints: reached(snapshot, one.service, &one.key, wanted.port),
        client,
        server,
    })
}

fn reached(snapshot: &Snapshot, service: &Service, key: &Key, port: u16) -> Endpoints {
    let slices = snapshot.slices.as_ref().map(|all| all.get(key).map(Vec::as_slice).unwrap_or_default());
    endpoints(service, port, slices)
}
