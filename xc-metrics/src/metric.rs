//! The metrics by name.

use std::{fmt, str::FromStr};
use thiserror::Error;

/// One metric.
///
/// Notation: n instances with weights w_i (1 unless given); T_i the true labels of instance i; y_ir
/// = 1 when the label at rank r = 1, 2, ... of i's list is in T_i, else 0 (0 past the end of the
/// list); g_ir = y_ir / p_l with p_l the propensity of the label at rank r; "mean" = sum of w_i x_i
/// over sum of w_i. An instance without true labels counts 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Metric {
    /// `P@k`: mean of (1/k) * sum of y_ir over r <= k.
    Precision(usize),
    /// `nDCG@k`: mean of DCG_i / N_i, where DCG_i = sum over r <= k of y_ir / log2(r + 1) and
    /// N_i = sum over r <= min(k, |T_i|) of 1 / log2(r + 1) (`[jarvelin2002ndcg]`).
    Ndcg(usize),
    /// `PSP@k`: (sum of w_i * sum over r <= k of g_ir) / (sum of w_i * the sum of the min(k, |T_i|)
    /// largest 1/p_l of l in T_i): a ratio of two sums over all instances, 1 for a perfect ranking
    /// (`[jain2016propensity]`).
    Psp(usize),
    /// `PSnDCG@k`: as `PSP@k` with each gain divided by log2(r + 1) and each instance's two sums
    /// divided by its N_i (see [`Metric::Ndcg`]); the best order takes the largest 1/p_l first
    /// (`[jain2016propensity]`).
    Psndcg(usize),
    /// `recall@k`: mean of (sum of y_ir over r <= k) / |T_i|.
    Recall(usize),
    /// `MAP@k`: mean of (1 / min(k, |T_i|)) * sum over r <= k of y_ir * (y_i1 + ... + y_ir) / r.
    MeanAveragePrecisionAt(usize),
    /// `coverage@k`: share of the labels with at least one true instance that stand at least once
    /// among the first k of an instance they are true of.
    Coverage(usize),
    /// `macro-F1@k`: mean over the labels with at least one true instance of 2 tp / (true +
    /// predicted), where "predicted" counts a label for an instance when it is among its first k.
    /// Labels weigh the same.
    MacroF1(usize),
    /// `micro-F1@k`: 2 tp / (true + predicted) over all (instance, label) pairs; "predicted" as in
    /// `macro-F1@k`.
    MicroF1(usize),
    /// `MAP`: mean of (1 / |T_i|) * sum over the whole list of y_ir * (y_i1 + ... + y_ir) / r.
    MeanAveragePrecision,
    /// `MRR`: mean of 1 / (rank of the first true label in the whole list), 0 where there is none.
    MeanReciprocalRank,
    /// `micro-precision`, `macro-recall`, `instance-F1` and so on: of the labels with at least the
    /// score of a threshold ([`EvaluatorParams::threshold`](super::EvaluatorParams::threshold)).
    AtThreshold(Average, Decision),
}

/// What a metric at a threshold is a mean over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Average {
    /// All (instance, label) pairs together.
    Micro,
    /// Labels with at least one true instance; each weighs the same.
    Macro,
    /// Instances.
    Instance,
}

/// How good a set of predicted labels is: tp of them are true.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Decision {
    /// tp / predicted, 0 where nothing is predicted.
    Precision,
    /// tp / true, 0 where nothing is true.
    Recall,
    /// 2 tp / (true + predicted), 0 where both are 0.
    F1,
}

impl Average {
    /// All of them, in the order of reports.
    pub const ALL: [Self; 3] = [Self::Micro, Self::Macro, Self::Instance];
}

impl Decision {
    /// All of them, in the order of reports.
    pub const ALL: [Self; 3] = [Self::Precision, Self::Recall, Self::F1];

    /// Its name: `precision`, `recall` or `F1`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Precision => "precision",
            Self::Recall => "recall",
            Self::F1 => "F1",
        }
    }
}

/// A name that is no metric.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error(
    "`{name}` is no metric; expected P@k, nDCG@k, PSP@k, PSnDCG@k, recall@k, MAP@k, coverage@k, macro-F1@k, micro-F1@k, MAP, MRR, or precision, recall or F1 after micro-, macro- or instance-"
)]
pub struct ParseMetricError {
    /// What was given.
    pub name: Box<str>,
}

impl Metric {
    /// The name without `@k`.
    pub fn family(self) -> &'static str {
        match self {
            Self::Precision(_) => "P",
            Self::Ndcg(_) => "nDCG",
            Self::Psp(_) => "PSP",
            Self::Psndcg(_) => "PSnDCG",
            Self::Recall(_) => "recall",
            Self::MeanAveragePrecisionAt(_) | Self::MeanAveragePrecision => "MAP",
            Self::Coverage(_) => "coverage",
            Self::MacroF1(_) => "macro-F1",
            Self::MicroF1(_) => "micro-F1",
            Self::MeanReciprocalRank => "MRR",
            Self::AtThreshold(average, decision) => match (average, decision) {
                (Average::Micro, Decision::Precision) => "micro-precision",
                (Average::Micro, Decision::Recall) => "micro-recall",
                (Average::Micro, Decision::F1) => "micro-F1",
                (Average::Macro, Decision::Precision) => "macro-precision",
                (Average::Macro, Decision::Recall) => "macro-recall",
                (Average::Macro, Decision::F1) => "macro-F1",
                (Average::Instance, Decision::Precision) => "instance-precision",
                (Average::Instance, Decision::Recall) => "instance-recall",
                (Average::Instance, Decision::F1) => "instance-F1",
            },
        }
    }

    /// The cut, where the metric has one.
    pub fn k(self) -> Option<usize> {
        match self {
            Self::Precision(k)
            | Self::Ndcg(k)
            | Self::Psp(k)
            | Self::Psndcg(k)
            | Self::Recall(k)
            | Self::MeanAveragePrecisionAt(k)
            | Self::Coverage(k)
            | Self::MacroF1(k)
            | Self::MicroF1(k) => Some(k),
            Self::MeanAveragePrecision | Self::MeanReciprocalRank | Self::AtThreshold(..) => None,
        }
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.k() {
            Some(k) => write!(f, "{}@{k}", self.family()),
            None => f.write_str(self.family()),
        }
    }
}

impl FromStr for Metric {
    type Err = ParseMetricError;

    fn from_str(name: &str) -> Result<Self, ParseMetricError> {
        let fail = || ParseMetricError { name: name.into() };
        let (family, k) = match name.split_once('@') {
            None => (name, None),
            Some((family, k)) => {
                let plain = !k.starts_with(['+', '0']);
                (family, Some(k.parse::<usize>().ok().filter(|_| plain).ok_or_else(fail)?))
            }
        };
        Ok(match (family, k) {
            ("P", Some(k)) => Self::Precision(k),
            ("nDCG", Some(k)) => Self::Ndcg(k),
            ("PSP", Some(k)) => Self::Psp(k),
            ("PSnDCG", Some(k)) => Self::Psndcg(k),
            ("recall", Some(k)) => Self::Recall(k),
            ("MAP", Some(k)) => Self::MeanAveragePrecisionAt(k),
            ("coverage", Some(k)) => Self::Coverage(k),
            ("macro-F1", Some(k)) => Self::MacroF1(k),
            ("micro-F1", Some(k)) => Self::MicroF1(k),
            ("MAP", None) => Self::MeanAveragePrecision,
            ("MRR", None) => Self::MeanReciprocalRank,
            (_, None) => {
                let all = Average::ALL.into_iter().flat_map(|a| Decision::ALL.map(|d| Self::AtThreshold(a, d)));
                all.into_iter().find(|metric| metric.family() == family).ok_or_else(fail)?
            }
            _ => return Err(fail()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for name in ["P@1", "nDCG@5", "PSP@3", "PSnDCG@3", "recall@100", "MAP@5", "MAP", "MRR", "coverage@10"] {
            assert_eq!(name.parse::<Metric>().map(|m| m.to_string()), Ok(name.to_string()));
        }
        for name in ["macro-F1@3", "micro-F1@3", "macro-F1", "micro-precision", "instance-recall"] {
            assert_eq!(name.parse::<Metric>().map(|m| m.to_string()), Ok(name.to_string()));
        }
    }

    #[test]
    fn other_names_are_errors() {
        for name in ["", "P", "P@", "P@0", "P@+1", "P@01", "P@x", "p@1", "MRR@3", "F1"] {
            assert!(name.parse::<Metric>().is_err(), "{name}");
        }
    }
}
