#![doc = include_str!("../README.md")]
//!
//! Rules that hold for all metrics (formulas: [`Metric`]):
//! * a rank past the end of a short list is a miss; so is every rank of an empty list;
//! * an instance without true labels scores 0 and stays in every mean;
//! * a true label that the model cannot know (see [`Counts::unknown_labels`]) stays in the truth,
//!   is counted, and is always missed;
//! * instance weights weigh the mean over instances and the label counts behind F1 and coverage;
//! * a pair (instance, label) to ignore ([`EvaluatorParams::filter`]) is taken out of the ranked
//!   list, so that later labels move up, *and* out of the truth; an excluded instance is not
//!   evaluated at all.
//!
//! *Determinism*: rows are scored in parallel and summed in row order, so a report is bit-equal at
//! any number of threads; so are bootstrap intervals of the same seed.
//!
//! | type | holds |
//! |---|---|
//! | [`Evaluator`] | the running sums; fed row by row, in batches, or in parts that are merged |
//! | [`EvaluatorParams`] | the ks, propensities, weights, pairs and rows to leave out |
//! | [`Propensity`] | how likely each true label was recorded |
//! | [`LabelFigures`], [`InstanceFigures`] | the same of each label, and of the instances that are ranked worst |
//! | [`MetricReport`] | the values, as JSON (serde) or as a table |
//! | [`BootstrapParams`], [`Interval`], [`Comparison`] | uncertainty of one report, or of the difference of two |
//!
//! References: `[jain2016propensity]` (propensities, PSP, PSnDCG), `[jarvelin2002ndcg]` (nDCG),
//! `[efron1993bootstrap]` (percentile intervals).

#![forbid(unsafe_code)]

mod bootstrap;
mod contributions;
mod evaluator;
mod filter;
mod instance;
mod labels;
mod metric;
mod per_instance;
mod per_label;
mod propensity;
mod report;
mod table;

pub use bootstrap::{BootstrapError, BootstrapParams, Interval};
pub use evaluator::{EvaluateError, Evaluator, EvaluatorParams, EvaluatorParamsError, KeepRows, evaluate};
pub use filter::{PairFilter, PairFilterError};
pub use metric::{Average, Decision, Metric, ParseMetricError};
pub use per_instance::{InstanceFigures, worst_instances};
pub use per_label::{LabelCut, LabelFigures};
pub use propensity::{Propensity, PropensityError};
pub use report::{Comparison, Counts, Difference, MetricReport, MetricValue};
pub use table::{ComparisonTable, ReportTable};
/// The crate of the labels and ranked lists in signatures here.
pub use xc_sparse;
