//! Parameters of tree training.

use crate::model::PostProcessor;
use crate::train::cluster::{ClusterMethod, ClusterParams};
use crate::train::label_vectors::LabelRepresentation;
use crate::train::linear::{LinearParams, Loss};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use xc_buffer::dtype::DType;

/// How trees are trained. `Default` is the default preset.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TreeParams {
    /// Trees of the ensemble; 1 to 1000.
    pub n_trees: usize,
    /// Seed of all random numbers.
    pub seed: u64,
    /// How labels become vectors.
    pub representation: LabelRepresentation,
    /// Whether an instance with m labels counts 1/sqrt(m) in the sums of
    /// [`LabelRepresentation::Pifa`], instead of 1.
    pub normalise_labels: bool,
    /// Maximum number of entries of a label's vector; `None` keeps all.
    pub max_label_nnz: Option<usize>,
    /// What is done with labels without positives.
    pub unseen: Unseen,
    /// How labels are grouped.
    pub cluster: ClusterParams,
    /// How rankers are trained.
    pub linear: LinearParams,
    /// Which instances the rankers of a parent learn from.
    pub negatives: Negatives,
    /// Whether every row is scaled to length 1, in training and in every prediction of the model (the default). Where
    /// it is not, all rows are divided by their typical length ([`xc_sparse::rows::typical_length`]), so that the
    /// parameters of [`LinearParams`] mean the same at every scale of the features; relative lengths stay.
    pub normalise_rows: bool,
    /// Maps margins to scores; `None`: chosen by the loss, see [`TreeParams::post_processor`].
    pub post: Option<PostProcessor>,
    /// Clusters that a prediction keeps per level if its caller gives no beam; 1 or more.
    pub beam: usize,
    /// How the model's weights are stored.
    pub precision: DType,
    /// Refuse to start when the estimate of [`TreeMemory`](crate::TreeMemory) is above this.
    pub max_memory_bytes: Option<u64>,
}

/// What is done with labels without positives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unseen {
    /// They have no leaf and are never predicted.
    Drop,
    /// They are clustered like the others.
    Keep,
}

/// Which instances the rankers of a parent learn from, in addition to those with a positive label below it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Negatives {
    /// None: teacher-forced negatives.
    TeacherForced,
    /// Those that the levels above send there: matcher-aware negatives.
    MatcherAware {
        /// Clusters an instance reaches on each level, at most.
        beam: usize,
    },
}

/// Named settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// The best trade-off measured.
    Default,
    /// Three binary balanced trees (`[prabhu2018parabel]`).
    Parabel,
    /// Three shallow unbalanced trees of branching 100 (`[khandagale2020bonsai]`).
    Bonsai,
    /// One balanced tree of branching 16 (`[yu2022pecos]`).
    XrLinear,
}

/// The name is not that of a preset.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("unknown preset {got:?}; expected default, parabel, bonsai or xr-linear")]
pub struct UnknownPreset {
    /// The name found.
    pub got: String,
}

impl std::str::FromStr for Preset {
    type Err = UnknownPreset;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            "default" => Ok(Self::Default),
            "parabel" => Ok(Self::Parabel),
            "bonsai" => Ok(Self::Bonsai),
            "xr-linear" => Ok(Self::XrLinear),
            _ => Err(UnknownPreset { got: name.to_owned() }),
        }
    }
}

impl Preset {
    /// The preset's parameters.
    pub fn params(self) -> TreeParams {
        match self {
            Self::Default => TreeParams::default(),
            Self::Parabel => TreeParams::parabel(),
            Self::Bonsai => TreeParams::bonsai(),
            Self::XrLinear => TreeParams::xr_linear(),
        }
    }
}

/// A parameter out of range.
#[derive(Clone, Debug, Error, PartialEq)]
#[error("{name} is {got}, expected {expected}")]
pub struct CheckTreeParamsError {
    /// The parameter, by its dotted name.
    pub name: &'static str,
    /// The value found.
    pub got: f64,
    /// The range expected.
    pub expected: &'static str,
}

impl Default for TreeParams {
    /// Three balanced trees of branching 16, at most 100 labels a leaf cluster: compared with
    /// others on held-out training rows (2026-11), see `bench/decisions/tree-defaults.md`.
    fn default() -> Self {
        Self {
            n_trees: 3,
            seed: 0,
            representation: LabelRepresentation::Pifa,
            normalise_labels: false,
            max_label_nnz: None,
            unseen: Unseen::Drop,
            cluster: ClusterParams { branching: 16, max_leaf: 100, ..ClusterParams::default() },
            linear: LinearParams::default(),
            negatives: Negatives::TeacherForced,
            normalise_rows: true,
            post: None,
            beam: 10,
            precision: DType::F32,
            max_memory_bytes: None,
        }
    }
}

impl TreeParams {
    /// Three binary balanced trees, at most 100 labels a leaf cluster, 20 passes
    /// (`[prabhu2018parabel]`).
    pub fn parabel() -> Self {
        Self {
            n_trees: 3,
            cluster: ClusterParams { branching: 2, max_leaf: 100, ..ClusterParams::default() },
            linear: LinearParams { max_passes: 20, ..LinearParams::default() },
            // The probability of Parabel's ranker: exp of minus its loss.
            post: Some(PostProcessor::Hinge { p: 2 }),
            ..Self::default()
        }
    }

    /// Three shallow unbalanced trees of branching 100, depth 3 (`[khandagale2020bonsai]`).
    pub fn bonsai() -> Self {
        Self {
            n_trees: 3,
            cluster: ClusterParams {
                method: ClusterMethod::Unbalanced,
                branching: 100,
                max_leaf: 100,
                max_depth: 3,
                ..ClusterParams::default()
            },
            linear: LinearParams { max_passes: 20, ..LinearParams::default() },
            ..Self::default()
        }
    }

    /// One balanced tree of branching 16, at most 100 labels a leaf cluster (`[yu2022pecos]`).
    ///
    /// Its clustering is more thorough than that of the ensembles, which compensate for a poor cut by
    /// averaging: cuts have slack and use more labels, and rows with many labels count less (measured:
    /// `bench/decisions/tree-training.md`).
    pub fn xr_linear() -> Self {
        Self {
            n_trees: 1,
            normalise_labels: true,
            cluster: ClusterParams {
                branching: 16,
                max_leaf: 100,
                slack: 0.3,
                max_sample: 1 << 15,
                ..ClusterParams::default()
            },
            ..Self::default()
        }
    }

    /// Changes the loss: cost and pruning take the defaults of the new loss, and a post-processor that was
    /// chosen for another loss is dropped.
    pub fn set_loss(&mut self, loss: Loss) {
        if self.linear.loss != loss {
            let LinearParams { cost, prune_below, .. } = LinearParams::of(loss);
            self.linear = LinearParams { loss, cost, prune_below, ..self.linear.clone() };
            self.post = None;
        }
    }

    /// How margins of the model become scores: `post` if given, else the cubic hinge for the squared hinge
    /// loss (it ranks best on average, `bench/results/quality.md`) and the logistic function for the
    /// logistic loss.
    pub fn post_processor(&self) -> PostProcessor {
        self.post.unwrap_or(match self.linear.loss {
            Loss::SquaredHinge => PostProcessor::Hinge { p: 3 },
            Loss::Logistic => PostProcessor::Sigmoid,
        })
    }

    /// Checks every range.
    pub fn check(&self) -> Result<(), CheckTreeParamsError> {
        let count = |name, got: usize, least: usize, expected| {
            if got >= least { Ok(()) } else { Err(CheckTreeParamsError { name, got: got as f64, expected }) }
        };
        if !(1..=1000).contains(&self.n_trees) {
            let got = self.n_trees as f64;
            return Err(CheckTreeParamsError { name: "n_trees", got, expected: "1 to 1000" });
        }
        count("beam", self.beam, 1, "1 or more")?;
        count("cluster.branching", self.cluster.branching, 2, "2 or more")?;
        count("cluster.max_leaf", self.cluster.max_leaf, 1, "1 or more")?;
        count("cluster.max_iterations", self.cluster.max_iterations, 1, "1 or more")?;
        count("cluster.max_sample", self.cluster.max_sample, 2, "2 or more")?;
        if let Negatives::MatcherAware { beam } = self.negatives {
            count("negatives.beam", beam, 1, "1 or more")?;
        }
        self.linear.check()?;
        let slack = self.cluster.slack;
        real("cluster.slack", slack, (0.0..1.0).contains(&slack), "a number of 0 or more, below 1")?;
        let tolerance = self.cluster.tolerance;
        real("cluster.tolerance", tolerance, tolerance >= 0.0, "a finite number of 0 or more")
    }
}

impl LinearParams {
    /// Refuses what makes no sense.
    pub(super) fn check(&self) -> Result<(), CheckTreeParamsError> {
        if self.max_passes < 1 {
            return Err(CheckTreeParamsError { name: "linear.max_passes", got: 0.0, expected: "1 or more" });
        }
        for (name, got) in [
            ("linear.cost", self.cost),
            ("linear.positive_cost", self.positive_cost),
            ("linear.negative_cost", self.negative_cost),
            ("linear.tolerance", self.tolerance),
        ] {
            real(name, got, got > 0.0, "a finite number above 0")?;
        }
        for (name, got) in [("linear.bias", self.bias), ("linear.prune_below", self.prune_below)] {
            real(name, got, got >= 0.0, "a finite number of 0 or more")?;
        }
        Ok(())
    }
}

fn real(name: &'static str, got: f32, fits: bool, expected: &'static str) -> Result<(), CheckTreeParamsError> {
    if fits && got.is_finite() { Ok(()) } else { Err(CheckTreeParamsError { name, got: f64::from(got), expected }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_pass_their_own_check_and_survive_json() {
        for name in ["default", "parabel", "bonsai", "xr-linear"] {
            let params = name.parse::<Preset>().unwrap().params();
            params.check().unwrap();
            let json = serde_json::to_string(&params).unwrap();
            assert_eq!(serde_json::from_str::<TreeParams>(&json).unwrap(), params);
        }
        assert_eq!("Parabel".parse::<Preset>().unwrap_err().got, "Parabel");
        assert!(serde_json::from_str::<TreeParams>(r#"{"branching": 3}"#).is_err());
    }

    #[test]
    fn a_post_processor_suits_the_loss_unless_it_is_named() {
        let hinge = |p| PostProcessor::Hinge { p };
        let mut params = TreeParams::default();
        assert_eq!(params.post_processor(), hinge(3));
        params.linear.tolerance = 0.3;
        params.set_loss(Loss::Logistic);
        assert_eq!(params.post_processor(), PostProcessor::Sigmoid);
        // Cost and pruning are those of the loss, what was set for any loss stays.
        let of = LinearParams::of(Loss::Logistic);
        assert_eq!(params.linear, LinearParams { tolerance: 0.3, ..of });
        assert!(params.linear.cost > LinearParams::default().cost);
        let mut parabel = TreeParams::parabel();
        parabel.set_loss(Loss::SquaredHinge);
        assert_eq!(parabel.post_processor(), hinge(2));
        parabel.set_loss(Loss::Logistic);
        assert_eq!(parabel.post_processor(), PostProcessor::Sigmoid);
        let json = serde_json::to_value(TreeParams::parabel()).unwrap();
        assert_eq!(json["post"], "l2-hinge");
        assert!(serde_json::from_str::<TreeParams>(r#"{"post": "l0-hinge"}"#).is_err());
    }

    #[test]
    fn every_range_is_checked() {
        type Spoil = fn(&mut TreeParams);
        let broken: [(&str, Spoil); 15] = [
            ("beam", |p| p.beam = 0),
            ("cluster.slack", |p| p.cluster.slack = 1.0),
            ("n_trees", |p| p.n_trees = 0),
            ("n_trees", |p| p.n_trees = 1001),
            ("cluster.branching", |p| p.cluster.branching = 1),
            ("cluster.max_leaf", |p| p.cluster.max_leaf = 0),
            ("cluster.max_iterations", |p| p.cluster.max_iterations = 0),
            ("cluster.max_sample", |p| p.cluster.max_sample = 1),
            ("cluster.tolerance", |p| p.cluster.tolerance = f32::NAN),
            ("linear.max_passes", |p| p.linear.max_passes = 0),
            ("linear.cost", |p| p.linear.cost = 0.0),
            ("linear.positive_cost", |p| p.linear.positive_cost = -1.0),
            ("linear.bias", |p| p.linear.bias = f32::INFINITY),
            ("linear.prune_below", |p| p.linear.prune_below = -0.1),
            ("negatives.beam", |p| p.negatives = Negatives::MatcherAware { beam: 0 }),
        ];
        for (name, spoil) in broken {
            let mut params = TreeParams::default();
            spoil(&mut params);
            assert_eq!(params.check().unwrap_err().name, name);
        }
    }
}
