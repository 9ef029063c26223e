//! Requests: every hop is checked, every body is capped.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use reqwest::{
    Certificate, Client, Method, NoProxy, Proxy, Response, Url,
    header::{ACCEPT, AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION},
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
    /// For requests that bring something; most processes never need it.
    sender: OnceLock<Client>,
    guard: Arc<Guard>,
    registries: Arc<Registries>,
    roots: Roots,
}

/// Who is trusted.
struct Roots {
    given: Vec<Certificate>,
    /// The system has no CAs.
    only_given: bool,
}

/// One request.
#[derive(Clone)]
pub(super) struct Request<'a> {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) accept: &'static str,
    pub(super) authorization: Option<&'a HeaderValue>,
    /// Fields of a form, encoded. They are secret.
    pub(super) form: Option<String>,
    pub(super) content: Option<Content<'a>>,
}

/// What is sent to be stored.
#[derive(Clone, Copy)]
pub(super) struct Content<'a> {
    pub(super) media_type: &'a str,
    pub(super) bytes: &'a [u8],
}

impl<'a> Request<'a> {
    pub(super) fn new(method: Method, url: Url, accept: &'static str) -> Self {
        Self { method, url, accept, authorization: None, form: None, content: None }
    }

    pub(super) fn get(url: Url, accept: &'static str, authorization: Option<&'a HeaderValue>) -> Self {
        Self { authorization, ..Self::new(Method::GET, url, accept) }
    }
}

impl Transport {
    /// With `ca` trusted beside the CAs of all registries.
    pub(super) fn new(registries: Arc<Registries>, ca: Option<&[u8]>) -> Result<Self, PullerError> {
        let guard = Arc::new(Guard::new(&registries.dial, &registries.proxies).map_err(PullerError::Listed)?);
        let mut roots = Roots { given: authorities(&registries, ca)?, only_given: false };
        let read = Some(registries.timeouts.read);
        let client = match build(&registries, &guard, &roots, read) {
            // An image without CAs must still serve registries in plain HTTP, and fail per registry otherwise.
            Err(PullerError::Client(_)) => {
                roots.only_given = true;
                build(&registries, &guard, &roots, read)?
            }
            done => done?,
        };
        Ok(Self { client, sender: OnceLock::new(), guard, registries, roots })
    }

    /// The wait for an answer begins when sending begins, and content may take long to send: only the call as a whole has a limit then.
    fn sender(&self, url: &Url) -> Result<&Client, Error> {
        if let Some(sender) = self.sender.get() {
            return Ok(sender);
        }
        let sender = build(&self.registries, &self.guard, &self.roots, None)
            .map_err(|error| Error::Network { at: place(url), problem: error.to_string() })?;
        Ok(self.sender.get_or_init(|| sender))
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
            // Other redirects turn what is sent into a GET.
            if request.content.is_some() && !matches!(response.status().as_u16(), 307 | 308) {
                return Err(Error::Redirect { place: from, problem: "a push to where nothing can be pushed" });
            }
            let next = next.to_str().ok().and_then(|next| request.url.join(next).ok());
            let next = next.ok_or_else(|| Error::Redirect { place: from.clone(), problem: "to something that is no URL" })?;
            self.downgrade(&from, &next)?;
            if !same_origin(&next, &request.url) {
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
        let client = if request.content.is_some() { self.sender(&request.url)? } else { &self.client };
        let mut builder = client.request(request.method.clone(), request.url.clone()).header(ACCEPT, request.accept);
        if let Some(authorization) = request.authorization {
            builder = builder.header(AUTHORIZATION, authorization);
        }
        if let Some(form) = &request.form {
            builder = builder.header(CONTENT_TYPE, "application/x-www-form-urlencoded").body(form.clone());
        }
        if let Some(Content { media_type, bytes }) = request.content {
            // Said even where it is zero: some registries want it of every POST.
            builder = builder.header(CONTENT_TYPE, media_type).header(CONTENT_LENGTH, bytes.len()).body(bytes.to_vec());
        }
        builder.send().await.map_err(|error| self.failed(&request.url, error))
    }

    /// The body, at most `most` bytes. `declared` says that the manifest, not the operator, set that limit.
    pub(super) async fn body(&self, response: Response, most: u64, what: &str, declared: bool) -> Result<Vec<u8>, Error> {
        self.read(response, most, what, declared, &|_| {}).await
    }

    /// As [`body`](Self::body); `moved` is told how many bytes there are.
    pub(super) async fn read(
        &self,
        mut response: Response,
        most: u64,
        what: &str,
        declared: bool,
        moved: &(dyn Fn(u64) + Sync),
    ) -> Result<Vec<u8>, Error> {
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
            moved(body.len() as u64);
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
            Some(_) if self.roots.only_given && self.roots.given.is_empty() => {
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

/// The CAs of all registries, and of `own` as bundle 0.
fn authorities(registries: &Registries, own: Option<&[u8]>) -> Result<Vec<Certificate>, PullerError> {
    let all = registries.ca_bundles.iter().enumerate().map(|(index, bundle)| (index + 1, bundle.as_slice()));
    let mut authorities = Vec::new();
    for (number, bundle) in all.chain(own.map(|bundle| (0, bundle))) {
        let mut found = certificates(bundle);
        if found.is_empty() {
            return Err(PullerError::Ca { number });
        }
        authorities.append(&mut found);
    }
    Ok(authorities)
}

/// The certificates of a PEM bundle; none if it is not one.
pub(super) fn certificates(bundle: &[u8]) -> Vec<Certificate> {
    Certificate::from_pem_bundle(bundle).unwrap_or_default()
}

fn build(registries: &Registries, guard: &Arc<Guard>, roots: &Roots, read: Option<Duration>) -> Result<Client, PullerError> {
    let user_agent = HeaderValue::from_str(&registries.user_agent).map_err(|_| PullerError::UserAgent)?;
    // `no_proxy` switches off what the client would read from the environment by itself.
    let mut builder = Client::builder()
        .no_proxy()
        .redirect(Policy::none())
        .referer(false)
        .user_agent(user_agent)
        .dns_resolver(Resolver(guard.clone()))
        .connect_timeout(registries.timeouts.connect)
        .pool_idle_timeout(IDLE)
        .pool_max_idle_per_host(2);
    if let Some(read) = read {
        builder = builder.read_timeout(read);
    }
    let no_proxy = || registries.proxies.no_proxy.as_deref().and_then(NoProxy::from_string);
    if let Some(proxy) = &registries.proxies.https {
        builder = builder.proxy(Proxy::https(proxy).map_err(|_| PullerError::Proxy("HTTPS"))?.no_proxy(no_proxy()));
    }
    if let Some(proxy) = &registries.proxies.http {
        builder = builder.proxy(Proxy::http(proxy).map_err(|_| PullerError::Proxy("HTTP"))?.no_proxy(no_proxy()));
    }
    let given = roots.given.iter().cloned();
    builder = if roots.only_given { builder.tls_certs_only(given) } else { builder.tls_certs_merge(given) };
    builder.build().map_err(|error| PullerError::Client(text::said(&format!("{error:?}"))))
}

fn redirect(response: &Response) -> Option<HeaderValue> {
    let follow = matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308);
    response.headers().get(LOCATION).filter(|_| follow).cloned()
}

/// Whether what is for one URL may be shown to the other.
pub(super) fn same_origin(one: &Url, other: &Url) -> bool {
    let origin = |url: &Url| (url.scheme().to_owned(), url.host_str().map(ToOwned::to_owned), url.port_or_known_default());
    origin(one) == origin(other)
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
