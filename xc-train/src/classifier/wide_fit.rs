//! The weight of the network beside the rankers of a wide term, by instances that are held out.

use super::wide::{WEIGHTS, Wide};
use super::{Classifier, Only, PredictError, PredictScratch, ScoreScale};
use xc_nn::Rows;
use xc_sparse::LabelRows;
use xc_sparse::rank::Scored;

/// Positions that count.
const DEPTH: usize = 5;

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
    /// The best weight of [`WEIGHTS`] by the sum of P@1, P@3 and P@5; of equal ones the smallest.
    pub weight: f32,
    /// With the term.
    pub with: Precisions,
    /// Of the network alone.
    pub without: Precisions,
}

impl Classifier {
    /// Looks for the weight of the network beside the rankers of a term, which the classifier need not have.
    ///
    /// *Cost*: a query for each instance, and a ranking of its best labels for each weight.
    ///
    /// # Errors
    /// As [`Classifier::predict`].
    ///
    /// # Panics
    /// If there are not as many rows of labels as queries.
    pub fn fit_wide(&self, wide: &Wide, queries: Rows<'_>, labels: &LabelRows) -> Result<WideFit, PredictError> {
        assert_eq!(queries.len(), labels.len(), "queries and rows of labels");
        let network = Self { wide: None, index: None, scale: Some(ScoreScale::Logit), ..self.clone() };
        let best = network.predict(queries, wide.params.labels, Only::All, &mut PredictScratch::default())?;
        let (mut with, mut without) = ([Precisions::default(); WEIGHTS.len()], Precisions::default());
        let (mut scratch, mut row, mut own) = (Default::default(), Vec::new(), wide.clone());
        for (i, (best, truth)) in best.iter().zip(labels.iter()).enumerate() {
            let Ok(query) = queries.row(i).sparse() else { continue };
            without.count(best, truth);
            for (weight, with) in WEIGHTS.into_iter().zip(&mut with) {
                best.clone_into(&mut row);
                own.params.weight = weight;
                own.rank_alone(query, self.params.loss, &mut row, &mut scratch);
                with.count(&row, truth);
            }
        }
        let mean = |of: Precisions| Precisions { at: of.at.map(|sum| sum / labels.len().max(1) as f64) };
        let mut found = (WEIGHTS[0], with[0]);
        for (weight, with) in WEIGHTS.into_iter().zip(with) {
            if with.sum() > found.1.sum() {
                found = (weight, with);
            }
        }
        Ok(WideFit { weight: found.0, with: mean(found.1), without: mean(without) })
    }
}
