use serde_json::{Value, json};

use super::registry::{Asked, Reply, Server, Shelf, puller, status};
use crate::oci::{Credentials, Error};

/// A page of tags, with a link to the next one.
fn page(tags: Value, link: Option<&str>) -> Reply {
    let mut headers = vec![("content-type", "application/json".to_owned())];
    headers.extend(link.map(|link| ("link", link.to_owned())));
    Reply::Full(200, headers, json!({"name": "x/y", "tags": tags}).to_string().into_bytes())
}

async fn tags(hook: impl Fn(&Asked, usize) -> Option<Reply> + Send + Sync + 'static) -> (Result<Vec<String>, Error>, Server) {
    let server = Server::start(Shelf::default(), hook).await;
    (puller().tags(&server.reference(""), &Credentials::Anonymous).await, server)
}

#[tokio::test]
async fn pages_follow_each_other() {
    let (found, server) = tags(|asked, _| {
        Some(match asked.path.as_str() {
            "/v2/" => return None,
            // A registry behind a proxy: only path and query of its links are good.
            "/v2/x/y/tags/list?n=1000" => page(json!(["1.0.0", "latest"]), Some("</v2/x/y/tags/list?a=1,2&last=latest>; rel=\"next\"")),
            "/v2/x/y/tags/list?a=1,2&last=latest" => page(
                json!(["1.1.0", "no tag", "-x"]),
                Some("<http://inner.invalid/other>; rel=\"prev\", <http://inner.invalid/v2/x/y/tags/list?last=2>; title=a; rel=next"),
            ),
            "/v2/x/y/tags/list?last=2" => page(Value::Null, Some("</x>; rel=\"first\"")),
            _ => status(500, ""),
        })
    })
    .await;
    assert_eq!(found.unwrap(), ["1.0.0", "latest", "1.1.0"]);
    assert_eq!(server.count("/tags/list"), 3);
}

#[tokio::test]
async fn there_are_never_too_many() {
    let many = |found: &Result<Vec<String>, Error>| matches!(found, Err(Error::ManyTags { most: 10_000, .. }));
    let list = |count: usize| json!((0..count).map(|n| format!("v{n}")).collect::<Vec<_>>());
    let answer = move |count: usize| tags(move |asked, _| asked.path.contains("tags").then(|| page(list(count), None)));
    assert_eq!(answer(10_000).await.0.unwrap().len(), 10_000);
    let (found, _) = answer(10_001).await;
    assert!(many(&found) && found.unwrap_err().to_string().contains("name a tag or a digest"));
    // Pages without end, with and without content.
    for count in [100, 0] {
        let next = Some("</v2/x/y/tags/list?again>; rel=\"next\"");
        let (found, server) = tags(move |asked, _| asked.path.contains("tags").then(|| page(list(count), next))).await;
        assert!(many(&found) && server.count("/tags/") <= 512, "{found:?}");
    }
    let (found, _) = tags(|asked, _| asked.path.contains("tags").then_some(Reply::Endless)).await;
    assert!(many(&found), "{found:?}");
}

#[tokio::test]
async fn failures() {
    let (found, server) = tags(|_, _| None).await;
    let error = found.unwrap_err();
    assert!(matches!(&error, Error::NotFound { what, .. } if *what == format!("{}/x/y", server.address)), "{error}");
    let (found, server) =
        tags(|asked, before| asked.path.contains("tags").then(|| if before == 0 { status(503, "") } else { page(json!([]), None) })).await;
    assert!(found.unwrap().is_empty() && server.count("/tags/") == 2);
    for body in ["<html>", "{\"tags\": 5}", "[]"] {
        let (found, _) = tags(move |asked, _| asked.path.contains("tags").then(|| status(200, body))).await;
        assert!(matches!(found, Err(Error::NotRegistry { .. })), "{found:?}");
    }
}
