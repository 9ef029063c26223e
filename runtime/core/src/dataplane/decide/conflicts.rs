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
        match &reply.answer {
            Ok(_) => {
                self.judge.get_or_insert_with(|| (reply.by.clone(), reply.fallback_for.cloned()));
            }
            Err(unanswered) => {
                self.unanswered = true;
                self.blocked |= unanswered.blocks;
            }
        }
        let kept = self.last(decided).map(kept).unwrap_or_default();
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
                    settled.map(|settled| Settlement { kept_from: Some(reply.by.clone()), ..settled })
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
        let last = match &self.last {
            Some(Found::Record(last)) => Some(last),
            Some(Found::None | Found::Unverified) | None => None,
        };
        // The record is in the name of whoever answered first; where nobody did, of whoever did last.
        let by = self.judge.clone().or_else(|| last.map(|last| (last.policy.clone(), last.fallback_for.clone())));
        let Some((policy, fallback_for)) = by else { return };
        let input = match last.filter(|_| self.unanswered) {
            Some(last) => last.input.clone(),
            None => asked(&self.questions),
        };
        for settlement in self.settlements.values_mut() {
            settlement.kept_from = settlement.kept_from.take().filter(|whose| *whose != policy);
        }
        let record = Record { policy, input, answer: self.settlements.clone(), fallback_for, mac: String::new() };
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

/// The last settlements, to stand in for what the policy does not settle, with whose they are.
fn kept(last: Record<Settlements>) -> Settlements {
    let Record { policy, answer, .. } = last;
    answer.into_iter().map(|(key, settled)| (key, whose(settled, &policy))).collect()
}

fn whose(settlement: Settlement, policy: &Identity) -> Settlement {
    Settlement { kept_from: settlement.kept_from.or_else(|| Some(policy.clone())), ..settlement }
}

/// Reason and message of a verdict that settles nothing.
fn waiting(verdict: &Verdict) -> Option<(&'static str, &str)> {
    match verdict {
        Verdict::Reject(message) => Some((reasons::REJECTED, message)),
        Verdict::Hold(message) => Some((reasons::HELD, message)),
        Verdict::Keep(_) | Verdict::KeepSome(_) | Verdict::Merge(_) => None,
    }
}
