//! Which paths a hook may change, by kind.

use std::{collections::BTreeMap, str::FromStr};

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
