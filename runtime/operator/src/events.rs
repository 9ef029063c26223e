//! Kubernetes events, off the path of a pass: a full queue drops events, never a pass.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::{
    Client,
    runtime::events::{Event as KubeEvent, EventType as KubeEventType, Recorder, Reporter},
};
use tokio::sync::mpsc;
use weir_core::events::{Event, EventType};

use crate::metrics::{Metrics, ObjectKind, Verb};

/// Events that may wait to be sent.
const QUEUE: usize = 4_096;
/// Longest note the API takes.
const MAX_NOTE: usize = 1_024;
/// What of a joined event's data is kept.
const MAX_DATA: usize = 900;

/// Takes events.
#[derive(Clone)]
pub struct Publisher {
    sender: mpsc::Sender<(KubeEvent, ObjectReference)>,
    metrics: Arc<Metrics>,
}

impl Publisher {
    /// Starts the task that sends them.
    #[must_use]
    pub fn start(client: Client, identity: String, metrics: Arc<Metrics>) -> Self {
        let (sender, mut receiver) = mpsc::channel::<(KubeEvent, ObjectReference)>(QUEUE);
        let recorder = Recorder::new(client, Reporter { controller: "weir.dev/operator".into(), instance: Some(identity) });
        let counted = Arc::clone(&metrics);
        tokio::spawn(async move {
            while let Some((event, object)) = receiver.recv().await {
                match recorder.publish(&event, &object).await {
                    Ok(()) => counted.wrote(ObjectKind::Event, Verb::Create),
                    Err(error) => {
                        counted.event_dropped();
                        tracing::debug!(%error, reason = event.reason, "an event was not stored");
                    }
                }
            }
        });
        Self { sender, metrics }
    }

    /// Sends the events of one pass; those of one reason become one.
    pub fn publish(&self, object: &ObjectReference, events: Vec<Event>) {
        for event in joined(events) {
            let note: String = format!("{}: {}", event.message, event.data).chars().take(MAX_NOTE).collect();
            let sent = KubeEvent {
                type_: match event.type_ {
                    EventType::Normal => KubeEventType::Normal,
                    EventType::Warning => KubeEventType::Warning,
                },
                reason: event.reason,
                note: Some(note),
                action: "Reconcile".into(),
                secondary: None,
            };
            if self.sender.try_send((sent, object.clone())).is_err() {
                self.metrics.event_dropped();
            }
        }
    }
}

/// Four children made in one pass are one event.
fn joined(events: Vec<Event>) -> Vec<Event> {
    let mut joined: Vec<Event> = Vec::new();
    for event in events {
        match joined.iter_mut().find(|e| e.type_ == EventType::Normal && e.reason == event.reason && e.type_ == event.type_) {
            Some(same) if same.data.len() + event.data.len() < MAX_DATA => {
                same.data.push_str(", ");
                same.data.push_str(&event.data);
            }
            Some(_) => {}
            None => joined.push(event),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_made_in_one_pass_is_one_event_and_warnings_stay_apart() {
        let events = vec![
            Event::normal("Created", "m", "Service a"),
            Event::warning("Held", "m", "x"),
            Event::normal("Created", "m", "Service b"),
            Event::warning("Held", "m", "y"),
        ];
        let joined = joined(events);
        assert_eq!(joined.len(), 3);
        assert_eq!(joined[0].data, "Service a, Service b");
    }
}
