//! Slot conflict-resolution: who wins, or who won last.

use weir_api::condition::reasons;

use super::{
    super::conflicts::{Settlement, Settlements, key, settlement},
    Decided, Pass, ask, blocked, unverified,
};
use crate::{
    decisions::{Found, Record},
    hash,
    plan::HeldPart,
    policy::{
        Identity, SlotName,
        conflict_resolution::{self, Conflict, ConflictResolution, Verdict},
    },
};

impl Pass<'_> {
    pub(super) fn last(&mut self, decided: &mut Decided) -> Option<Record<Settlements>> {
        let found = self.last.get_or_insert_with(|| {
            let found = self.stored.get(SlotName::ConflictResolution, &self.dp.uid, self.sealing);
            if found == Found::Unverified {
                decided.findings.push(unverified(SlotName::ConflictResolution));
            }
            found
        });
        match found {
            Found::Record(record) => Some(record.clone()),
            Found::None | Found::Unverified => None,
        }
    }

    /// Settles conflicts into `self.settlements`. False when one of them has no accepted verdict and never had: `part` is then held; and when
    /// the policy failed and blocks.
    pub(super) async fn settle(&mut self, found: Vec<Conflict>, part: HeldPart, decided: &mut Decided) -> bool {
        if found.is_empty() {
            return !self.blocked;
        }
        let input = conflict_resolution::Input { context: self.dp.context(), conflicts: found };
        let reply = ask::<ConflictResolution>(self.dp, &self.policies.conflict_resolution, &input, decided, |_| Ok(())).await;
        self.questions.push(hash::digest_json(&input));
        let judge = match &reply.answer {
            Ok(_) => Some(self.judge.get_or_insert_with(|| reply.by.clone()).clone()),
            Err(unanswered) => {
                self.unanswered = true;
                self.blocked |= unanswered.blocks;
                None
            }
        };
        let last = self.last(decided);
        let kept = last.as_ref().map(|last| kept(last, judge.as_ref())).unwrap_or_default();
        // The record will be in the name of whoever answered first.
        let another = judge.filter(|judge| judge != reply.by).map(|_| reply.by.clone());
        let held = |kept: bool| if kept { HeldPart::Answer } else { part };
        let mut complete = true;
        for (index, conflict) in input.conflicts.iter().enumerate() {
            let key = key(conflict.kind, &conflict.subject);
            let verdict = reply.answer.as_ref().map(|answer| answer.resolutions.get(index));
            let settled = match verdict {
                Ok(Some(resolution)) => {
                    decided.findings.extend(resolution.findings.iter().cloned());
                    let settled = settlement(conflict, &resolution.verdict);
                    if let (None, Some((reason, message))) = (&settled, waiting(&resolution.verdict)) {
                        decided.hold(held(kept.contains_key(&key)), reason, format!("{}: {message}", conflict.subject));
                    }
                    settled.map(|settled| Settlement { kept_from: another.clone(), ..settled })
                }
                // An answer has one resolution per conflict: its slot's check saw to that.
                Ok(None) => None,
                Err(unanswered) if unanswered.blocks => {
                    let message = format!("{}: {}", conflict.subject, blocked(&unanswered.message));
                    decided.hold(HeldPart::PodTemplate, unanswered.reason(), message);
                    None
                }
                Err(unanswered) => {
                    let message = format!("{}: {}", conflict.subject, unanswered.message);
                    decided.hold(held(kept.contains_key(&key)), unanswered.reason(), message);
                    None
                }
            };
            match settled.or_else(|| kept.get(&key).cloned()) {
                Some(settlement) => {
                    self.settlements.insert(key, settlement);
                }
                None => complete = false,
            }
        }
        complete && !self.blocked
    }

    /// Puts what is settled on record.
    pub(super) fn keep_settlements(&mut self) {
        if self.questions.is_empty() || self.settlements.is_empty() {
            return;
        }
        let answer = self.settlements.clone();
        let record = match (&self.last, &self.judge) {
            (Some(Found::Record(last)), _) if self.unanswered => Record { answer, ..last.clone() },
            (_, Some(judge)) => Record { policy: judge.clone(), input: asked(&self.questions), answer, mac: String::new() },
            // What is settled was settled by somebody.
            (_, None) => return,
        };
        let record = self.still(SlotName::ConflictResolution, record);
        self.writer.put(SlotName::ConflictResolution, &self.dp.uid, record, self.sealing);
    }
}

/// One digest for all questions of a pass. One question is the usual case.
pub(super) fn asked(questions: &[String]) -> String {
    match questions {
        [only] => only.clone(),
        [..] => hash::digest_json(questions),
    }
}

/// The last settlements, to stand in for what the policy does not settle. Where the record will be in the name of `present`, they say whose
/// they are.
fn kept(last: &Record<Settlements>, present: Option<&Identity>) -> Settlements {
    let mut kept = last.answer.clone();
    if let Some(present) = present {
        for settlement in kept.values_mut() {
            let former = settlement.kept_from.take().unwrap_or_else(|| last.policy.clone());
            settlement.kept_from = (former != *present).then_some(former);
        }
    }
    kept
}

/// Reason and message of a verdict that settles nothing.
fn waiting(verdict: &Verdict) -> Option<(&'static str, &str)> {
    match verdict {
        Verdict::Reject(message) => Some((reasons::REJECTED, message)),
        Verdict::Hold(message) => Some((reasons::HELD, message)),
        Verdict::Keep(_) | Verdict::KeepSome(_) | Verdict::Merge(_) => None,
    }
}
