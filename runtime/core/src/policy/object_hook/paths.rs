//! Which paths a hook may change, by kind.

use std::{collections::BTreeMap, fmt, str::FromStr};

use crate::plan::ChildKind;

/// Paths, as JSON pointers in which `*` is any one part and a last `**` anything at or below.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern(Vec<String>);

/// A pattern that is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no pattern of paths: write a JSON pointer such as /spec/template/spec/containers/*/env/**, with ** at the end only")]
pub struct Malformed(String);

impl FromStr for Pattern {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        let malformed = || Malformed(crate::policy::limits::cut(text));
        let parts: Vec<String> = text.strip_prefix('/').ok_or_else(malformed)?.split('/').map(String::from).collect();
        let inside = parts.iter().rev().skip(1);
        if parts.iter().any(String::is_empty) || inside.into_iter().any(|part| part == "**") || parts.first().is_some_and(|p| p == "**") {
            return Err(malformed());
        }
        Ok(Self(parts))
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|part| write!(f, "/{part}"))
    }
}

impl Pattern {
    /// Whether a JSON pointer is one of its paths.
    fn covers(&self, path: &str) -> bool {
        let Some(path) = path.strip_prefix('/') else { return false };
        let mut found = path.split('/');
        for wanted in &self.0 {
            if wanted == "**" {
                return true;
            }
            match found.next() {
                Some(part) if wanted == "*" || wanted == part => {}
                Some(_) | None => return false,
            }
        }
        found.next().is_none()
    }
}

/// One word of a setting: `KIND=PATTERN`, or `KIND=default` for the paths that the kind has where nothing is set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    kind: ChildKind,
    path: Option<Pattern>,
}

/// A word that says nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MalformedWord {
    /// It is not of that form, or hooks are not asked about the kind.
    #[error("{0:?}: write KIND=PATH with one of the kinds Service, Deployment, HorizontalPodAutoscaler and PodDisruptionBudget")]
    Form(String),
    /// Its path is none.
    #[error(transparent)]
    Path(#[from] Malformed),
}

impl FromStr for Word {
    type Err = MalformedWord;

    fn from_str(text: &str) -> Result<Self, MalformedWord> {
        let form = || MalformedWord::Form(crate::policy::limits::cut(text));
        let (kind, path) = text.split_once('=').ok_or_else(form)?;
        let kind = super::same::KINDS.into_iter().find(|known| known.api().1 == kind).ok_or_else(form)?;
        let path = if path == "default" { None } else { Some(path.parse()?) };
        Ok(Self { kind, path })
    }
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.path {
            Some(path) => write!(f, "{}={path}", self.kind.api().1),
            None => write!(f, "{}=default", self.kind.api().1),
        }
    }
}

/// What is listed where nothing else is said. Names, owners, selectors, and labels and annotations of ours are safe whatever is listed.
const DEPLOYMENT: [&str; 16] = [
    "/metadata/labels/*",
    "/metadata/annotations/*",
    "/spec/template/metadata/labels/*",
    "/spec/template/metadata/annotations/*",
    "/spec/template/spec/affinity/**",
    "/spec/template/spec/tolerations/**",
    "/spec/template/spec/nodeSelector/**",
    "/spec/template/spec/topologySpreadConstraints/**",
    "/spec/template/spec/priorityClassName",
    "/spec/template/spec/initContainers/**",
    "/spec/template/spec/volumes/-",
    "/spec/template/spec/containers/-",
    "/spec/template/spec/containers/*/env/**",
    "/spec/template/spec/containers/*/volumeMounts/-",
    "/spec/template/spec/containers/*/resources/**",
    "/spec/template/spec/containers/*/lifecycle/**",
];
const METADATA: [&str; 2] = ["/metadata/labels/*", "/metadata/annotations/*"];

/// Paths that hooks may change, by kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paths(BTreeMap<ChildKind, Vec<Pattern>>);

impl Default for Paths {
    fn default() -> Self {
        // Every pattern here is one; a test reads them all.
        let read = |all: &[&str]| all.iter().filter_map(|text| text.parse().ok()).collect::<Vec<Pattern>>();
        Self(BTreeMap::from([
            (ChildKind::Deployment, read(&DEPLOYMENT)),
            (ChildKind::Service, read(&METADATA)),
            (ChildKind::HorizontalPodAutoscaler, read(&METADATA)),
            (ChildKind::PodDisruptionBudget, read(&METADATA)),
        ]))
    }
}

impl Paths {
    /// These and no others.
    #[must_use]
    pub fn new(by_kind: BTreeMap<ChildKind, Vec<Pattern>>) -> Self {
        Self(by_kind)
    }

    /// Those of one kind, from their texts.
    ///
    /// # Errors
    /// A text that is no pattern.
    pub fn parse(kind: ChildKind, texts: &[String]) -> Result<Self, Malformed> {
        Ok(Self(BTreeMap::from([(kind, texts.iter().map(|text| text.parse()).collect::<Result<_, _>>()?)])))
    }

    /// Those of one kind, as texts.
    #[must_use]
    pub fn texts(&self, kind: ChildKind) -> Vec<String> {
        self.0.get(&kind).into_iter().flatten().map(ToString::to_string).collect()
    }

    /// The default with what a setting says: a kind that is named in it has the paths that are named, and those of the default only where that is
    /// said too.
    #[must_use]
    pub fn configured(words: &[Word]) -> Self {
        let default = Self::default();
        let mut by_kind: BTreeMap<ChildKind, Vec<Pattern>> = BTreeMap::new();
        for word in words {
            let all = by_kind.entry(word.kind).or_default();
            match &word.path {
                Some(pattern) => all.push(pattern.clone()),
                None => all.extend(default.0.get(&word.kind).into_iter().flatten().cloned()),
            }
        }
        let mut paths = default;
        paths.0.extend(by_kind);
        paths
    }

    /// How many there are for a kind.
    #[must_use]
    pub fn count(&self, kind: ChildKind) -> usize {
        self.0.get(&kind).map_or(0, Vec::len)
    }

    /// Whether a path may be changed in objects of a kind.
    #[must_use]
    pub fn allow(&self, kind: ChildKind, path: &str) -> bool {
        self.0.get(&kind).is_some_and(|all| all.iter().any(|pattern| pattern.covers(path)))
    }
}
