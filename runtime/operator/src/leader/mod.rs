//! Leader election by a `coordination.k8s.io/v1` Lease: one replica writes, the others stand by.
//!
//! A leader that cannot renew gives up after `renew_deadline`, counted from before its last successful request was sent; the others wait
//! for `lease_duration`, counted from when they saw its effect. The first is shorter, so two never lead at once, whatever the clocks say.

mod decide;
mod elector;
#[cfg(test)]
mod tests;

use std::time::Duration;

use kube::Client;
use tokio::{
    sync::{oneshot, watch},
    task::JoinHandle,
};

use elector::Elector;

/// How long a shutdown waits for the Lease to be given back; after that the others find out by themselves.
const RELEASE: Duration = Duration::from_secs(2);

/// Where the Lease is, who asks, and how patient everybody is.
#[derive(Debug, Clone)]
pub struct Config {
    /// Namespace of the Lease: the operator's.
    pub namespace: String,
    /// Name of the Lease.
    pub name: String,
    /// Name of this process: the pod's name and something that another start of the same pod does not share.
    pub identity: String,
    /// How long a leader counts as alive without a sign of life.
    pub lease_duration: Duration,
    /// How long a leader tries to renew before it stops leading.
    pub renew_deadline: Duration,
    /// Pause between two tries.
    pub retry_period: Duration,
}

/// Why a configuration cannot work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Two could lead at once.
    #[error("the lease duration ({lease:?}) must be longer than the renew deadline ({deadline:?}); the defaults are 15s and 10s")]
    Deadline {
        /// Lease duration.
        lease: Duration,
        /// Renew deadline.
        deadline: Duration,
    },
    /// A leader would never renew, or never stop asking.
    #[error(
        "the renew deadline ({deadline:?}) must be at least twice the retry period ({retry:?}), which must not be zero; the defaults are 10s and 2s"
    )]
    Retry {
        /// Renew deadline.
        deadline: Duration,
        /// Retry period.
        retry: Duration,
    },
    /// An empty holder means "free".
    #[error("the identity for leader election is empty; set POD_NAME or the host's name")]
    Identity,
}

impl Config {
    /// The usual durations: 15 s, 10 s and 2 s.
    #[must_use]
    pub fn new(namespace: impl Into<String>, name: impl Into<String>, identity: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
            identity: identity.into(),
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
        }
    }

    /// Checks what flags may have set.
    ///
    /// # Errors
    /// Durations that could let two lead at once, or an empty identity.
    pub fn check(&self) -> Result<(), Error> {
        if self.identity.is_empty() {
            return Err(Error::Identity);
        }
        if self.renew_deadline >= self.lease_duration {
            return Err(Error::Deadline { lease: self.lease_duration, deadline: self.renew_deadline });
        }
        if self.retry_period.is_zero() || self.renew_deadline < self.retry_period.saturating_mul(2) {
            return Err(Error::Retry { deadline: self.renew_deadline, retry: self.retry_period });
        }
        Ok(())
    }
}

/// Leadership. A task renews it until it is lost, released or dropped.
#[derive(Debug)]
pub struct Held {
    lost: watch::Receiver<bool>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

/// Waits until this process leads, however long that takes; failures are logged and tried again. Safe to drop.
pub async fn acquire(client: Client, config: Config) -> Held {
    let mut elector = Elector::new(client, config);
    elector.wait().await;
    let (lost_sender, lost) = watch::channel(false);
    let (stop, stopped) = oneshot::channel();
    let task = tokio::spawn(elector.keep(stopped, lost_sender));
    Held { lost, stop, task }
}

impl Held {
    /// Resolves when this process must not write any more. Safe to drop and to call again.
    pub async fn lost(&mut self) {
        // An error means that the task is gone, and with it whoever renews: the same to the caller.
        let _gone = self.lost.wait_for(|lost| *lost).await;
    }

    /// Whether it was lost, without waiting.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        *self.lost.borrow() || self.task.is_finished()
    }

    /// Stops renewing and gives the Lease back, so that another replica leads at once. Call it when nothing writes any more. Gives up
    /// after two seconds: the others then wait for the lease duration.
    pub async fn release(self) {
        let Self { lost: _lost, stop, mut task } = self;
        if stop.send(()).is_err() {
            // Lost before: nothing to give back.
            return;
        }
        if tokio::time::timeout(RELEASE, &mut task).await.is_err() {
            task.abort();
            tracing::warn!("lease not given back in time; another replica leads when it has expired");
        }
    }
}
