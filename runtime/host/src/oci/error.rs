//! Why a pull fails, in words for whoever named the image.

use std::time::Duration;

use super::{CredentialsError, ReferenceError, component, dial::Refused, manifest, text, unpack};

/// Why a pull fails.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operator does not allow the registry or repository.
    #[error("{place} is outside of the allowed registries ({allowed}); use one of them, or ask the operator to allow it")]
    NotAllowed {
        /// Registry and repository.
        place: String,
        /// Allowed prefixes.
        allowed: String,
    },
    /// An address that is not dialled.
    #[error(transparent)]
    Dial(#[from] Refused),
    /// A redirect or a token service in plain HTTP.
    #[error("{from} leads to {place} in plain HTTP, which is not allowed for it; the registry must stay with https")]
    Downgrade {
        /// Who leads there.
        from: String,
        /// Where.
        place: String,
    },
    /// Redirects without end, or not to a URL.
    #[error("{place} redirects {problem}")]
    Redirect {
        /// Last place.
        place: String,
        /// Why it is not followed.
        problem: &'static str,
    },
    /// 401.
    #[error("{at} {} for {place}{}; {}", if *.sent { "refuses the credentials" } else { "wants credentials" }, quoted(.said), if *.sent {
        "check the pull secret: user, token and its scope, and whether the repository exists"
    } else {
        "name a pull secret with an entry for it, and check that the repository exists"
    })]
    Unauthorized {
        /// Host that said so: the registry or its token service.
        at: String,
        /// Registry and repository.
        place: String,
        /// Whether credentials were sent.
        sent: bool,
        /// Its own words.
        said: String,
    },
    /// 403.
    #[error("{at} denies access to {place} {}{}; grant the account {right} access", if *.sent { "to these credentials" } else { "without credentials" }, quoted(.said))]
    Denied {
        /// Host that said so.
        at: String,
        /// Registry and repository.
        place: String,
        /// Whether credentials were sent.
        sent: bool,
        /// What is missing: read or write.
        right: &'static str,
        /// Its own words.
        said: String,
    },
    /// 404.
    #[error("{what} does not exist{}; check repository and tag", quoted(.said))]
    NotFound {
        /// Reference, or blob and reference.
        what: String,
        /// The registry's own words.
        said: String,
    },
    /// Any other status.
    #[error("{at} answers {status} to {what}{}", quoted(.said))]
    Status {
        /// Host.
        at: String,
        /// HTTP status.
        status: u16,
        /// What was asked for.
        what: String,
        /// Its code of the specification, such as `MANIFEST_INVALID`; empty where it gives none.
        code: String,
        /// Its own words.
        said: String,
        /// How long it asks to wait.
        retry_after: Option<Duration>,
    },
    /// The connection fails.
    #[error("{at} cannot be reached: {problem}")]
    Network {
        /// Host.
        at: String,
        /// Text of the network.
        problem: String,
    },
    /// TLS fails.
    #[error("no trusted connection to {at}: {problem}; {cure}")]
    Tls {
        /// Host.
        at: String,
        /// Text of TLS.
        problem: String,
        /// What helps.
        cure: &'static str,
    },
    /// Too slow.
    #[error("{what} takes longer than {} s; the registry or the way to it is slow", .limit.as_secs_f32())]
    Timeout {
        /// Connecting, an answer, or the whole.
        what: String,
        /// The limit.
        limit: Duration,
    },
    /// No registry.
    #[error("{at} answers {what} with {}, so it is no registry (or a proxy or login page is in between); check host and port", text::name(.kind))]
    NotRegistry {
        /// Host.
        at: String,
        /// What was asked for.
        what: String,
        /// Type of the answer.
        kind: String,
    },
    /// The registry wants an authentication that nobody knows.
    #[error("{at} asks for an unknown kind of authentication ({}); Bearer and Basic are known", text::name(.challenge))]
    Challenge {
        /// Host.
        at: String,
        /// What it asks for.
        challenge: String,
    },
    /// Credentials of a kind that the registry does not take.
    #[error("{at} takes a user name and a password only; put them into the pull secret instead of a token")]
    WrongKind {
        /// Host.
        at: String,
    },
    /// The content is another.
    #[error("{what} has digest {found} instead of {expected}; registry or proxy corrupts it")]
    Digest {
        /// Manifest or layer.
        what: String,
        /// Digest named.
        expected: String,
        /// Digest of what came.
        found: String,
    },
    /// More than allowed or announced.
    #[error("{what} has more than {}, which is {}", text::bytes(*.most), if *.declared { "what its manifest declares; push it again" } else { "the limit" })]
    TooLarge {
        /// Manifest, layer, token.
        what: String,
        /// Bytes allowed.
        most: u64,
        /// Whether the manifest set the limit.
        declared: bool,
    },
    /// Less than announced.
    #[error("{what} has {found} bytes, its manifest declares {declared}; push it again")]
    TooShort {
        /// Layer.
        what: String,
        /// Bytes found.
        found: u64,
        /// Bytes declared.
        declared: u64,
    },
    /// The manifest is of no use.
    #[error("{reference}: {source}")]
    Manifest {
        /// Reference.
        reference: String,
        /// Why.
        source: Box<manifest::Error>,
    },
    /// A layer is of no use.
    #[error("{reference}, layer {number}: {source}")]
    Layer {
        /// Reference.
        reference: String,
        /// Position, from 1.
        number: usize,
        /// Why.
        source: Box<unpack::Error>,
    },
    /// There is no component in it.
    #[error("{reference}: {source}")]
    Component {
        /// Reference.
        reference: String,
        /// Why.
        source: Box<component::Error>,
    },
    /// More tags than anybody wants to choose from.
    #[error("{place} has more tags than are read ({most}, or 4 MiB of them); name a tag or a digest, or delete old tags")]
    ManyTags {
        /// Registry and repository.
        place: String,
        /// How many are read.
        most: usize,
    },
    /// A mirror that cannot hold the repository.
    #[error("mirror {mirror} cannot stand for {place}: {source}; give the mirror a path")]
    Mirror {
        /// The mirror.
        mirror: String,
        /// Registry and repository.
        place: String,
        /// Why.
        source: ReferenceError,
    },
    /// Credentials for a mirror that cannot be read.
    #[error("mirror {place}: {source}")]
    MirrorCredentials {
        /// The mirror.
        place: String,
        /// Why.
        source: CredentialsError,
    },
    /// No place had it.
    #[error("{last}; before that {}", .mirrors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Everywhere {
        /// What the mirrors said, in order.
        mirrors: Vec<Error>,
        /// What the last place said: the registry itself, unless only mirrors may be asked.
        last: Box<Error>,
    },
    /// A decoder gave up on hostile content.
    #[error("{reference}, layer {number}: its decoder failed; push it again, uncompressed or with gzip")]
    Decoder {
        /// Reference.
        reference: String,
        /// Position, from 1.
        number: usize,
    },
}

impl Error {
    /// Whether the same pull may succeed later without anybody changing anything.
    #[must_use]
    pub fn transient(&self) -> bool {
        match self {
            Self::Status { status, .. } => matches!(status, 408 | 429 | 500..),
            Self::Network { .. } | Self::Timeout { .. } => true,
            Self::NotAllowed { .. }
            | Self::Dial(_)
            | Self::Downgrade { .. }
            | Self::Redirect { .. }
            | Self::Unauthorized { .. }
            | Self::Denied { .. }
            | Self::NotFound { .. }
            | Self::Tls { .. }
            | Self::NotRegistry { .. }
            | Self::Challenge { .. }
            | Self::WrongKind { .. }
            | Self::Digest { .. }
            | Self::TooLarge { .. }
            | Self::TooShort { .. }
            | Self::Manifest { .. }
            | Self::Layer { .. }
            | Self::Component { .. }
            | Self::ManyTags { .. }
            | Self::Mirror { .. }
            | Self::MirrorCredentials { .. }
            | Self::Decoder { .. } => false,
            Self::Everywhere { mirrors, last } => last.transient() || mirrors.iter().any(Self::transient),
        }
    }

    /// Whether another place may have an answer: not when the content itself is wrong.
    pub(super) fn elsewhere(&self) -> bool {
        match self {
            Self::Dial(_)
            | Self::Downgrade { .. }
            | Self::Redirect { .. }
            | Self::Unauthorized { .. }
            | Self::Denied { .. }
            | Self::NotFound { .. }
            | Self::Status { .. }
            | Self::Network { .. }
            | Self::Tls { .. }
            | Self::Timeout { .. }
            | Self::NotRegistry { .. }
            | Self::Challenge { .. }
            | Self::WrongKind { .. }
            | Self::Digest { .. }
            | Self::TooLarge { .. }
            | Self::TooShort { .. }
            | Self::Mirror { .. }
            | Self::MirrorCredentials { .. } => true,
            Self::NotAllowed { .. }
            | Self::Manifest { .. }
            | Self::Layer { .. }
            | Self::Component { .. }
            | Self::ManyTags { .. }
            | Self::Everywhere { .. }
            | Self::Decoder { .. } => false,
        }
    }

    /// How long the registry asks to wait, if it does.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status { retry_after, .. } => *retry_after,
            Self::Everywhere { last, .. } => last.retry_after(),
            Self::NotAllowed { .. }
            | Self::Dial(_)
            | Self::Downgrade { .. }
            | Self::Redirect { .. }
            | Self::Unauthorized { .. }
            | Self::Denied { .. }
            | Self::NotFound { .. }
            | Self::Network { .. }
            | Self::Tls { .. }
            | Self::Timeout { .. }
            | Self::NotRegistry { .. }
            | Self::Challenge { .. }
            | Self::WrongKind { .. }
            | Self::Digest { .. }
            | Self::TooLarge { .. }
            | Self::TooShort { .. }
            | Self::Manifest { .. }
            | Self::Layer { .. }
            | Self::Component { .. }
            | Self::ManyTags { .. }
            | Self::Mirror { .. }
            | Self::MirrorCredentials { .. }
            | Self::Decoder { .. } => None,
        }
    }
}

fn quoted(said: &str) -> String {
    if said.is_empty() { String::new() } else { format!(" (\"{said}\")") }
}
