//! Requests, counted from the API server's audit log.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;

use anyhow::Result;
use serde_json::Value;

/// Requests that concern the benchmark's namespace, watches apart.
#[derive(Default)]
pub(crate) struct Counts {
    /// By the operator, without events and Lease.
    pub(crate) operator: u64,
    /// Events by the operator.
    pub(crate) events: u64,
    /// By everybody but the benchmark itself, without events and Leases.
    pub(crate) server: u64,
    /// The operator's, by verb and resource.
    pub(crate) verbs: BTreeMap<String, u64>,
    /// The others', by program, verb and resource.
    pub(crate) others: BTreeMap<String, u64>,
}

/// Counts what concerns a namespace.
pub(crate) fn count(log: &Path, namespace: &str) -> Result<Counts> {
    let mut counts = Counts::default();
    for line in BufReader::new(std::fs::File::open(log)?).lines() {
        let event: Value = serde_json::from_str(&line?)?;
        let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (agent, verb, resource) = (text("/userAgent"), text("/verb"), text("/objectRef/resource"));
        if text("/objectRef/namespace") != namespace || verb == "watch" || resource == "leases" {
            continue;
        }
        let ours = agent.starts_with("weir/");
        if resource == "events" {
            counts.events += u64::from(ours);
            continue;
        }
        // Requests of the benchmark itself carry no agent.
        if agent.is_empty() {
            continue;
        }
        counts.server += 1;
        let subresource = text("/objectRef/subresource");
        let what = if subresource.is_empty() { resource.to_owned() } else { format!("{resource}/{subresource}") };
        if !ours {
            let program = agent.split('/').next().unwrap_or_default();
            *counts.others.entry(format!("{program} {verb} {what}")).or_default() += 1;
        } else {
            counts.operator += 1;
            *counts.verbs.entry(format!("{verb} {what}")).or_default() += 1;
        }
    }
    Ok(counts)
}
