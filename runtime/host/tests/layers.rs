//! Memo and Observe over a policy in Rust.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test's way to fail")]

mod support;

use std::sync::{Arc, Mutex};

use futures::executor::block_on;
use support::input;
use weir_core::plan::Outcome;
use weir_core::policy::{
    BoxFuture, Identity, KonnectEnv, Policy, PolicyError, Refusal, SlotName,
    konnect_env::{Answer, Input},
};
use weir_host::layer::{Counters, Memo, MemoSize, MemoStats, Observe};

struct Scripted {
    identity: Identity,
    calls: Mutex<Vec<String>>,
}

impl Policy<KonnectEnv> for Scripted {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn evaluate<'a>(&'a self, input: &'a Input) -> BoxFuture<'a, Result<Answer, PolicyError>> {
        Box::pin(async move {
            self.calls.lock().unwrap().push(input.image.clone());
            match input.image.as_str() {
                "refuse" => Err(PolicyError::Refused(Refusal { code: "No".into(), message: "no".into() })),
                "fail" => Err(PolicyError::Trap("t".into())),
                image => Ok(Answer {
                    env: Vec::new(),
                    volumes: Vec::new(),
                    mounts: Vec::new(),
                    readiness_path: Some(format!("/{image}")),
                    findings: Vec::new(),
                }),
            }
        })
    }
}

fn scripted(settings: &str) -> Arc<Scripted> {
    let identity = Identity { source: "test".into(), digest: "sha256:d".into(), settings_digest: settings.into() };
    Arc::new(Scripted { identity, calls: Mutex::default() })
}

fn ask(policy: &dyn Policy<KonnectEnv>, image: &str) -> Result<Answer, PolicyError> {
    block_on(policy.evaluate(&Input { image: image.into(), ..input() }))
}

#[test]
fn answers_and_refusals_are_remembered_failures_are_not() {
    let inner = scripted("s");
    let counters = Arc::new(Counters::default());
    let memo = Memo::new(Arc::new(Observe::new(inner.clone(), counters.clone())), MemoSize::default());
    for image in ["a", "refuse", "fail", "a", "refuse", "fail", "b"] {
        let (first, again) = (ask(&memo, image), ask(&*inner, image));
        assert_eq!(first, again);
        inner.calls.lock().unwrap().pop();
    }
    assert_eq!(*inner.calls.lock().unwrap(), ["a", "refuse", "fail", "fail", "b"]);
    let stats = memo.stats();
    assert_eq!((stats.hits, stats.misses, stats.entries), (2, 5, 3));
    let snapshot = counters.snapshot();
    assert_eq!(snapshot.total(), 5);
    assert_eq!(snapshot.of(SlotName::KonnectEnv), 5);
    assert_eq!(snapshot.of(SlotName::ConflictResolution), 0);
    assert_eq!(snapshot.calls[&(SlotName::KonnectEnv, Outcome::Answered)], 2);
    assert_eq!(snapshot.calls[&(SlotName::KonnectEnv, Outcome::Refused)], 1);
    assert_eq!(snapshot.calls[&(SlotName::KonnectEnv, Outcome::Trap)], 2);
    // Steady state: nothing reaches the policy.
    assert!(ask(&memo, "a").is_ok());
    assert_eq!(counters.snapshot().calls, snapshot.calls);
    memo.clear();
    assert!(ask(&memo, "a").is_ok());
    assert_eq!(counters.snapshot().total(), 6);
}

#[test]
fn every_part_of_the_question_counts() {
    let inner = scripted("s");
    let memo = Memo::new(inner.clone(), MemoSize::default());
    let mut question = input();
    assert!(block_on(memo.evaluate(&question)).is_ok());
    question.context.namespace_labels.insert("a".into(), "b".into());
    assert!(block_on(memo.evaluate(&question)).is_ok());
    assert_eq!(inner.calls.lock().unwrap().len(), 2);
}

#[test]
fn what_was_used_longest_ago_goes_first() {
    let inner = scripted("s");
    let memo = Memo::new(inner.clone(), MemoSize { entries: 2, bytes: 1 << 20 });
    for image in ["a", "b", "a", "c", "a", "b"] {
        assert!(ask(&memo, image).is_ok());
    }
    assert_eq!(*inner.calls.lock().unwrap(), ["a", "b", "c", "b"]);
    assert_eq!(memo.stats().entries, 2);
}

#[test]
fn bytes_are_bounded() {
    let memo = Memo::new(scripted("s"), MemoSize { entries: 1000, bytes: 2_000 });
    for n in 0..100 {
        assert!(ask(&memo, &format!("image-{n}")).is_ok());
        assert!(memo.stats().bytes <= 2_000);
    }
    assert!(memo.stats().entries > 1);
    // An answer that does not fit at all is not kept, and pushes nothing out.
    let before = memo.stats().entries;
    assert!(ask(&memo, &"x".repeat(3_000)).is_ok());
    assert_eq!(memo.stats().entries, before);
    assert!(MemoStats::default().entries == 0);
}

#[test]
fn outcomes_have_the_words_of_the_errors() {
    let errors = [
        PolicyError::Refused(Refusal { code: String::new(), message: String::new() }),
        PolicyError::Deadline { limit_ms: 1 },
        PolicyError::Memory(String::new()),
        PolicyError::Trap(String::new()),
        PolicyError::Unavailable(String::new()),
        PolicyError::BadOutput(String::new()),
        PolicyError::Incompatible(String::new()),
    ];
    for error in errors {
        let reason = error.reason();
        assert_eq!(Outcome::of::<()>(&Err(error)).as_str(), reason);
    }
}
