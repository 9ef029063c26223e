//! The requests of leader election. Every write names the resourceVersion it was decided on: the API server lets one candidate win.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    time::{Duration, Instant},
};

use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    jiff::Timestamp,
};
use kube::{
    Api, Client,
    api::{ObjectMeta, PostParams},
};
use tokio::{
    sync::{oneshot, watch},
    time::{sleep, timeout},
};

use super::{
    Config,
    decide::{Decision, Observed, claim, give_back, holder},
};
use crate::metrics::ErrorReason;

/// One candidate.
pub(super) struct Elector {
    api: Api<Lease>,
    config: Config,
    observed: Option<Observed>,
    /// The Lease as our last successful write left it.
    lease: Lease,
    /// When that write was sent.
    renewed: Instant,
    tries: u64,
    complaint: Option<ErrorReason>,
    leader: Option<String>,
}

/// How a try to lead ended.
enum Attempt {
    Leads,
    /// Another leads, and may for this long without a sign of life.
    Stands(Duration),
}

/// How a try to renew ended.
enum Renewal {
    /// Written, or overtaken by a write that leaves our name: the next try knows its version.
    Alive,
    /// Not now; the deadline decides.
    Failed(kube::Error),
    /// The record does not name us any more.
    Taken(Option<String>),
}

impl Elector {
    pub(super) fn new(client: Client, config: Config) -> Self {
        let api = Api::namespaced(client, &config.namespace);
        Self { api, config, observed: None, lease: Lease::default(), renewed: Instant::now(), tries: 0, complaint: None, leader: None }
    }

    /// Tries until it leads.
    pub(super) async fn wait(&mut self) {
        loop {
            let mut pause = self.pause();
            match timeout(self.config.renew_deadline, self.attempt()).await {
                Ok(Ok(Attempt::Leads)) => {
                    tracing::info!(lease = %self.config.name, identity = %self.config.identity, "leading");
                    return;
                }
                Ok(Ok(Attempt::Stands(left))) => {
                    self.complaint = None;
                    // Not sleeping past the end of a dead leader's time, and not waking all at the same moment.
                    pause = pause.min(left.saturating_add(pause / 10));
                }
                Ok(Err(error)) => self.complain(&error),
                Err(_elapsed) => tracing::warn!(lease = %self.config.name, "lease request timed out; trying again"),
            }
            sleep(pause).await;
        }
    }

    /// One look, and one write if the Lease can be had.
    async fn attempt(&mut self) -> Result<Attempt, kube::Error> {
        let config = &self.config;
        let Some(live) = self.api.get_opt(&config.name).await? else {
            let metadata =
                ObjectMeta { name: Some(config.name.clone()), namespace: Some(config.namespace.clone()), ..ObjectMeta::default() };
            let written = self.write(Lease { metadata, spec: None }, true).await?;
            return Ok(self.attempted(written));
        };
        let record = live.spec.clone().unwrap_or_default();
        let observed = Observed::look(self.observed.take(), record, Instant::now());
        let decision = observed.decide(&config.identity, config.lease_duration, Instant::now());
        let leader = observed.holder().map(str::to_owned);
        if leader.is_some() && leader != self.leader {
            tracing::info!(lease = %config.name, leader = leader.as_deref().unwrap_or_default(), "another replica leads; standing by");
        }
        self.leader = leader;
        self.observed = Some(observed);
        match decision {
            Decision::Wait(left) => Ok(Attempt::Stands(left)),
            Decision::Acquire | Decision::Renew => {
                let written = self.write(live, false).await?;
                Ok(self.attempted(written))
            }
        }
    }

    /// Who was overtaken has a whole lease duration before it.
    fn attempted(&self, written: bool) -> Attempt {
        if written { Attempt::Leads } else { Attempt::Stands(self.config.lease_duration) }
    }

    /// Writes our name into `lease`. False when another candidate was faster.
    async fn write(&mut self, mut lease: Lease, create: bool) -> Result<bool, kube::Error> {
        let sent = Instant::now();
        let before = if create { None } else { Some(lease.spec.unwrap_or_default()) };
        lease.spec = Some(claim(before.as_ref(), &self.config.identity, self.config.lease_duration, Timestamp::now()));
        let params = PostParams::default();
        let answer =
            if create { self.api.create(&params, &lease).await } else { self.api.replace(&self.config.name, &params, &lease).await };
        match answer {
            Ok(lease) => {
                self.lease = lease;
                self.renewed = sent;
                self.complaint = None;
                Ok(true)
            }
            Err(error) if ErrorReason::of(&error) == ErrorReason::Conflict => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Renews until the Lease is lost or given back.
    pub(super) async fn keep(mut self, mut stop: oneshot::Receiver<()>, lost: watch::Sender<bool>) {
        loop {
            let left = self.left();
            tokio::select! {
                told = &mut stop => return self.stop(told.is_ok()).await,
                () = sleep(self.config.retry_period.min(left)) => {}
            }
            let left = self.left();
            let renewal = tokio::select! {
                told = &mut stop => return self.stop(told.is_ok()).await,
                renewal = timeout(left, self.renew()) => renewal,
            };
            match renewal {
                Ok(Renewal::Alive) => self.complaint = None,
                Ok(Renewal::Failed(error)) => self.complain(&error),
                Ok(Renewal::Taken(by)) => {
                    tracing::error!(lease = %self.config.name, leader = by.as_deref().unwrap_or_default(), "leadership taken away");
                    lost.send_replace(true);
                    return;
                }
                Err(_elapsed) => {}
            }
            if self.left().is_zero() {
                tracing::error!(lease = %self.config.name, deadline = ?self.config.renew_deadline, "leadership lost: not renewed in time");
                lost.send_replace(true);
                return;
            }
        }
    }

    /// What is left of the renew deadline.
    fn left(&self) -> Duration {
        self.config.renew_deadline.saturating_sub(self.renewed.elapsed())
    }

    /// Writes a new time. On a conflict it looks who wrote: others may change labels, nobody else may lead.
    async fn renew(&mut self) -> Renewal {
        let lease = self.lease.clone();
        match self.write(lease, false).await {
            Ok(true) => return Renewal::Alive,
            Ok(false) => {}
            Err(error) if ErrorReason::of(&error) == ErrorReason::NotFound => return Renewal::Taken(None),
            Err(error) => return Renewal::Failed(error),
        }
        match self.api.get_opt(&self.config.name).await {
            Ok(Some(live)) => match live.spec.as_ref().and_then(holder) {
                Some(holder) if holder == self.config.identity => {
                    self.lease = live.clone();
                    match self.write(live, false).await {
                        Ok(_written) => Renewal::Alive,
                        Err(error) => Renewal::Failed(error),
                    }
                }
                other => Renewal::Taken(other.map(str::to_owned)),
            },
            Ok(None) => Renewal::Taken(None),
            Err(error) => Renewal::Failed(error),
        }
    }

    /// Ends the task; gives the Lease back if that was asked for, and not merely dropped.
    async fn stop(self, release: bool) {
        if !release {
            return;
        }
        // A renewal may have been under way: the version we know is not certain.
        let live = match self.api.get(&self.config.name).await {
            Ok(live) => live,
            Err(error) => return tracing::warn!(%error, "lease not given back"),
        };
        if live.spec.as_ref().and_then(holder) != Some(self.config.identity.as_str()) {
            return;
        }
        let spec: LeaseSpec = give_back(&live.spec.clone().unwrap_or_default(), Timestamp::now());
        let lease = Lease { spec: Some(spec), ..live };
        match self.api.replace(&self.config.name, &PostParams::default(), &lease).await {
            Ok(_) => tracing::info!(lease = %self.config.name, "lease given back"),
            Err(error) => tracing::warn!(%error, "lease not given back"),
        }
    }

    /// Between one and a little over two retry periods, other for each candidate and try: they must not all ask at once. Needs no
    /// randomness, since identities differ.
    fn pause(&mut self) -> Duration {
        self.tries = self.tries.wrapping_add(1);
        let mut hasher = DefaultHasher::new();
        (&self.config.identity, self.tries).hash(&mut hasher);
        let per_mille = u32::try_from(hasher.finish() % 1_200).unwrap_or(0);
        let period = self.config.retry_period;
        period.saturating_add(period.saturating_mul(per_mille) / 1_000)
    }

    /// Says once why it does not work; again only when the reason changes.
    fn complain(&mut self, error: &kube::Error) {
        let reason = ErrorReason::of(error);
        if self.complaint.replace(reason) == Some(reason) {
            tracing::debug!(%error, "lease request failed");
            return;
        }
        let cure = match reason {
            ErrorReason::Forbidden => "grant get, create and update on leases in the operator's namespace",
            ErrorReason::NotFound => "the operator's namespace must exist; check --namespace",
            ErrorReason::Certificate => "check the CA and the address of the API server",
            ErrorReason::Conflict
            | ErrorReason::Invalid
            | ErrorReason::Timeout
            | ErrorReason::Unavailable
            | ErrorReason::Throttled
            | ErrorReason::Other => "trying again",
        };
        tracing::warn!(lease = %self.config.name, namespace = %self.config.namespace, %error, cure, "lease request failed");
    }
}
