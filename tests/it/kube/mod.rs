//! `weir operator` against a real API server, controller manager, scheduler, etcd and KWOK.

mod admission;
mod adopt;
mod api;
mod audit;
mod broken;
mod certs;
mod chart;
mod cluster;
mod converge;
mod crds;
mod crds_more;
mod crds_policy;
mod examples;
mod extension;
mod faults;
mod health;
mod install;
mod konnect_v2;
mod labs;
mod mistakes;
mod mistakes_extension;
mod names;
mod ns;
mod others;
mod plugins;
mod policies;
mod record;
mod recordings;
mod remote;
mod replicas;
mod scaling;
mod shape;
mod steady;
mod traces;

use std::process::ExitCode;

use clap::Parser;
use libtest_mimic::Trial;

pub(crate) use cluster::tear_down;

pub(crate) fn tests() -> Vec<Trial> {
    [
        crds::tests(),
        crds_more::tests(),
        crds_policy::tests(),
        examples::tests(),
        converge::tests(),
        scaling::tests(),
        mistakes::tests(),
        mistakes_extension::tests(),
        names::tests(),
        others::tests(),
        admission::tests(),
        extension::tests(),
        konnect_v2::tests(),
        health::tests(),
        recordings::tests(),
        adopt::tests(),
        certs::tests(),
        replicas::tests(),
        broken::tests(),
        steady::tests(),
        traces::tests(),
        faults::tests(),
        plugins::tests(),
        policies::tests(),
        chart::tests(),
        remote::tests(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

pub(crate) use install::AS_WEIR;

/// Runs this process as `weir`, if it was started for that: operators under test are the very code the tests were linked with.
pub(crate) fn as_weir() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == weir_host::wasm::COMPILE_CHILD_ARG) {
        return Some(weir_host::wasm::compile_child_main(arguments));
    }
    std::env::var_os(install::AS_WEIR)?;
    Some(weir_cli::run(weir_cli::args::Cli::parse()))
}
