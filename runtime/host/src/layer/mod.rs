//! What goes around any policy, wherever it runs: [`Memo`] remembers answers, [`Observe`] counts calls.
//!
//! `Memo` stands outside of `Observe`: what is counted are the questions that really reach the policy.

mod memo;
mod observe;

pub use self::{
    memo::{Memo, MemoSize, MemoStats},
    observe::{Counters, Observe, Snapshot},
};
