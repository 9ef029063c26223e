//! YAML (and JSON, which is YAML) to JSON values, with the place of every field.
//!
//! Words mean what they mean to kubectl. Nothing in a text can make this module recurse deeply, run long or allocate
//! much more than the text itself: values, bytes and depth are bounded with aliases counted.

mod compose;
mod node;
mod scalar;
mod text;

use std::{fmt, sync::Arc};

use saphyr_parser::{Event, Parser};
use serde_json::Value;

use self::compose::Composer;
pub(crate) use self::node::Node;
use super::path::FieldPath;

/// The largest text that is read.
pub const MAX_TEXT: usize = 16 << 20;

/// A place in a text. Both are counted from 1; columns are characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

/// Why a text, or a document in it, was not read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}:{}: {message}", position.line, position.column)]
pub struct YamlError {
    /// Where.
    pub position: Position,
    /// What is wrong and what to do.
    pub message: String,
    /// Whether the text is no YAML at all, as opposed to YAML that is refused.
    pub syntax: bool,
    /// Whether nothing after it is read: a bound of the file is used up.
    fatal: bool,
}

impl YamlError {
    fn unreadable(position: Position, message: impl Into<String>) -> Self {
        Self { position, message: message.into(), syntax: false, fatal: false }
    }

    fn bound(position: Position, message: impl Into<String>) -> Self {
        Self { fatal: true, ..Self::unreadable(position, message) }
    }

    fn syntax(position: Position, info: &str) -> Self {
        let message = format!("not valid YAML: {info}: correct the indentation, quotes or brackets here");
        Self { position, message, syntax: true, fatal: false }
    }
}

/// One document of a text.
#[derive(Clone)]
pub struct Document {
    /// The JSON value with aliases and merge keys expanded.
    pub value: Value,
    /// The same with places. Shares what aliases share.
    node: Arc<Node>,
}

impl Document {
    fn new(node: Arc<Node>) -> Self {
        Self { value: node.to_value(), node }
    }

    /// Where the field of a JSON Pointer stands, if it is written down.
    #[must_use]
    pub fn position(&self, pointer: &str) -> Option<Position> {
        self.node.position(&FieldPath::from_pointer(pointer))
    }

    /// Where a field stands, or its closest parent that is written down.
    #[must_use]
    pub fn closest(&self, path: &FieldPath) -> Position {
        self.node.closest(path)
    }

    /// The text of the value at a JSON Pointer, if kubectl reads it in a way YAML 1.2 does not: `off` as `false`.
    #[must_use]
    pub fn yaml11(&self, pointer: &str) -> Option<&str> {
        self.node.word(&FieldPath::from_pointer(pointer))
    }

    pub(crate) fn into_parts(self) -> (Value, Arc<Node>) {
        (self.value, self.node)
    }
}

impl fmt::Debug for Document {
    /// Only the place: the value may be a Secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Document").field("position", &self.closest(&FieldPath::root())).finish_non_exhaustive()
    }
}

/// The documents that could be read and the reasons why others could not, both in the order of the text.
#[derive(Debug, Default)]
pub struct Parsed {
    /// Documents; empty ones are left out.
    pub documents: Vec<Document>,
    /// What was not read.
    pub errors: Vec<YamlError>,
}

/// Reads all documents of a text. A document that cannot be read does not hide the others.
#[must_use]
pub fn parse(text: &str) -> Parsed {
    let mut parsed = Parsed::default();
    let start = Position { line: 1, column: 1 };
    if text.len() > MAX_TEXT {
        let message = format!("the text has {} bytes, at most {MAX_TEXT} are read: split it", text.len());
        parsed.errors.push(YamlError::bound(start, message));
        return parsed;
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if let Some((line, column, character)) = text::forbidden(text) {
        let message = format!("character {character:?} is not allowed in YAML: remove it, or escape it in double quotes");
        parsed.errors.push(YamlError { syntax: true, ..YamlError::bound(Position { line, column }, message) });
        return parsed;
    }
    let text = text::join_surrogates(text);
    let mut composer = Composer::new();
    for chunk in text::chunks(&text) {
        if !chunk_documents(&chunk, &mut composer, &mut parsed) {
            break;
        }
    }
    parsed
}

/// Reads one chunk; `false` if the file's bounds are used up.
fn chunk_documents(chunk: &text::Chunk<'_>, composer: &mut Composer, parsed: &mut Parsed) -> bool {
    let mut failed = false;
    for next in Parser::new_from_str(chunk.text) {
        let (event, span) = match next {
            Ok(next) => next,
            Err(error) => {
                let line = error.marker().line() + chunk.lines_before;
                let position = Position { line, column: error.marker().col() + 1 };
                // The parser cannot go on after an error, but the next chunk has a parser of its own. If the document
                // was already refused, that error came first and is the better one.
                if !failed {
                    parsed.errors.push(YamlError::syntax(position, error.info()));
                }
                return true;
            }
        };
        if let Event::DocumentStart(_) = event {
            composer.start_document();
            failed = false;
        } else if event == Event::DocumentEnd {
            let root = composer.finish_document().filter(|node| !failed && !node.is_null());
            parsed.documents.extend(root.map(Document::new));
        } else if !failed && let Err(error) = composer.event(event, span, chunk.lines_before) {
            let fatal = error.fatal;
            parsed.errors.push(error);
            if fatal {
                return false;
            }
            failed = true;
        }
    }
    true
}

#[cfg(test)]
mod tests;
