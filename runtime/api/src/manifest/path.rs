//! Paths to fields, written the way Kubernetes writes them.

use std::fmt;

/// One step from a value to a value inside it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Segment {
    /// A field of a map.
    Key(String),
    /// An element of a list.
    Index(usize),
}

/// The way from the root of a document to a field.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FieldPath(Vec<Segment>);

impl FieldPath {
    /// The root itself.
    #[must_use]
    pub fn root() -> Self {
        Self::default()
    }

    /// Reads a JSON Pointer (RFC 6901). A number is taken as an index; look-ups fall back to a key of that name.
    #[must_use]
    pub fn from_pointer(pointer: &str) -> Self {
        let steps = pointer.split('/').skip(1).map(|step| match step.parse() {
            Ok(index) => Segment::Index(index),
            Err(_) => Segment::Key(step.replace("~1", "/").replace("~0", "~")),
        });
        Self(steps.collect())
    }

    /// The steps from the root on.
    #[must_use]
    pub fn segments(&self) -> &[Segment] {
        &self.0
    }

    /// Whether this is the root.
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// This path with one more key.
    #[must_use]
    pub fn key(&self, name: &str) -> Self {
        let mut longer = self.clone();
        longer.push(Segment::Key(name.to_owned()));
        longer
    }

    /// Goes one step further in place.
    pub(crate) fn push(&mut self, segment: Segment) {
        self.0.push(segment);
    }

    /// Goes one step back in place.
    pub(crate) fn pop(&mut self) {
        self.0.pop();
    }
}

impl FromIterator<Segment> for FieldPath {
    fn from_iter<I: IntoIterator<Item = Segment>>(segments: I) -> Self {
        Self(segments.into_iter().collect())
    }
}

impl fmt::Display for FieldPath {
    /// `spec.containers[0].image`; keys that would be misread are bracketed: `metadata.labels[a.b/c]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, segment) in self.0.iter().enumerate() {
            match segment {
                Segment::Index(index) => write!(f, "[{index}]")?,
                Segment::Key(key) if key.is_empty() || key.contains(['.', '[', ']', ' ']) => write!(f, "[{key}]")?,
                Segment::Key(key) if place == 0 => f.write_str(key)?,
                Segment::Key(key) => write!(f, ".{key}")?,
            }
        }
        Ok(())
    }
}
