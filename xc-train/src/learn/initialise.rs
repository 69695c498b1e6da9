//! Initial values that follow from the training instances.

use std::path::Path;
use xc_model::classifier::{Classifier, HeadParams, Output};
use xc_nn::encoder::lsa;
use xc_nn::optim::Moments;
use xc_nn::sampler::{NegativeParams, SamplerData, SamplerParams, Weighting};
use xc_nn::state::State;
use xc_nn::trainer::{Subset, TrainError, TrainObserver};
use xc_nn::{Head, Loss, Rows, StepError};

/// How far below the margin the biases begin with the squared hinge. A label that is rare begins at
/// the margin itself otherwise, where the noise of the initial weights gives half of all (instance,
/// label) pairs a gradient: the first steps at 670,091 labels took 25 ms per instance, with this
/// about 5.
const BELOW: f32 = 0.1;

/// Power iterations of the truncated SVD: its paper has one to three; spectra of texts fall slowly.
const PASSES: usize = 3;

/// Mean square of the values of an embedding sum at first: what random embeddings have for rows of
/// length 1 (see [`xc_nn::encoder::Bag::new`]).
const MEAN_SQUARE: f64 = 1.0 / 60.0;

/// Gives up what only training needs: the optimiser's moments and the sampler with its tables.
pub fn end_training(classifier: &mut Classifier) {
    classifier.network_mut().encoder_mut().prepare(Moments::NONE);
    let head = classifier.network_mut().head_mut();
    head.prepare(Moments::NONE);
    match head {
        Output::Sparse(head) => head.set_sampler(None),
        Output::Candidates(head) => head.set_sampler(None),
        Output::Dense(_) => {}
    }
}

/// Initial values that follow from the training instances, so this comes before the training:
/// embeddings at a latent semantic analysis of the rows, where the parameters say so, and the
/// biases of the labels at how often each is true.
///
/// Where the parameters ask for LSA and this is left out, all embeddings are 0. `folder` is one for tables of all instances,
/// where a sampler keeps some ([`Scheduled`](xc_nn::sampler::Scheduled)): files without names. Without one they are in
/// memory.
///
/// *Cost*: of the analysis, three passes of 2 multiplications for each entry of the rows and
/// value of an embedding, and width^2 for each feature.
///
/// # Errors
/// The observer asked to stop (it is asked by several threads).
///
/// # Panics
/// If the rows have another number of features than the classifier.
pub fn initialise(
    classifier: &mut Classifier,
    folder: Option<&Path>,
    train: &Subset<'_>,
    observer: &TrainObserver<'_>,
) -> Result<(), TrainError> {
    let params = classifier.params().clone();
    let (encoder, loss, seed) = (&params.encoder, params.loss, params.learning.seed);
    if let (true, Rows::Sparse(rows)) = (params.uses_lsa(), train.examples().features()) {
        let cancelled = || observer.cancelled();
        let table = lsa::embeddings(rows, train.rows(), encoder.widths()[0], PASSES, MEAN_SQUARE, seed, &cancelled)
            .ok_or(TrainError::Cancelled { step: 0 })?;
        if let Some(embeddings) = classifier.network_mut().encoder_mut().below_mut().embeddings_mut() {
            embeddings.copy_from_slice(&table);
        }
    }
    let n_numbers = train.examples().len();
    let label_texts = train.label_texts();
    let below = if loss == Loss::SquaredHinge && matches!(params.head, HeadParams::Sparse(_)) { BELOW } else { 0.0 };
    let counts = train.examples().targets().counts(train.rows());
    let biases = prior(&counts, train.rows().len(), loss);
    let bias = classifier.network_mut().head_mut().bias_mut();
    bias.iter_mut().zip(biases).for_each(|(bias, prior)| *bias = prior - below);
    let data = |width| {
        let of = SamplerData::new(&counts, train.rows().len(), width, seed);
        SamplerData { n_numbers, label_texts, folder, ..of }
    };
    let negatives = params.learning.negatives;
    if negatives.sampler == SamplerParams::All {
        return Ok(());
    }
    let refused = |e| StepError::new("sampler", e);
    match classifier.network_mut().head_mut() {
        Output::Sparse(head) => {
            // Sums over the drawn labels have no weights in a sparse layer.
            let from = NegativeParams::from(negatives.sampler);
            let negatives = NegativeParams { weighting: Weighting::LogQ, ..from };
            head.set_sampler(Some(negatives.build(&data(head.width())).map_err(refused)?));
        }
        Output::Candidates(head) => {
            head.set_sampler(Some(negatives.build(&data(head.width())).map_err(refused)?));
        }
        Output::Dense(_) => {}
    }
    Ok(())
}

/// The biases with the least loss for a network that knows only how often each label is true,
/// smoothed by half an instance. Without them a network of very many labels spends its first epochs
/// on learning that nearly all of them are false.
fn prior(counts: &[u32], n: usize, loss: Loss) -> Vec<f32> {
    let n = n as f64;
    let bias = |&count: &u32| {
        let count = f64::from(count);
        let bias = match loss {
            // Up to a constant, which the softmax does not see; the logarithm of a label's share,
            // which is what nce learns.
            Loss::Softmax | Loss::Nce => (count + 0.5).ln() - (n + 1.0).ln(),
            Loss::Bce => ((count + 0.5) / ((n - count).max(0.0) + 0.5)).ln(),
            Loss::SquaredHinge => 2.0 * (count + 0.5) / (n + 1.0) - 1.0,
            Loss::Own(_) => 0.0,
        };
        bias as f32
    };
    counts.iter().map(bias).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use xc_nn::Examples;
    use xc_sparse::{CsrMatrix, LabelRows};

    #[test]
    fn the_prior_is_the_best_constant() {
        let rows = [&[0u32, 2][..], &[0], &[], &[0, 2], &[0], &[2]];
        let targets = LabelRows::from_lists(rows.map(<[u32]>::to_vec), 4).unwrap();
        let x = CsrMatrix::zero((6, 3));
        let sample = Subset::all(Examples::try_new(Rows::Sparse(x.view()), &targets).unwrap());
        for loss in [Loss::Softmax, Loss::Bce, Loss::SquaredHinge] {
            let bias = prior(&sample.examples().targets().counts(sample.rows()), 6, loss);
            // Rows without features see the biases alone, since nothing else is there.
            let total = |bias: &[f32]| {
                let one = |i| loss.of_row(&mut bias.to_vec(), targets.row(i), 1.0);
                (0..6).map(one).sum::<f64>()
            };
            let best = total(&bias);
            for j in [0, 2] {
                for step in [-1.0, 1.0] {
                    let mut moved = bias.clone();
                    moved[j] += step;
                    assert!(total(&moved) > best, "{loss:?} label {j}");
                }
            }
            assert!(bias[0] > bias[2] && bias[2] > bias[1] && bias[1] == bias[3], "{loss:?} {bias:?}");
        }
    }
}
