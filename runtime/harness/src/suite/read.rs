//! From a file to cases.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Component as Part, Path, PathBuf},
    time::Duration,
};

use serde_json::Value;
use weir_core::policy::SlotName;
use weir_host::wasm;

use super::{
    document::{CaseDocument, Component, Expect, Given, Invariant, Limits, PolicyTest, Step},
    find::{MAX_SUITE, bounded},
};
use crate::exit::Failure;

/// Most cases of one suite.
pub const MAX_CASES: usize = 10_000;
/// Most steps of one case.
const MAX_STEPS: usize = 100;

/// Where a case stands.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin {
    /// The suite's file.
    pub suite: PathBuf,
    /// Name of the case; empty for a document of one case.
    pub case: String,
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let suite = self.suite.display();
        if self.case.is_empty() { write!(f, "{suite}") } else { write!(f, "{suite}: {}", self.case) }
    }
}

/// A case, with what it has of its suite.
#[derive(Debug, Clone)]
pub struct Case {
    /// Where it stands.
    pub origin: Origin,
    /// Components by slot; others are built in.
    pub policies: BTreeMap<SlotName, Component>,
    /// Settings by slot.
    pub settings: BTreeMap<SlotName, Value>,
    /// What one call may use.
    pub limits: wasm::Limits,
    /// The slot that a question goes to.
    pub slot: Option<SlotName>,
    /// What it is given.
    pub given: Given,
    /// Further passes.
    pub steps: Vec<Step>,
    /// What has to come of the first pass.
    pub expect: Expect,
    /// Invariants that do not hold, and why.
    pub except: BTreeMap<Invariant, String>,
}

impl Case {
    /// The folder that paths are relative to.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.origin.suite.parent().unwrap_or(Path::new(""))
    }

    /// Whether the output has to be that of a snapshot.
    #[must_use]
    pub fn snapshot(&self) -> bool {
        self.expect.snapshot.unwrap_or(self.origin.case.is_empty())
    }
}

/// Reads a suite.
///
/// # Errors
/// What is wrong with it, with the field, as [`Exit::Usage`](crate::exit::Exit::Usage).
pub fn read(path: &Path) -> Result<Vec<Case>, Failure> {
    let text = bounded(path)?;
    if text.len() as u64 > MAX_SUITE {
        return Err(Failure::usage(format!("{}: over {} MiB", path.display(), MAX_SUITE >> 20)));
    }
    cases(path, &text).map_err(|why| Failure::usage(format!("{}: {why}", path.display())))
}

fn cases(path: &Path, text: &str) -> Result<Vec<Case>, String> {
    let value: Value = serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
    let document: PolicyTest = serde_path_to_error::deserialize(value).map_err(|error| error.to_string())?;
    let named = |case: &str| Origin { suite: path.to_owned(), case: case.to_owned() };
    match (&document.cases, &document.expect) {
        (None, None) => Err("it has neither `cases` nor `expect`: nothing would be tested".into()),
        (Some(_), Some(_)) => Err("it has `cases` and `expect`: put what is expected into the cases".into()),
        (None, Some(expect)) => {
            let case = Case {
                origin: named(""),
                policies: document.policies.clone(),
                settings: document.settings.clone(),
                limits: limits(document.limits.as_ref(), document.timeout_ms)?,
                slot: document.slot,
                given: document.given.clone(),
                steps: document.steps.clone(),
                expect: expect.clone(),
                except: document.except.clone(),
            };
            Ok(vec![checked(case)?])
        }
        (Some(_), None) if !document.steps.is_empty() => Err("`steps` stand in cases: put them there".into()),
        (Some(cases), None) if cases.is_empty() => Err("`cases` is empty: nothing would be tested".into()),
        (Some(cases), None) if cases.len() > MAX_CASES => Err(format!("it has over {MAX_CASES} cases")),
        (Some(cases), None) => {
            let mut names = BTreeSet::new();
            let mut all = Vec::new();
            for case in cases {
                if case.name.trim().is_empty() || !names.insert(&case.name) {
                    return Err(format!("cases: {:?} is the name of two cases, or none at all", case.name));
                }
                let case = of_suite(&document, case, named(&case.name)).and_then(checked);
                all.push(case.map_err(|why| format!("case {:?}: {why}", names.last().map(|name| name.as_str()).unwrap_or_default()))?);
            }
            Ok(all)
        }
    }
}

fn of_suite(suite: &PolicyTest, case: &CaseDocument, origin: Origin) -> Result<Case, String> {
    let (mut policies, mut settings) = (suite.policies.clone(), suite.settings.clone());
    policies.extend(case.policies.clone());
    settings.extend(case.settings.clone());
    let mut except = suite.except.clone();
    except.extend(case.except.clone());
    Ok(Case {
        origin,
        policies,
        settings,
        limits: limits(case.limits.as_ref().or(suite.limits.as_ref()), suite.timeout_ms.filter(|_| case.limits.is_none()))?,
        slot: case.slot.or(suite.slot),
        given: case.given.clone().or(&suite.given),
        steps: case.steps.clone(),
        expect: case.expect.clone(),
        except,
    })
}

/// What is wrong with a case before it runs.
fn checked(case: Case) -> Result<Case, String> {
    if case.slot.is_some() && !case.steps.is_empty() {
        return Err("a question has no steps: it is one call".into());
    }
    if case.steps.len() > MAX_STEPS {
        return Err(format!("it has over {MAX_STEPS} steps"));
    }
    if let Some((invariant, _)) = case.except.iter().find(|(_, why)| why.trim().is_empty()) {
        return Err(format!("except.{invariant:?}: say why it does not hold"));
    }
    let given = std::iter::once(&case.given).chain(case.steps.iter().map(|step| &step.given));
    for given in given {
        given.paths().try_for_each(relative)?;
        if let Some(now) = &given.now {
            now.parse::<jiff::Timestamp>().map_err(|error| format!("given.now: {now:?}: {error}"))?;
        }
    }
    for component in case.policies.values().chain(case.steps.iter().flat_map(|step| step.policies.values())) {
        if let Component::File(path) = component
            && path.is_absolute()
        {
            return Err(format!("policies: {} is not relative to the suite", path.display()));
        }
    }
    Ok(case)
}

/// A suite is the same on every machine: what it is given lies beside it.
fn relative(path: &Path) -> Result<(), String> {
    let inside = path.components().all(|part| matches!(part, Part::Normal(_) | Part::CurDir));
    if inside { Ok(()) } else { Err(format!("given: {} leaves the suite's folder: put it there", path.display())) }
}

impl Given {
    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        let files = self.manifests.iter().chain(&self.observed).chain(&self.input_file).chain(self.artifacts.values());
        files.map(PathBuf::as_path)
    }

    /// This, and from `other` what it leaves open.
    pub(crate) fn or(self, other: &Self) -> Self {
        fn list<T: Clone>(own: Vec<T>, other: &[T]) -> Vec<T> {
            if own.is_empty() { other.to_vec() } else { own }
        }
        // A question is written down in one way or the other.
        let asked = self.input.is_some() || self.input_file.is_some();
        let wants = !self.manifests.is_empty() || !self.objects.is_empty();
        Self {
            manifests: if wants { self.manifests } else { other.manifests.clone() },
            objects: if wants { self.objects } else { other.objects.clone() },
            observed: list(self.observed, &other.observed),
            observed_objects: list(self.observed_objects, &other.observed_objects),
            input: if asked { self.input } else { other.input.clone() },
            input_file: if asked { self.input_file } else { other.input_file.clone() },
            now: self.now.or_else(|| other.now.clone()),
            validate_images: self.validate_images.or(other.validate_images),
            artifacts: if self.artifacts.is_empty() { other.artifacts.clone() } else { self.artifacts },
            allow_cross_namespace_plugins: self.allow_cross_namespace_plugins.or(other.allow_cross_namespace_plugins),
            cluster_name: self.cluster_name.or_else(|| other.cluster_name.clone()),
            operator: self.operator.or_else(|| other.operator.clone()),
            cluster_labels: if self.cluster_labels.is_empty() { other.cluster_labels.clone() } else { self.cluster_labels },
        }
    }
}

/// Limits in the words of a ReconcilePolicy; the operator's own where nothing is said.
///
/// # Errors
/// What is no such word, or out of bounds.
pub fn limits_of(timeout: Option<&str>, memory: Option<&str>) -> Result<wasm::Limits, String> {
    limits(Some(&Limits { timeout: timeout.map(str::to_owned), memory: memory.map(str::to_owned) }), None)
}

fn limits(limits: Option<&Limits>, timeout_ms: Option<u64>) -> Result<wasm::Limits, String> {
    let default = wasm::Limits::default();
    let wrong = |field: &str, text: &str, form: &str| format!("limits.{field}: {text:?} is not written as {form}");
    let timeout = match (limits.and_then(|l| l.timeout.as_deref()), timeout_ms) {
        (Some(_), Some(_)) => return Err("timeoutMs and limits.timeout say the same: keep one".into()),
        (None, None) => default.timeout(),
        (None, Some(milliseconds)) => Duration::from_millis(milliseconds),
        (Some(text), None) => time(text).ok_or_else(|| wrong("timeout", text, "200ms or 2s"))?,
    };
    let memory = match limits.and_then(|l| l.memory.as_deref()) {
        None => default.memory(),
        Some(text) => {
            let bytes = text.strip_suffix("Mi").and_then(|number| number.parse::<usize>().ok()).and_then(|mi| mi.checked_mul(1 << 20));
            bytes.ok_or_else(|| wrong("memory", text, "32Mi"))?
        }
    };
    wasm::Limits::new(timeout, memory).map_err(|error| format!("limits: {error}"))
}

fn time(text: &str) -> Option<Duration> {
    match text.strip_suffix("ms") {
        Some(number) => number.parse().ok().map(Duration::from_millis),
        None => text.strip_suffix('s').and_then(|number| number.parse().ok()).map(Duration::from_secs),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "apiVersion: test.weir.dev/v1alpha1\nkind: PolicyTest\nmetadata: {name: a}\n";

    fn of(text: &str) -> Result<Vec<Case>, String> {
        cases(Path::new("dir/a.yaml"), &format!("{HEAD}{text}"))
    }

    #[test]
    fn cases_have_what_the_suite_says_unless_they_say_otherwise() {
        let all = of("timeoutMs: 500\nsettings: {konnect-env: {a: 1}}\ngiven: {now: 2026-05-05T00:00:00Z, manifests: [m.yaml]}\n\
             cases:\n- {name: first, expect: {}}\n- {name: second, given: {objects: [{}]}, limits: {memory: 8Mi}, settings: {konnect-env: {b: 2}}, expect: {snapshot: true}}")
        .unwrap();
        let [x, y] = all.as_slice() else { panic!("{all:?}") };
        assert_eq!((x.limits.timeout(), y.limits.timeout()), (Duration::from_millis(500), Duration::from_millis(200)));
        assert_eq!((x.limits.memory(), y.limits.memory()), (32 << 20, 8 << 20));
        assert_eq!((x.given.manifests.len(), y.given.manifests.len(), y.given.objects.len()), (1, 0, 1));
        assert_eq!(y.given.now.as_deref(), Some("2026-05-05T00:00:00Z"));
        assert_eq!(y.settings[&SlotName::KonnectEnv], serde_json::json!({"b": 2}));
        assert_eq!((x.snapshot(), y.snapshot()), (false, true));
        assert_eq!(x.origin.to_string(), "dir/a.yaml: first");
    }

    #[test]
    fn a_document_of_one_case_has_a_snapshot() {
        let all = of("policies: {konnect-env: some-name}\nexpect: {exit: 0}").unwrap();
        assert!(all.len() == 1 && all[0].snapshot());
        assert_eq!(all[0].policies[&SlotName::KonnectEnv], Component::Name("some-name".into()));
    }

    #[test]
    fn mistakes_name_the_field() {
        for (text, said) in [
            ("", "neither `cases` nor `expect`"),
            ("cases: []", "`cases` is empty"),
            ("expect: {}\ncases: []", "`cases` and `expect`"),
            ("expect: {outcom: trap}", "expect.outcom"),
            ("expect: {outcome: crash}", "expect.outcome"),
            ("cases: [{name: a, expect: {}}, {name: a, expect: {}}]", "the name of two cases"),
            ("cases: [{name: a, expect: {}, given: {manifests: [../x.yaml]}}]", "case \"a\": given: ../x.yaml leaves the suite's folder"),
            ("given: {manifests: [/etc/passwd]}\nexpect: {}", "leaves the suite's folder"),
            ("expect: {}\ntimeoutMs: 20000", "limits: timeout"),
            ("expect: {}\nlimits: {memory: 1Gi}", "is not written as 32Mi"),
            ("expect: {}\nlimits: {timeout: 1s}\ntimeoutMs: 1", "say the same"),
            ("expect: {}\npolicies: {konnect-env: {file: a, ref: b}}", "exactly one of file, ref and builtin"),
            ("expect: {}\npolicies: {konnect: {file: a}}", "policies"),
            ("expect: {}\ngiven: {now: today}", "given.now"),
            ("expect: {}\nexcept: {settles: ' '}", "say why"),
            ("expect: {}\nslot: konnect-env\nsteps: [{expect: {}}]", "a question has no steps"),
        ] {
            let error = of(text).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
