//! Every version of an object, by a watch: for what has to hold all the time and not only at the end.

use std::sync::{Arc, Mutex};

use futures::StreamExt;
use kube::{
    api::{PostParams, Request, WatchEvent},
    client::Client,
};
use serde_json::Value;
use tokio::task::JoinHandle;

use super::{api::Kind, ns::Ns};

/// A watch that writes down what it sees.
pub(crate) struct Record {
    seen: Arc<Mutex<Vec<Value>>>,
    task: JoinHandle<()>,
}

impl Record {
    /// Begins with the object as it is now.
    pub(crate) async fn start(ns: &Ns, kind: Kind, name: &str) -> Self {
        let first = ns.get(kind, name).await.unwrap();
        let version = first["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
        let seen = Arc::new(Mutex::new(vec![first]));
        let path = format!("{}?watch=true&resourceVersion={version}&fieldSelector=metadata.name%3D{name}", kind.path(&ns.name));
        let task = tokio::spawn(watch(ns.client.clone(), path, Arc::clone(&seen)));
        Self { seen, task }
    }

    /// Every version so far, the first and the last included.
    pub(crate) fn versions(&self) -> Vec<Value> {
        assert!(!self.task.is_finished(), "the watch broke off, so nothing is proved");
        self.seen.lock().unwrap().clone()
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn watch(client: Client, path: String, seen: Arc<Mutex<Vec<Value>>>) {
    let mut request = Request::new("/").create(&PostParams::default(), Vec::new()).unwrap();
    *request.method_mut() = "GET".parse().unwrap();
    *request.uri_mut() = path.parse().unwrap();
    let mut events = Box::pin(client.request_events::<Value>(request).await.unwrap());
    while let Some(event) = events.next().await {
        match event {
            Ok(WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object)) => {
                seen.lock().unwrap().push(object);
            }
            Ok(WatchEvent::Bookmark(_)) => {}
            // A gap would make a proof of nothing.
            Ok(WatchEvent::Error(status)) => panic!("the watch broke: {status:?}"),
            Err(error) => panic!("the watch broke: {error}"),
        }
    }
}
