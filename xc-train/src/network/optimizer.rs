//! Optimisers by name.

use serde::{Deserialize, Serialize};
use xc_nn::Optimizer;

/// An optimiser together with its usual weight decay: of [`Optimizer`], adam is two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OptimizerName {
    /// Adam.
    #[default]
    Adam,
    /// Adam with decoupled weight decay.
    Adamw,
    /// Stochastic gradient descent with momentum.
    Momentum,
    /// Stochastic gradient descent.
    Sgd,
    /// Row-wise Adagrad.
    RowAdagrad,
}

impl OptimizerName {
    /// The rate where none is given; a preset's is that of Adam.
    pub fn usual_rate(self, of_preset: f64) -> f64 {
        match self {
            Self::Adam | Self::Adamw => of_preset,
            Self::Momentum => 0.1,
            Self::Sgd => 1.0,
            Self::RowAdagrad => 0.02,
        }
    }

    /// The weight decay where none is given.
    pub fn usual_decay(self) -> f64 {
        if self == Self::Adamw { 0.01 } else { 0.0 }
    }
}

/// An optimiser without a rate.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OptimizerParams {
    /// Which.
    pub name: OptimizerName,
    /// Its decoupled weight decay.
    pub weight_decay: f64,
}

impl OptimizerParams {
    /// The rule, with the numbers that it usually has.
    pub fn rule(&self) -> Optimizer {
        match self.name {
            OptimizerName::Adam | OptimizerName::Adamw => Optimizer::adam(),
            OptimizerName::Momentum => Optimizer::momentum(),
            OptimizerName::Sgd => Optimizer::sgd(),
            OptimizerName::RowAdagrad => Optimizer::row_adagrad(),
        }
        .with_weight_decay(self.weight_decay)
    }
}
