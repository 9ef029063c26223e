//! Image references: `registry/repository:tag@digest`.

use std::{
    fmt,
    net::{Ipv4Addr, Ipv6Addr},
    str::FromStr,
};

use super::{digest, text};

/// The registry of references that name none, as references and Docker's files write it.
pub(super) const DOCKER: &str = "docker.io";
/// Where Docker Hub serves the registry API.
const DOCKER_API: &str = "registry-1.docker.io";
/// Other names of Docker Hub.
const DOCKER_ALIASES: [&str; 3] = ["index.docker.io", DOCKER_API, "registry.hub.docker.com"];
/// Longest reference, bytes: registry, repository, tag and digest at their own limits.
const MAX_TEXT: usize = 1_024;
/// Longest repository, bytes.
const MAX_REPOSITORY: usize = 255;
/// Longest tag, bytes.
const MAX_TAG: usize = 128;

/// A parsed image reference. Its `Display` is the canonical form: registry, repository, then tag or digest or both.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reference {
    registry: String,
    repository: String,
    tag: Option<String>,
    digest: Option<String>,
}

/// A text that is no image reference.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("image reference \"{}\": {problem}", text::name(.text))]
pub struct ReferenceError {
    /// The text.
    pub text: String,
    /// What is wrong with it.
    pub problem: ReferenceProblem,
}

/// What is wrong with a reference.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReferenceProblem {
    /// Nothing given.
    #[error("it is empty; write registry/repository:tag")]
    Empty,
    /// Longer than any reference.
    #[error("it has {0} bytes, at most {MAX_TEXT} are allowed")]
    TooLong(usize),
    /// White space or control characters.
    #[error("it holds white space or control characters; remove them")]
    WhiteSpace,
    /// A URL.
    #[error("it is no URL; leave out \"{}://\"", text::name(.0))]
    Scheme(String),
    /// Host or port cannot be one.
    #[error("\"{}\" is no registry; write host or host:port, an IPv6 address in brackets", text::name(.0))]
    Registry(String),
    /// No repository.
    #[error("it names no repository; write registry/repository:tag")]
    NoRepository,
    /// Upper case in the repository.
    #[error("repository \"{}\" has upper-case letters; repositories are lower case", text::name(.0))]
    UpperCase(String),
    /// Too long.
    #[error("its repository has {0} bytes, at most {MAX_REPOSITORY} are allowed")]
    LongRepository(usize),
    /// A part between slashes that is no name.
    #[error(
        "\"{}\" cannot be a part of a repository; parts are letters and digits, joined by one `.`, one or two `_`, or any number of `-`",
        text::name(.0)
    )]
    Component(String),
    /// Not a tag.
    #[error("\"{}\" is no tag; a tag has 1 to {MAX_TAG} letters, digits, `_`, `.` or `-`, and starts with neither `.` nor `-`", text::name(.0))]
    Tag(String),
    /// Not a digest.
    #[error("\"{}\" is no digest; write sha256: and 64 lower-case hexadecimal digits (or sha512: and 128)", text::name(.0))]
    Digest(String),
}

impl Reference {
    /// Parses `text`. Without a registry it is `docker.io`, without a namespace there `library`, without tag and digest `latest`.
    ///
    /// # Errors
    /// Names the text and what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, ReferenceError> {
        parse(text).map_err(|problem| ReferenceError { text: text.to_owned(), problem })
    }

    /// Host, and port where one is given; `docker.io` for Docker Hub.
    #[must_use]
    pub fn registry(&self) -> &str {
        &self.registry
    }

    /// The repository inside the registry, such as `library/busybox`.
    #[must_use]
    pub fn repository(&self) -> &str {
        &self.repository
    }

    /// The tag, if there is one. A digest wins over it.
    #[must_use]
    pub fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }

    /// The digest, if there is one.
    #[must_use]
    pub fn digest(&self) -> Option<&str> {
        self.digest.as_deref()
    }

    /// The same reference, pinned to `digest`.
    ///
    /// # Errors
    /// When `digest` is none.
    pub fn with_digest(&self, digest: &str) -> Result<Self, ReferenceError> {
        if digest::valid(digest) {
            return Ok(Self { digest: Some(digest.to_owned()), ..self.clone() });
        }
        Err(ReferenceError { text: self.to_string(), problem: ReferenceProblem::Digest(digest.to_owned()) })
    }

    /// The same repository under another tag, without a digest.
    ///
    /// # Errors
    /// When `tag` is none.
    pub fn with_tag(&self, tag: &str) -> Result<Self, ReferenceError> {
        Self::parse(&format!("{}:{tag}", self.place()))
    }

    /// The same version at `location`, which stands for `prefix` of this one. Both come from [`prefix`].
    pub(super) fn moved(&self, prefix: &str, location: &str) -> Result<Self, ReferenceError> {
        let place = self.place();
        let text = format!("{location}{}", below(&place, prefix).unwrap_or_default());
        let moved = text.split_once('/').ok_or(ReferenceProblem::NoRepository).and_then(|(registry, repository)| {
            check_repository(repository)?;
            Ok(Self { registry: registry.to_owned(), repository: repository.to_owned(), ..self.clone() })
        });
        moved.map_err(|problem| ReferenceError { text, problem })
    }

    /// Registry and repository: what prefixes and credentials are matched with.
    #[must_use]
    pub fn place(&self) -> String {
        format!("{}/{}", self.registry, self.repository)
    }

    /// Host and port of the registry's API.
    pub(super) fn api(&self) -> &str {
        if self.registry == DOCKER { DOCKER_API } else { &self.registry }
    }

    /// What a manifest is asked for with: the digest, else the tag.
    pub(super) fn version(&self) -> &str {
        self.digest.as_deref().or(self.tag.as_deref()).unwrap_or("latest")
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.registry, self.repository)?;
        if let Some(tag) = &self.tag {
            write!(f, ":{tag}")?;
        }
        self.digest.as_ref().map_or(Ok(()), |digest| write!(f, "@{digest}"))
    }
}

impl FromStr for Reference {
    type Err = ReferenceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

/// Docker Hub has more names than one.
pub(super) fn canonical_host(host: &str) -> String {
    let host = host.to_ascii_lowercase();
    if DOCKER_ALIASES.contains(&host.as_str()) { DOCKER.to_owned() } else { host }
}

/// What `place` has after `prefix`, if it is below or at it.
pub(super) fn below<'p>(place: &'p str, prefix: &str) -> Option<&'p str> {
    place.strip_prefix(prefix).filter(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// A registry, or a registry and the beginning of repositories, in its canonical form.
pub(super) fn prefix(text: &str) -> Result<String, ReferenceProblem> {
    plain(text)?;
    let text = text.trim_end_matches('/');
    let (host, path) = text.split_once('/').map_or((text, None), |(host, path)| (host, Some(path)));
    if !names_registry(host) {
        return Err(ReferenceProblem::Registry(host.to_owned()));
    }
    let registry = checked_registry(host)?;
    let Some(path) = path else { return Ok(registry) };
    check_repository(path)?;
    Ok(format!("{registry}/{path}"))
}

/// Whether the first part of a reference is a registry, or of a repository of Docker Hub.
fn names_registry(first: &str) -> bool {
    first == "localhost" || first.contains(['.', ':', '['])
}

/// `host[:port]` of a [`prefix`], and `host` without brackets.
pub(super) fn authority(prefix: &str) -> (&str, &str) {
    let authority = prefix.split('/').next().unwrap_or_default();
    let host = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address,
        None => authority.split(':').next().unwrap_or_default(),
    };
    (authority, host)
}

fn parse(text: &str) -> Result<Reference, ReferenceProblem> {
    plain(text)?;
    let (name, digest) = match text.split_once('@') {
        Some((name, digest)) if digest::valid(digest) => (name, Some(digest.to_owned())),
        Some((_, digest)) => return Err(ReferenceProblem::Digest(digest.to_owned())),
        None => (text, None),
    };
    // A colon before the last slash belongs to a port, one before a bracket to an IPv6 address.
    let (name, tag) = match name.rsplit_once(':') {
        Some((name, tag)) if !tag.contains(['/', ']']) => (name, Some(checked_tag(tag)?)),
        Some(_) | None => (name, None),
    };
    let (registry, rest) = match name.split_once('/') {
        Some((host, rest)) if names_registry(host) => (checked_registry(host)?, rest),
        Some(_) | None if name.starts_with('[') => return Err(ReferenceProblem::NoRepository),
        Some(_) | None => (DOCKER.to_owned(), name),
    };
    let repository =
        if registry == DOCKER && !rest.contains('/') && !rest.is_empty() { format!("library/{rest}") } else { rest.to_owned() };
    check_repository(&repository)?;
    let tag = tag.or_else(|| digest.is_none().then(|| "latest".to_owned()));
    Ok(Reference { registry, repository, tag, digest })
}

fn plain(text: &str) -> Result<(), ReferenceProblem> {
    if text.is_empty() {
        return Err(ReferenceProblem::Empty);
    }
    if text.len() > MAX_TEXT {
        return Err(ReferenceProblem::TooLong(text.len()));
    }
    if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err(ReferenceProblem::WhiteSpace);
    }
    text.split_once("://").map_or(Ok(()), |(scheme, _)| Err(ReferenceProblem::Scheme(scheme.to_owned())))
}

pub(super) fn checked_tag(tag: &str) -> Result<String, ReferenceProblem> {
    let first = tag.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_');
    let rest = tag.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-'));
    if first && rest && tag.len() <= MAX_TAG { Ok(tag.to_owned()) } else { Err(ReferenceProblem::Tag(tag.to_owned())) }
}

fn checked_registry(text: &str) -> Result<String, ReferenceProblem> {
    let wrong = || ReferenceProblem::Registry(text.to_owned());
    let (host, port) = match text.strip_prefix('[').map(|rest| rest.split_once(']')) {
        Some(Some((address, rest))) if address.parse::<Ipv6Addr>().is_ok() => (address, rest),
        Some(_) => return Err(wrong()),
        None => {
            let host = text.split(':').next().unwrap_or_default();
            if !host.split('.').all(label) || (host.rsplit('.').next().is_some_and(number) && host.parse::<Ipv4Addr>().is_err()) {
                return Err(wrong());
            }
            (host, text.strip_prefix(host).unwrap_or_default())
        }
    };
    let port_is_right = |port: &str| port.bytes().all(|b| b.is_ascii_digit()) && port.parse::<u16>().is_ok_and(|port| port > 0);
    if !port.is_empty() && !port.strip_prefix(':').is_some_and(port_is_right) {
        return Err(wrong());
    }
    if host.contains(':') { Ok(text.to_ascii_lowercase()) } else { Ok(canonical_host(text)) }
}

fn label(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with('-')
        && !text.ends_with('-')
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
}

/// URLs take a host that ends in a number for an IPv4 address, in forms that nobody reads as one.
fn number(label: &str) -> bool {
    let hex = label.strip_prefix("0x").or_else(|| label.strip_prefix("0X"));
    hex.map_or_else(|| label.bytes().all(|b| b.is_ascii_digit()), |hex| hex.bytes().all(|b| b.is_ascii_hexdigit()))
}

fn check_repository(text: &str) -> Result<(), ReferenceProblem> {
    if text.is_empty() {
        return Err(ReferenceProblem::NoRepository);
    }
    if text.len() > MAX_REPOSITORY {
        return Err(ReferenceProblem::LongRepository(text.len()));
    }
    if text.bytes().any(|b| b.is_ascii_uppercase()) {
        return Err(ReferenceProblem::UpperCase(text.to_owned()));
    }
    match text.split('/').find(|part| !component(part)) {
        Some(part) => Err(ReferenceProblem::Component(part.to_owned())),
        None => Ok(()),
    }
}

/// Letters and digits, joined by separators. This also keeps `.` and `..` out of URLs.
fn component(text: &str) -> bool {
    let word = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let joined = text.split(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
    let ends = text.bytes().next().is_some_and(word) && text.bytes().last().is_some_and(word);
    ends && joined.into_iter().all(|between| matches!(between, "" | "." | "_" | "__") || between.bytes().all(|b| b == b'-'))
}
