//! What a gRPC status means (facts of gRPC and of the servers that plugins use; see `docs/adr/0013-remote-plugins.md`).

use std::error::Error;

use tonic::{Code, Status};

use crate::remote::{CallError, Class, text};

/// Texts that this side's own decoder and encoder write into a status; `tests/remote_faults.rs` holds them.
const TOO_LARGE: [&str; 2] = ["Error, decoded message length too large", "Error, encoded message length too large"];
const GARBAGE: [&str; 3] = ["failed to decode Protobuf message", "protocol error:", "Unexpected compression flag"];

/// Sorts a status.
pub(super) fn status(method: &'static str, status: &Status) -> CallError {
    let said = status.message();
    // What came over the wire has no source; what has one is the connection's own failure.
    if let Some(source) = status.source() {
        return CallError { method, class: Class::Connection, message: text::line(&chain(source), text::MAX_MESSAGE) };
    }
    let class = if TOO_LARGE.iter().any(|mark| said.contains(mark)) {
        Class::TooLarge
    } else if GARBAGE.iter().any(|mark| said.contains(mark)) {
        Class::Garbage
    } else {
        class(status.code())
    };
    let message = match class {
        // These are ours, and say the sizes.
        Class::TooLarge | Class::Garbage => text::message(said),
        Class::Connection | Class::Deadline | Class::Later | Class::Unimplemented | Class::Permanent | Class::Failed => {
            format!("{:?}: {}", status.code(), text::message(said))
        }
    };
    CallError { method, class, message }
}

fn class(code: Code) -> Class {
    match code {
        Code::Unavailable | Code::Cancelled => Class::Connection,
        Code::DeadlineExceeded => Class::Deadline,
        Code::Aborted | Code::FailedPrecondition => Class::Later,
        Code::Unimplemented => Class::Unimplemented,
        // The Go servers' answer to a message over their own limit.
        Code::ResourceExhausted => Class::TooLarge,
        Code::InvalidArgument
        | Code::NotFound
        | Code::AlreadyExists
        | Code::PermissionDenied
        | Code::Unauthenticated
        | Code::OutOfRange => Class::Permanent,
        Code::Ok | Code::Unknown | Code::Internal | Code::DataLoss => Class::Failed,
    }
}

fn chain(error: &(dyn Error + 'static)) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next.take_if(|_| parts.len() < 8) {
        let text = error.to_string();
        if parts.last().is_none_or(|last| !last.contains(&text)) {
            parts.push(text);
        }
        next = error.source();
    }
    parts.join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_its_class() {
        for (code, class) in [
            (Code::Unavailable, Class::Connection),
            (Code::DeadlineExceeded, Class::Deadline),
            (Code::Aborted, Class::Later),
            (Code::FailedPrecondition, Class::Later),
            (Code::Unimplemented, Class::Unimplemented),
            (Code::ResourceExhausted, Class::TooLarge),
            (Code::InvalidArgument, Class::Permanent),
            (Code::PermissionDenied, Class::Permanent),
            (Code::Unknown, Class::Failed),
            (Code::Internal, Class::Failed),
        ] {
            let error = status("Identity/Probe", &Status::new(code, "no\n\ngoroutine 1 [running]"));
            assert_eq!((error.class, error.message), (class, if class == Class::TooLarge { "no".into() } else { format!("{code:?}: no") }));
        }
    }
}
