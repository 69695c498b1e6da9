//! Post-processors: from the raw margin of a node to its score, and how scores combine down a path.

use thiserror::Error;
use xc_buffer::simd::{exp, vectorised};

/// How a node's margin `z = w . x` becomes a score, and how scores combine along the path from the
/// root.
///
/// | name | node score | along a path |
/// |---|---|---|
/// | `sigmoid` | 1 / (1 + exp(-z)) | product |
/// | `log-sigmoid` | -ln(1 + exp(-z)) | sum |
/// | `lP-hinge` | exp(-max(0, 1 - z)^P) | product |
/// | `log-lP-hinge` | -max(0, 1 - z)^P | sum |
/// | `noop` | z | the node alone |
///
/// Products are computed as sums of logarithms: the order of a beam is the same (the logarithm is
/// monotone), and only returned scores need an exponential.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "train", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "train", serde(into = "String", try_from = "String"))]
pub enum PostProcessor {
    /// Logistic function, product along the path.
    Sigmoid,
    /// Logarithm of the logistic function, sum along the path.
    LogSigmoid,
    /// `exp(-max(0, 1 - z)^p)`, product along the path.
    Hinge {
        /// The exponent, 1 to 9.
        p: u8,
    },
    /// `-max(0, 1 - z)^p`, sum along the path.
    LogHinge {
        /// The exponent, 1 to 9.
        p: u8,
    },
    /// The margin itself; the parents' scores do not count.
    Noop,
}

/// The name is not that of a post-processor.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error(
    "unknown post-processor {got:?}; expected sigmoid, log-sigmoid, noop, lP-hinge or log-lP-hinge with P from 1 to 9"
)]
pub struct UnknownPostProcessor {
    /// The name found.
    pub got: String,
}

impl std::str::FromStr for PostProcessor {
    type Err = UnknownPostProcessor;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let unknown = || UnknownPostProcessor { got: name.to_owned() };
        let power = |text: &str| match text.as_bytes() {
            [digit @ b'1'..=b'9'] => Ok(digit - b'0'),
            _ => Err(unknown()),
        };
        match name {
            "sigmoid" => Ok(Self::Sigmoid),
            "log-sigmoid" => Ok(Self::LogSigmoid),
            "noop" => Ok(Self::Noop),
            _ => {
                let body = name.strip_suffix("-hinge").ok_or_else(unknown)?;
                if let Some(p) = body.strip_prefix("log-l") {
                    Ok(Self::LogHinge { p: power(p)? })
                } else if let Some(p) = body.strip_prefix('l') {
                    Ok(Self::Hinge { p: power(p)? })
                } else {
                    Err(unknown())
                }
            }
        }
    }
}

impl TryFrom<String> for PostProcessor {
    type Error = UnknownPostProcessor;

    fn try_from(name: String) -> Result<Self, UnknownPostProcessor> {
        name.parse()
    }
}

impl From<PostProcessor> for String {
    fn from(post: PostProcessor) -> Self {
        post.to_string()
    }
}

impl std::fmt::Display for PostProcessor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Sigmoid => f.write_str("sigmoid"),
            Self::LogSigmoid => f.write_str("log-sigmoid"),
            Self::Hinge { p } => write!(f, "l{p}-hinge"),
            Self::LogHinge { p } => write!(f, "log-l{p}-hinge"),
            Self::Noop => f.write_str("noop"),
        }
    }
}

impl PostProcessor {
    /// The score of a child in the space where beams are ranked, from its parent's score there and
    /// its margin.
    ///
    /// A larger margin never gives a smaller score. `parent` is 0 at the root.
    #[inline]
    pub fn accumulate(self, parent: f32, margin: f32) -> f32 {
        match self {
            Self::Hinge { p } | Self::LogHinge { p } => {
                let gap = (1.0 - margin).max(0.0);
                parent - power(gap, p)
            }
            Self::Sigmoid | Self::LogSigmoid => parent + log_sigmoid(margin),
            Self::Noop => margin,
        }
    }

    /// True if no child ranks above its parent.
    pub(crate) fn never_rises(self) -> bool {
        !matches!(self, Self::Noop)
    }

    /// True if returned scores are exponentials of ranking scores.
    pub(crate) fn is_exponential(self) -> bool {
        matches!(self, Self::Hinge { .. } | Self::Sigmoid)
    }

    /// The returned score from the ranking score.
    #[inline]
    pub fn finish(self, score: f32) -> f32 {
        match self {
            Self::Hinge { .. } | Self::Sigmoid => score.exp(),
            Self::LogHinge { .. } | Self::LogSigmoid | Self::Noop => score,
        }
    }

    /// [`PostProcessor::finish`] of many scores, in vectors, as the means of several trees take it:
    /// exponentials are those of [`xc_buffer::simd::exp`], within 3e-7 of their values, and 0 below e^-87.3.
    pub fn finish_all(self, scores: &mut [f32]) {
        match self {
            Self::Hinge { .. } | Self::Sigmoid => vectorised(|| scores.iter_mut().for_each(|s| *s = exp(*s))),
            Self::LogHinge { .. } | Self::LogSigmoid | Self::Noop => {}
        }
    }
}

/// `base` to a small positive power by repeated multiplication, the same on every path.
#[inline]
fn power(base: f32, p: u8) -> f32 {
    let mut out = base;
    for _ in 1..p {
        out *= base;
    }
    out
}

/// `-ln(1 + exp(-z))` without overflow for large `|z|`.
#[inline]
fn log_sigmoid(z: f32) -> f32 {
    if z >= 0.0 { -(-z).exp().ln_1p() } else { z - z.exp().ln_1p() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_unknown_ones_are_errors() {
        for name in ["sigmoid", "log-sigmoid", "noop", "l1-hinge", "l3-hinge", "log-l2-hinge", "log-l9-hinge"] {
            assert_eq!(name.parse::<PostProcessor>().unwrap().to_string(), name);
        }
        for name in ["", "hinge", "l0-hinge", "l10-hinge", "l-hinge", "log-hinge", "Sigmoid", "l3-hinge ", "softmax"] {
            assert_eq!(name.parse::<PostProcessor>().unwrap_err().got, name);
        }
    }

    #[test]
    fn scores_equal_their_formulas() {
        for z in [-30.0f32, -2.0, -0.5, 0.0, 0.3, 1.0, 1.5, 40.0] {
            let hinge = (-(1.0 - z as f64).max(0.0).powi(3)).exp() as f32;
            let post = PostProcessor::Hinge { p: 3 };
            let product = post.finish(post.accumulate(post.accumulate(0.0, 0.5), z));
            assert!((product - hinge * (-0.125f32).exp()).abs() < 1e-6);
            let sigmoid = (1.0 / (1.0 + (-z as f64).exp())) as f32;
            let post = PostProcessor::Sigmoid;
            assert!((post.finish(post.accumulate(0.0, z)) - sigmoid).abs() < 1e-6);
            assert_eq!(PostProcessor::Noop.accumulate(7.0, z), z);
        }
    }
}
