//! What refers to a manifest: the referrers API, and the tag that stands in where a registry has none.

use reqwest::{Method, Url, header::HeaderMap};
use serde::Deserialize;

use super::{Error, Limits, auth::Session, bounded, call::Call, digest, http::place, manifest, text};

/// Answers that are read of a list that comes in parts.
const MAX_PARTS: usize = 4;
/// More than any honest artifact has.
const MAX_REFERRERS: usize = bounded::MAX_ITEMS;
const INDEX: &str = "application/vnd.oci.image.index.v1+json, application/vnd.docker.distribution.manifest.list.v2+json";

/// An entry of a list of referrers.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Referrer {
    pub(super) digest: String,
    #[serde(default)]
    pub(super) artifact_type: Option<String>,
}

#[derive(Deserialize)]
struct Index {
    #[serde(default, deserialize_with = "bounded::list")]
    manifests: Option<Vec<Referrer>>,
}

/// The tag that stands for a digest, with an ending: cosign's signatures have `.sig`. `None` where no tag can be that long.
pub(super) fn tag(digest: &str, ending: &str) -> Option<String> {
    let tag = format!("{}{ending}", digest.replacen(':', "-", 1));
    (tag.len() <= 128).then_some(tag)
}

impl Call<'_> {
    /// What refers to `digest`: what the API says and, where that is nothing, what is listed below the tag. Tools write the tag
    /// where they find no API, and a registry that learns the API later may not know of it.
    pub(super) async fn referrers(&mut self, digest: &str, limits: &Limits) -> Result<Vec<Referrer>, Error> {
        let session = &self.session;
        let listed = self.patience.attempt(|| session.referrers(digest, limits.manifest_bytes)).await?;
        if !listed.is_empty() {
            return Ok(listed);
        }
        let Some(tag) = tag(digest, "") else { return Ok(Vec::new()) };
        match self.manifest(&tag, limits).await {
            Ok(fetched) => self.session.entries(&fetched.bytes),
            Err(Error::NotFound { .. }) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }
}

impl Session<'_> {
    /// What the API says; nothing where there is none.
    async fn referrers(&self, digest: &str, most: u64) -> Result<Vec<Referrer>, Error> {
        let mut next = Some(self.url("referrers", digest)?);
        let mut all = Vec::new();
        for _ in 0..MAX_PARTS {
            let Some(url) = next.take() else { break };
            let Some((part, more)) = self.part(&url, digest, most).await? else { break };
            all.extend(part);
            // The rest of a list is where the list is.
            next = more.filter(|more| more.origin() == url.origin());
        }
        all.truncate(MAX_REFERRERS);
        Ok(all)
    }

    /// One answer, and where the next one is.
    async fn part(&self, url: &Url, digest: &str, most: u64) -> Result<Option<(Vec<Referrer>, Option<Url>)>, Error> {
        let what = format!("the list of what refers to {digest} of {}", self.reference.place());
        let response = match self.ask(&Method::GET, url, INDEX, &what, &what).await {
            Ok(response) => response,
            // 404 is what the specification asks of a registry without the API; others answer like this to paths they do not know.
            Err(Error::NotFound { .. } | Error::Status { status: 400 | 405 | 406 | 501, .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let more = next(response.headers(), url);
        let at = place(response.url());
        let bytes = self.transport.body(response, most, &what, false).await?;
        if !bytes.trim_ascii_start().starts_with(b"{") {
            tracing::debug!(%at, "the referrers API answers with something that is no JSON, so there is none");
            return Ok(None);
        }
        Ok(Some((self.entries(&bytes)?, more)))
    }

    fn entries(&self, bytes: &[u8]) -> Result<Vec<Referrer>, Error> {
        let useless = |problem| Error::Manifest { reference: self.reference.place(), source: Box::new(problem) };
        let index: Index = serde_json::from_slice(bytes).map_err(|e| useless(manifest::Error::Malformed(text::said(&e.to_string()))))?;
        let entries = index.manifests.unwrap_or_default();
        match entries.iter().find(|entry| !digest::valid(&entry.digest)) {
            Some(wrong) => Err(useless(manifest::Error::Digest(wrong.digest.clone()))),
            None => Ok(entries),
        }
    }
}

/// The `next` of a `Link` header, as `<url>; rel="next"`.
fn next(headers: &HeaderMap, base: &Url) -> Option<Url> {
    let links = headers.get_all(reqwest::header::LINK).iter().filter_map(|link| link.to_str().ok()).flat_map(|link| link.split(','));
    let mut targets = links.filter_map(|link| {
        let (target, parameters) = link.trim().strip_prefix('<')?.split_once('>')?;
        parameters.to_ascii_lowercase().replace('"', "").contains("rel=next").then(|| base.join(target).ok())?
    });
    targets.next()
}
