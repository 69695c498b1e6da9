//! Outputs that a step scores beside the true ones of its batch.

use crate::Step;
use xc_hash::stream::{Purpose, Stream, name};

/// Draws the outputs that a batch is taught to be false, where scoring all of them costs too much.
///
/// What is drawn is shared by the instances of a batch; the true outputs of any instance are scored for all of them anyway.
pub trait Negatives: Send + Sync + std::fmt::Debug {
    /// Appends outputs for a step, in any order; the same ones for the same step.
    fn draw(&self, at: Step, n_outputs: usize, out: &mut Vec<u32>);

    /// All settings, to tell two trainings apart.
    fn settings(&self) -> serde_json::Value;
}

/// Every output equally likely; drawn with replacement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UniformNegatives {
    /// Outputs drawn for a step.
    pub per_step: usize,
}

impl Negatives for UniformNegatives {
    fn draw(&self, at: Step, n_outputs: usize, out: &mut Vec<u32>) {
        if n_outputs == 0 {
            return;
        }
        let mut random = Stream::new(name(at.seed, Purpose::Negatives, &[at.number]));
        out.extend((0..self.per_step).map(|_| random.below_u64(n_outputs as u64) as u32));
    }

    fn settings(&self) -> serde_json::Value {
        serde_json::json!({ "uniform": self.per_step })
    }
}
