//! A namespace of a test's own, and the verbs tests are written in.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use kube::Client;
use serde_json::{Value, json};

use super::{
    api::{self, DATA_PLANE, DEPLOYMENT, EVENT, EXTENSION, Failure, HPA, JSON, Kind, MERGE, NAMESPACE, PDB, POD, SECRET, SERVICE},
    audit::{Audit, lines},
    shape::{condition, generation, name_of},
};

/// An edit has converged by then.
pub(crate) const CONVERGED: Duration = Duration::from_secs(10);
/// A user's mistake shows by then.
pub(crate) const SHOWN: Duration = Duration::from_secs(2);
/// Pods are scheduled and ready by then, on a busy machine too.
pub(crate) const READY: Duration = Duration::from_secs(60);

/// Garbage collection has found the children of a deleted owner by then: it learns of new kinds, ours included, every 30 s only.
pub(crate) const COLLECTED: Duration = Duration::from_secs(90);

const LOG_LINES: usize = 40;

/// A namespace.
#[derive(Clone)]
pub(crate) struct Ns {
    pub(crate) client: Client,
    pub(crate) name: String,
    /// Where the API server writes its audit log.
    pub(crate) audit: PathBuf,
    /// Logs of the operators that work here, for the report of a failed test.
    pub(crate) logs: Arc<Mutex<Vec<PathBuf>>>,
}

impl Ns {
    /// Creates the namespace.
    pub(crate) async fn create(client: Client, name: &str, audit: PathBuf, logs: Arc<Mutex<Vec<PathBuf>>>) -> Self {
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {"test": "it"}}});
        api::apply(&client, "", &object, "test", true).await.map_err(String::from).unwrap();
        Self { client, name: name.to_owned(), audit, logs }
    }

    /// Applies a manifest as a user does: server-side, without force. A namespace in it is replaced by this one.
    pub(crate) async fn try_apply(&self, object: &Value) -> Result<Value, Failure> {
        self.apply_as("test", false, object).await
    }

    /// The same, and it has to work.
    pub(crate) async fn apply(&self, object: &Value) -> Value {
        self.try_apply(object).await.map_err(String::from).unwrap_or_else(|error| panic!("apply: {error}\n{object:#}"))
    }

    /// Applies as any field manager.
    pub(crate) async fn apply_as(&self, manager: &str, force: bool, object: &Value) -> Result<Value, Failure> {
        let mut object = object.clone();
        if Kind::of(&object).namespaced {
            object["metadata"]["namespace"] = self.name.clone().into();
        }
        api::apply(&self.client, &self.name, &object, manager, force).await
    }

    /// Creates an object, as clients without server-side apply do.
    pub(crate) async fn post(&self, object: &Value) -> Value {
        self.post_as("test", object).await
    }

    /// The same as any field manager.
    pub(crate) async fn post_as(&self, manager: &str, object: &Value) -> Value {
        let mut object = object.clone();
        object["metadata"]["namespace"] = self.name.clone().into();
        api::create(&self.client, &self.name, &object, manager, "")
            .await
            .map_err(String::from)
            .unwrap_or_else(|error| panic!("create: {error}\n{object:#}"))
    }

    /// Merge patch as a field manager; `null` removes.
    pub(crate) async fn try_edit(&self, manager: &str, kind: Kind, name: &str, patch: &Value) -> Result<Value, Failure> {
        let path = format!("{}/{name}?fieldManager={manager}&fieldValidation=Strict", kind.path(&self.name));
        api::call(&self.client, "PATCH", &path, MERGE, patch).await
    }

    /// Merge patch by the user.
    pub(crate) async fn edit(&self, kind: Kind, name: &str, patch: Value) -> Value {
        let done = self.try_edit("test", kind, name, &patch).await;
        done.map_err(String::from).unwrap_or_else(|error| panic!("edit {} {name}: {error}\n{patch:#}", kind.kind))
    }

    /// Merge patch of a subresource.
    pub(crate) async fn edit_sub(&self, kind: Kind, name: &str, sub: &str, patch: Value) -> Value {
        let path = format!("{}/{name}/{sub}?fieldManager=test", kind.path(&self.name));
        let done = api::call(&self.client, "PATCH", &path, MERGE, &patch).await;
        done.map_err(String::from).unwrap_or_else(|error| panic!("edit {} {name}/{sub}: {error}\n{patch:#}", kind.kind))
    }

    /// The object, if it is there.
    pub(crate) async fn find(&self, kind: Kind, name: &str) -> Result<Option<Value>, String> {
        Ok(api::find(&self.client, kind, &self.name, name).await?)
    }

    /// The object; that it is not there is an observation too.
    pub(crate) async fn get(&self, kind: Kind, name: &str) -> Result<Value, String> {
        self.find(kind, name).await?.ok_or_else(|| format!("{} {name} does not exist", kind.kind))
    }

    /// Objects by label selector, empty for all.
    pub(crate) async fn list(&self, kind: Kind, selector: &str) -> Result<Vec<Value>, String> {
        Ok(api::list(&self.client, kind, &self.name, selector).await?)
    }

    /// Deletes in the background, as kubectl does.
    pub(crate) async fn delete(&self, kind: Kind, name: &str) {
        let path = format!("{}/{name}?propagationPolicy=Background", kind.path(&self.name));
        let done = api::call(&self.client, "DELETE", &path, JSON, &Value::Null).await;
        if let Err(failure) = done {
            assert_eq!(failure.code, 404, "delete {} {name}: {}", kind.kind, failure.message);
        }
    }

    /// Waits until `look` is satisfied; what it says otherwise is the last observation.
    pub(crate) async fn eventually<T>(&self, limit: Duration, what: &str, mut look: impl AsyncFnMut() -> Result<T, String>) -> T {
        let start = Instant::now();
        loop {
            let observed = match look().await {
                Ok(value) => return value,
                Err(observed) => observed,
            };
            if start.elapsed() > limit {
                panic!("not within {limit:?}: {what}\nlast observation: {observed}\n{}", self.report().await);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// `look` is satisfied now and stays so for the whole time: the only proof that nothing happens.
    pub(crate) async fn always(&self, time: Duration, what: &str, mut look: impl AsyncFnMut() -> Result<(), String>) {
        let start = Instant::now();
        while start.elapsed() < time {
            if let Err(observed) = look().await {
                panic!("after {:?} no longer: {what}\nobserved: {observed}\n{}", start.elapsed(), self.report().await);
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Waits until the operator has seen the newest generation of a DataPlane and calls it ready.
    pub(crate) async fn ready(&self, name: &str, limit: Duration) -> Value {
        self.eventually(limit, &format!("DataPlane {name} is Ready"), async || {
            let object = self.get(DATA_PLANE, name).await?;
            self::ready(&object).map(|()| object)
        })
        .await
    }

    /// Waits until there are so many DataPlanes and every one is ready.
    pub(crate) async fn all_ready(&self, count: usize, limit: Duration) -> Vec<Value> {
        self.eventually(limit, &format!("{count} DataPlanes are ready"), async || {
            let all = self.list(DATA_PLANE, "").await?;
            let good = all.iter().filter(|object| self::ready(object).is_ok()).count();
            let first = all.iter().find_map(|object| Some((name_of(object), self::ready(object).err()?)));
            if good == count && all.len() == count { Ok(all) } else { Err(format!("{good} of {}; for example {first:?}", all.len())) }
        })
        .await
    }

    /// Waits for a condition of this type, status and reason whose message has every word; says what is there otherwise.
    pub(crate) async fn says(&self, kind: Kind, name: &str, wanted: [&str; 3], words: &[&str], limit: Duration) -> Value {
        let [type_, status, reason] = wanted;
        let what = format!("{} {name}: {type_}={status}/{reason} with {words:?}", kind.kind);
        self.eventually(limit, &what, async || {
            let object = self.get(kind, name).await?;
            let found = condition(&object, type_).ok_or_else(|| format!("no {type_}: {:#}", object["status"]))?;
            let message = found["message"].as_str().unwrap_or_default();
            let newest = found["observedGeneration"].as_i64() == Some(generation(&object));
            let good = found["status"] == status && found["reason"] == reason && words.iter().all(|word| message.contains(word)) && newest;
            if good { Ok(object) } else { Err(format!("{found:#}")) }
        })
        .await
    }

    /// A mark in the audit log: what is asked for from here on.
    pub(crate) async fn audit(&self) -> Audit {
        Audit::mark(self).await
    }

    /// Waits until our operators have written nothing for 3 s: pods that are still on their way out change statuses.
    pub(crate) async fn settled(&self) {
        self.eventually(Duration::from_secs(60), "three seconds without a write", async || {
            let audit = self.audit().await;
            tokio::time::sleep(Duration::from_secs(3)).await;
            let writes = audit.our_writes().await;
            if writes.is_empty() { Ok(()) } else { Err(lines(&writes)) }
        })
        .await;
    }

    /// Whatever helps to understand a failure.
    async fn report(&self) -> String {
        let mut text = String::new();
        for kind in [DATA_PLANE, EXTENSION] {
            for mut object in self.list(kind, "").await.unwrap_or_default().into_iter().take(5) {
                object["metadata"]["managedFields"] = Value::Null;
                text.push_str(&format!("---\n{}", serde_saphyr::to_string(&object).unwrap_or_default()));
            }
        }
        text.push_str("--- children\n");
        for kind in [DEPLOYMENT, SERVICE, SECRET, HPA, PDB, POD] {
            for object in self.list(kind, "").await.unwrap_or_default().into_iter().take(20) {
                let meta = &object["metadata"];
                let leaving = if meta["deletionTimestamp"].is_null() { "" } else { " (leaving)" };
                let line = format!("{} {} uid={} {}{leaving}\n", kind.kind, name_of(&object), meta["uid"], object["status"]["conditions"]);
                text.push_str(&line);
            }
        }
        text.push_str("--- newest events\n");
        let mut events = self.list(EVENT, "").await.unwrap_or_default();
        events.sort_by_key(|event| event["metadata"]["creationTimestamp"].to_string());
        for event in events.iter().rev().take(15) {
            let about = &event["involvedObject"];
            text.push_str(&format!("{} {} {} {}\n", event["reason"], about["kind"], about["name"], event["message"]));
        }
        let logs = self.logs.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
        for log in logs {
            let all = std::fs::read_to_string(&log).unwrap_or_default();
            let lines: Vec<&str> = all.lines().collect();
            text.push_str(&format!("--- {}\n{}\n", log.display(), lines[lines.len().saturating_sub(LOG_LINES)..].join("\n")));
        }
        text
    }

    /// Deletes the namespace's DataPlanes, so that later tests share the cluster with less.
    pub(crate) async fn clear(&self) {
        for kind in [DATA_PLANE, EXTENSION] {
            let _ = api::call(&self.client, "DELETE", &kind.path(&self.name), JSON, &Value::Null).await;
        }
        let _ = api::call(&self.client, "DELETE", &format!("{}/{}", NAMESPACE.path(""), self.name), JSON, &Value::Null).await;
    }
}

/// Whether a DataPlane of the newest generation is ready; else what it says.
pub(crate) fn ready(object: &Value) -> Result<(), String> {
    let found = condition(object, "Ready").ok_or("no condition Ready")?;
    let newest = found["observedGeneration"].as_i64() == Some(generation(object));
    if found["status"] == "True" && newest { Ok(()) } else { Err(format!("{found:#}")) }
}
