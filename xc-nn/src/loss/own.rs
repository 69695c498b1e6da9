//! Losses that are not named here.

use super::Stretch;
use std::fmt;
use std::hash::{Hash, Hasher};

/// A loss of your own that adds up over labels: `Loss::Own(&MINE)`, of a `static MINE`, goes wherever
/// a named loss does (`examples/custom_loss.rs`). It costs a call through a table for each label
/// that a step scores; named losses cost none. A loss over all labels of an instance at once, as
/// softmax is, belongs into a head.
///
/// Two losses of one name are the same: parameters belong into the name, which a checkpoint's key has.
pub trait LossFunction: fmt::Debug + Send + Sync {
    /// Its name, in messages and keys of checkpoints.
    fn name(&self) -> &'static str;

    /// Loss of a label of this logit, and its derivative. NaN gives NaN.
    fn loss_and_gradient(&self, z: f32, is_true: bool) -> (f32, f32);

    /// Score of a logit, from 0 to 1 and not decreasing.
    fn score(&self, z: f32) -> f32;

    /// A logit at or below this has neither loss nor gradient where the label is false.
    fn margin(&self) -> f32 {
        f32::NEG_INFINITY
    }
}

impl PartialEq for dyn LossFunction {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for dyn LossFunction {}

impl Hash for dyn LossFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

/// As [`super::Loss::gradient`].
pub(super) fn gradient(loss: &dyn LossFunction, logits: &mut [f32], of: Stretch<'_>, scale: f32) -> f64 {
    let mut positives = of.positives.iter().map(|&label| (label - of.first) as usize).peekable();
    let mut total = 0.0;
    for (at, z) in logits.iter_mut().enumerate() {
        let (value, gradient) = loss.loss_and_gradient(*z, positives.next_if_eq(&at).is_some());
        total += f64::from(value);
        *z = scale * gradient;
    }
    assert!(positives.peek().is_none(), "a true label outside of {} logits", logits.len());
    total
}
