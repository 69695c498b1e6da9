//! What memory training will take, before any of it is taken.

use super::workload::{TokenLengths, Workload, product};
use xc_dense::MatmulPrecision;
use xc_model::classifier::{
    BATCH, ClassifierParams, ConnectionLearning, HeadParams, InputKind, LearningParams, SparseHeadParams, TokensParams,
    WideLearning, Wiring,
};
use xc_nn::HardLabels;
use xc_nn::encoder::lsa;
use xc_nn::head::{Sampled, Sparse};
use xc_nn::sampler::{Lists, NegativeParams, SamplerParams};
use xc_sparse::uniform::InputIds;

/// Bytes of a training run, by part. The program itself (threads, files, log) takes some 10 MB more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Learned values and indices.
    pub parameters: u64,
    /// What the optimiser remembers of them.
    pub moments: u64,
    /// The copy of the best parameters, where one is kept.
    pub best: u64,
    /// A step's buffers: values of all layers and their gradients, gradients of a tile of labels,
    /// what rewiring moves. Or, where that is more than these, the moments and the copy together,
    /// what LSA takes before there are any.
    pub buffers: u64,
    /// The false labels that are kept for the rankers of a wide term, and the buffers in which steps collect them. Or,
    /// where solving these takes more than moments, copy and buffers as well, what it takes more; the rankers themselves
    /// by a rough estimate.
    pub wide: u64,
}

impl Memory {
    /// All parts.
    pub fn total(&self) -> u64 {
        [self.parameters, self.moments, self.best, self.buffers, self.wide].into_iter().fold(0, u64::saturating_add)
    }
}

/// Numbers that the classifier learns.
///
/// # Panics
/// If [`ClassifierParams::check`] fails.
pub fn n_values(params: &ClassifierParams, n_features: usize, n_labels: usize) -> u64 {
    let head = match &params.head {
        HeadParams::Dense | HeadParams::Candidates(_) => {
            product(&[n_labels, params.encoder.top_width(n_features).saturating_add(1)])
        }
        HeadParams::Sparse(head) => product(&[n_labels, head.fan_in.saturating_add(1)]),
    };
    encoder_values(params, n_features).saturating_add(head)
}

fn encoder_values(params: &ClassifierParams, n_features: usize) -> u64 {
    let shapes = params.encoder_shapes(n_features);
    shapes.iter().fold(0, |sum: u64, (_, shape)| sum.saturating_add(product(shape)))
}

/// What training takes.
///
/// # Panics
/// If [`ClassifierParams::check`] fails.
pub fn memory(params: &ClassifierParams, work: &Workload) -> Memory {
    let Workload { n_features, n_labels, batch_size, moments: remembered, keeps_best, clips, .. } = *work;
    let n_moments = remembered.n;
    let encoder = encoder_values(params, n_features).saturating_mul(4);
    let of_rows = |rows: usize, width: usize| product(&[4, n_moments, remembered.len(rows, width)]);
    let width = params.encoder.top_width(n_features);
    let (head, head_moments, head_buffers) = match &params.head {
        HeadParams::Sparse(head) => {
            let (labels, layer) = (n_labels as u64, head.layer(&params.learning));
            let bytes = |n_moments| Sparse::n_bytes(labels, width, &layer, n_moments);
            let screens = params.screens() && Sparse::screening_pays(labels, width, head.fan_in, batch_size);
            let step = Sparse::scratch_bytes(labels, width, head.fan_in, batch_size, clips, screens);
            let buffers =
                step.saturating_add(rewire_bytes(&params.learning.connections, head, labels, width, n_moments));
            (bytes(0), bytes(n_moments) - bytes(0), buffers)
        }
        HeadParams::Candidates(head) => {
            let bias = product(&[4, n_labels]);
            let rows = product(&[head.rows.n_bytes(), n_labels, width]).saturating_add(bias);
            let moments = of_rows(n_labels, width).saturating_add(of_rows(n_labels, 1));
            let negatives = &params.learning.negatives;
            let listed = negatives.listed(batch_size);
            let buffers = Sampled::scratch_bytes(params.loss, batch_size, width, n_labels, listed, clips)
                .saturating_add(table_bytes(negatives, work, width));
            (rows, moments, buffers)
        }
        HeadParams::Dense => {
            let values = product(&[4, n_labels, width.saturating_add(1)]);
            // Logits, and sums over leaves of labels: two a thread, and one a level of the
            // tree.
            let buffers = product(&[4, batch_size, n_labels]).saturating_add(product(&[4, 12, batch_size, width]));
            let moments = of_rows(n_labels, width).saturating_add(of_rows(n_labels, 1));
            (values, moments, buffers)
        }
    };
    let of_vectors = params.encoder.input() == InputKind::Dense;
    let lowest = params.encoder.lowest_width(n_features);
    // Values and gradients of each layer, a gradient above all, and three batches of vectors
    // that are gathered ahead.
    let hidden = params.encoder.layer_widths().fold(lowest, usize::saturating_add);
    let units = hidden.saturating_mul(2).saturating_add(width);
    let ahead = if of_vectors { n_features.saturating_mul(3) } else { 0 };
    let step = product(&[4, batch_size, units.saturating_add(ahead)]).saturating_add(head_buffers);
    let step = step.saturating_add(step_bytes(params, work));
    let parameters = encoder.saturating_add(head);
    let shapes = params.encoder_shapes(n_features);
    let of_encoder = shapes.iter().map(|(name, [rows, width])| match own_moments(params, name) {
        Some(n) => product(&[4, n, *rows, *width]),
        None => of_rows(*rows, *width),
    });
    let moments = of_encoder.fold(head_moments, u64::saturating_add);
    let best = if keeps_best { parameters } else { 0 };
    // LSA comes before there are moments, a copy and buffers; its result is a parameter.
    let analysis = match params.uses_lsa() {
        true => lsa::bytes(n_features, lowest).saturating_sub(product(&[4, n_features, lowest])),
        false => 0,
    };
    let buffers = step.max(analysis.saturating_sub(moments.saturating_add(best)));
    let term = params.learning.wide.filter(|_| params.encoder.input() != InputKind::Dense);
    let (collected, solving) = term.map_or((0, 0), |wide| wide_bytes(&wide, work));
    let collecting = term.map_or(0, |wide| collecting_bytes(params, &wide, batch_size));
    // Rankers are solved when moments, copy and buffers are gone.
    let freed = moments.saturating_add(best).saturating_add(buffers);
    let wide = collected.saturating_add(collecting).max(solving.saturating_sub(freed));
    Memory { parameters, moments, best, buffers, wide }
}

/// Buffers in which steps collect labels: 28 bytes for each of an instance, and room for at least some. A loss that
/// adds up over labels keeps the logits of lists of instances twice, in the order of labels and of instances.
fn collecting_bytes(params: &ClassifierParams, wide: &WideLearning, batch_size: usize) -> u64 {
    let collected = product(&[28, wide.negatives]).max(512).saturating_mul(batch_size as u64);
    let negatives = &params.learning.negatives;
    let has_lists = matches!(params.head, HeadParams::Candidates(_)) && negatives.lists == Lists::Own;
    let listed = negatives.listed(batch_size).filter(|_| has_lists && params.loss.is_separable());
    collected.saturating_add(product(&[8, listed.unwrap_or(0)]))
}

/// Bytes of the encoder's own buffers: of a step, and of the answers to instances that judge.
fn step_bytes(params: &ClassifierParams, work: &Workload) -> u64 {
    let of_transformer = |of| transformer_bytes(of, &params.learning, params.precision, work);
    params.encoder.tokens().map_or(0, of_transformer)
}

fn transformer_bytes(of: &TokensParams, learning: &LearningParams, precision: MatmulPrecision, work: &Workload) -> u64 {
    let (transformer, TokenLengths { longest, .. }) = (&of.transformer, work.tokens);
    let n_learning = learning.tokens.layers.n_learning(transformer);
    let tokens_of = |batch_size| work.tokens.of_batch(batch_size, work.n_instances);
    let step = transformer.step_bytes(precision, tokens_of(work.batch_size), longest, n_learning);
    let answers = transformer.answer_bytes(tokens_of(BATCH), longest);
    let judging = if work.keeps_best { answers } else { 0 };
    let cached = if work.tokens.are_cached { product(&[4, work.tokens.sum, transformer.width]) } else { 0 };
    // Layers that do not learn are packed once.
    let packed = transformer.packed_bytes(transformer.layers - n_learning);
    // Linear layers behind the pooling keep what comes to them, and gradients.
    let dense = transformer.dense.iter().map(|layer| product(&[8, work.batch_size, layer.inputs + layer.outputs]));
    [step, judging, packed, cached].into_iter().chain(dense).fold(0, u64::saturating_add)
}

/// How many moments a parameter has, where it has an optimiser of its own, as those of a transformer.
fn own_moments(params: &ClassifierParams, parameter: &str) -> Option<usize> {
    params.encoder.tokens()?;
    params.learning.tokens.layers.learns(parameter).map(|learns| if learns { 2 } else { 0 })
}

/// The collected labels; and what solving takes: these as rows and as columns, and rankers of some hundred weights,
/// twice while they are joined.
fn wide_bytes(learning: &WideLearning, work: &Workload) -> (u64, u64) {
    /// Weights of a ranker, in the mean, with room: 160 on git-files.
    const WEIGHTS: usize = 220;
    let collected = HardLabels::bytes(work.n_instances, work.n_epochs, learning.negatives);
    let in_memory = if collected > HARD_IN_MEMORY { 0 } else { collected };
    let rankers = product(&[2 * 8 * WEIGHTS, work.n_labels]).saturating_add(product(&[16, work.n_instances]));
    (in_memory, collected.saturating_mul(2).saturating_add(rankers))
}

/// Bytes of collected labels up to which they stay in memory; more are in a file without a name.
pub const HARD_IN_MEMORY: u64 = 1 << 30;

/// Bytes of the sampler's tables.
fn table_bytes(negatives: &NegativeParams, work: &Workload, width: usize) -> u64 {
    let &Workload { n_instances, n_labels, batch_size, n_epochs, .. } = work;
    match negatives.sampler {
        SamplerParams::LshEmbedding(params) | SamplerParams::LshLabel(params) => {
            params.bytes(n_labels as u64, width).unwrap_or(u64::MAX)
        }
        SamplerParams::Ann(params) if params.is_built(n_instances.div_ceil(batch_size.max(1)), n_epochs) => {
            params.bytes(n_labels, width)
        }
        SamplerParams::Schedule(params) => params.bytes(n_instances, n_labels, width),
        SamplerParams::LabelText(params) => {
            let texts = (n_labels as u64).saturating_mul(width as u64).saturating_mul(4);
            params.bytes(n_labels, width).saturating_add(texts)
        }
        _ => 0,
    }
}

/// What a change of the connections takes for a moment.
fn rewire_bytes(
    learning: &ConnectionLearning,
    head: &SparseHeadParams,
    labels: u64,
    width: usize,
    n_moments: usize,
) -> u64 {
    let Some(rewire) = learning.rewire() else { return 0 };
    let connections = labels.saturating_mul(head.fan_in as u64);
    match head.wiring {
        // Lists of the places that change.
        Wiring::Uniform => (8.0 * rewire.fraction * connections as f64) as u64,
        // New arrays beside the old ones.
        Wiring::Unstructured => {
            let moved = if n_moments > 0 { 4 + learning.moments.n_bytes() } else { 0 };
            connections.saturating_mul((4 + InputIds::bytes_each(width) + head.weights.n_bytes() + moved) as u64)
        }
    }
}
