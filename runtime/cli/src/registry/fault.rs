//! How a command ends when a registry or a file does not give what was asked for, and what helps at a command line.

use weir_host::oci::{Error, PushError, local};

use crate::exit::{Exit, Failure};

/// A pull that failed.
#[must_use]
pub fn pull(error: &Error) -> Failure {
    let cure = cure(error).map(|cure| format!(" ({cure})")).unwrap_or_default();
    Failure { exit: exit(error), message: format!("{error}{cure}") }
}

/// A push that failed.
#[must_use]
pub fn push(error: &PushError) -> Failure {
    match error {
        PushError::Pinned(_) => Failure::usage(error.to_string()),
        PushError::Layout { .. } => Failure { exit: Exit::Unavailable, message: error.to_string() },
        PushError::Registry(error) => pull(error),
    }
}

/// A file that is no artifact.
#[must_use]
pub fn local(error: &local::Error) -> Failure {
    let exit = match error {
        local::Error::Read { .. }
        | local::Error::Unknown { .. }
        | local::Error::NoLayout { .. }
        | local::Error::NoImage { .. }
        | local::Error::Images { .. }
        | local::Error::Missing { .. } => Exit::Usage,
        local::Error::Broken { .. } => Exit::Unverified,
        local::Error::TooLarge { .. } | local::Error::Manifest { .. } | local::Error::Content { .. } | local::Error::Component { .. } => {
            Exit::Incompatible
        }
    };
    Failure { exit, message: error.to_string() }
}

fn exit(error: &Error) -> Exit {
    match error {
        Error::NotAllowed { .. }
        | Error::Dial(_)
        | Error::Downgrade { .. }
        | Error::Redirect { .. }
        | Error::Unauthorized { .. }
        | Error::Denied { .. }
        | Error::NotFound { .. }
        | Error::Status { .. }
        | Error::Network { .. }
        | Error::Tls { .. }
        | Error::Timeout { .. }
        | Error::NotRegistry { .. }
        | Error::Challenge { .. }
        | Error::WrongKind { .. }
        | Error::ManyTags { .. }
        | Error::Mirror { .. }
        | Error::MirrorCredentials { .. } => Exit::Unavailable,
        Error::Everywhere { last, .. } => exit(last),
        // The content is not what its name or its manifest says.
        Error::Digest { .. } | Error::TooShort { .. } | Error::TooLarge { declared: true, .. } => Exit::Unverified,
        Error::TooLarge { declared: false, .. }
        | Error::Manifest { .. }
        | Error::Layer { .. }
        | Error::Component { .. }
        | Error::Decoder { .. } => Exit::Incompatible,
    }
}

/// The messages are those of the operator; at a command line other things help.
fn cure(error: &Error) -> Option<&'static str> {
    match error {
        Error::Unauthorized { sent: false, .. } | Error::Denied { sent: false, .. } => {
            Some("here: `docker login`, or name a docker config with --authfile")
        }
        Error::Unauthorized { sent: true, .. } => Some("here: `docker login` again, or name another docker config with --authfile"),
        Error::Tls { .. } => Some("here: --registry-ca FILE, or --insecure-registry HOST for plain HTTP"),
        Error::Downgrade { .. } => Some("here: --insecure-registry HOST"),
        Error::Everywhere { last, .. } => cure(last),
        Error::Denied { sent: true, .. }
        | Error::NotAllowed { .. }
        | Error::Dial(_)
        | Error::Redirect { .. }
        | Error::NotFound { .. }
        | Error::Status { .. }
        | Error::Network { .. }
        | Error::Timeout { .. }
        | Error::NotRegistry { .. }
        | Error::Challenge { .. }
        | Error::WrongKind { .. }
        | Error::Digest { .. }
        | Error::TooLarge { .. }
        | Error::TooShort { .. }
        | Error::Manifest { .. }
        | Error::Layer { .. }
        | Error::Component { .. }
        | Error::ManyTags { .. }
        | Error::Mirror { .. }
        | Error::MirrorCredentials { .. }
        | Error::Decoder { .. } => None,
    }
}
