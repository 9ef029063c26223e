//! Who asked the API server for what, by its own audit log.

use std::{
    io::{Read, Seek, SeekFrom},
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use serde_json::Value;

use super::{api::CONFIG_MAP, ns::Ns};

/// A finished request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) user: String,
    pub(crate) agent: String,
    pub(crate) verb: String,
    /// `deployments`, `dataplanes/status`.
    pub(crate) resource: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) code: u64,
    /// When the server had received it.
    pub(crate) at: String,
}

impl Asked {
    fn of(event: &Value) -> Option<Self> {
        if event["stage"] != "ResponseComplete" {
            return None;
        }
        let (object, text) = (&event["objectRef"], |v: &Value| v.as_str().unwrap_or_default().to_owned());
        let sub = object["subresource"].as_str().map(|sub| format!("/{sub}")).unwrap_or_default();
        Some(Self {
            user: text(&event["user"]["username"]),
            agent: text(&event["userAgent"]),
            verb: text(&event["verb"]),
            resource: format!("{}{sub}", text(&object["resource"])),
            namespace: text(&object["namespace"]),
            name: text(&object["name"]),
            code: event["responseStatus"]["code"].as_u64().unwrap_or_default(),
            at: text(&event["requestReceivedTimestamp"]),
        })
    }

    /// Whether it asked for a change.
    pub(crate) fn is_write(&self) -> bool {
        ["create", "update", "patch", "delete", "deletecollection"].contains(&self.verb.as_str())
    }

    /// Whether an operator of ours asked, by its user agent.
    pub(crate) fn is_ours(&self) -> bool {
        self.agent.starts_with("weir/")
    }

    /// One line for a message.
    pub(crate) fn line(&self) -> String {
        format!("{} {} {} {}/{} -> {}", self.at, self.verb, self.resource, self.namespace, self.name, self.code)
    }
}

/// A place in the audit log.
pub(crate) struct Audit {
    ns: Ns,
    from: u64,
}

impl Audit {
    /// The place after everything that has been asked so far.
    pub(crate) async fn mark(ns: &Ns) -> Self {
        let mut audit = Self { ns: ns.clone(), from: std::fs::metadata(&ns.audit).map_or(0, |m| m.len()) };
        audit.from = audit.settle().await;
        audit
    }

    /// Asks something recognisable and waits until the log has it: then it has everything before it too. Returns the log's length.
    async fn settle(&self) -> u64 {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let marker = format!("marker-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        self.ns
            .eventually(Duration::from_secs(20), "the audit log has the marker", async || {
                self.ns.find(CONFIG_MAP, &marker).await?;
                let text = self.read();
                if text.contains(&marker) { Ok(self.from + text.len() as u64) } else { Err(format!("{} bytes without it", text.len())) }
            })
            .await
    }

    fn read(&self) -> String {
        let mut bytes = Vec::new();
        let mut file = std::fs::File::open(&self.ns.audit).unwrap();
        file.seek(SeekFrom::Start(self.from)).unwrap();
        file.read_to_end(&mut bytes).unwrap();
        // The last line may be half written.
        bytes.truncate(bytes.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1));
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Every request since the mark.
    pub(crate) async fn asked(&self) -> Vec<Asked> {
        self.settle().await;
        self.read().lines().filter_map(|line| Asked::of(&serde_json::from_str(line).unwrap_or_default())).collect()
    }

    /// Writes of our operators in this namespace, events apart: those are what it says, not what it does.
    pub(crate) async fn our_writes(&self) -> Vec<Asked> {
        let ours = |a: &Asked| a.is_ours() && a.is_write() && a.resource != "events" && a.namespace == self.ns.name;
        self.asked().await.into_iter().filter(ours).collect()
    }
}

/// Lines for a message.
pub(crate) fn lines(asked: &[Asked]) -> String {
    asked.iter().map(Asked::line).collect::<Vec<_>>().join("\n")
}
