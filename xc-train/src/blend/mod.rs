//! Answers of several models as one ranking.
//!
//! ```text
//!   member 0: 17 4 9 ...  ─┐                     ┌─▶ score, 1/rank, ln rank, there or not, of each member ─┐
//!   member 1: 4 8 17 ...  ─┼─▶ union of the best ┤                                                         ├─▶ a probability a label
//!   member 2: 4 2 17 ...  ─┘   (30 of each)      └─▶ rows that carry the label, rare or not ───────────────┘
//! ```
//!
//! [`Features`] makes numbers of a candidate, a [`Rule`] a logit of the numbers. Rules are fitted on
//! rows that no member was trained on (`fit`, feature `train`): on others a member is more often
//! right than on what it will be asked, and the fit would trust it too much.
//!
//! Labels that no member has among its [`DEPTH`] best are not candidates. Where more labels are
//! asked for than there are candidates, they follow in order of their summed reciprocal ranks. The
//! best `k` labels are therefore the first `k` of any longer answer.
//!
//! *Cost*: that of all members, and some microseconds a query.
//!
//! # When not to use it
//! For members that err alike: two trees of other seeds gain less than one tree and one network.
//!
//! *References*: `[wolpert1992stacked]` for rules fitted on held-out rows,
//! `[cormack2009reciprocal]` for reciprocal ranks (there `1 / (60 + rank)`).

mod features;
#[cfg(feature = "train")]
pub mod fit;
mod rule;

pub use features::{Features, Scale, candidates};
pub(crate) use rule::below;
pub use rule::{OpenRuleError, Rule, RuleKind, RuleScratch};

/// What a blend's folder states as its kind.
pub const KIND: &str = "blend";

/// Labels of each member that are candidates: its best.
pub const DEPTH: usize = 30;
