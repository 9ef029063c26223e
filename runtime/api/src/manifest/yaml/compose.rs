//! Builds nodes from the parser's events, without recursion and within bounds.

use std::{collections::BTreeMap, collections::HashMap, sync::Arc};

use saphyr_parser::{Event, ScalarStyle, Span, Tag};
use serde_json::Value;

use super::{
    Position, YamlError,
    node::{Content, Entry, Node, Size},
    scalar::{self, Scalar},
};

/// Values in one file, aliases expanded. Far above any real manifest, far below what hurts.
pub(super) const MAX_NODES: usize = 1_000_000;
/// Bytes of keys and texts in one file, aliases expanded: a few long texts are as good a bomb as many short ones.
pub(super) const MAX_BYTES: usize = 64 << 20;
/// Levels of lists and maps. Kubernetes itself stops at a similar depth; recursion further on is bounded by it.
pub(super) const MAX_DEPTH: usize = 200;

/// A list or a map that is still being read.
struct Frame {
    position: Position,
    anchor: usize,
    size: Size,
    open: Open,
}

enum Open {
    List(Vec<Arc<Node>>),
    Map { entries: BTreeMap<String, Entry>, key: Option<Key>, merged: Option<(Position, Vec<Arc<Node>>)> },
}

enum Key {
    Named { name: String, position: Position, word: Option<Box<str>> },
    Merge(Position),
}

/// The documents of one file, one event after the other.
pub(super) struct Composer {
    frames: Vec<Frame>,
    anchors: HashMap<usize, Arc<Node>>,
    used: Size,
    root: Option<Arc<Node>>,
}

impl Composer {
    pub(super) fn new() -> Self {
        Self { frames: Vec::new(), anchors: HashMap::new(), used: Size::default(), root: None }
    }

    /// Forgets everything of the document before; the file's bounds stay used up.
    pub(super) fn start_document(&mut self) {
        self.frames.clear();
        self.anchors.clear();
        self.root = None;
    }

    /// The document, if one was read to its end.
    pub(super) fn finish_document(&mut self) -> Option<Arc<Node>> {
        self.root.take()
    }

    /// Takes the next event inside a document.
    pub(super) fn event(&mut self, event: Event<'_>, span: Span, line_offset: usize) -> Result<(), YamlError> {
        let position = Position { line: span.start.line() + line_offset, column: span.start.col() + 1 };
        match event {
            Event::Scalar(text, style, anchor, tag) => self.scalar(&text, style, anchor, tag.as_deref(), position),
            Event::Alias(anchor) => self.alias(anchor, position),
            Event::SequenceStart(anchor, tag) => {
                collection_tag(tag.as_deref(), "seq", position)?;
                self.open(Open::List(Vec::new()), anchor, position)
            }
            Event::MappingStart(anchor, tag) => {
                collection_tag(tag.as_deref(), "map", position)?;
                self.open(Open::Map { entries: BTreeMap::new(), key: None, merged: None }, anchor, position)
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(),
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentStart(_) | Event::DocumentEnd => Ok(()),
        }
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, anchor: usize, tag: Option<&Tag>, position: Position) -> Result<(), YamlError> {
        let plain = style == ScalarStyle::Plain;
        let read = match tag.map(core_tag) {
            Some(Some(name)) => scalar::tagged(&name, text),
            // `!` alone means: not what it looks like, a text.
            Some(None) => Ok(Scalar { value: Value::from(text), surprising: false }),
            None if plain => scalar::plain(text),
            None => Ok(Scalar { value: Value::from(text), surprising: false }),
        };
        let Scalar { value, surprising } = read.map_err(|message| YamlError::unreadable(position, message))?;
        let size = Size { nodes: 1, bytes: text.len(), height: 0 };
        let content = Content::Scalar(value);
        let node = Arc::new(Node { position, word: surprising.then(|| text.into()), content, size });
        self.spend(size, position)?;
        let merge = plain && tag.is_none() && text == "<<" && self.wants_key();
        if merge { self.merge_key(position) } else { self.add(node, anchor, position) }
    }

    fn alias(&mut self, anchor: usize, position: Position) -> Result<(), YamlError> {
        let Some(node) = self.anchors.get(&anchor).map(Arc::clone) else {
            return Err(YamlError::unreadable(
                position,
                "the alias stands inside its own anchor, or the anchor is in another document: write the value out",
            ));
        };
        self.spend(node.size, position)?;
        if self.frames.len() + node.size.height > MAX_DEPTH {
            return Err(too_deep(position));
        }
        self.add(node, 0, position)
    }

    fn open(&mut self, open: Open, anchor: usize, position: Position) -> Result<(), YamlError> {
        if self.wants_key() {
            return Err(YamlError::unreadable(position, "a list or a map is no name of a field: use a text"));
        }
        if self.frames.len() >= MAX_DEPTH {
            return Err(too_deep(position));
        }
        let size = Size { nodes: 1, bytes: 0, height: 0 };
        self.spend(size, position)?;
        self.frames.push(Frame { position, anchor, size, open });
        Ok(())
    }

    fn close(&mut self) -> Result<(), YamlError> {
        let Some(Frame { position, anchor, mut size, open }) = self.frames.pop() else { return Ok(()) };
        let content = match open {
            Open::List(items) => Content::List(items),
            Open::Map { mut entries, merged, .. } => {
                if let Some((at, sources)) = merged {
                    self.merge(&mut entries, &mut size, &sources, at)?;
                }
                Content::Map(entries)
            }
        };
        size.height += 1;
        self.add(Arc::new(Node { position, word: None, content, size }), anchor, position)
    }

    /// Fields written in the map win over merged ones, earlier merged maps over later ones (YAML 1.1).
    fn merge(
        &mut self,
        entries: &mut BTreeMap<String, Entry>,
        size: &mut Size,
        sources: &[Arc<Node>],
        at: Position,
    ) -> Result<(), YamlError> {
        for source in sources {
            let Content::Map(fields) = &source.content else {
                return Err(YamlError::unreadable(at, "`<<` merges maps: give it a map or a list of maps"));
            };
            // Paid for even if every field is overridden: a long list of the same map costs time as well.
            self.spend(source.size, at)?;
            grow(size, source.size, 0);
            size.height = size.height.max(source.size.height.saturating_sub(1));
            for (name, entry) in fields {
                if !entries.contains_key(name) {
                    entries.insert(name.clone(), entry.clone());
                }
            }
        }
        Ok(())
    }

    /// Puts a complete node where it belongs.
    fn add(&mut self, node: Arc<Node>, anchor: usize, position: Position) -> Result<(), YamlError> {
        if anchor > 0 {
            self.anchors.insert(anchor, Arc::clone(&node));
        }
        let Some(frame) = self.frames.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        match &mut frame.open {
            Open::List(items) => {
                grow(&mut frame.size, node.size, node.size.height);
                items.push(node);
            }
            Open::Map { entries, key, merged } => match key.take() {
                None => *key = Some(key_of(&node, position)?),
                Some(Key::Merge(at)) => *merged = Some((at, merge_sources(node))),
                Some(Key::Named { name, position: at, word }) => {
                    grow(&mut frame.size, node.size, node.size.height);
                    frame.size.bytes = frame.size.bytes.saturating_add(name.len());
                    if let Some(first) = entries.get(&name) {
                        return Err(duplicate_key(&name, first.key, at));
                    }
                    entries.insert(name, Entry { key: at, word, node });
                }
            },
        }
        Ok(())
    }

    fn merge_key(&mut self, position: Position) -> Result<(), YamlError> {
        let Some(Frame { open: Open::Map { key, merged, .. }, .. }) = self.frames.last_mut() else { return Ok(()) };
        if let Some((first, _)) = merged {
            return Err(duplicate_key("<<", *first, position));
        }
        *key = Some(Key::Merge(position));
        Ok(())
    }

    fn wants_key(&self) -> bool {
        match self.frames.last().map(|frame| &frame.open) {
            Some(Open::Map { key, .. }) => key.is_none(),
            Some(Open::List(_)) | None => false,
        }
    }

    fn spend(&mut self, size: Size, position: Position) -> Result<(), YamlError> {
        grow(&mut self.used, size, 0);
        if self.used.nodes > MAX_NODES {
            return Err(YamlError::bound(position, format!("more than {MAX_NODES} values, aliases counted: split the file")));
        }
        if self.used.bytes > MAX_BYTES {
            return Err(YamlError::bound(position, format!("more than {MAX_BYTES} bytes of text, aliases counted: split the file")));
        }
        Ok(())
    }
}

fn grow(size: &mut Size, by: Size, height: usize) {
    size.nodes = size.nodes.saturating_add(by.nodes);
    size.bytes = size.bytes.saturating_add(by.bytes);
    size.height = size.height.max(height);
}

fn too_deep(position: Position) -> YamlError {
    YamlError::unreadable(position, format!("lists and maps are nested more than {MAX_DEPTH} levels deep: nest less"))
}

fn duplicate_key(name: &str, first: Position, second: Position) -> YamlError {
    let message = format!("field `{name}` is given in line {} and again in line {}: keep one", first.line, second.line);
    YamlError::unreadable(second, message)
}

fn merge_sources(node: Arc<Node>) -> Vec<Arc<Node>> {
    match &node.content {
        Content::List(items) => items.clone(),
        Content::Scalar(_) | Content::Map(_) => vec![node],
    }
}

/// JSON has only texts as names; kubectl turns booleans and integers into them.
fn key_of(node: &Node, position: Position) -> Result<Key, YamlError> {
    let Content::Scalar(value) = &node.content else {
        return Err(YamlError::unreadable(position, "a list or a map is no name of a field: use a text"));
    };
    let name = match value {
        Value::String(text) => text.clone(),
        Value::Bool(_) => value.to_string(),
        Value::Number(number) if !number.is_f64() => number.to_string(),
        Value::Number(_) | Value::Null | Value::Array(_) | Value::Object(_) => {
            return Err(YamlError::unreadable(position, format!("`{value}` is no name of a field: quote it")));
        }
    };
    Ok(Key::Named { name, position, word: node.word.clone() })
}

/// The name of a tag of the core schema; `None` for the tag that says "text". Other tags are named in full and fail.
fn core_tag(tag: &Tag) -> Option<String> {
    let full = format!("{}{}", tag.handle, tag.suffix);
    if full == "!" {
        return None;
    }
    Some(full.strip_prefix("tag:yaml.org,2002:").map_or(full.clone(), str::to_owned))
}

fn collection_tag(tag: Option<&Tag>, own: &str, position: Position) -> Result<(), YamlError> {
    match tag.map(core_tag) {
        None | Some(None) => Ok(()),
        Some(Some(name)) if name == own => Ok(()),
        Some(Some(_)) => Err(YamlError::unreadable(position, "this tag is not read here: remove it, or quote a text that begins with `!`")),
    }
}
