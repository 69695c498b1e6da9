//! Where a network is computed: what answers ask of it.

use super::error::PredictError;
use super::{ClassifierNetwork, Input, Output};
use rayon::prelude::*;
use xc_nn::encoder::Stack;
use xc_nn::head::sparse::OneScratch;
use xc_nn::head::{Ranked, Sparse};
use xc_nn::{Activations, Batch, Encoder, Head, Mode, Parameter, Scratch, in_memory};
use xc_sparse::rank::{LabelId, RankedBatch, Scored, TopK};
use xc_sparse::uniform::LANES;

/// Where the network of a classifier is computed.
pub(super) trait Place {
    type Error: From<PredictError>;

    /// Vectors below the output layer.
    fn vectors(&self, batch: &Batch, out: &mut Activations, scratch: &mut EncoderScratch) -> Result<(), Self::Error>;

    /// Logits of all labels.
    fn logits(&self, batch: &Batch, out: &mut Activations, scratch: &mut NetworkScratch) -> Result<(), Self::Error>;

    /// The `k` best of all labels.
    fn rank(&self, batch: &Batch, k: usize, scratch: &mut NetworkScratch, out: &mut Ranked) -> Result<(), Self::Error>;

    /// The `k` best of the labels of each query, of a sparse output layer.
    fn choose<'l>(
        &self,
        batch: &Batch,
        labels: impl Fn(usize) -> &'l [LabelId] + Sync,
        k: usize,
        scratch: ChooseScratch<'_>,
        out: &mut RankedBatch,
    ) -> Result<(), Self::Error>;
}

pub(super) type EncoderScratch = <Stack<Input> as Encoder>::Scratch;
pub(super) type NetworkScratch = Scratch<Stack<Input>, Output>;

/// Buffers of [`Place::choose`].
pub(super) struct ChooseScratch<'a> {
    pub(super) vectors: &'a mut Activations,
    pub(super) encoder: &'a mut EncoderScratch,
    pub(super) one: &'a mut OneScratch,
    pub(super) row: &'a mut Vec<Scored>,
}

/// In this process.
impl Place for ClassifierNetwork {
    type Error = PredictError;

    fn vectors(&self, batch: &Batch, out: &mut Activations, scratch: &mut EncoderScratch) -> Result<(), PredictError> {
        in_memory(self.encoder().forward(batch, Mode::Predict, out, scratch));
        Ok(())
    }

    fn logits(&self, batch: &Batch, out: &mut Activations, scratch: &mut NetworkScratch) -> Result<(), PredictError> {
        in_memory(ClassifierNetwork::logits(self, batch, out, scratch));
        Ok(())
    }

    fn rank(
        &self,
        batch: &Batch,
        k: usize,
        scratch: &mut NetworkScratch,
        out: &mut Ranked,
    ) -> Result<(), PredictError> {
        in_memory(ClassifierNetwork::rank(self, batch, None, k, scratch, out));
        Ok(())
    }

    fn choose<'l>(
        &self,
        batch: &Batch,
        labels: impl Fn(usize) -> &'l [LabelId] + Sync,
        k: usize,
        ChooseScratch { vectors, encoder, one, row }: ChooseScratch<'_>,
        out: &mut RankedBatch,
    ) -> Result<(), PredictError> {
        let Output::Sparse(sparse) = self.head() else { panic!("lists of labels for a dense layer") };
        self.vectors(batch, vectors, encoder)?;
        choose(sparse, vectors, labels, k, one, row, out);
        Ok(())
    }
}

/// The best of the candidates of each query by their logits, in place of what `out` holds: those of
/// one query each for itself, those of up to [`LANES`] together.
fn choose<'l>(
    sparse: &Sparse,
    vectors: &Activations,
    labels: impl Fn(usize) -> &'l [LabelId] + Sync,
    k: usize,
    one: &mut OneScratch,
    row: &mut Vec<Scored>,
    out: &mut RankedBatch,
) {
    out.clear();
    if vectors.len() == 1 {
        sparse.rank_some(vectors.row(0), labels(0), k, one, row);
        out.push_row(row);
        return;
    }
    let blocks: Vec<usize> = (0..vectors.len()).step_by(LANES).collect();
    let answers: Vec<RankedBatch> = blocks
        .into_par_iter()
        .map(|from| {
            let rows = from..vectors.len().min(from + LANES);
            choose_together(sparse, vectors, from, &rows.map(&labels).collect::<Vec<_>>(), k)
        })
        .collect();
    answers.iter().for_each(|answers| out.append(answers));
}

/// The best of the candidates of up to [`LANES`] queries by their logits: a layer of the labels
/// that are any query's candidate scores all of them side by side.
fn choose_together(
    sparse: &Sparse,
    vectors: &Activations,
    first: usize,
    lists: &[&[LabelId]],
    k: usize,
) -> RankedBatch {
    let mut labels = lists.concat();
    labels.sort_unstable();
    labels.dedup();
    let mut bias = Parameter::zeros(labels.len(), 1, xc_nn::Decay::No);
    let biases = sparse.bias().values();
    bias.values_mut().iter_mut().zip(&labels).for_each(|(to, &label)| *to = biases[label as usize]);
    let some = Sparse::from_parts(*sparse.params(), sparse.connections().select(&labels), bias);
    let width = vectors.width();
    let mut input = Activations::default();
    input.reshape(lists.len(), width);
    input.values_mut().copy_from_slice(&vectors.values()[first * width..(first + lists.len()) * width]);
    let mut logits = Activations::default();
    in_memory(some.logits(&input, &mut logits, &mut Default::default()));
    let (mut top, mut out) = (TopK::new(k), RankedBatch::new());
    for (at, list) in lists.iter().enumerate() {
        top.reset(k);
        for &label in *list {
            let place = labels.partition_point(|&other| other < label);
            top.push(Scored { label, score: logits.values()[at * labels.len() + place] });
        }
        out.push_row(top.sorted());
    }
    out
}
