//! Tags of a repository, page by page.

use std::fmt;

use reqwest::{
    Method, Url,
    header::{HeaderMap, LINK},
};
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, SeqAccess, Visitor},
};

use super::{
    Error,
    auth::Session,
    call::Call,
    http::{content_type, place},
    reference::checked_tag,
};

/// Tags that are read. A part of them would hide the newest, so more are an error.
const MOST: usize = 10_000;
/// Bytes that are read for them, over all pages.
const MOST_BYTES: u64 = 4 << 20;
/// Pages that are read; registries give 50 to 1,000 tags in one.
const MOST_PAGES: usize = 512;
/// Tags asked for in one page.
const PAGE: &str = "1000";

/// One page.
struct Page {
    tags: Vec<String>,
    bytes: u64,
    next: Option<Url>,
}

#[derive(Deserialize)]
struct List {
    tags: Option<Names>,
}

/// Names, of which one more than is allowed is kept: then it is known that there are too many.
struct Names(Vec<String>);

impl<'de> Deserialize<'de> for Names {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct List;

        impl<'de> Visitor<'de> for List {
            type Value = Names;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of tags")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Names, A::Error> {
                let mut names = Vec::new();
                while names.len() <= MOST {
                    match from.next_element()? {
                        Some(name) => names.push(name),
                        None => return Ok(Names(names)),
                    }
                }
                while from.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Names(names))
            }
        }
        from.deserialize_seq(List)
    }
}

impl Call<'_> {
    pub(super) async fn tags(mut self) -> Result<Vec<String>, Error> {
        let session = &self.session;
        let many = || Error::ManyTags { place: session.reference.place(), most: MOST };
        let mut url = session.url("tags", "list")?;
        url.query_pairs_mut().append_pair("n", PAGE);
        let (mut tags, mut left) = (Vec::new(), MOST_BYTES);
        for _ in 0..MOST_PAGES {
            let page = match self.patience.attempt(|| session.page(&url, left)).await {
                Err(Error::TooLarge { .. }) => return Err(many()),
                page => page?,
            };
            left = left.saturating_sub(page.bytes);
            if tags.len().saturating_add(page.tags.len()) > MOST {
                return Err(many());
            }
            // What is no tag cannot be asked for.
            tags.extend(page.tags.into_iter().filter(|tag| checked_tag(tag).is_ok()));
            let Some(next) = page.next else { return Ok(tags) };
            url = next;
        }
        Err(many())
    }
}

impl Session<'_> {
    async fn page(&self, url: &Url, most: u64) -> Result<Page, Error> {
        let what = format!("the tags of {}", self.reference.place());
        let response = self.ask(&Method::GET, url, "application/json", &what, &self.reference.place()).await?;
        let (at, kind) = (place(response.url()), content_type(response.headers()).to_owned());
        let next = next(response.headers()).and_then(|link| follow(url, &link));
        let body = self.transport.body(response, most, &what, false).await?;
        let list: List = serde_json::from_slice(&body).map_err(|_| Error::NotRegistry { at, what, kind })?;
        Ok(Page { tags: list.tags.map(|names| names.0).unwrap_or_default(), bytes: body.len() as u64, next })
    }
}

/// The next page. Registries behind proxies write their inner host and scheme there; only path and query are taken, so that nothing
/// leaves the host that was asked.
fn follow(from: &Url, link: &str) -> Option<Url> {
    let there = from.join(link).ok()?;
    let mut next = from.clone();
    next.set_path(there.path());
    next.set_query(there.query());
    Some(next)
}

/// The target of `Link: <…>; rel="next"`.
fn next(headers: &HeaderMap) -> Option<String> {
    let values = headers.get_all(LINK).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(links).find(|(_, rel)| *rel).map(|(target, _)| target.to_owned())
}

/// Targets, and whether they are the next page. A target may hold commas.
fn links(value: &str) -> Vec<(&str, bool)> {
    let mut found = Vec::new();
    let mut rest = value;
    while let Some((target, after)) = rest.split_once('<').and_then(|(_, after)| after.split_once('>')) {
        let parameters = after.split_once(',').map_or(after, |(parameters, _)| parameters);
        let is_next = parameters
            .split(';')
            .filter_map(|parameter| parameter.split_once('='))
            .any(|(name, value)| name.trim().eq_ignore_ascii_case("rel") && value.trim().trim_matches('"').eq_ignore_ascii_case("next"));
        found.push((target, is_next));
        rest = after;
    }
    found
}
