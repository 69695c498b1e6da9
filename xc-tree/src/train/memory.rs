//! Estimate of the memory that a training run needs; `bench/decisions/tree-memory.md` has the arithmetic.

use super::cluster::ClusterMethod;
use super::input::{TrainInput, row_length};
use super::label_vectors::LabelRepresentation;
use super::linear::group::GROUP;
use super::params::{Negatives, TreeParams, Unseen};
use xc_sparse::CsrView;

/// Weights that are packed at once, unless one chunk has more.
pub(super) const AT_ONCE: usize = 1 << 18;
/// Labels of one size that are looked at.
const LOOKED_AT: usize = 256;
/// Bytes of a weight that is packed: as it is read, and packed.
const PACKED: u64 = 40;
/// Bytes of the buffers of the files.
const BUFFERS: u64 = 2 << 20;

/// Bytes that a training run holds in addition to its input, by stage. Stages follow one another, tree by
/// tree, so the peak is that of the largest stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TreeMemory {
    /// Label vectors while they are clustered.
    pub clustering: u64,
    /// Instances of the parents being trained, and the buffers of their solvers.
    pub rankers: u64,
    /// Weights that are packed at a time.
    pub packing: u64,
    /// Values of the rows, if they are scaled to length 1 or divided by their typical length.
    pub rows: u64,
    /// Finished weights of all trees, if they stay in memory.
    pub weights: u64,
}

impl TreeMemory {
    /// Estimate for a training run whose weights go to a checkpoint ([`train_out_of_core`](super::train_out_of_core)).
    ///
    /// *Cost*: a pass over some thousand labels' instances.
    pub fn kept(input: &TrainInput<'_>, params: &TreeParams, n_threads: usize) -> Self {
        let vectors = VectorSizes::of(input, params);
        let scales = params.normalise_rows || row_length(input, params) != 1.0;
        let rows = if scales { input.features.nnz() as u64 * 4 } else { 0 };
        Self {
            clustering: clustering(input, params, n_threads, &vectors),
            rankers: rankers(input, params, n_threads),
            packing: packing(input, params, vectors.pifa),
            rows,
            weights: 0,
        }
    }

    /// Estimate for a training run whose weights stay in memory ([`train_trees`](super::train_trees)).
    pub fn in_memory(input: &TrainInput<'_>, params: &TreeParams, n_threads: usize) -> Self {
        // A ranker of a label keeps most features of its positives, with a column and a value each;
        // those of the levels above have about as many together.
        let weights = VectorSizes::of(input, params).pifa.saturating_mul(16);
        Self { weights: weights.saturating_mul(params.n_trees as u64), ..Self::kept(input, params, n_threads) }
    }

    /// The most that is held at any time.
    pub fn peak(&self) -> u64 {
        let stage = self.clustering.max(self.rankers).max(self.packing);
        stage.saturating_add(self.rows).saturating_add(self.weights)
    }
}

/// Entries of the label vectors, and of the largest.
struct VectorSizes {
    /// Of those that are clustered.
    clustered: u64,
    /// Of the sums of the positives' features.
    pifa: u64,
    largest: u64,
    n_labels: u64,
}

impl VectorSizes {
    fn of(input: &TrainInput<'_>, params: &TreeParams) -> Self {
        // Labels that no instance has are not looked at: a file may name one of any number.
        let mut pairs: Vec<(u32, u32)> = Vec::with_capacity(input.labels.nnz());
        for (instance, labels) in input.labels.iter().enumerate() {
            pairs.extend(labels.iter().map(|&label| (label, instance as u32)));
        }
        pairs.sort_unstable();
        let by_label: Vec<&[(u32, u32)]> = pairs.chunk_by(|a, b| a.0 == b.0).collect();
        let n_labels = match params.unseen {
            Unseen::Keep => input.labels.n_labels(),
            Unseen::Drop => by_label.len(),
        } as u64;
        let (pifa, largest) = pifa(input.features, &by_label);
        let given = input.label_features.map_or(0, |f| f.nnz() as u64);
        let whole = match params.representation {
            LabelRepresentation::Pifa => pifa,
            LabelRepresentation::Pii => input.labels.nnz() as u64,
            LabelRepresentation::LabelFeatures => given,
            LabelRepresentation::PifaAndLabelFeatures => pifa.saturating_add(given),
        };
        let clustered = params.max_label_nnz.map_or(whole, |most| whole.min((most as u64).saturating_mul(n_labels)));
        Self { clustered, pifa, largest, n_labels }
    }
}

/// Entries of the sums of the labels' positives, all and of the largest: labels are taken together
/// by how many entries are summed, and of each size some are counted. A label is its pairs with its
/// instances.
fn pifa(features: CsrView<'_>, labels: &[&[(u32, u32)]]) -> (u64, u64) {
    let summed =
        |pairs: &[(u32, u32)]| -> u64 { pairs.iter().map(|&(_, i)| features.row(i as usize).nnz() as u64).sum() };
    let mut by_size: Vec<Vec<&[(u32, u32)]>> = vec![Vec::new(); 65];
    for &pairs in labels {
        by_size[(64 - summed(pairs).leading_zeros()) as usize].push(pairs);
    }
    // A bit for each feature, all 0 between two labels.
    let mut seen = vec![0u64; features.cols().div_ceil(64)];
    let (mut all, mut largest) = (0u64, 0u64);
    for labels in by_size.iter().skip(1).filter(|labels| !labels.is_empty()) {
        let step = labels.len().div_ceil(LOOKED_AT);
        let (mut counted, mut of) = (0u64, 0u64);
        for pairs in labels.iter().step_by(step) {
            let summands = || pairs.iter().flat_map(|&(_, i)| features.row(i as usize).indices().iter().copied());
            let mut n_features = 0;
            for feature in summands() {
                let (word, bit) = (&mut seen[feature as usize / 64], 1 << (feature % 64));
                n_features += u64::from(*word & bit == 0);
                *word |= bit;
            }
            summands().for_each(|feature| seen[feature as usize / 64] = 0);
            largest = largest.max(n_features);
            counted += n_features;
            of += summed(pairs);
        }
        let total: u64 = labels.iter().map(|pairs| summed(pairs)).sum();
        all += (u128::from(total) * u128::from(counted)).div_ceil(u128::from(of.max(1))) as u64;
    }
    (all, largest)
}

fn sum(parts: &[u64]) -> u64 {
    parts.iter().fold(0, |sum: u64, &part| sum.saturating_add(part))
}

fn clustering(input: &TrainInput<'_>, params: &TreeParams, n_threads: usize, vectors: &VectorSizes) -> u64 {
    let (threads, n_labels) = (n_threads.max(1) as u64, input.labels.n_labels() as u64);
    let width = input.features.cols() as u64 + input.label_features.map_or(0, |f| f.cols() as u64);
    let transposed = sum(&[4 * input.labels.nnz() as u64, 8 * n_labels]);
    let stored = sum(&[vectors.clustered.saturating_mul(8), 16 * vectors.n_labels]);
    // A dense row a thread while vectors are summed; sums of two halves, a direction and numbers of
    // coordinates while they are cut.
    let dense = threads.saturating_mul(width).saturating_mul(16);
    let copies = match params.cluster.method {
        // Scores, and the order of the labels.
        ClusterMethod::Balanced => 24 * vectors.n_labels,
        // The root's own copy, and centroids.
        ClusterMethod::Unbalanced => sum(&[
            vectors.clustered.saturating_mul(8),
            width.saturating_mul(4).saturating_mul(params.cluster.branching as u64),
        ]),
    };
    // What the allocator adds to very many small arrays.
    let stored = stored.saturating_add(stored / 8);
    sum(&[transposed, stored, dense, copies, vectors.largest.saturating_mul(16).saturating_mul(threads)])
}

fn rankers(input: &TrainInput<'_>, params: &TreeParams, n_threads: usize) -> u64 {
    let features = input.features;
    let (n, d, threads) = (features.rows() as u64, features.cols() as u64, n_threads.max(1) as u64);
    let (n_labels, pairs) = (input.labels.n_labels() as u64, input.labels.nnz() as u64);
    let siblings = params.cluster.branching.min(input.labels.n_labels()) as u64;
    let lanes = siblings.min(GROUP as u64).next_power_of_two().max(4);
    // Weights and dual variables of the root's children in work, one group a thread.
    let groups = siblings.div_ceil(GROUP as u64).max(2).min(threads);
    let dense = groups.saturating_mul(d.saturating_add(n)).saturating_mul(4 * lanes).saturating_add(groups * n * 6);
    // Instances of the root: numbers, rows, lengths, and a bit for each child.
    let root = n.saturating_mul(44 + 2 * siblings.div_ceil(GROUP as u64));
    let members = sum(&[pairs.saturating_mul(12), n_labels.saturating_mul(16)]);
    // What the root keeps before it is written: up to half of its children's weights.
    let weights = d.saturating_mul(siblings).saturating_mul(4);
    let matched = match params.negatives {
        Negatives::TeacherForced => 0,
        // Pairs of an instance and a cluster, and the scores of all their children.
        Negatives::MatcherAware { beam } => {
            let pairs = n.saturating_mul(beam as u64);
            pairs.saturating_mul(40).saturating_add(pairs.saturating_mul(siblings).saturating_mul(4))
        }
    };
    // Copies of the instances of the parents in work.
    let blocks = features.nnz() as u64 * 8 / siblings.clamp(2, 8);
    sum(&[dense, root.saturating_add(weights).max(blocks), members, matched])
}

fn packing(input: &TrainInput<'_>, params: &TreeParams, weights: u64) -> u64 {
    let d = input.features.cols() as u64;
    let siblings = params.cluster.branching.min(input.labels.n_labels()) as u64;
    // Counts and the slot map; the largest chunk, as rows and packed.
    let chunk = d.saturating_mul(siblings).saturating_mul(6);
    let at_once = PACKED * weights.min(AT_ONCE as u64);
    sum(&[d.saturating_mul(12), 16 * input.labels.n_labels() as u64, chunk, at_once, BUFFERS])
}
