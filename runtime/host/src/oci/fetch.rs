//! Single requests to a registry, without retries: what comes back is what was asked for, or an error.

use std::cmp::Ordering;

use reqwest::{Method, Response, Url, header::HeaderMap};

use super::{
    Error,
    answer::{self, Asked},
    auth::Session,
    digest,
    http::{Request, content_type, place, same_origin},
    manifest::{self, Descriptor},
};

/// Where registries tell the digest of a manifest.
pub(super) const DIGEST: &str = "docker-content-digest";

/// A manifest as it came.
pub(super) struct Fetched {
    pub(super) bytes: Vec<u8>,
    pub(super) digest: String,
    pub(super) media_type: String,
}

impl Session<'_> {
    pub(super) fn url(&self, kind: &str, version: &str) -> Result<Url, Error> {
        let mut url = self.transport.base(self.reference.api())?;
        url.set_path(&format!("/v2/{}/{kind}/{version}", self.reference.repository()));
        Ok(url)
    }

    /// Asks the registry, with a new token if the old one is refused.
    pub(super) async fn ask(&self, method: &Method, url: &Url, accept: &'static str, what: &str, missing: &str) -> Result<Response, Error> {
        self.exchange(&Request::new(method.clone(), url.clone(), accept), what, missing).await
    }

    /// As [`ask`](Self::ask), for requests that bring something. Places that a registry sends us to are shown no credentials, unless
    /// they are the registry itself.
    pub(super) async fn exchange(&self, request: &Request<'_>, what: &str, missing: &str) -> Result<Response, Error> {
        let mut again = same_origin(&request.url, &self.transport.base(self.reference.api())?);
        let mut authorization = if again { self.authorization().await? } else { None };
        loop {
            let response = self.transport.send(Request { authorization: authorization.as_ref(), ..request.clone() }).await?;
            if response.status().as_u16() == 401 && again && same_origin(response.url(), &request.url) {
                again = false;
                authorization = self.answer(&response).await?;
                continue;
            }
            let sent = !self.credentials.is_anonymous() && authorization.is_some();
            return answer::check(self, response, &Asked { what, missing: Some(missing), sent }).await;
        }
    }

    pub(super) async fn head(&self, version: &str) -> Result<HeaderMap, Error> {
        let what = self.reference.to_string();
        let url = self.url("manifests", version)?;
        let response = self.ask(&Method::HEAD, &url, manifest::ACCEPT, &what, &what).await;
        match response {
            Ok(response) => Ok(response.headers().clone()),
            // Not every registry knows HEAD; GET says the rest.
            Err(Error::Status { status: 400 | 405 | 501, .. }) => Ok(HeaderMap::new()),
            Err(error) => Err(error),
        }
    }

    pub(super) async fn manifest(&self, version: &str, most: u64) -> Result<Fetched, Error> {
        let what =
            if self.reference.version() == version { self.reference.to_string() } else { format!("{version} of {}", self.reference) };
        let response = self.ask(&Method::GET, &self.url("manifests", version)?, manifest::ACCEPT, &what, &what).await?;
        let at = place(response.url());
        let media_type = content_type(response.headers()).to_owned();
        let claimed = response.headers().get(DIGEST).and_then(|digest| digest.to_str().ok()).map(ToOwned::to_owned);
        let bytes = self.transport.body(response, most, &format!("the manifest of {what}"), false).await?;
        if !bytes.trim_ascii_start().starts_with(b"{") {
            let kind = if media_type.is_empty() { "something that is no JSON".to_owned() } else { media_type };
            return Err(Error::NotRegistry { at, what, kind });
        }
        let pinned = digest::valid(version).then_some(version);
        let digest = digest::same_kind(&bytes, pinned.unwrap_or_default());
        for expected in [pinned, claimed.as_deref().filter(|digest| digest::valid(digest))].into_iter().flatten() {
            same(&format!("the manifest of {what}"), expected, &digest::same_kind(&bytes, expected))?;
        }
        Ok(Fetched { bytes, digest, media_type })
    }

    pub(super) async fn blob(&self, layer: &Descriptor) -> Result<Vec<u8>, Error> {
        let what = format!("layer {} of {}", layer.digest, self.reference);
        let response = self.ask(&Method::GET, &self.url("blobs", &layer.digest)?, "*/*", &what, &what).await?;
        let announced = response.content_length();
        length(&what, layer.size, announced.unwrap_or(layer.size))?;
        let at = place(response.url());
        let moved = |done| self.moved(&what, done, layer.size);
        let bytes = self.transport.read(response, layer.size, &what, true, &moved).await?;
        if announced.is_none() && (bytes.len() as u64) < layer.size {
            // Without a length, the end of the connection is the end of the answer.
            return Err(Error::Network { at, problem: format!("{what} ends after {} of {} bytes", bytes.len(), layer.size) });
        }
        same(&what, &layer.digest, &digest::same_kind(&bytes, &layer.digest))?;
        Ok(bytes)
    }
}

pub(super) fn length(what: &str, declared: u64, found: u64) -> Result<(), Error> {
    match found.cmp(&declared) {
        Ordering::Equal => Ok(()),
        Ordering::Less => Err(Error::TooShort { what: what.to_owned(), found, declared }),
        Ordering::Greater => Err(Error::TooLarge { what: what.to_owned(), most: declared, declared: true }),
    }
}

pub(super) fn same(what: &str, expected: &str, found: &str) -> Result<(), Error> {
    if expected == found {
        return Ok(());
    }
    Err(Error::Digest { what: what.to_owned(), expected: expected.to_owned(), found: found.to_owned() })
}
