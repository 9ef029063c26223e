//! What is wrong with a manifest, where, and what to do about it.

use std::fmt;

/// Where an object or a field was read from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourceRef {
    /// The name of the source as the caller gave it; `-` for standard input by convention.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
}

impl fmt::Display for SourceRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// The class of a [`Problem`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProblemKind {
    /// The text is not YAML.
    Syntax,
    /// The text is YAML, but of a kind that is never read: too big, too deep, duplicate keys, unknown tags.
    Unreadable,
    /// The object does not fit the schema of its kind.
    Schema,
    /// A validation rule (CEL) of the kind refuses the object.
    Rule,
    /// An unquoted word is a boolean to kubectl where something else is expected.
    Yaml11Boolean,
    /// The same object is given more than once.
    Duplicate,
    /// A value has another type than the field of a core kind.
    Type,
}

/// One reason why an object, a document or a file was refused.
///
/// Problems never carry values of Secrets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Problem {
    /// The class.
    pub kind: ProblemKind,
    /// The name of the source.
    pub file: String,
    /// The line of the field, or of its closest parent that is written down. Counted from 1.
    pub line: usize,
    /// The column in characters. Counted from 1.
    pub column: usize,
    /// The object, e.g. `DataPlane default/gw`; absent when the text could not be read as objects.
    pub object: Option<String>,
    /// The field, e.g. `spec.deployment.replicas`.
    pub field: Option<String>,
    /// What is wrong and what to do.
    pub message: String,
}

impl Problem {
    /// Whether the text itself could not be read, as opposed to an object that was read and refused. How many objects
    /// the text would have held is then not known.
    #[must_use]
    pub fn is_unreadable(&self) -> bool {
        match self.kind {
            ProblemKind::Syntax | ProblemKind::Unreadable => true,
            ProblemKind::Schema | ProblemKind::Rule | ProblemKind::Yaml11Boolean | ProblemKind::Duplicate | ProblemKind::Type => false,
        }
    }

    /// A source that could not be read at all, for callers that open files themselves.
    #[must_use]
    pub fn unreadable(file: impl Into<String>, message: impl Into<String>) -> Self {
        Self { kind: ProblemKind::Unreadable, file: file.into(), line: 1, column: 1, object: None, field: None, message: message.into() }
    }

    /// Where the problem is.
    #[must_use]
    pub fn source_ref(&self) -> SourceRef {
        SourceRef { file: self.file.clone(), line: self.line }
    }
}

impl fmt::Display for Problem {
    /// `FILE:LINE: DataPlane default/gw: spec.x: message`; the column is shown only where the text is unreadable,
    /// because only there it says more than the field.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)?;
        if self.is_unreadable() {
            write!(f, ":{}", self.column)?;
        }
        for part in [&self.object, &self.field].into_iter().flatten() {
            write!(f, ": {part}")?;
        }
        write!(f, ": {}", self.message)
    }
}
