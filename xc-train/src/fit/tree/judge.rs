//! What a tree model that was just saved answers to the validation instances, and what each further tree of an
//! ensemble gains.

use crate::fit::data::Datasets;
use crate::fit::report::{Judging, score_against};
use crate::fit::save::{open_container, open_just_saved};
use crate::fit::{Context, FitError};
use std::path::Path;
use xc_metrics::MetricReport;
use xc_sparse::CsrMatrix;
use xc_sparse::rank::RankedBatch;
use xc_store::Container;
use xc_tree::{PredictParams, TreeModel};

/// Rows that a finished model answers at once: their answers touch some tens of MiB of it.
const AT_ONCE: usize = 256;
/// Numbers of trees up to which each has a point; beyond, each point has twice the trees of the one before.
const EACH: usize = 8;

/// Metrics of the first so many trees.
type Curve = Vec<(usize, MetricReport)>;

/// The metrics of the validation instances, if there are any, and those of the first trees alone, where that is asked
/// for.
///
/// *Cost*: with a curve, as many predictions as two ensembles and some more make.
pub(super) fn judge(
    folder: &Path,
    in_memory: Option<&Container>,
    instances: &Datasets,
    judging: &Judging,
    context: &Context<'_>,
) -> Result<(Option<MetricReport>, Curve), FitError> {
    let Some(validation) = &instances.validation else { return Ok((None, Vec::new())) };
    let opened;
    let container = match in_memory {
        Some(container) => container,
        None => {
            opened = open_container(folder)?;
            &opened
        }
    };
    let whole = open_just_saved(container)?;
    let score = |model: &TreeModel| {
        let answers = answer(model, container, validation.sparse(), context)?;
        score_against(&instances.train.labels, validation, answers, judging)
    };
    let metrics = score(&whole)?;
    let mut curve = Vec::new();
    if judging.curve {
        let n_trees = whole.trees().len();
        let parts = numbers(n_trees).into_iter().map(|n| Ok((n, score(&whole.first(n))?)));
        let mut points = parts.collect::<Result<Vec<_>, FitError>>()?;
        points.push((n_trees, metrics.clone()));
        curve = points;
    }
    Ok((Some(metrics), curve))
}

/// The five best labels of each row. The model is mapped, and what rows touch of it does not stay resident.
fn answer(
    model: &TreeModel,
    container: &Container,
    rows: &CsrMatrix,
    context: &Context<'_>,
) -> Result<RankedBatch, FitError> {
    let params = PredictParams::top(5);
    let mut answers = RankedBatch::new();
    for first in (0..rows.rows()).step_by(AT_ONCE) {
        context.check_interrupt()?;
        let some = rows.slice(first..rows.rows().min(first + AT_ONCE));
        answers.append(&model.predict_batch(some, &params).expect("rows of as many features as those of training"));
        container.release();
    }
    Ok(answers)
}

/// Numbers of trees below all of them that get a point.
fn numbers(n_trees: usize) -> Vec<usize> {
    let beyond = std::iter::successors(Some(2 * EACH), |n| n.checked_mul(2));
    (1..=EACH).chain(beyond).take_while(|&n| n < n_trees).collect()
}

#[cfg(test)]
mod tests {
    use super::numbers;

    #[test]
    fn few_trees_each_have_a_point_and_many_cost_twice_as_much_at_most() {
        assert!(numbers(1).is_empty());
        assert_eq!(numbers(3), [1, 2]);
        assert_eq!(numbers(40), [1, 2, 3, 4, 5, 6, 7, 8, 16, 32]);
    }
}
