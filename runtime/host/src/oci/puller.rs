//! Reference to artifact.

use std::{
    borrow::Cow,
    sync::Arc,
    time::{Duration, Instant},
};

use futures::{FutureExt as _, future::BoxFuture};

use super::{
    Artifact, Component, Credentials, CredentialsError, Error, Limits, Reference, Registries, Watch,
    auth::{Scope, Session, Tokens},
    call::Call,
    http::Transport,
    retry::Patience,
    rules::Rules,
    text,
};

/// Settings that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PullerError {
    /// A CA bundle without certificates.
    #[error("CA bundle {number} of the registries holds no certificate in PEM form")]
    Ca {
        /// Position in the list, from 1.
        number: usize,
    },
    /// A rule that cannot be followed.
    #[error("the rule for registry prefix \"{}\": {problem}", text::name(.prefix))]
    Rule {
        /// Its prefix.
        prefix: String,
        /// What is wrong, and what helps.
        problem: String,
    },
    /// A proxy that is no URL. The URL may hold a password, so it is not told.
    #[error("the {0} proxy for registries is no URL; write http://host:port")]
    Proxy(&'static str),
    /// An exception that is nothing.
    #[error("\"{}\" is neither host, address nor range; write registry.example.com, 10.1.2.3 or 10.0.0.0/8", text::name(.0))]
    Listed(String),
    /// A user agent that HTTP cannot carry.
    #[error("the user agent for registries has characters that HTTP cannot carry")]
    UserAgent,
    /// The rest.
    #[error("the HTTP client for registries cannot be made: {0}")]
    Client(String),
}

/// What a reference points to now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// Digest of manifest or index. Of a tag it is the registry's word; pulling by it verifies it.
    pub digest: String,
    /// Type of manifest or index.
    pub media_type: String,
}

/// Credentials for a mirror.
type Choose = dyn Fn(&Reference) -> Result<Credentials, CredentialsError> + Send + Sync;

/// Pulls artifacts. Cheap to clone; clones share connections and tokens.
///
/// Where a [`Rule`](super::Rule) names mirrors, they are asked first, in order, once each and for an equal share of the time; the next
/// is asked after any failure that another place may not have, such as a network error, a status, or content that does not have its
/// digest. The registry itself is the last, unless the rule says otherwise. Digests are verified wherever content comes from; what a
/// tag means is whatever the place says that answers first.
#[derive(Clone)]
pub struct Puller {
    inner: Arc<Inner>,
    choose: Option<Arc<Choose>>,
    watch: Option<Arc<dyn Watch>>,
}

struct Inner {
    registries: Arc<Registries>,
    transport: Transport,
    rules: Rules,
    tokens: Tokens,
}

impl std::fmt::Debug for Puller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Puller").field("registries", &self.inner.registries).finish_non_exhaustive()
    }
}

impl Puller {
    /// Reads the settings once.
    ///
    /// # Errors
    /// See [`PullerError`].
    pub fn new(registries: Registries) -> Result<Self, PullerError> {
        let registries = Arc::new(registries);
        let transport = Transport::new(registries.clone(), None)?;
        let rules = Rules::new(&registries)?;
        Ok(Self { inner: Arc::new(Inner { registries, transport, rules, tokens: Tokens::default() }), choose: None, watch: None })
    }

    /// The same puller, which asks `choose` for the credentials of a mirror. It is given the mirror's own reference, so that
    /// [`docker_config`](super::docker_config) can be asked; it is called for each pull, so it may read a file again.
    ///
    /// Without it, or where it says [`CredentialsError::NoEntry`], a mirror is shown the credentials of a call only if it is on the
    /// host they are for; other mirrors are shown none.
    #[must_use]
    pub fn with_mirror_credentials(
        &self,
        choose: impl Fn(&Reference) -> Result<Credentials, CredentialsError> + Send + Sync + 'static,
    ) -> Self {
        Self { choose: Some(Arc::new(choose)), ..self.clone() }
    }

    /// The same puller, which tells `watch` how far transfers are.
    #[must_use]
    pub fn watched(&self, watch: Arc<dyn Watch>) -> Self {
        Self { watch: Some(watch), ..self.clone() }
    }

    /// What `reference` points to now. Costs no pull where registries count those.
    ///
    /// # Errors
    /// See [`Error`]; whether it may pass by itself is [`Error::transient`].
    pub async fn resolve(&self, reference: &Reference, credentials: &Credentials) -> Result<Resolved, Error> {
        self.somewhere(reference, credentials, |call| call.resolve().boxed()).await
    }

    /// The content that `reference` points to now, within `limits`.
    ///
    /// # Errors
    /// See [`Error`]; whether it may pass by itself is [`Error::transient`].
    pub async fn pull(&self, reference: &Reference, credentials: &Credentials, limits: &Limits) -> Result<Artifact, Error> {
        let limits = *limits;
        self.somewhere(reference, credentials, |call| async move { call.pull(&limits).await }.boxed()).await
    }

    /// The Wasm component that `reference` points to now, of at most `most_bytes`.
    ///
    /// # Errors
    /// See [`Error`]; whether it may pass by itself is [`Error::transient`].
    pub async fn component(&self, reference: &Reference, credentials: &Credentials, most_bytes: u64) -> Result<Component, Error> {
        self.somewhere(reference, credentials, |call| call.component(most_bytes).boxed()).await
    }

    /// The tags of the repository of `reference`, in the registry's order; at most 10,000. Names that are no tags are left out.
    ///
    /// # Errors
    /// See [`Error`]; more tags are [`Error::ManyTags`], never a part of them.
    pub async fn tags(&self, reference: &Reference, credentials: &Credentials) -> Result<Vec<String>, Error> {
        self.somewhere(reference, credentials, |call| call.tags().boxed()).await
    }

    /// Does `ask` at one place after the other, until one has an answer that no other place can better.
    pub(super) async fn somewhere<T>(
        &self,
        asked: &Reference,
        credentials: &Credentials,
        ask: impl for<'c> Fn(Call<'c>) -> BoxFuture<'c, Result<T, Error>> + Send + Sync,
    ) -> Result<T, Error> {
        let registries = self.permitted(asked)?;
        let start = Instant::now();
        let mut places = self.inner.rules.places(asked);
        let share = registries.timeouts.total / u32::try_from(places.len()).unwrap_or(u32::MAX).max(1);
        let last = places.pop().unwrap_or_else(|| Ok(asked.clone()));
        let mut mirrors = Vec::new();
        for place in places {
            match self.at(place, asked, credentials, share, true, &ask).await {
                Err(error) if error.elsewhere() => {
                    tracing::warn!(target: "weir::host", %error, reference = %asked, "a mirror is of no use, the next place is asked");
                    mirrors.push(error);
                }
                done => return done,
            }
        }
        let left = registries.timeouts.total.saturating_sub(start.elapsed());
        let done = self.at(last, asked, credentials, left, false, &ask).await;
        done.map_err(|last| if mirrors.is_empty() { last } else { Error::Everywhere { mirrors, last: Box::new(last) } })
    }

    /// Does `ask` at one place. One that has a `successor` is not asked again and again.
    async fn at<T>(
        &self,
        place: Result<Reference, Error>,
        asked: &Reference,
        credentials: &Credentials,
        limit: Duration,
        successor: bool,
        ask: &impl for<'c> Fn(Call<'c>) -> BoxFuture<'c, Result<T, Error>>,
    ) -> Result<T, Error> {
        let (inner, place) = (&*self.inner, place?);
        let credentials = self.credentials(&place, asked, credentials)?;
        let session = self.session(&place, &credentials, Scope::Pull);
        let patience = if successor { Patience::none() } else { Patience::new(inner.registries.retries) };
        let late = |_| Error::Timeout { what: format!("pulling {place}"), limit };
        tokio::time::timeout(limit, ask(Call { asked, session, patience })).await.unwrap_or_else(|elapsed| Err(late(elapsed)))
    }

    /// A call at the registry itself, whatever mirrors there are, and how long it may take.
    pub(super) fn direct<'a>(
        &'a self,
        reference: &'a Reference,
        credentials: &'a Credentials,
        scope: Scope,
    ) -> Result<(Call<'a>, Duration), Error> {
        let registries = self.permitted(reference)?;
        let session = self.session(reference, credentials, scope);
        Ok((Call { asked: reference, session, patience: Patience::new(registries.retries) }, registries.timeouts.total))
    }

    fn permitted(&self, reference: &Reference) -> Result<&Registries, Error> {
        let registries = &self.inner.registries;
        if registries.permits(reference) {
            return Ok(registries);
        }
        Err(Error::NotAllowed { place: reference.place(), allowed: registries.allowed.join(", ") })
    }

    fn session<'a>(&'a self, place: &'a Reference, credentials: &'a Credentials, scope: Scope) -> Session<'a> {
        let inner = &*self.inner;
        let transport = inner.rules.transport(place).unwrap_or(&inner.transport);
        Session { transport, tokens: &inner.tokens, reference: place, credentials, scope, watch: self.watch.as_deref() }
    }

    /// What a place is shown.
    fn credentials<'c>(&self, place: &Reference, asked: &Reference, given: &'c Credentials) -> Result<Cow<'c, Credentials>, Error> {
        if place == asked {
            return Ok(Cow::Borrowed(given));
        }
        match self.choose.as_ref().map(|choose| choose(place)) {
            Some(Ok(own)) => Ok(Cow::Owned(own)),
            Some(Err(CredentialsError::NoEntry { .. })) | None if place.registry() == asked.registry() => Ok(Cow::Borrowed(given)),
            Some(Err(CredentialsError::NoEntry { .. })) | None => Ok(Cow::Owned(Credentials::Anonymous)),
            Some(Err(source)) => Err(Error::MirrorCredentials { place: place.place(), source }),
        }
    }
}
