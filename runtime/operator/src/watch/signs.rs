//! Whether a watch works. kube's watcher tells of failures and of events, and an idle watch that works again has neither: so its requests are
//! looked at.

use http::{Request, Uri};
use kube::{Client, client::Body};
use tower::service_fn;

use crate::health::Sign;

/// A client for one watch. A request, of a list too, means that the watch does not work yet; a good answer to a watch, that it does.
pub(super) fn client(inner: &Client, sign: Sign) -> Client {
    let namespace = inner.default_namespace().to_owned();
    let inner = inner.clone();
    let service = service_fn(move |request: Request<Body>| {
        let (inner, sign) = (inner.clone(), sign.clone());
        async move {
            let watches = is_watch(request.uri());
            sign.asks();
            let answer = inner.send(request).await;
            if watches && answer.as_ref().is_ok_and(|answer| answer.status().is_success()) {
                sign.works();
            }
            answer
        }
    });
    Client::new(service, namespace)
}

fn is_watch(uri: &Uri) -> bool {
    uri.query().is_some_and(|query| query.split('&').any(|part| part == "watch=true"))
}

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        io,
        sync::{
            Arc,
            atomic::{AtomicBool, Ordering},
        },
        time::{Duration, Instant},
    };

    use axum::body::{Body as Answer, Bytes};
    use http::Response;
    use k8s_openapi::api::core::v1::Secret;
    use kube::core::PartialObjectMeta;

    use super::*;
    use crate::{
        cache::Cache,
        health::Health,
        metrics::{Metrics, ObjectKind},
        watch::{Pending, Selection, Watching, namespaced},
    };

    /// Lists nothing, and refuses watches while it is told to.
    fn server(refuses: Arc<AtomicBool>) -> Client {
        let list =
            r#"{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList", "metadata": {"resourceVersion": "1"}, "items": []}"#;
        let refusal = r#"{"kind": "Status", "code": 403, "reason": "Forbidden", "message": "no rights", "status": "Failure"}"#;
        let service = service_fn(move |request: Request<Body>| {
            let answer = match (is_watch(request.uri()), refuses.load(Ordering::SeqCst)) {
                (false, _) => Response::new(Answer::from(list)),
                (true, true) => Response::builder().status(403).body(Answer::from(refusal)).unwrap(),
                // Nothing ever happens.
                (true, false) => Response::new(Answer::from_stream(futures::stream::pending::<Result<Bytes, io::Error>>())),
            };
            async move { Ok::<_, Infallible>(answer) }
        });
        Client::new(service, "default")
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_that_may_list_and_not_watch_is_broken_and_an_idle_one_that_works_is_not() {
        let (health, refuses) = (Health::default(), Arc::new(AtomicBool::new(true)));
        let watching = Watching {
            pending: Pending::new(0),
            client: server(Arc::clone(&refuses)),
            namespaces: vec!["team-a".into()],
            health: health.clone(),
            metrics: Arc::new(Metrics::new(Arc::default())),
        };
        tokio::spawn(async move {
            let cache = Cache::default();
            let keep = |object: PartialObjectMeta<Secret>| Some(object);
            namespaced::<PartialObjectMeta<Secret>, _>(&watching, ObjectKind::Secret, Selection::default(), &cache, keep, |_| {}).await;
        });
        let later = || Instant::now() + Duration::from_secs(70);
        // Some tries: time passes by itself.
        tokio::time::sleep(Duration::from_secs(40)).await;
        assert!(health.is_ready(Instant::now()), "its list is there");
        assert!(!health.is_ready(later()));
        refuses.store(false, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_secs(40)).await;
        assert!(health.is_ready(later()), "no event tells of it");
    }
}
