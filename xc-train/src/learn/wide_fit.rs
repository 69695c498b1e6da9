//! The weight of the network beside the rankers of a wide term, by instances that are held out.

use xc_model::classifier::{
    Classifier, ClassifierScratch, InputKind, Only, PredictError, ScoreScale, Wide, WideScratch,
};
use xc_nn::Rows;
use xc_nn::loss::Total;
use xc_sparse::LabelRows;
use xc_sparse::rank::Scored;
use xc_sparse::rows::WrongInput;

/// Positions that count.
const DEPTH: usize = 5;
/// Instances whose answers exist at a time.
const AT_ONCE: usize = 1 << 12;

/// P@1, P@3 and P@5 of answers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Precisions {
    /// At 1, 3 and 5.
    pub at: [f64; 3],
}

impl Precisions {
    const AT: [usize; 3] = [1, 3, DEPTH];

    /// Counts the answers to one instance.
    fn count(&mut self, best: &[Scored], truth: &[u32]) {
        for (sum, k) in self.at.iter_mut().zip(Self::AT) {
            let hits = best.iter().take(k).filter(|s| truth.binary_search(&s.label).is_ok()).count();
            *sum += hits as f64 / k as f64;
        }
    }

    fn sum(&self) -> f64 {
        self.at.iter().sum()
    }
}

/// What instances that are held out say of a wide term.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WideFit {
    /// The best weight by the sum of P@1, P@3 and P@5; of equal ones the first.
    pub weight: f32,
    /// With the term, at this weight.
    pub with: Precisions,
    /// Of the network alone.
    pub without: Precisions,
}

/// Looks for the best of some weights of the network beside the rankers of a term, which the classifier does not have yet.
/// It is afterwards as it was.
///
/// *Cost*: a query for each instance, and a ranking of its best labels for each weight.
///
/// # Errors
/// As [`Classifier::predict`].
///
/// # Panics
/// If there is no weight, or not as many rows of labels as queries, or the classifier has a wide term or an index.
pub fn fit_wide(
    classifier: &mut Classifier,
    wide: &Wide,
    weights: &[f32],
    queries: Rows<'_>,
    labels: &LabelRows,
) -> Result<WideFit, PredictError> {
    assert!(classifier.wide().is_none() && classifier.index().is_none(), "a classifier that is no network alone");
    // Its logits for a while.
    let scale = classifier.set_scale(Some(ScoreScale::Logit));
    let fit = compare(classifier, wide, weights, queries, labels);
    classifier.set_scale(scale);
    fit
}

/// The network alone against the whole with each weight.
fn compare(
    classifier: &Classifier,
    wide: &Wide,
    weights: &[f32],
    queries: Rows<'_>,
    labels: &LabelRows,
) -> Result<WideFit, PredictError> {
    assert!(!weights.is_empty(), "no weight");
    assert_eq!(queries.len(), labels.len(), "queries and rows of labels");
    let Some(words) = queries.words() else {
        return Err(WrongInput { got: queries.kind(), expected: InputKind::Sparse }.into());
    };
    let loss = classifier.params().loss;
    let (mut with, mut without) = (vec![Precisions::default(); weights.len()], Precisions::default());
    let (mut asking, mut scratch, mut row) = (ClassifierScratch::default(), WideScratch::default(), Vec::new());
    for first in (0..queries.len()).step_by(AT_ONCE) {
        let numbers: Vec<u32> = (first..queries.len().min(first + AT_ONCE)).map(|i| i as u32).collect();
        let some = queries.select(&numbers);
        let best = classifier.predict(some.view(), wide.params.labels, Only::All, &mut asking)?;
        for (at, best) in best.iter().enumerate() {
            let (query, truth) = (words.row(first + at), labels.row(first + at));
            without.count(best, truth);
            // The order is the same whatever else a softmax compares.
            let mut total = Total::EMPTY;
            total.add(loss, &best.iter().map(|s| s.score).collect::<Vec<_>>());
            wide.judge(query, (loss, total), best, &mut scratch);
            for (&weight, with) in weights.iter().zip(&mut with) {
                best.clone_into(&mut row);
                scratch.combine(weight, &mut row);
                with.count(&row, truth);
            }
        }
    }
    let mean = |of: Precisions| Precisions { at: of.at.map(|sum| sum / labels.len().max(1) as f64) };
    let mut found = (weights[0], with[0]);
    for (&weight, with) in weights.iter().zip(with) {
        if with.sum() > found.1.sum() {
            found = (weight, with);
        }
    }
    Ok(WideFit { weight: found.0, with: mean(found.1), without: mean(without) })
}
