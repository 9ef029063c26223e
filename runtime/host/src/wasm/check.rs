//! Whether a component would be loaded, step by step: for people who want to know before they publish it.
//!
//! The steps are those of [`Wasm::load`] and run the same code. Nothing is evaluated: a policy that only misbehaves when it is asked
//! passes.

use serde_json::Value;
use weir_core::policy::{Finding, PolicyError};

use super::{
    Wasm,
    inspect::Interfaces,
    limits::Limits,
    load,
    settings::{self, Settings},
    slot::WasmSlot,
};

/// What is checked, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// It exports what the slot asks for.
    Exports,
    /// It imports what policies get, and nothing else.
    Imports,
    /// It compiles and links.
    Compiles,
    /// It has a schema of its settings that can be used.
    Schema,
    /// The settings fit the schema.
    Settings,
    /// The component itself takes the settings.
    Validate,
}

/// How a step ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It passed. The findings do not keep the policy from being loaded.
    Passed(Vec<Finding>),
    /// The component is at fault, or this machine cannot say.
    Failed(PolicyError),
    /// The settings are at fault; at least one finding is an error.
    Refused(Vec<Finding>),
}

/// A step and how it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// The step.
    pub step: Step,
    /// How it ended.
    pub verdict: Verdict,
}

impl Step {
    /// All steps, in order.
    pub const ALL: [Self; 6] = [Self::Exports, Self::Imports, Self::Compiles, Self::Schema, Self::Settings, Self::Validate];

    /// Its name in a report.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Exports => "exports",
            Self::Imports => "imports",
            Self::Compiles => "compiles",
            Self::Schema => "schema",
            Self::Settings => "settings",
            Self::Validate => "validate",
        }
    }
}

impl Verdict {
    /// Whether the policy may go on.
    #[must_use]
    pub fn passed(&self) -> bool {
        matches!(self, Self::Passed(_))
    }

    fn of(outcome: Result<(), PolicyError>) -> Self {
        outcome.map_or_else(Self::Failed, |()| Self::Passed(Vec::new()))
    }

    fn about_settings(outcome: Result<Vec<Finding>, PolicyError>) -> Self {
        match outcome {
            Ok(findings) if settings::invalid(&findings) => Self::Refused(findings),
            Ok(findings) => Self::Passed(findings),
            Err(error) => Self::Failed(error),
        }
    }
}

impl Wasm {
    /// Checks a component for slot `S`, with `settings` (JSON `null`: none). `interfaces` are those of `bytes`. What follows a step that
    /// does not pass is left out, except that imports are looked at whatever the exports are. Blocks like [`Wasm::load`].
    #[must_use]
    pub fn check<S: WasmSlot>(&self, bytes: &[u8], interfaces: &Interfaces, settings: Value, limits: Limits) -> Vec<Check> {
        let names = [
            Check { step: Step::Exports, verdict: Verdict::of(interfaces.check_exports(S::NAME).map_err(PolicyError::from)) },
            Check { step: Step::Imports, verdict: Verdict::of(interfaces.check_imports().map_err(PolicyError::from)) },
        ];
        let mut done = names.to_vec();
        if done.iter().all(|check| check.verdict.passed()) {
            self.run::<S>(bytes, settings, limits, &mut done);
        }
        done
    }

    fn run<S: WasmSlot>(&self, bytes: &[u8], settings: Value, limits: Limits, done: &mut Vec<Check>) {
        let mut end = |step, verdict: Verdict| {
            let passed = verdict.passed();
            done.push(Check { step, verdict });
            passed
        };
        let settings = match Settings::new(settings) {
            Ok(settings) => settings,
            Err(findings) => {
                end(Step::Settings, Verdict::Refused(findings));
                return;
            }
        };
        let policy = match self.unasked::<S>(bytes, "check".to_owned(), &settings, limits) {
            Ok(policy) => policy,
            Err(error) => {
                end(Step::Compiles, Verdict::Failed(error));
                return;
            }
        };
        end(Step::Compiles, Verdict::Passed(Vec::new()));
        // A schema is known to be usable once something was checked with it.
        let fits = load::schema(&policy).and_then(|schema| settings.check(&self.loader().schemas, schema));
        let known = Verdict::of(fits.as_ref().map(|_| ()).map_err(Clone::clone));
        if end(Step::Schema, known) && end(Step::Settings, Verdict::about_settings(fits)) {
            end(Step::Validate, Verdict::about_settings(load::validate(&policy)));
        }
    }
}
