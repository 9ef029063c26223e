//! One case: its passes, or its question, and what is thought of them.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Instant,
};

use futures::executor::block_on;
use serde::Deserialize;
use serde_json::{Value, json};
use weir_api::manifest::Source;
use weir_core::{
    plan::Outcome,
    policy::{Chosen, ConflictResolution, KonnectEnv, ObjectHook, PluginPackaging, Slot, SlotName},
};

use super::{Miss, Ran, Status};
use crate::{
    calls::Call,
    exit::{Exit, Failure},
    invariants, judge,
    pass::{Artifacts, Cluster, Kinds, Manifests, Options, Report, pass_into},
    snapshot::{self, Compared},
    sources,
    stock::{Stock, Stocked, Wanted},
    suite::{Case, Component, Expect, Given, Invariant},
};

/// What all cases share.
#[derive(Debug)]
pub struct Runner {
    /// Schemas of our kinds.
    pub kinds: Kinds,
    /// Whether snapshots are written.
    pub update: bool,
}

impl Runner {
    /// Runs a case.
    #[must_use]
    pub fn run(&self, case: &Case, stock: &mut Stock<'_>) -> Ran {
        let since = Instant::now();
        let mut running = Running {
            runner: self,
            case,
            stock,
            misses: Vec::new(),
            written: Vec::new(),
            step: None,
            calls: 0,
            longest: std::time::Duration::ZERO,
            memory: 0,
        };
        let outcome = match case.slot {
            None => running.passes(),
            Some(SlotName::KonnectEnv) => running.question::<KonnectEnv>(|stocked| &stocked.policies.konnect_env),
            Some(SlotName::ConflictResolution) => running.question::<ConflictResolution>(|stocked| &stocked.policies.conflict_resolution),
            Some(SlotName::PluginPackaging) => running.question::<PluginPackaging>(|stocked| &stocked.policies.plugin_packaging),
            Some(SlotName::ObjectHook) => running.question::<ObjectHook>(|stocked| &stocked.hook),
        };
        let status = match outcome {
            Err(failure) => {
                running.miss(failure.message);
                Status::Error
            }
            Ok(()) if running.misses.is_empty() => Status::Passed,
            Ok(()) => Status::Failed,
        };
        Ran {
            origin: case.origin.clone(),
            status,
            time: since.elapsed(),
            calls: running.calls,
            longest: running.longest,
            memory: running.memory,
            misses: running.misses,
            written: running.written,
            except: case.except.iter().map(|(invariant, why)| (*invariant, why.clone())).collect(),
        }
    }
}

struct Running<'a, 'h> {
    runner: &'a Runner,
    case: &'a Case,
    stock: &'a mut Stock<'h>,
    misses: Vec<Miss>,
    written: Vec<PathBuf>,
    step: Option<usize>,
    calls: usize,
    longest: std::time::Duration,
    memory: usize,
}

impl Running<'_, '_> {
    fn miss(&mut self, message: String) {
        self.misses.push(Miss { step: self.step, message });
    }

    fn missed(&mut self, messages: Vec<String>) {
        messages.into_iter().for_each(|message| self.miss(message));
    }

    fn holds(&self, invariant: Invariant) -> bool {
        !self.case.except.contains_key(&invariant)
    }

    /// The calls since the last time.
    fn calls(&mut self) -> Vec<Call> {
        let calls = self.stock.calls().take();
        self.calls += calls.len();
        for call in &calls {
            self.longest = self.longest.max(call.usage.time);
            self.memory = self.memory.max(call.usage.memory);
        }
        calls
    }

    /// Policies, or what is thought of settings that are refused.
    fn policies(
        &mut self,
        policies: &BTreeMap<SlotName, Component>,
        settings: &BTreeMap<SlotName, Value>,
        expect: &Expect,
    ) -> Result<Option<Stocked>, Failure> {
        let stocked = self.stock.policies(Wanted { case: self.case, policies, settings })?;
        let refused = stocked.as_ref().err().map(|refused| (refused.slot, refused.findings.as_slice()));
        self.missed(judge::settings(expect, refused));
        Ok(stocked.ok().filter(|_| expect.settings_refused.is_none()))
    }

    fn snapshot(&mut self, wanted: bool, output: &Value) -> Result<(), Failure> {
        if !wanted {
            return Ok(());
        }
        let update = self.runner.update && self.misses.is_empty();
        let path = snapshot::path(&self.case.origin, self.step);
        match snapshot::compare(&path, output, update).map_err(Failure::usage)? {
            Compared::Same => {}
            Compared::Written(path) => self.written.push(path),
            Compared::Differs(why) => self.miss(why),
        }
        Ok(())
    }

    fn passes(&mut self) -> Result<(), Failure> {
        let case = self.case;
        let (mut policies, mut settings) = (case.policies.clone(), case.settings.clone());
        let mut given = case.given.clone();
        let mut cluster = Cluster::new(manifests(case, &given, true)?, &self.runner.kinds, &Options::default().namespace);
        self.pass(&mut cluster, &given, &policies, &settings, &case.expect, case.snapshot())?;
        for (index, step) in case.steps.iter().enumerate() {
            self.step = Some(index + 1);
            policies.extend(step.policies.clone());
            settings.extend(step.settings.clone());
            cluster.apply(manifests(case, &step.given, false)?, &self.runner.kinds);
            let absent = step.delete.iter().filter(|object| !cluster.delete(object)).cloned().collect::<Vec<_>>();
            absent.into_iter().for_each(|object| self.miss(format!("delete: there is no {object}")));
            for change in &step.observe {
                if !cluster.observe(&change.object, &change.merge) {
                    self.miss(format!("observe: there is no {}", change.object));
                }
            }
            given = step.given.clone().or(&given);
            self.pass(&mut cluster, &given, &policies, &settings, &step.expect, step.expect.snapshot == Some(true))?;
        }
        Ok(())
    }

    fn pass(
        &mut self,
        cluster: &mut Cluster,
        given: &Given,
        policies: &BTreeMap<SlotName, Component>,
        settings: &BTreeMap<SlotName, Value>,
        expect: &Expect,
        snapshot: bool,
    ) -> Result<(), Failure> {
        let Some(stocked) = self.policies(policies, settings, expect)? else { return Ok(()) };
        let options = options(given)?;
        let files = given.artifacts.iter().map(|(reference, path)| (reference.clone(), self.case.folder().join(path)));
        let files: Vec<(String, PathBuf)> = files.collect();
        let artifacts = Artifacts::new(files.iter().map(|(reference, path)| (reference.as_str(), path.as_path())), None, None)?;
        let once = |cluster: &mut Cluster| pass_into(cluster, &artifacts, &options, &self.runner.kinds, &stocked.policies);
        let mut same = cluster.clone();
        let report = once(cluster)?;
        let calls = self.calls();
        let output = json(&report)?;
        self.missed(judge::pass(expect, report.exit().max(stocked.exit), &output, &calls));
        if self.holds(Invariant::Budget) {
            self.missed(invariants::budget(expect, report.policies.iter().map(|used| used.outcome)));
        }
        if self.holds(Invariant::Valid) {
            self.missed(invariants::valid(&report, cluster, &self.runner.kinds));
        }
        if self.holds(Invariant::Deterministic) {
            let again = json(&once(&mut same)?)?;
            self.missed(invariants::deterministic(&output, &again));
        }
        if self.holds(Invariant::Settles) && cluster.unclear().is_empty() && !report.statuses.is_empty() {
            let mut after = cluster.clone();
            self.missed(invariants::settles(|| once(&mut after))?);
        }
        self.calls();
        self.snapshot(snapshot, &snapshot::steady(&output, &stocked.policies))
    }

    fn question<S>(&mut self, choose: fn(&Stocked) -> &Chosen<S>) -> Result<(), Failure>
    where
        S: Slot,
        S::Input: for<'de> Deserialize<'de>,
    {
        let case = self.case;
        let (policies, settings) = (case.policies.clone(), case.settings.clone());
        let Some(stocked) = self.policies(&policies, &settings, &case.expect)? else { return Ok(()) };
        let input = question(case)?;
        let input: S::Input = serde_path_to_error::deserialize(input).map_err(|error| Failure::usage(format!("input: {error}")))?;
        let policy = &choose(&stocked).policy;
        let answer = block_on(policy.evaluate(&input));
        // A component that is none was never called.
        let mut calls = self.calls();
        let call = calls.pop().unwrap_or_else(|| crate::calls::call::<S>(&input, &answer, Default::default()));
        self.missed(judge::question(&case.expect, &call));
        if self.holds(Invariant::Budget) {
            self.missed(invariants::budget(&case.expect, std::iter::once(call.outcome)));
        }
        let output = answered(&call);
        if self.holds(Invariant::Deterministic) && !matches!(call.outcome, Outcome::Deadline | Outcome::Unavailable) {
            let again = block_on(policy.evaluate(&input));
            self.missed(invariants::deterministic(&output, &answered(&crate::calls::call::<S>(&input, &again, Default::default()))));
        }
        self.calls();
        self.snapshot(case.snapshot(), &output)
    }
}

/// An answer as snapshots have it.
fn answered(call: &Call) -> Value {
    match (&call.answer, call.outcome) {
        (Some(answer), _) => json!({"outcome": "accepted", "answer": answer}),
        (None, outcome) => json!({"outcome": outcome.as_str(), "message": call.message}),
    }
}

fn json(report: &Report) -> Result<Value, Failure> {
    serde_json::to_value(report).map_err(|error| Failure { exit: Exit::Internal, message: error.to_string() })
}

/// What the operator would know beside manifests.
fn options(given: &Given) -> Result<Options, Failure> {
    let mut options = Options::default();
    if let Some(now) = &given.now {
        options.now = now.parse().map_err(|error| Failure::usage(format!("given.now: {now:?}: {error}")))?;
    }
    options.validate_images = given.validate_images.unwrap_or(options.validate_images);
    options.allow_cross_namespace_plugins = given.allow_cross_namespace_plugins.unwrap_or(options.allow_cross_namespace_plugins);
    options.cluster_name = given.cluster_name.clone().unwrap_or_default();
    options.cluster_labels.clone_from(&given.cluster_labels);
    options.operator.clone_from(&given.operator);
    Ok(options)
}

/// Files and objects. The first pass has the folders `input` and `observed` where nothing is named.
fn manifests(case: &Case, given: &Given, first: bool) -> Result<Manifests, Failure> {
    let read = |paths: &[PathBuf], objects: &[Value], usual: &str| -> Result<Vec<Source>, Failure> {
        let mut paths: Vec<PathBuf> = paths.iter().map(|path| case.folder().join(path)).collect();
        if first && paths.is_empty() && objects.is_empty() {
            paths.extend(Some(case.folder().join(usual)).filter(|folder| folder.is_dir()));
        }
        let mut sources = sources::read(&paths)?;
        if !objects.is_empty() {
            let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
            sources.push(Source { name: format!("{usual} of the suite"), text: list.to_string() });
        }
        Ok(sources)
    };
    Ok(Manifests {
        desired: read(&given.manifests, &given.objects, "input")?,
        observed: read(&given.observed, &given.observed_objects, "observed")?,
    })
}

/// The question of a case.
fn question(case: &Case) -> Result<Value, Failure> {
    if let Some(input) = &case.given.input {
        return Ok(input.clone());
    }
    let path = case.given.input_file.as_deref().unwrap_or(Path::new("input/input.yaml"));
    document(&case.folder().join(path))
}

/// A small YAML or JSON document.
pub(crate) fn document(path: &Path) -> Result<Value, Failure> {
    let sources = sources::read(&[path.to_owned()])?;
    let text = sources.first().map(|source| source.text.as_str()).unwrap_or_default();
    serde_saphyr::from_str(text).map_err(|error| Failure::usage(format!("{}: {error}", path.display())))
}
