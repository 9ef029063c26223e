//! What went wrong on the way to a plugin, as a reason and in words that say what to do.

use std::{error::Error as _, io};

use rustls::{AlertDescription, CertificateError, Error};

use crate::remote::{Reason, text};

/// No connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::remote) struct Failure {
    pub(in crate::remote) reason: Reason,
    pub(in crate::remote) message: String,
}

impl Failure {
    pub(in crate::remote) fn new(reason: Reason, message: impl AsRef<str>) -> Self {
        Self { reason, message: text::line(message.as_ref(), text::MAX_MESSAGE) }
    }
}

/// Of an error while reading or writing; rustls' own are inside of it.
pub(in crate::remote) fn io(error: &io::Error) -> Failure {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
        Some(error) => tls(error),
        None => Failure::new(Reason::Unreachable, with_sources(error)),
    }
}

fn with_sources(error: &io::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

fn tls(error: &Error) -> Failure {
    #[allow(clippy::wildcard_enum_match_arm, reason = "an enum of rustls', not ours")]
    match error {
        Error::InvalidCertificate(problem) => certificate(problem),
        Error::AlertReceived(alert) => rejected(*alert),
        Error::NoApplicationProtocol => Failure::new(Reason::TlsFailed, "the plugin does not speak HTTP/2 (ALPN `h2`)"),
        Error::PeerIncompatible(_) => Failure::new(Reason::TlsFailed, format!("the plugin must speak TLS 1.3: {error}")),
        _ => Failure::new(Reason::TlsFailed, error.to_string()),
    }
}

fn certificate(problem: &CertificateError) -> Failure {
    #[allow(clippy::wildcard_enum_match_arm, reason = "an enum of rustls', not ours")]
    match problem {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => Failure::new(
            Reason::ServerCertExpired,
            "the plugin's certificate has ended: renew it, and restart a plugin that does not load it",
        ),
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            Failure::new(Reason::ServerCertExpired, "the plugin's certificate has not begun: compare the clocks")
        }
        CertificateError::NotValidForName => {
            Failure::new(Reason::ServerNameInvalid, "the plugin's certificate has no DNS name of its Service")
        }
        CertificateError::NotValidForNameContext { expected, presented } => {
            let presented = presented.iter().take(8).map(String::as_str).collect::<Vec<_>>().join(", ");
            let expected = expected.to_str();
            let message = format!(
                "the plugin's certificate is for {presented}, and not for {expected}: issue it for the Service, or name the server"
            );
            Failure::new(Reason::ServerNameInvalid, message)
        }
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            Failure::new(Reason::ServerCertUnusable, "the plugin's certificate is not for servers (extended key usage `serverAuth`)")
        }
        CertificateError::UnknownIssuer | CertificateError::BadSignature | CertificateError::Other(_) => {
            let message = "the plugin's certificate is neither in the server Secret nor issued by one that is: \
                           the Secret and what the plugin serves must be of one issue";
            Failure::new(Reason::ServerNotTrusted, message)
        }
        _ => Failure::new(Reason::ServerNotTrusted, format!("the plugin's certificate cannot be trusted: {problem}")),
    }
}

/// An alert of the plugin. After a handshake of TLS 1.3 it is about our certificate, and comes with the first read.
fn rejected(alert: AlertDescription) -> Failure {
    #[allow(clippy::wildcard_enum_match_arm, reason = "an enum of rustls', not ours")]
    match alert {
        AlertDescription::CertificateRequired
        | AlertDescription::BadCertificate
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::CertificateRevoked
        | AlertDescription::CertificateExpired
        | AlertDescription::CertificateUnknown
        | AlertDescription::UnknownCA
        | AlertDescription::AccessDenied
        | AlertDescription::DecryptError => {
            let message = format!(
                "the plugin does not take the operator's certificate (alert {alert:?}): what the plugin trusts and the client Secret must be of one issue"
            );
            Failure::new(Reason::ClientCertRejected, message)
        }
        AlertDescription::InternalError => {
            Failure::new(Reason::TlsFailed, "the plugin failed inside its TLS; between two certificates that passes by itself")
        }
        AlertDescription::NoApplicationProtocol => Failure::new(Reason::TlsFailed, "the plugin does not speak HTTP/2 (ALPN `h2`)"),
        AlertDescription::ProtocolVersion => Failure::new(Reason::TlsFailed, "the plugin does not speak TLS 1.3"),
        _ => Failure::new(Reason::TlsFailed, format!("the plugin ended the handshake (alert {alert:?})")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_alert_about_our_certificate_says_so() {
        for alert in [AlertDescription::CertificateRequired, AlertDescription::UnknownCA, AlertDescription::BadCertificate] {
            let failure = io(&io::Error::new(io::ErrorKind::InvalidData, Error::AlertReceived(alert)));
            assert_eq!(failure.reason, Reason::ClientCertRejected, "{alert:?}");
        }
        let between = io(&io::Error::new(io::ErrorKind::InvalidData, Error::AlertReceived(AlertDescription::InternalError)));
        assert_eq!(between.reason, Reason::TlsFailed, "a plugin between two certificates");
    }
}
