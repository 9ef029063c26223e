//! The report.

use std::fmt::Write;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::Lease;
use serde_json::Value;
use weir_api::condition::reasons;
use weir_harness::pass::Report;

use super::collect::Collected;
use crate::{crds::owner, exit::Exit};

/// What is said, and how the command ends.
pub(super) struct Findings {
    pub(super) text: String,
    pub(super) exit: Exit,
}

/// Puts it into words. `planned` is what Weir would do; none without a DataPlane.
pub(super) fn findings(collected: &Collected, planned: Option<&Report>, now: Timestamp) -> anyhow::Result<Findings> {
    let mut text = String::new();
    let mut exit = Exit::Done;
    match collected.leases.iter().find_map(|lease| runs(lease, now)) {
        Some(who) => {
            writeln!(text, "Kong's operator runs: {who}. Weir takes nothing over before that Lease ends.")?;
        }
        None => writeln!(text, "Kong's operator does not run: no Lease named {} is renewed.", weir_operator::kong::LEASE)?,
    }
    writeln!(text, "\nCRDs")?;
    for (name, live) in &collected.crds {
        let state = match live.as_ref().map(owner) {
            None => "not there; `weir crds apply` makes it".to_owned(),
            Some(None) => "Weir's".to_owned(),
            Some(Some(owner)) => format!("of {owner}; stays as it is, unless `weir crds apply --take-over`"),
        };
        writeln!(text, "  {name}: {state}")?;
    }
    let count = collected.data_planes().count();
    writeln!(text, "\nDataPlanes: {count}")?;
    for data_plane in collected.data_planes() {
        let said = of_data_plane(data_plane, planned);
        exit = exit.max(said.exit);
        text.push_str(&said.text);
    }
    // What was refused before it was planned is about no DataPlane in particular.
    for line in planned.iter().flat_map(|report| &report.held).filter(|line| !line.starts_with("DataPlane ")) {
        exit = exit.max(Exit::Held);
        writeln!(text, "  {line}")?;
    }
    let others: Vec<_> = collected.others.iter().filter(|(_, count)| *count > 0).collect();
    if !others.is_empty() {
        exit = exit.max(Exit::Held);
        writeln!(text, "\nNot served by Weir: who needs these keeps Kong's operator for them")?;
        for (kind, count) in others {
            writeln!(text, "  {kind}: {count}")?;
        }
    }
    Ok(Findings { text, exit })
}

/// Who holds a Lease that is renewed.
fn runs(lease: &Lease, now: Timestamp) -> Option<String> {
    let spec = lease.spec.as_ref()?;
    let holder = spec.holder_identity.as_deref().filter(|holder| !holder.is_empty())?;
    let seconds = SignedDuration::from_secs(i64::from(spec.lease_duration_seconds.unwrap_or(15)));
    let until = spec.renew_time.as_ref()?.0.checked_add(seconds).ok()?;
    (until > now).then(|| format!("{holder} in namespace {}", lease.metadata.namespace.as_deref().unwrap_or_default()))
}

fn text_at<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn of_data_plane(data_plane: &Value, planned: Option<&Report>) -> Findings {
    let (namespace, name) = (text_at(data_plane, "/metadata/namespace"), text_at(data_plane, "/metadata/name"));
    let mut lines = Vec::new();
    let mut exit = Exit::Done;
    if let Some(report) = planned {
        // A target does not say whose it is; its owner does.
        let own = |target: &&weir_core::plan::Target| target.namespace == namespace && is_child(&target.name, data_plane, report);
        let kept: Vec<String> = report.takeovers.iter().filter(own).map(|target| format!("{:?} {}", target.kind, target.name)).collect();
        if !kept.is_empty() {
            lines.push(format!("taken over under their names: {}", kept.join(", ")));
        }
        let prefix = format!("DataPlane {namespace}/{name}: ");
        let held = report.held.iter().filter_map(|line| line.strip_prefix(&prefix));
        for line in held {
            exit = Exit::Held;
            let word = if line.starts_with(reasons::TAKEOVER) { "pods stay as they are, a difference waits" } else { "held" };
            lines.push(format!("{word}: {line}"));
        }
        if exit == Exit::Done {
            lines.push("pods do not change".to_owned());
        }
    }
    for owner in data_plane.pointer("/metadata/ownerReferences").and_then(Value::as_array).into_iter().flatten() {
        exit = Exit::Held;
        let (kind, owner) = (text_at(owner, "/kind"), text_at(owner, "/name"));
        lines.push(format!("made by {kind} {owner}: nobody changes its spec without Kong's operator"));
    }
    let mut text = format!("  {namespace}/{name}\n");
    lines.iter().for_each(|line| text.push_str(&format!("    {line}\n")));
    Findings { text, exit }
}

/// Whether an object of the plan is a child of this DataPlane.
fn is_child(name: &str, data_plane: &Value, report: &Report) -> bool {
    let uid = text_at(data_plane, "/metadata/uid");
    let named = report.objects.iter().filter(|object| text_at(object, "/metadata/name") == name);
    let owners = named.flat_map(|object| object.pointer("/metadata/ownerReferences").and_then(Value::as_array).into_iter().flatten());
    owners.into_iter().any(|owner| text_at(owner, "/uid") == uid)
}
