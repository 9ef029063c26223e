//! Requests: every hop is checked, every body is capped.

use std::{sync::Arc, time::Duration};

use reqwest::{
    Client, Method, NoProxy, Proxy, Response, Url,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION},
    redirect::Policy,
};

use super::{
    Error, PullerError, Registries,
    dial::{Guard, Refused, Resolver},
    text,
};

/// Redirects in a row.
const MAX_HOPS: usize = 5;
/// Idle connections are of no use until the next check for a new version.
const IDLE: Duration = Duration::from_secs(30);

/// The HTTP client and what it may do.
pub(super) struct Transport {
    client: Client,
    guard: Arc<Guard>,
    registries: Arc<Registries>,
    /// Neither the system nor the settings have CAs.
    rootless: bool,
}

/// One request.
pub(super) struct Request<'a> {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) accept: &'static str,
    pub(super) authorization: Option<&'a HeaderValue>,
    /// Fields of a form, encoded. They are secret.
    pub(super) form: Option<String>,
}

impl<'a> Request<'a> {
    pub(super) fn get(url: Url, accept: &'static str, authorization: Option<&'a HeaderValue>) -> Self {
        Self { method: Method::GET, url, accept, authorization, form: None }
    }
}

impl Transport {
    pub(super) fn new(registries: Arc<Registries>) -> Result<Self, PullerError> {
        let guard = Arc::new(Guard::new(&registries.dial, &registries.proxies).map_err(PullerError::Listed)?);
        let (client, rootless) = match build(&registries, &guard, false) {
            Ok(client) => (client, false),
            // An image without CAs must still serve registries in plain HTTP, and fail per registry otherwise.
            Err(PullerError::Client(_)) => (build(&registries, &guard, true)?, registries.ca_bundles.is_empty()),
            Err(error @ (PullerError::Ca { .. } | PullerError::Proxy(_) | PullerError::Listed(_) | PullerError::UserAgent)) => {
                return Err(error);
            }
        };
        Ok(Self { client, guard, registries, rootless })
    }

    /// Where the API of `authority` is.
    pub(super) fn base(&self, authority: &str) -> Result<Url, Error> {
        let https = format!("https://{authority}/");
        let not_a_host = || Error::Network { at: text::name(authority), problem: "it is no host name".to_owned() };
        let url = Url::parse(&https).map_err(|_| not_a_host())?;
        if !self.registries.plain(url.host_str().unwrap_or_default(), authority) {
            return Ok(url);
        }
        Url::parse(&format!("http://{authority}/")).map_err(|_| not_a_host())
    }

    /// Sends a request and follows redirects. Credentials go to the first host only.
    pub(super) async fn send(&self, mut request: Request<'_>) -> Result<Response, Error> {
        for _ in 0..=MAX_HOPS {
            let response = self.hop(&request).await?;
            let Some(next) = redirect(&response) else { return Ok(response) };
            let from = place(&request.url);
            if request.form.is_some() {
                return Err(Error::Redirect { place: from, problem: "a request that carries credentials" });
            }
            let next = next.to_str().ok().and_then(|next| request.url.join(next).ok());
            let next = next.ok_or_else(|| Error::Redirect { place: from.clone(), problem: "to something that is no URL" })?;
            self.downgrade(&from, &next)?;
            if origin(&next) != origin(&request.url) {
                request.authorization = None;
            }
            request.url = next;
        }
        Err(Error::Redirect { place: place(&request.url), problem: "too often" })
    }

    /// Refuses plain HTTP where it is not allowed.
    pub(super) fn downgrade(&self, from: &str, next: &Url) -> Result<(), Error> {
        let host = next.host_str().unwrap_or_default();
        match next.scheme() {
            "https" => Ok(()),
            "http" if self.registries.plain(host, &authority(next)) => Ok(()),
            _ => Err(Error::Downgrade { from: from.to_owned(), place: place(next) }),
        }
    }

    async fn hop(&self, request: &Request<'_>) -> Result<Response, Error> {
        self.guard.url(&request.url)?;
        let mut builder = self.client.request(request.method.clone(), request.url.clone()).header(ACCEPT, request.accept);
        if let Some(authorization) = request.authorization {
            builder = builder.header(AUTHORIZATION, authorization);
        }
        if let Some(form) = &request.form {
            builder = builder.header(CONTENT_TYPE, "application/x-www-form-urlencoded").body(form.clone());
        }
        builder.send().await.map_err(|error| self.failed(&request.url, error))
    }

    /// The body, at most `most` bytes. `declared` says that the manifest, not the operator, set that limit.
    pub(super) async fn body(&self, mut response: Response, most: u64, what: &str, declared: bool) -> Result<Vec<u8>, Error> {
        let too_large = || Error::TooLarge { what: what.to_owned(), most, declared };
        if response.content_length().is_some_and(|length| length > most) {
            return Err(too_large());
        }
        let url = response.url().clone();
        let expected = response.content_length().and_then(|length| usize::try_from(length).ok()).unwrap_or_default();
        let mut body: Vec<u8> = Vec::with_capacity(expected);
        while let Some(chunk) = response.chunk().await.map_err(|error| self.failed(&url, error))? {
            if (body.len() as u64).saturating_add(chunk.len() as u64) > most {
                return Err(too_large());
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    /// Says what a failed request means. URLs of redirects carry signatures, so only hosts are told.
    fn failed(&self, url: &Url, error: reqwest::Error) -> Error {
        let at = place(url);
        let times = self.registries.timeouts;
        if error.is_timeout() {
            let (what, limit) = if error.is_connect() { ("connecting to", times.connect) } else { ("an answer of", times.read) };
            return Error::Timeout { what: format!("{what} {at}"), limit };
        }
        let error = error.without_url();
        let causes = || std::iter::successors(Some(&error as &(dyn std::error::Error + 'static)), |error| error.source());
        if let Some(refused) = causes().find_map(<dyn std::error::Error>::downcast_ref::<Refused>) {
            return refused.clone().into();
        }
        let problem = text::said(&causes().last().map(ToString::to_string).unwrap_or_default());
        match causes().find_map(tls) {
            Some(_) if self.rootless => {
                Error::Tls { at, problem, cure: "there are no CA certificates on this system: install ca-certificates or give a CA bundle" }
            }
            Some(rustls::Error::InvalidCertificate(_)) => {
                Error::Tls { at, problem, cure: "give the CA of the registry to the operator, and check the host name in its certificate" }
            }
            Some(rustls::Error::InvalidMessage(_)) => {
                Error::Tls { at, problem, cure: "does it speak plain HTTP? The operator must list it as insecure then" }
            }
            Some(_) | None => Error::Network { at, problem },
        }
    }
}

/// rustls' errors travel inside of I/O errors, which may be inside of others, and whose `source` skips them.
fn tls<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a rustls::Error> {
    let inside = |error: &'a (dyn std::error::Error + 'static)| -> Option<&'a (dyn std::error::Error + 'static)> {
        error.downcast_ref::<std::io::Error>()?.get_ref().map(|inner| inner as _)
    };
    std::iter::successors(Some(error), |error| inside(*error)).find_map(|error| error.downcast_ref())
}

fn build(registries: &Registries, guard: &Arc<Guard>, only_given: bool) -> Result<Client, PullerError> {
    let user_agent = HeaderValue::from_str(&registries.user_agent).map_err(|_| PullerError::UserAgent)?;
    // `no_proxy` switches off what the client would read from the environment by itself.
    let mut builder = Client::builder()
        .no_proxy()
        .redirect(Policy::none())
        .referer(false)
        .user_agent(user_agent)
        .dns_resolver(Resolver(guard.clone()))
        .connect_timeout(registries.timeouts.connect)
        .read_timeout(registries.timeouts.read)
        .pool_idle_timeout(IDLE)
        .pool_max_idle_per_host(2);
    let no_proxy = || registries.proxies.no_proxy.as_deref().and_then(NoProxy::from_string);
    if let Some(proxy) = &registries.proxies.https {
        builder = builder.proxy(Proxy::https(proxy).map_err(|_| PullerError::Proxy("HTTPS"))?.no_proxy(no_proxy()));
    }
    if let Some(proxy) = &registries.proxies.http {
        builder = builder.proxy(Proxy::http(proxy).map_err(|_| PullerError::Proxy("HTTP"))?.no_proxy(no_proxy()));
    }
    let mut authorities = Vec::new();
    for (index, bundle) in registries.ca_bundles.iter().enumerate() {
        let certificates = reqwest::Certificate::from_pem_bundle(bundle).unwrap_or_default();
        if certificates.is_empty() {
            return Err(PullerError::Ca { number: index + 1 });
        }
        authorities.extend(certificates);
    }
    builder = if only_given { builder.tls_certs_only(authorities) } else { builder.tls_certs_merge(authorities) };
    builder.build().map_err(|error| PullerError::Client(text::said(&format!("{error:?}"))))
}

fn redirect(response: &Response) -> Option<HeaderValue> {
    let follow = matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308);
    response.headers().get(LOCATION).filter(|_| follow).cloned()
}

fn origin(url: &Url) -> (&str, Option<&str>, Option<u16>) {
    (url.scheme(), url.host_str(), url.port_or_known_default())
}

fn authority(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// A URL for a message: without user, path and query.
pub(super) fn place(url: &Url) -> String {
    text::name(&authority(url))
}

/// The type of an answer, for messages.
pub(super) fn content_type(headers: &HeaderMap) -> &str {
    headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default()
}
