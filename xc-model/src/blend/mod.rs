//! Combines the answers of several models into one ranking.
//!
//! ```text
//!   member 0: 17 4 9 ...  ─┐                     ┌─▶ score, 1/rank, ln rank, found or not, of each member ┐
//!   member 1: 4 8 17 ...  ─┼─▶ union of the best ┤                                                        ├─▶ a probability per label
//!   member 2: 4 2 17 ...  ─┘   (30 of each)      └─▶ rows that have the label, rare or not ───────────────┘
//! ```
//!
//! [`Features`] computes the features of a candidate, and a [`Rule`] a logit from these. Rules are
//! fitted on rows that no member was trained on (by `xc-train`): a member is more
//! often right on its training rows than on queries, and a fit on those would trust it too much.
//!
//! Labels that no member has among its [`DEPTH`] best are not candidates. If more labels are
//! requested than there are candidates, other labels follow in the order of their summed reciprocal
//! ranks. The best `k` labels are therefore the first `k` of any longer answer.
//!
//! *Cost*: that of all members, plus some microseconds per query.
//!
//! # When not to use it
//! For members that make similar errors: two trees with different seeds gain less than a tree and a
//! network.
//!
//! *References*: `[wolpert1992stacked]` for rules fitted on held-out rows,
//! `[cormack2009reciprocal]` for reciprocal ranks (there `1 / (60 + rank)`).

mod boosted;
mod features;
mod rule;

pub use features::{FeatureScale, Features, candidates};
pub(crate) use rule::below;
pub use rule::{OpenRuleError, Rule, RuleKind, RuleScratch};

/// The kind that a blend's folder states.
pub const KIND: &str = "blend";

/// Number of best labels of each member that become candidates.
pub const DEPTH: usize = 30;
