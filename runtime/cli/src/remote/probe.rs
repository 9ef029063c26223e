//! `weir remote probe`.

use std::{path::PathBuf, time::Duration};

use serde::Serialize;
use weir_host::remote::{Endpoint, Examination, examine};

use super::sides::{Sides, endpoint, exit};
use crate::{
    exit::Exit,
    policy::report::{Lines, Output},
};

pub(super) const HELP: &str = "\
The plugin is dialled directly, without any proxy, over TLS 1.3 with both certificates, as the operator does it. --ca is what `tls.crt` of the
server Secret would have: the plugin's own certificate, or the one of its issuer.

Exit codes:
  0  the plugin is ready
  1  it says that it is not ready
  2  usage, or an unreadable file
  4  it does not answer in time
  5  it cannot be reached
  6  a certificate is not accepted, by either side
  7  it is another plugin, or says nothing usable about itself
  8  internal error";

/// `weir remote probe`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Where the plugin listens.
    #[arg(value_name = "HOST:PORT", value_parser = endpoint)]
    endpoint: Endpoint,
    /// Name its certificate must have; the first one is sent. Repeatable. By default HOST.
    #[arg(long = "server-name", value_name = "NAME")]
    server_names: Vec<String>,
    /// Certificates it is trusted by, a PEM file: its own, or its issuer's.
    #[arg(long, value_name = "FILE")]
    ca: PathBuf,
    /// Certificate of the operator, a PEM file.
    #[arg(long, value_name = "FILE")]
    cert: PathBuf,
    /// Key of that certificate, a PEM file.
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// Name it must say it has. By default any.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// How often it is probed for the latency.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=1000))]
    probes: u16,
    #[command(flatten)]
    output: Output,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    endpoint: String,
    ready: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    #[serde(skip_serializing_if = "String::is_empty")]
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    certificate_ends: Option<String>,
    services: Vec<&'static str>,
    operator_calls: Vec<&'static str>,
    lifecycle: Vec<String>,
    slots: Vec<&'static str>,
    latency: Latency,
}

/// Milliseconds.
#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
struct Latency {
    #[serde(skip_serializing_if = "Option::is_none")]
    tcp: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tls: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    probe_p50: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    probe_p99: Option<f64>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let sides = Sides { ca: &args.ca, cert: &args.cert, key: &args.key, prefix: "--" };
    let spec = sides.spec(args.name.as_deref().unwrap_or_default(), &args.endpoint, &args.server_names)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let found = runtime.block_on(examine(spec, usize::from(args.probes)));
    let exit = found.failure.as_ref().map_or(Exit::Done, |(reason, _)| exit(*reason));
    let report = report(args, &found);
    args.output.print(&report, || text(&report))?;
    Ok(exit)
}

fn report(args: &Args, found: &Examination) -> Report {
    let who = found.who.as_deref();
    let offers = found.offers.as_deref();
    let lifecycle = offers.map(|offers| &offers.lifecycle).into_iter().flatten().map(|of| {
        let verbs = of.verbs.iter().map(|verb| verb.as_str()).collect::<Vec<_>>().join(",");
        format!("{}/{} {verbs}", of.group, of.kind)
    });
    let mut probes = found.probes.clone();
    probes.sort_unstable();
    let quantile = |percent: usize| probes.get(probes.len().saturating_sub(1).saturating_mul(percent) / 100).map(milliseconds);
    Report {
        endpoint: args.endpoint.to_string(),
        ready: found.failure.is_none(),
        reason: found.failure.as_ref().map(|(reason, _)| reason.as_str()),
        message: found.failure.as_ref().map(|(_, message)| message.clone()).unwrap_or_default(),
        name: who.map(|who| who.name.clone()),
        version: who.map(|who| who.version.clone()),
        digest: who.map(weir_host::remote::Metadata::digest),
        certificate_ends: found.not_after().and_then(|end| jiff::Timestamp::try_from(end).ok()).map(|end| end.to_string()),
        services: offers.map(|offers| offers.services.iter().map(|service| service.as_str()).collect()).unwrap_or_default(),
        operator_calls: offers.map(|offers| offers.operator.iter().map(|call| call.as_str()).collect()).unwrap_or_default(),
        lifecycle: lifecycle.collect(),
        slots: offers.map(|offers| offers.slots.iter().map(|slot| slot.as_str()).collect()).unwrap_or_default(),
        latency: Latency {
            tcp: found.tcp.as_ref().map(milliseconds),
            tls: found.tls.as_ref().map(milliseconds),
            metadata: found.metadata.as_ref().map(milliseconds),
            probe_p50: quantile(50),
            probe_p99: quantile(99),
        },
    }
}

fn milliseconds(time: &Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

fn text(report: &Report) -> String {
    let mut lines = Lines::default();
    let state = match report.reason {
        None => "ready".to_owned(),
        Some(reason) => format!("{reason}: {}", report.message),
    };
    lines.add("plugin", &state);
    lines.add("endpoint", &report.endpoint);
    for (name, value) in
        [("name", &report.name), ("version", &report.version), ("digest", &report.digest), ("cert ends", &report.certificate_ends)]
    {
        if let Some(value) = value {
            lines.add(name, value);
        }
    }
    let lists = [("services", &report.services), ("calls", &report.operator_calls), ("slots", &report.slots)];
    for (name, values) in lists {
        if !values.is_empty() {
            lines.add(name, &values.join(", "));
        }
    }
    lines.all("lifecycle", &report.lifecycle);
    let latency = &report.latency;
    let times = [
        ("tcp", latency.tcp),
        ("tls", latency.tls),
        ("metadata", latency.metadata),
        ("probe p50", latency.probe_p50),
        ("probe p99", latency.probe_p99),
    ];
    for (name, time) in times {
        if let Some(time) = time {
            lines.add(name, &format!("{time} ms"));
        }
    }
    lines.text()
}
