//! How labels of a list are weighted.

use serde::{Deserialize, Serialize};

/// The weight of a false label of a list, given the probability pi that it is in the list.
///
/// | | weight (sums over labels) | log q (softmax) |
/// |---|---|---|
/// | `none` | 1 | 0 |
/// | `log-q` | 1 | ln pi |
/// | `inverse` | min(1 / pi, cap) | -ln weight |
///
/// With `inverse` and no cap, the expectation of the weighted sum over the list is the sum over all
/// labels, whatever the probabilities are. A single large weight dominates an optimiser's second
/// moments; the cap prevents this, but is biased.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Weighting {
    /// The list is treated as if it were all labels.
    None,
    /// Sums without weights; a softmax corrects its logits by the log probability.
    #[default]
    LogQ,
    /// The inverse of the probability.
    Inverse {
        /// Largest weight; `None`: no limit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cap: Option<f32>,
    },
}

impl Weighting {
    /// The recommended cap: unlimited weights cost up to five points of P@1.
    pub const CAPPED: Self = Self::Inverse { cap: Some(4.0) };

    /// Weight and log q of a label that is in its list with this probability.
    pub fn of(self, chance: f64) -> (f32, f32) {
        match self {
            Self::None => (1.0, 0.0),
            Self::LogQ => (1.0, chance.ln() as f32),
            Self::Inverse { cap } => {
                let weight = (1.0 / chance) as f32;
                let weight = cap.map_or(weight, |cap| weight.min(cap));
                // 0 rather than -0.
                (weight, 0.0 - weight.ln())
            }
        }
    }

    /// Whether probabilities are used at all.
    pub(super) fn uses_chances(self) -> bool {
        self != Self::None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cap_limits_weights_and_their_logarithms_follow() {
        assert_eq!(Weighting::None.of(0.01), (1.0, 0.0));
        assert_eq!(Weighting::LogQ.of(1.0), (1.0, 0.0));
        assert_eq!(Weighting::LogQ.of(0.5), (1.0, -std::f32::consts::LN_2));
        assert_eq!(Weighting::Inverse { cap: None }.of(1.0 / 64.0), (64.0, -64f32.ln()));
        assert_eq!(Weighting::CAPPED.of(1.0 / 64.0), (4.0, -4f32.ln()));
        assert_eq!(Weighting::CAPPED.of(0.5), (2.0, -2f32.ln()));
        assert_eq!(Weighting::CAPPED.of(0.0), (4.0, -4f32.ln()));
    }

    #[test]
    fn names_are_those_of_the_options() {
        let json = |weighting| serde_json::to_string(&weighting).unwrap();
        assert_eq!(json(Weighting::LogQ), r#"{"name":"log-q"}"#);
        assert_eq!(json(Weighting::CAPPED), r#"{"name":"inverse","cap":4.0}"#);
        assert_eq!(
            serde_json::from_str::<Weighting>(r#"{"name":"inverse"}"#).unwrap(),
            Weighting::Inverse { cap: None }
        );
    }
}
