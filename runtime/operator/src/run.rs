//! Starting, leading and stopping.

use std::{future::Future, sync::Arc, time::Duration};

use kube::Client;
use tokio::{sync::watch, task::JoinSet};
use weir_host::layer::Counters;

use crate::{
    clock::Clock,
    config::Config,
    context::Context,
    dataplane,
    error::Error,
    health::Health,
    kong, konnect_extension, leader,
    metrics::{Kind, Metrics},
    plugin_installation, reconcile_policy,
    registries::{Changed, Live},
    remote,
    setup::{Shell, connect, context, load_policies, serve, serve_snapshots},
    watch::{Pending, Watching, until_done},
};

/// Policies that are in force are waited for so long before objects are looked at: a registry that is away must not keep the rest.
const POLICIES_LOADED: Duration = Duration::from_secs(15);

/// Runs the operator until `stop` resolves: then passes that are running finish, and the Lease is given up.
///
/// # Errors
/// What keeps it from starting, and lost leadership.
pub async fn run(config: Config, stop: impl Future<Output = ()> + Send + 'static) -> Result<(), Error> {
    if let Some(leader) = &config.leader {
        leader.check()?;
    }
    let client = connect(config.kubeconfig.as_deref()).await?;
    let health = Health::default();
    let counters = Arc::new(Counters::default());
    let metrics = Arc::new(Metrics::new(Arc::clone(&counters)));
    let stopped = stopping(stop);
    let mut servers = JoinSet::new();
    serve(&config, &health, &metrics, &stopped, &mut servers).await?;
    let registries = Arc::new(Live::start(&config, Arc::clone(&metrics), health.clone())?);
    let clock = Clock::default();
    if let Some(file) = &config.clock_offset_file {
        tokio::spawn(clock.clone().follow(file.clone()));
    }
    let answering = load_policies(&config, &counters, &health, &clock, &metrics)?;
    let shell = Shell {
        client: client.clone(),
        clock,
        metrics: Arc::clone(&metrics),
        health: health.clone(),
        answering,
        registries: Arc::clone(&registries),
    };
    let context = context(&config, shell);
    serve_snapshots(&config, &context, &client, &stopped, &mut servers).await?;
    let pending = Pending::new(if config.plugin_installations { 5 } else { 4 });
    let watching = Watching {
        pending: pending.clone(),
        client: client.clone(),
        namespaces: config.watch_namespaces.clone(),
        health: health.clone(),
        metrics,
    };
    let mut watches = JoinSet::new();
    watches.spawn(dataplane::watches::run(Arc::clone(&context), watching.clone()));
    if config.plugin_installations {
        watches.spawn(plugin_installation::watches::run(Arc::clone(&context), watching.clone()));
    }
    watches.spawn(reconcile_policy::watches::run(Arc::clone(&context), watching.clone()));
    watches.spawn(reconcile_policy::news(Arc::clone(&context)));
    let shared = Arc::clone(&context);
    watches.spawn(registries.watch(move |changed| settings_changed(&shared, changed)));
    watches.spawn(konnect_extension::watches::run(Arc::clone(&context), watching.clone()));
    watches.spawn(remote::watches::run(Arc::clone(&context), watching));
    watches.spawn(remote::run(Arc::clone(&context)));
    let held = match lead(&client, &config, &stopped).await {
        Led::Stopped => return Ok(()),
        Led::Alone => None,
        Led::Elected(held) => Some(held),
    };
    health.leading(true);
    context.metrics.leading(true);
    let result = work(&config, &context, &health, &pending, &stopped, held).await;
    context.metrics.leading(false);
    watches.shutdown().await;
    servers.shutdown().await;
    tracing::info!("stopped");
    result
}

/// Registries are reached in another way, or other signatures are wanted; or a file says nothing that can be used.
fn settings_changed(context: &Context, changed: Changed) {
    match changed {
        Changed::Settings => {
            context.plugins.pulls.anew();
            context.policies.works.retry_all();
            context.all_installations();
        }
        Changed::Problems => {}
    }
    context.world.policies.keys().into_iter().for_each(|key| context.policies.queue.now(key));
}

enum Led {
    /// Asked to stop before it led.
    Stopped,
    /// No election.
    Alone,
    /// Elected.
    Elected(leader::Held),
}

async fn lead(client: &Client, config: &Config, stopped: &watch::Receiver<bool>) -> Led {
    let Some(election) = &config.leader else { return Led::Alone };
    let mut stop = stopped.clone();
    tokio::select! {
        _ = stop.wait_for(|stop| *stop) => Led::Stopped,
        held = leader::acquire(client.clone(), election.clone()) => Led::Elected(held),
    }
}

/// What the leader does.
async fn work(
    config: &Config,
    context: &Arc<Context>,
    health: &Health,
    pending: &Pending,
    stopped: &watch::Receiver<bool>,
    held: Option<leader::Held>,
) -> Result<(), Error> {
    let mut stop = stopped.clone();
    let start = async {
        // If it fails, it is tried again while passes go on.
        if let Err(error) = context.authority.load(true).await {
            tracing::error!(%error, "there is no cluster CA");
        }
        let sealing = until_done("the key of last answers", || context.authority.sealing()).await;
        // Set once: this runs once.
        let _ = context.sealing.set(sealing);
        pending.all().await;
        context.policies.follower.settled(POLICIES_LOADED).await;
    };
    // It may have to wait for an API server that is away, which a restart of this process would not bring back.
    let start = alive(health, start);
    let Some(mut held) = held else {
        tokio::select! {
            _ = stop.wait_for(|stop| *stop) => return Ok(()),
            () = start => {}
        }
        passes(config, context, health, stopped).await;
        return Ok(());
    };
    tokio::select! {
        () = held.lost() => return Err(Error::LeadershipLost),
        _ = stop.wait_for(|stop| *stop) => {
            held.release().await;
            return Ok(());
        }
        () = start => {}
    }
    tokio::select! {
        // Passes are dropped where they are: another replica may write by now.
        () = held.lost() => return Err(Error::LeadershipLost),
        () = passes(config, context, health, stopped) => {}
    }
    held.release().await;
    Ok(())
}

/// Does something long before the worker loop begins.
async fn alive(health: &Health, start: impl Future<Output = ()>) {
    let ticks = async {
        loop {
            health.tick();
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    tokio::select! {
        () = start => {}
        () = ticks => {}
    }
}

/// Runs the controllers until they are told to stop and have finished what they began.
async fn passes(config: &Config, context: &Arc<Context>, health: &Health, stopped: &watch::Receiver<bool>) {
    let queues = [&context.policies.queue, &context.data_planes.queue, &context.extensions.queue, &context.installations.queue];
    queues.iter().for_each(|queue| queue.open());
    context.remote.write();
    context.world.policies.keys().into_iter().for_each(|key| context.policies.queue.changed(key));
    // First, so that a DataPlane's first pass rather finds what its installations have decided.
    context.all_installations();
    context.all_data_planes();
    context.world.extensions.keys().into_iter().for_each(|key| context.extensions.queue.changed(key));
    tracing::info!(
        data_planes = context.world.data_planes.len(),
        konnect_extensions = context.world.extensions.len(),
        plugin_installations = context.world.installations.len(),
        reconcile_policies = context.world.policies.len(),
        "the operator leads and works"
    );
    let data_planes = {
        let shared = Arc::clone(context);
        let idle = || tick(context, health);
        context.data_planes.queue.work(config.concurrency, stopped.clone(), move |key| dataplane::pass(Arc::clone(&shared), key), idle)
    };
    let extensions = {
        let shared = Arc::clone(context);
        let look = move |key| konnect_extension::pass(Arc::clone(&shared), key);
        let idle = || context.metrics.queue(Kind::KonnectExtension, context.extensions.queue.depth());
        context.extensions.queue.work(config.concurrency, stopped.clone(), look, idle)
    };
    let installations = {
        let shared = Arc::clone(context);
        let look = move |key| plugin_installation::pass(Arc::clone(&shared), key);
        let idle = || context.metrics.queue(Kind::KongPluginInstallation, context.installations.queue.depth());
        context.installations.queue.work(config.concurrency, stopped.clone(), look, idle)
    };
    let pulls = context.plugins.pulls.work(stopped.clone(), |key| context.installations.queue.now(key));
    let swapped = || {
        context.all_installations();
        context.all_data_planes();
    };
    let files = Arc::clone(&context.policies.book.base).watch(stopped.clone(), swapped);
    tokio::join!(
        data_planes,
        extensions,
        installations,
        policies(config, context, stopped),
        pulls,
        files,
        authority(context, stopped),
        kongs(context, stopped)
    );
}

/// Policies, and what becomes of them.
async fn policies(config: &Config, context: &Arc<Context>, stopped: &watch::Receiver<bool>) {
    let shared = Arc::clone(context);
    let look = move |key| reconcile_policy::pass(Arc::clone(&shared), key);
    let idle = || context.metrics.queue(Kind::ReconcilePolicy, context.policies.queue.depth());
    context.policies.queue.work(config.concurrency, stopped.clone(), look, idle).await;
}

/// Every second.
fn tick(context: &Context, health: &Health) {
    health.tick();
    context.metrics.queue(Kind::DataPlane, context.data_planes.queue.depth());
    context.metrics.objects(Kind::DataPlane, context.world.data_planes.len());
    context.metrics.objects(Kind::KonnectExtension, context.world.extensions.len());
    context.metrics.objects(Kind::ReconcilePolicy, context.world.policies.len());
    context.metrics.objects(Kind::KongPluginInstallation, context.world.installations.len());
    context.renewals.due(context.clock.now()).into_iter().for_each(|key| context.data_planes.queue.changed(key));
}

/// Reads the CA, and again when its Secret changes, or after a while when it could not be read. Passes do not wait for it: what needs no
/// certificate goes on, and what does says why it has none.
async fn authority(context: &Context, stopped: &watch::Receiver<bool>) {
    let mut stop = stopped.clone();
    let mut failures = 0_u32;
    loop {
        match context.authority.load(true).await {
            Ok(changed) => {
                failures = 0;
                if changed {
                    tracing::info!(secret = %context.authority.name, "another cluster CA is in force");
                    context.all_data_planes();
                }
            }
            Err(error) => {
                if failures == 0 {
                    tracing::error!(%error, "the cluster CA cannot be used; the one that was in force stays");
                    context.all_data_planes();
                }
                failures = failures.saturating_add(1);
            }
        }
        if let Err(error) = context.authority.keep_sealing().await {
            tracing::warn!(%error, "nobody knows whether the key of last answers is still there");
            failures = failures.saturating_add(1);
        }
        let again = Duration::from_secs(u64::from(failures.min(30)));
        tokio::select! {
            _ = stop.wait_for(|stop| *stop) => return,
            () = context.authority_changed.notified() => {}
            () = tokio::time::sleep(again), if failures > 0 => {}
        }
    }
}

/// Looks at everything again when Kong's operator comes or goes: a Lease that runs out makes no event.
async fn kongs(context: &Context, stopped: &watch::Receiver<bool>) {
    let mut stop = stopped.clone();
    let live = || kong::live(&context.world.kong_leases, context.clock.now());
    let mut known = live();
    loop {
        tokio::select! {
            _ = stop.wait_for(|stop| *stop) => return,
            () = tokio::time::sleep(Duration::from_secs(1)) => {}
        }
        let now = live();
        if now != known {
            tracing::info!(holder = now.as_deref().unwrap_or_default(), "Kong's operator came or went");
            known = now;
            context.all_installations();
            context.all_data_planes();
        }
    }
}

fn stopping(stop: impl Future<Output = ()> + Send + 'static) -> watch::Receiver<bool> {
    let (sender, receiver) = watch::channel(false);
    tokio::spawn(async move {
        stop.await;
        tracing::info!("stopping: what has begun is finished");
        let _ = sender.send(true);
        // Kept: a closed channel would read as "stop" to some and as an error to others.
        std::future::pending::<()>().await;
    });
    receiver
}
