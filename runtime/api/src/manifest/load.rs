//! From texts to objects.

use std::{collections::BTreeMap, fmt, sync::Arc};

use serde_json::{Value, json};

use super::{
    identity::{self, Identity, Key},
    objects::{Objects, core_is_namespaced},
    path::{FieldPath, Segment},
    problem::{Problem, ProblemKind, SourceRef},
    schema::{Finding, Schema, Schemas},
    yaml::{self, Node},
};

/// A text with a name to call it by in messages.
#[derive(Clone)]
pub struct Source {
    /// A file name, or `-`.
    pub name: String,
    /// YAML or JSON.
    pub text: String,
}

impl fmt::Debug for Source {
    /// Not the text: it may hold Secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").field("name", &self.name).field("bytes", &self.text.len()).finish()
    }
}

/// What was read.
#[derive(Debug, Default)]
pub struct Loaded {
    /// Objects without any problem.
    pub objects: Objects,
    /// Why the other objects, documents and files are not among them: in the order of the sources and their lines.
    pub problems: Vec<Problem>,
}

/// Reads sources. Whatever is wrong with one object, the others are read; the caller decides whether to go on.
///
/// Objects of namespaced kinds that name no namespace are put into `default_namespace`, as kubectl does.
#[must_use]
pub fn load(sources: Vec<Source>, schemas: &Schemas, default_namespace: &str) -> Loaded {
    let mut loader = Loader { schemas, default_namespace, entries: Vec::new(), problems: Vec::new(), source: 0 };
    for (place, source) in sources.into_iter().enumerate() {
        loader.source = place;
        loader.read(source);
    }
    loader.finish()
}

/// The objects of sources as they are written, in order: lists taken apart, namespaces filled in. Nothing is checked but what tells objects
/// apart, and what does not is left out; [`load`] says what is wrong with it.
#[must_use]
pub fn values(sources: Vec<Source>, schemas: &Schemas, default_namespace: &str) -> Vec<Value> {
    let mut loader = Loader { schemas, default_namespace, entries: Vec::new(), problems: Vec::new(), source: 0 };
    sources.into_iter().for_each(|source| loader.read(source));
    loader.entries.into_iter().map(|entry| entry.value).collect()
}

/// An object that can be told from others, and nothing is known to be wrong with it yet.
struct Entry {
    source: usize,
    origin: Origin,
    identity: Identity,
    value: Value,
}

/// Where a value was written.
struct Origin {
    file: Arc<str>,
    node: Arc<Node>,
}

impl Origin {
    fn source_ref(&self) -> SourceRef {
        SourceRef { file: self.file.to_string(), line: self.node.closest(&FieldPath::root()).line }
    }

    fn problem(&self, kind: ProblemKind, object: Option<String>, path: &FieldPath, message: String) -> Problem {
        let position = self.node.closest(path);
        let field = (!path.is_root()).then(|| path.to_string());
        Problem { kind, file: self.file.to_string(), line: position.line, column: position.column, object, field, message }
    }

    /// A problem with a value; says so if the value is only what it is because kubectl reads YAML 1.1.
    fn wrong_value(&self, kind: ProblemKind, object: Option<String>, path: &FieldPath, message: String) -> Problem {
        let boolean = self.node.at(path).is_some_and(|node| node.is_boolean());
        if let Some(word) = self.node.key_word(path) {
            let message = format!("{message}; kubectl reads the unquoted name `{word}` as a boolean or number: quote it: \"{word}\"");
            return self.problem(ProblemKind::Yaml11Boolean, object, path, message);
        }
        match self.node.word(path) {
            // Only where a text is expected is the word the cure.
            Some(word) if boolean && (message.contains("a text") || kind != ProblemKind::Schema) => {
                let message = format!("kubectl reads the unquoted `{word}` as a boolean: quote it: \"{word}\"");
                self.problem(ProblemKind::Yaml11Boolean, object, path, message)
            }
            Some(word) => {
                let what = message.split(": quote it").next().unwrap_or_default();
                let cure = if what.len() < message.len() { format!(": quote it: \"{word}\"") } else { String::new() };
                let message = format!("{what} (kubectl reads the unquoted `{word}` as this value){cure}");
                self.problem(kind, object, path, message)
            }
            None => self.problem(kind, object, path, message),
        }
    }
}

struct Loader<'a> {
    schemas: &'a Schemas,
    default_namespace: &'a str,
    entries: Vec<Entry>,
    problems: Vec<(usize, Problem)>,
    source: usize,
}

impl Loader<'_> {
    fn read(&mut self, source: Source) {
        let file: Arc<str> = source.name.into();
        let parsed = yaml::parse(&source.text);
        for error in parsed.errors {
            let kind = if error.syntax { ProblemKind::Syntax } else { ProblemKind::Unreadable };
            let problem =
                Problem { kind, line: error.position.line, column: error.position.column, ..Problem::unreadable(&*file, error.message) };
            self.problems.push((self.source, problem));
        }
        for document in parsed.documents {
            let (value, node) = document.into_parts();
            self.unwrap(value, Origin { file: Arc::clone(&file), node });
        }
    }

    /// Takes lists apart, lists in lists too; their depth is bounded by the parser.
    fn unwrap(&mut self, mut value: Value, origin: Origin) {
        let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        let element = kind.strip_suffix("List").map(str::to_owned);
        let items = value.get_mut("items").filter(|items| items.is_array()).map(Value::take);
        let (Some(element), Some(Value::Array(items))) = (element, items) else {
            self.identify(value, origin);
            return;
        };
        let path = FieldPath::root().key("items");
        for (index, mut item) in items.into_iter().enumerate() {
            let path: FieldPath = path.segments().iter().cloned().chain([Segment::Index(index)]).collect();
            let Some(node) = origin.node.at(&path) else { continue };
            // The API's own lists (SecretList) do not repeat what their elements are; `List` mixes kinds.
            if let Some(fields) = item.as_object_mut().filter(|_| !element.is_empty()) {
                fields.entry("apiVersion").or_insert_with(|| json!(api_version));
                fields.entry("kind").or_insert_with(|| json!(element));
            }
            self.unwrap(item, Origin { file: Arc::clone(&origin.file), node });
        }
    }

    fn identify(&mut self, mut value: Value, origin: Origin) {
        let mut identity = match Identity::of(&value) {
            Ok(identity) => identity,
            Err((path, message)) => {
                let problem = origin.wrong_value(ProblemKind::Schema, identity::label(&value), &path, message);
                self.problems.push((self.source, problem));
                return;
            }
        };
        let known = self.schemas.get(&identity.api_version, &identity.kind).map(Schema::is_namespaced);
        if known.or_else(|| core_is_namespaced(&identity.api_version, &identity.kind)) == Some(true) && identity.namespace.is_none() {
            identity.namespace = Some(self.default_namespace.to_owned());
            if let Some(metadata) = value.pointer_mut("/metadata").and_then(Value::as_object_mut) {
                metadata.insert("namespace".into(), json!(self.default_namespace));
            }
        }
        self.entries.push(Entry { source: self.source, origin, identity, value });
    }

    fn finish(mut self) -> Loaded {
        let mut copies: BTreeMap<Key, Vec<SourceRef>> = BTreeMap::new();
        for entry in &self.entries {
            copies.entry(entry.identity.key()).or_default().push(entry.origin.source_ref());
        }
        let mut objects = Objects::default();
        let mut seen = BTreeMap::new();
        for entry in std::mem::take(&mut self.entries) {
            let key = entry.identity.key();
            let places = copies.get(&key).map(Vec::as_slice).unwrap_or_default();
            // Nobody knows which copy is meant, so all are left out; each copy after the first is a problem.
            if places.len() > 1 {
                if let Some(first) = seen.get(&key) {
                    let message = format!("the same object is also given at {first}: keep one");
                    let object = Some(entry.identity.label());
                    let problem = entry.origin.problem(ProblemKind::Duplicate, object, &FieldPath::root(), message);
                    self.problems.push((entry.source, problem));
                } else {
                    seen.insert(key, entry.origin.source_ref());
                }
                continue;
            }
            let source = entry.source;
            if let Err(problems) = self.check(entry, &mut objects) {
                self.problems.extend(problems.into_iter().map(|problem| (source, problem)));
            }
        }
        self.problems.sort_by_key(|(source, problem)| (*source, problem.line, problem.column));
        Loaded { objects, problems: self.problems.into_iter().map(|(_, problem)| problem).collect() }
    }

    /// Checks an object and puts it into the bag.
    fn check(&self, entry: Entry, objects: &mut Objects) -> Result<(), Vec<Problem>> {
        let Entry { origin, identity, mut value, .. } = entry;
        let (api_version, kind) = (identity.api_version.as_str(), identity.kind.as_str());
        let label = Some(identity.label());
        if let Some(schema) = self.schemas.get(api_version, kind) {
            schema.default(&mut value);
            let mut findings = schema.validate(&value);
            if findings.is_empty() {
                findings = schema.rules(&value, None);
            }
            if !findings.is_empty() {
                return Err(findings.into_iter().map(|finding| located(&origin, label.clone(), finding)).collect());
            }
        } else if let Some(known) = self.schemas.versions(api_version, kind).next() {
            let message = format!("version `{api_version}` of {kind} is not known: use `{known}`");
            let path = FieldPath::root().key("apiVersion");
            return Err(vec![origin.problem(ProblemKind::Schema, label, &path, message)]);
        }
        let source = origin.source_ref();
        objects
            .add(api_version, kind, value, source)
            .map_err(|error| vec![origin.wrong_value(ProblemKind::Type, label, &error.path, error.message)])
    }
}

fn located(origin: &Origin, object: Option<String>, finding: Finding) -> Problem {
    match finding.path {
        Some(path) => origin.wrong_value(finding.kind, object, &path, finding.message),
        None => origin.problem(finding.kind, object, &origin.node.resolve(&finding.field), finding.message),
    }
}
