//! A value together with the place of every part of it.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;

use super::Position;
use crate::manifest::path::{FieldPath, Segment};

/// What a node costs once all aliases in it are expanded.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Size {
    pub(super) nodes: usize,
    pub(super) bytes: usize,
    /// Levels of lists and maps, this node included.
    pub(super) height: usize,
}

/// A YAML node. Aliases share it, so a tree takes no more memory than its text, whatever it would expand to.
///
/// No `Debug`: it may hold Secrets.
pub(crate) struct Node {
    pub(super) position: Position,
    /// The text as written, if kubectl reads it in a way YAML 1.2 does not.
    pub(super) word: Option<Box<str>>,
    pub(super) content: Content,
    pub(super) size: Size,
}

/// What a node holds.
pub(super) enum Content {
    Scalar(Value),
    List(Vec<Arc<Node>>),
    Map(BTreeMap<String, Entry>),
}

/// A field of a map.
#[derive(Clone)]
pub(super) struct Entry {
    pub(super) key: Position,
    pub(super) word: Option<Box<str>>,
    pub(super) node: Arc<Node>,
}

/// How far a path leads into a node.
struct Found<'a> {
    position: Position,
    word: Option<&'a str>,
    node: Option<&'a Node>,
}

impl Node {
    /// Whether nothing is written here.
    pub(super) fn is_null(&self) -> bool {
        match &self.content {
            Content::Scalar(value) => value.is_null(),
            Content::List(_) | Content::Map(_) => false,
        }
    }

    /// Whether this is `true` or `false`.
    pub(crate) fn is_boolean(&self) -> bool {
        matches!(&self.content, Content::Scalar(Value::Bool(_)))
    }

    /// The JSON value with all aliases expanded. Recursion is bounded by the depth bound of the composer.
    pub(super) fn to_value(&self) -> Value {
        match &self.content {
            Content::Scalar(value) => value.clone(),
            Content::List(items) => items.iter().map(|item| item.to_value()).collect(),
            Content::Map(entries) => Value::Object(entries.iter().map(|(key, entry)| (key.clone(), entry.node.to_value())).collect()),
        }
    }

    /// The place of a field's name (of the element in lists), or of its closest parent that is written down.
    pub(crate) fn closest(&self, path: &FieldPath) -> Position {
        self.walk(path, |found| Some(found.position)).unwrap_or(self.position)
    }

    /// The place of a field, if it is written down.
    pub(crate) fn position(&self, path: &FieldPath) -> Option<Position> {
        self.walk(path, |found| found.node.map(|_| found.position))
    }

    /// The text of a value (or of a field's name) as written, if kubectl reads it in a way YAML 1.2 does not.
    pub(crate) fn word(&self, path: &FieldPath) -> Option<&str> {
        self.walk(path, |found| found.node.and_then(|node| node.word.as_deref()))
    }

    /// Like [`Self::word`], for the name of the field instead of its value.
    pub(crate) fn key_word(&self, path: &FieldPath) -> Option<&str> {
        self.walk(path, |found| found.node.and(found.word))
    }

    /// The node a path leads to.
    pub(crate) fn at(self: &Arc<Self>, path: &FieldPath) -> Option<Arc<Self>> {
        path.segments().iter().try_fold(Arc::clone(self), |node, segment| node.child(segment).map(|(_, _, node)| Arc::clone(node)))
    }

    /// Reads a path as Kubernetes' rules write it, with the help of the keys that exist: `labels.a.b/c` is ambiguous
    /// without them. Steps that are not written down are kept as they are.
    pub(crate) fn resolve(&self, dotted: &str) -> FieldPath {
        let mut path = FieldPath::root();
        let (mut node, mut rest) = (Some(self), dotted);
        while !rest.is_empty() {
            rest = rest.strip_prefix('.').unwrap_or(rest);
            let existing = node.and_then(|node| node.longest_key(rest)).map(str::len);
            let length = existing.unwrap_or_else(|| rest.find(['.', '[']).unwrap_or(rest.len()));
            let (segment, after) = match rest.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
                Some((inner, after)) => (inner.parse().map_or_else(|_| Segment::Key(inner.to_owned()), Segment::Index), after),
                None => match rest.split_at_checked(length) {
                    Some((key, after)) if !key.is_empty() => (Segment::Key(key.to_owned()), after),
                    Some(_) | None => break,
                },
            };
            node = node.and_then(|node| node.child(&segment)).map(|(_, _, node)| node.as_ref());
            path.push(segment);
            rest = after;
        }
        path
    }

    fn longest_key(&self, text: &str) -> Option<&str> {
        let Content::Map(entries) = &self.content else { return None };
        let fits = |key: &&String| text.strip_prefix(key.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']));
        entries.keys().filter(fits).max_by_key(|key| key.len()).map(String::as_str)
    }

    fn child(&self, segment: &Segment) -> Option<(Position, Option<&str>, &Arc<Self>)> {
        match (&self.content, segment) {
            (Content::Scalar(_), _) => None,
            (Content::List(items), Segment::Index(index)) => items.get(*index).map(|item| (item.position, None, item)),
            (Content::List(_), Segment::Key(_)) => None,
            (Content::Map(entries), Segment::Key(key)) => entries.get(key).map(Entry::parts),
            (Content::Map(entries), Segment::Index(index)) => entries.get(&index.to_string()).map(Entry::parts),
        }
    }

    fn walk<'a, T>(&'a self, path: &FieldPath, read: impl Fn(Found<'a>) -> Option<T>) -> Option<T> {
        let mut found = Found { position: self.position, word: None, node: Some(self) };
        for segment in path.segments() {
            let Some((position, word, node)) = found.node.and_then(|node| node.child(segment)) else {
                found.node = None;
                break;
            };
            found = Found { position, word, node: Some(node) };
        }
        read(found)
    }
}

impl Entry {
    fn parts(&self) -> (Position, Option<&str>, &Arc<Node>) {
        (self.key, self.word.as_deref(), &self.node)
    }
}
