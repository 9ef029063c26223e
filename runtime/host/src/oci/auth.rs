//! Tokens: what a registry asks for, and where it is fetched. Kept for their lifetime by registry, repository and credentials, so
//! that changed credentials never meet an old token.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http_auth::parser::ChallengeParser;
use reqwest::{
    Method, Response, Url,
    header::{HeaderMap, HeaderValue, WWW_AUTHENTICATE},
};
use serde::Deserialize;

use super::{
    Credentials, Error, Reference, Watch,
    answer::{self, Asked},
    http::{Request, Transport, place},
    text,
};

/// Tokens kept; far more than there are pull secrets in use at once.
const MAX_TOKENS: usize = 64;
/// Largest answer of a token service, bytes.
const MAX_ANSWER: u64 = 256 << 10;
/// Lifetime of a token that does not say its own, by the specification; and the longest that is believed.
const SHORTEST: Duration = Duration::from_secs(60);
const LONGEST: Duration = Duration::from_secs(300);
const JSON: &str = "application/json";

/// Registry, repository, identity of the credentials, and what for.
type Key = (String, String, String, Scope);

/// What a token is asked for. Whoever only reads asks for no more, since an account that may only read is refused the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Scope {
    Pull,
    Push,
}

impl Scope {
    fn actions(self) -> &'static str {
        match self {
            Self::Pull => "pull",
            Self::Push => "pull,push",
        }
    }

    /// The right that is missing when access is denied.
    pub(super) fn right(self) -> &'static str {
        match self {
            Self::Pull => "read",
            Self::Push => "write",
        }
    }
}

/// What a registry is shown, by key.
#[derive(Default)]
pub(super) struct Tokens(Mutex<BTreeMap<Key, Kept>>);

struct Kept {
    value: Option<HeaderValue>,
    until: Instant,
}

/// What a registry asks for.
#[derive(Debug, PartialEq, Eq)]
enum Challenge {
    Bearer { realm: String, service: Option<String> },
    Basic,
}

/// Who asks.
pub(super) struct Session<'a> {
    pub(super) transport: &'a Transport,
    pub(super) tokens: &'a Tokens,
    pub(super) reference: &'a Reference,
    pub(super) credentials: &'a Credentials,
    pub(super) scope: Scope,
    pub(super) watch: Option<&'a dyn Watch>,
}

impl Session<'_> {
    fn key(&self) -> Key {
        (self.reference.registry().to_owned(), self.reference.repository().to_owned(), self.credentials.identity(), self.scope)
    }

    /// The header for requests to the registry; `None` when it asks for nothing. The first request asks the registry what it
    /// wants, so that bad credentials are found out even where a repository is public.
    pub(super) async fn authorization(&self) -> Result<Option<HeaderValue>, Error> {
        if let Some(kept) = self.tokens.get(&self.key()) {
            return Ok(kept);
        }
        let mut url = self.transport.base(self.reference.api())?;
        url.set_path("/v2/");
        let response = self.transport.send(Request::get(url, JSON, None)).await?;
        if response.status().as_u16() == 401 {
            return self.answer(&response).await;
        }
        // Some registries have no such page although they serve images; but one that is down says so here.
        let asked = Asked { what: "its API", missing: None, sent: false };
        match answer::check(self, response, &asked).await {
            Err(error) if error.transient() => return Err(error),
            Ok(_) | Err(_) => {}
        }
        self.tokens.put(self.key(), None, LONGEST);
        Ok(None)
    }

    /// Meets the challenge of a 401. What was kept is dropped.
    pub(super) async fn answer(&self, response: &Response) -> Result<Option<HeaderValue>, Error> {
        self.tokens.drop(&self.key());
        let at = place(response.url());
        let refused = |sent| Error::Unauthorized { at: at.clone(), place: self.reference.place(), sent, said: String::new() };
        let (value, life) = match (challenge(response.headers(), &at)?, self.credentials) {
            (_, Credentials::RegistryToken { token }) => (Some(self.header(&format!("Bearer {}", token.expose()), &at)?), LONGEST),
            (Challenge::Basic, Credentials::Anonymous) => return Err(refused(false)),
            (Challenge::Basic, Credentials::IdentityToken { .. }) => return Err(Error::WrongKind { at }),
            (Challenge::Basic, Credentials::Basic { .. }) => (self.basic(&at)?, LONGEST),
            (
                Challenge::Bearer { realm, service },
                Credentials::Anonymous | Credentials::Basic { .. } | Credentials::IdentityToken { .. },
            ) => self.token(&at, &realm, service.as_deref()).await?,
        };
        self.tokens.put(self.key(), value.clone(), life);
        Ok(value)
    }

    fn header(&self, text: &str, at: &str) -> Result<HeaderValue, Error> {
        let mut value = HeaderValue::from_str(text).map_err(|_| Error::Unauthorized {
            at: at.to_owned(),
            place: self.reference.place(),
            sent: !self.credentials.is_anonymous(),
            said: "the token has characters that HTTP cannot carry".to_owned(),
        })?;
        value.set_sensitive(true);
        Ok(value)
    }

    fn basic(&self, at: &str) -> Result<Option<HeaderValue>, Error> {
        let Credentials::Basic { username, password } = self.credentials else { return Ok(None) };
        self.header(&format!("Basic {}", STANDARD.encode(format!("{username}:{}", password.expose()))), at).map(Some)
    }

    async fn token(&self, at: &str, realm: &str, service: Option<&str>) -> Result<(Option<HeaderValue>, Duration), Error> {
        let url = Url::parse(realm).map_err(|_| Error::Challenge { at: at.to_owned(), challenge: format!("realm \"{realm}\"") })?;
        self.transport.downgrade(at, &url)?;
        let basic = self.basic(at)?;
        let response = self.transport.send(self.token_request(url, service, basic.as_ref())).await?;
        let at = place(response.url());
        let asked = Asked { what: "a request for a token", missing: None, sent: !self.credentials.is_anonymous() };
        let response = answer::check(self, response, &asked).await?;
        let kind = super::http::content_type(response.headers()).to_owned();
        let body = self.transport.body(response, MAX_ANSWER, "the token", false).await?;
        let token: Token =
            serde_json::from_slice(&body).map_err(|_| Error::NotRegistry { at: at.clone(), what: asked.what.to_owned(), kind })?;
        let value = self.header(&format!("Bearer {}", token.token.or(token.access_token).unwrap_or_default()), &at)?;
        let life = token.expires_in.map_or(SHORTEST, Duration::from_secs).min(LONGEST);
        // A token that ends during a pull is asked for again; most of them need not be.
        Ok((Some(value), life.saturating_sub(life / 4)))
    }

    fn token_request<'a>(&self, mut url: Url, service: Option<&str>, basic: Option<&'a HeaderValue>) -> Request<'a> {
        let scope = format!("repository:{}:{}", self.reference.repository(), self.scope.actions());
        if let Credentials::IdentityToken { token } = self.credentials {
            // The encoder of URLs is the encoder of forms.
            let mut form = url.clone();
            form.set_query(None);
            form.query_pairs_mut()
                .append_pair("grant_type", "refresh_token")
                .append_pair("client_id", "weir")
                .append_pair("service", service.unwrap_or_default())
                .append_pair("scope", &scope)
                .append_pair("refresh_token", token.expose());
            let form = form.query().map(ToOwned::to_owned);
            return Request { form, ..Request::new(Method::POST, url, JSON) };
        }
        if let Some(service) = service {
            url.query_pairs_mut().append_pair("service", service);
        }
        url.query_pairs_mut().append_pair("scope", &scope);
        Request::get(url, JSON, basic)
    }
}

#[derive(Deserialize)]
struct Token {
    #[serde(default)]
    token: Option<String>,
    #[serde(default)]
    access_token: Option<String>,
    #[serde(default)]
    expires_in: Option<u64>,
}

/// The best challenge of a 401; Bearer wins over Basic.
fn challenge(headers: &HeaderMap, at: &str) -> Result<Challenge, Error> {
    let mut basic = false;
    let mut seen = Vec::new();
    for value in headers.get_all(WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok()) {
        for challenge in ChallengeParser::new(value).flatten() {
            let param =
                |name: &str| challenge.params.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_unescaped());
            if let Some(realm) = param("realm").filter(|_| challenge.scheme.eq_ignore_ascii_case("bearer")) {
                return Ok(Challenge::Bearer { realm, service: param("service") });
            }
            basic |= challenge.scheme.eq_ignore_ascii_case("basic");
            seen.push(challenge.scheme.to_owned());
        }
    }
    if basic { Ok(Challenge::Basic) } else { Err(Error::Challenge { at: at.to_owned(), challenge: text::said(&seen.join(", ")) }) }
}

impl Tokens {
    fn get(&self, key: &Key) -> Option<Option<HeaderValue>> {
        let tokens = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tokens.get(key).filter(|kept| kept.until > Instant::now()).map(|kept| kept.value.clone())
    }

    fn put(&self, key: Key, value: Option<HeaderValue>, life: Duration) {
        let mut tokens = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        tokens.retain(|_, kept| kept.until > now);
        if tokens.len() >= MAX_TOKENS {
            let oldest = tokens.iter().min_by_key(|(_, kept)| kept.until).map(|(key, _)| key.clone());
            oldest.and_then(|key| tokens.remove(&key));
        }
        tokens.insert(key, Kept { value, until: now + life });
    }

    pub(super) fn drop(&self, key: &Key) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}
