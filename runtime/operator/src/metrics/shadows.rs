//! Questions to policies that are asked beside the one in force.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};
use weir_core::policy::SlotName;

/// How a question to a shadow ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ShadowOutcome {
    /// It says the same as the policy in force.
    Same,
    /// It says something else.
    Differs,
    /// It refuses, and the policy in force does not.
    Refuses,
    /// It gives no answer.
    Fails,
    /// It was not asked, because it was busy.
    Dropped,
}

impl ShadowOutcome {
    /// All outcomes.
    pub const ALL: [Self; 5] = [Self::Same, Self::Differs, Self::Refuses, Self::Fails, Self::Dropped];

    /// Label value.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Differs => "differs",
            Self::Refuses => "refuses",
            Self::Fails => "fails",
            Self::Dropped => "dropped",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfQuestion {
    slot: &'static str,
    outcome: &'static str,
}

/// Counters of questions to shadows. Clones count into the same place.
#[derive(Debug, Clone, Default)]
pub struct Shadows(Family<OfQuestion, Counter>);

impl Shadows {
    pub(super) fn register(&self, registry: &mut Registry) {
        for slot in SlotName::ALL {
            for outcome in ShadowOutcome::ALL {
                drop(self.of(slot, outcome));
            }
        }
        registry.register("weir_shadow_questions", "Questions to policies in shadow mode, by slot and how they ended", self.0.clone());
    }

    fn of(&self, slot: SlotName, outcome: ShadowOutcome) -> impl std::ops::Deref<Target = Counter> {
        self.0.get_or_create(&OfQuestion { slot: slot.as_str(), outcome: outcome.as_str() })
    }

    /// A question ended, or was left out.
    pub fn ended(&self, slot: SlotName, outcome: ShadowOutcome) {
        self.of(slot, outcome).inc();
    }
}
