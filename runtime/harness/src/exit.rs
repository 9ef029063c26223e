//! Exit codes. The highest of what happened wins.

use std::process::ExitCode;

use weir_core::plan::Outcome;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// 0: all done.
    Done,
    /// 1: something was refused or is held; a policy refuses its settings; a test failed.
    Held,
    /// 2: usage, or unreadable input.
    Usage,
    /// 3: a policy trapped or gave an unusable answer.
    Trapped,
    /// 4: a policy ran out of time or memory.
    Exhausted,
    /// 5: a policy was not available; a registry does not give or take an artifact: not found, no access, no trusted connection.
    Unavailable,
    /// 6: a signature or digest was wrong.
    Unverified,
    /// 7: a component is not compatible with its slot; an artifact is none, or none that can be used.
    Incompatible,
    /// 8: internal error.
    Internal,
    /// 10: there was no test to run.
    NoTests,
}

impl Exit {
    /// The number.
    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Held => 1,
            Self::Usage => 2,
            Self::Trapped => 3,
            Self::Exhausted => 4,
            Self::Unavailable => 5,
            Self::Unverified => 6,
            Self::Incompatible => 7,
            Self::Internal => 8,
            Self::NoTests => 10,
        }
    }

    /// The process's exit code.
    #[must_use]
    pub fn code(self) -> ExitCode {
        ExitCode::from(self.number())
    }
}

impl From<Outcome> for Exit {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Answered => Self::Done,
            Outcome::Refused => Self::Held,
            Outcome::Trap | Outcome::BadOutput => Self::Trapped,
            Outcome::Deadline | Outcome::Memory => Self::Exhausted,
            Outcome::Unavailable => Self::Unavailable,
            Outcome::Incompatible => Self::Incompatible,
        }
    }
}

/// An error that knows its exit code.
#[derive(Debug)]
pub struct Failure {
    /// How the command ends.
    pub exit: Exit,
    /// What to say.
    pub message: String,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

impl Failure {
    /// Unreadable input or wrong usage.
    #[must_use]
    pub fn usage(message: impl Into<String>) -> Self {
        Self { exit: Exit::Usage, message: message.into() }
    }
}
