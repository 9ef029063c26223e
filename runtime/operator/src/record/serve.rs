//! `GET /snapshots/NAMESPACE/NAME`: what a pass over one DataPlane would see now, as a tar archive of a case.
//!
//! It listens on loopback only, so that a token never crosses a network in plain text (`kubectl port-forward` reaches it), and answers whom the
//! API server knows and allows to get `dataplanes/snapshot` of that very object.

use std::sync::Arc;

use axum::{
    Router,
    extract::{Path, State},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use k8s_openapi::api::{
    authentication::v1::{TokenReview, TokenReviewSpec, UserInfo},
    authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec},
};
use kube::{Api, Client, api::PostParams};
use tokio::sync::Semaphore;
use weir_api::keys;
use weir_core::policy::selection::ObjectKind;

use super::{Recording, Seen, seen};
use crate::{cache::Key, context::Context, dataplane, reconcile_policy};

/// Longest token that is looked at, bytes.
const MAX_TOKEN: usize = 16 << 10;

/// What answers need.
#[derive(Clone)]
pub(crate) struct Served {
    context: Arc<Context>,
    client: Client,
    recording: Recording,
    /// A case takes a processor for a while: one at a time.
    turn: Arc<Semaphore>,
}

impl Served {
    pub(crate) fn new(context: Arc<Context>, client: Client, recording: Recording) -> Self {
        Self { context, client, recording, turn: Arc::new(Semaphore::new(1)) }
    }
}

/// The routes.
pub(crate) fn router(served: Served) -> Router {
    Router::new().route("/snapshots/{namespace}/{name}", get(one)).with_state(served)
}

type Refusal = (StatusCode, String);

async fn one(State(served): State<Served>, Path((namespace, name)): Path<(String, String)>, headers: HeaderMap) -> Response {
    let key = Key::new(namespace, name);
    match served.answer(&key, &headers).await {
        Ok(archive) => ([(header::CONTENT_TYPE, "application/x-tar")], archive).into_response(),
        Err((status, message)) => (status, format!("{message}\n")).into_response(),
    }
}

impl Served {
    async fn answer(&self, key: &Key, headers: &HeaderMap) -> Result<Vec<u8>, Refusal> {
        let user = self.user(headers).await?;
        self.allowed(user, key).await?;
        let waits = |why: &str| (StatusCode::SERVICE_UNAVAILABLE, why.to_owned());
        let _turn = self.turn.acquire().await.map_err(|_| waits("it is stopping"))?;
        let seen = self.seen(key).await?;
        let recorder = Arc::clone(&self.recording.0);
        let made = tokio::task::spawn_blocking(move || recorder.archive(seen)).await;
        made.map_err(|_| waits("it is stopping"))?.map_err(|why| (StatusCode::INTERNAL_SERVER_ERROR, why))
    }

    /// Whose token it is.
    async fn user(&self, headers: &HeaderMap) -> Result<UserInfo, Refusal> {
        let unknown = || (StatusCode::UNAUTHORIZED, "send a token of the cluster: Authorization: Bearer …".to_owned());
        let token = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
        let token = token.map(str::trim).filter(|token| !token.is_empty() && token.len() <= MAX_TOKEN).ok_or_else(unknown)?;
        let spec = TokenReviewSpec { token: token.to_owned(), audiences: None };
        let review = TokenReview { spec, ..TokenReview::default() };
        let answer = Api::all(self.client.clone()).create(&PostParams::default(), &review).await.map_err(|error| away(&error))?;
        let status = answer.status.filter(|status| status.authenticated == Some(true)).ok_or_else(unknown)?;
        status.user.ok_or_else(unknown)
    }

    /// Whether the user may see this object.
    async fn allowed(&self, user: UserInfo, key: &Key) -> Result<(), Refusal> {
        let name = user.username.clone().unwrap_or_default();
        let spec = SubjectAccessReviewSpec {
            user: user.username,
            groups: user.groups,
            uid: user.uid,
            extra: user.extra,
            resource_attributes: Some(ResourceAttributes {
                group: Some(keys::GATEWAY_OPERATOR_GROUP.to_owned()),
                resource: Some("dataplanes".to_owned()),
                subresource: Some("snapshot".to_owned()),
                verb: Some("get".to_owned()),
                namespace: Some(key.namespace.clone()),
                name: Some(key.name.clone()),
                ..ResourceAttributes::default()
            }),
            ..SubjectAccessReviewSpec::default()
        };
        let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
        let answer = Api::all(self.client.clone()).create(&PostParams::default(), &review).await.map_err(|error| away(&error))?;
        if answer.status.is_some_and(|status| status.allowed) {
            return Ok(());
        }
        Err((StatusCode::FORBIDDEN, format!("{name} may not get dataplanes/snapshot of group {} for {key}", keys::GATEWAY_OPERATOR_GROUP)))
    }

    /// What a pass would see now.
    async fn seen(&self, key: &Key) -> Result<Seen, Refusal> {
        let context = &self.context;
        if context.sealing.get().is_none() {
            return Err((StatusCode::SERVICE_UNAVAILABLE, "this replica does not lead, or has just begun: ask the leader".to_owned()));
        }
        let Some(data_plane) = context.world.data_planes.get(key) else {
            return Err((StatusCode::NOT_FOUND, format!("there is no DataPlane {key}")));
        };
        let found = dataplane::snapshot_of(context, key, &data_plane).await;
        let snapshot = found.map_err(|why| (StatusCode::SERVICE_UNAVAILABLE, why))?;
        let place = reconcile_policy::place(context, ObjectKind::DataPlane, &data_plane.metadata);
        Ok(seen(context, snapshot, context.policies.book.policies(&place)))
    }
}

/// The API server did not answer; its words may repeat what was sent.
fn away(error: &kube::Error) -> Refusal {
    let why = if let kube::Error::Api(status) = error {
        format!("the API server answers {} to a review; has the operator its roles?", status.code)
    } else {
        "the API server does not answer".to_owned()
    };
    (StatusCode::BAD_GATEWAY, why)
}
