//! Kinds of classifiers: parameters and settings of training that go together, by name.

use crate::astra::AstraParams;
use xc_buffer::dtype::DType;
use xc_dense::MatmulPrecision;
use xc_lsh::upkeep::RebuildSchedule;
use xc_lsh::{FamilyKind, Projection};
use xc_model::classifier::{
    CandidateHeadParams, ClassifierParams, EmbeddingInit, EncoderParams, HeadParams, LearningParams, SparseHeadParams,
    WideLearning,
};
use xc_nn::TrainParams;
use xc_nn::sampler::{Lists, LshParams, NegativeParams, SamplerParams};
use xc_nn::{Activation, Loss};

/// A kind of classifier. Its name is the kind that a model folder states.
#[derive(Clone, Debug)]
pub struct Preset {
    /// The name.
    pub name: &'static str,
    /// Parameters of the classifier.
    pub params: ClassifierParams,
    /// Settings of its training; the learning rate is that of Adam.
    pub training: TrainParams,
}

pub use xc_model::classifier::{ASTRA, DENSE, LNS, UNIFORM};

/// Word vectors, a part of a classifier: [`skipgram`].
pub const SKIPGRAM: &str = "skipgram";

/// Every kind of classifier.
pub const ALL: [fn() -> Preset; 4] = [dense, uniform, lns, astra];

/// The preset called `name`.
pub fn named(name: &str) -> Option<Preset> {
    ALL.iter().map(|preset| preset()).find(|preset| preset.name == name)
}

/// Steps that networks over vectors make at least: they begin with random weights, which few steps leave as they were.
const LEAST_STEPS: usize = 300;
/// Instances of a step, down to which batches become smaller for this; then epochs become more.
const SMALL_BATCH: usize = 32;
const MOST_EPOCHS: usize = 100;

impl Preset {
    /// The same for so many vectors: batches of half the size, down to 32, and then more epochs, up to 100, where there
    /// would be fewer than 300 steps. Of 300 points of two values in three groups, in which the usual values make 20 steps,
    /// this raises P@1 on them from 8.7 to more than 90.
    #[must_use]
    pub fn with_steps_for(mut self, n_vectors: usize) -> Self {
        let n_vectors = n_vectors.max(1);
        let training = &mut self.training;
        while training.batch_size > SMALL_BATCH
            && n_vectors.div_ceil(training.batch_size) * (training.epochs as usize) < LEAST_STEPS
        {
            training.batch_size /= 2;
        }
        let wanted = LEAST_STEPS.div_ceil(n_vectors.div_ceil(training.batch_size)).min(MOST_EPOCHS);
        training.epochs = training.epochs.max(wanted as u32);
        self
    }

    /// The same above a transformer that was trained before, whose vectors take the place of the embeddings: small
    /// batches and few epochs, a fifth of the values left out. The transformer has a rate of its own.
    pub fn above_tokens(mut self) -> Self {
        let widths = self.params.encoder.widths();
        self.params.encoder = EncoderParams::vectors(widths.get(1..).unwrap_or_default());
        let learning = &mut self.params.learning;
        learning.input_dropout = 0.2;
        // What is below the layers learns at its own rate, of which there is no share.
        (learning.init, learning.embedding_rate) = (EmbeddingInit::Random, EmbeddingInit::Random.usual_rate());
        (self.training.batch_size, self.training.epochs) = (32, 3);
        self
    }
}

/// Sparse features, embeddings of 512 values, a dense output layer; a multi-label loss.
///
/// Weights and every step grow with labels * width: the choice up to some hundred thousand labels.
pub fn dense() -> Preset {
    let learning = LearningParams {
        input_dropout: 0.3,
        dropout: 0.3,
        wide: Some(WideLearning::default()),
        ..LearningParams::default()
    };
    let params = ClassifierParams { learning, ..ClassifierParams::default() };
    Preset { name: DENSE, params, training: TrainParams::default() }
}

/// Embeddings begun by LSA, an intermediate layer of 32,768 units, 32 connections per label,
/// squared hinge.
///
/// Weights of the output layer grow with labels * connections. Without the intermediate layer a
/// label sees too few values (schultheis2023uniform, section 3.4).
pub fn uniform() -> Preset {
    let mut params = ClassifierParams {
        encoder: EncoderParams::bag([512, 32_768]),
        head: HeadParams::Sparse(SparseHeadParams::default()),
        loss: Loss::SquaredHinge,
        precision: MatmulPrecision::Bf16,
        learning: LearningParams {
            input_dropout: 0.1,
            wide: Some(WideLearning::default()),
            ..LearningParams::default()
        },
    };
    begin_with_lsa(&mut params);
    Preset {
        name: UNIFORM,
        params,
        training: TrainParams { batch_size: 32, epochs: 10, rate: 1e-3, ..TrainParams::default() },
    }
}

/// Of a repetition of MACH: a dense classifier over buckets.
pub fn mach() -> Preset {
    let mut preset = Preset { name: xc_model::mach::KIND, ..dense() };
    // Outputs are buckets.
    preset.params.learning.wide = None;
    preset
}

/// Sparse features, embeddings of 256 values, a dense output layer of which a step scores the true
/// labels of its batch, some that tables find for each instance, and uniform ones.
///
/// Weights grow with labels * width, the time of a step with the labels that it scores.
pub fn lns() -> Preset {
    let preset = dense();
    let sampler = SamplerParams::LshEmbedding(LshParams::default());
    let uniform = NegativeParams::usual_uniform(&sampler, Lists::Shared);
    let mut params = ClassifierParams { encoder: EncoderParams::bag([256]), head: CANDIDATES, ..preset.params };
    params.learning.negatives = NegativeParams::new(sampler, uniform, params.loss);
    Preset { name: LNS, params, ..preset }
}

/// An output layer whose steps score some labels, in f32.
const CANDIDATES: HeadParams = HeadParams::Candidates(CandidateHeadParams { rows: DType::F32 });

/// Embeddings begin with an analysis of the rows: at the usual rate, and their sums as they are.
fn begin_with_lsa(params: &mut ClassifierParams) {
    let init = EmbeddingInit::Lsa;
    (params.learning.init, params.learning.embedding_rate) = (init, init.usual_rate());
    sum_plainly(params);
}

/// Sums of embeddings are handed on as they are.
fn sum_plainly(params: &mut ClassifierParams) {
    if let Some(activation) = params.encoder.activation_mut() {
        *activation = Activation::Identity;
    }
}

/// What the usual values of a kind follow from: the training instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataShape {
    /// Training instances.
    pub n_instances: usize,
    /// Weighted features of all of them together.
    pub n_entries: usize,
    /// Labels.
    pub n_labels: usize,
    /// Instances of the most frequent label; 0: not known.
    pub most_frequent: usize,
}

/// Sets whose usual values differ, each with what it is called: of many short instances and few labels, and of other
/// ones in one way each.
pub const SHAPES: [(&str, DataShape); 4] = [
    ("others", DataShape { n_instances: usize::MAX, n_entries: 0, n_labels: 0, most_frequent: 0 }),
    ("few instances", DataShape { n_instances: 0, n_entries: 0, n_labels: 0, most_frequent: 0 }),
    ("long instances", DataShape { n_instances: usize::MAX, n_entries: usize::MAX, n_labels: 0, most_frequent: 0 }),
    ("many labels", DataShape { n_instances: usize::MAX, n_entries: 0, n_labels: usize::MAX, most_frequent: 0 }),
];

impl DataShape {
    /// Fewer than [`FEW`].
    pub fn has_few_instances(&self) -> bool {
        self.n_instances < FEW
    }

    /// Whether instances have [`LONG`] features or more, in the mean.
    pub fn has_long_instances(&self) -> bool {
        self.n_entries >= LONG.saturating_mul(self.n_instances)
    }

    /// [`MANY`] or more.
    pub fn has_many_labels(&self) -> bool {
        self.n_labels >= MANY
    }

    /// Whether all labels are rare: at least one for [`FOR_EACH`] instances, and none on more than one of [`SHARE`].
    pub fn has_rare_labels_alone(&self) -> bool {
        let is_rare = (1..=self.n_instances / SHARE).contains(&self.most_frequent);
        is_rare && self.n_labels >= self.n_instances / FOR_EACH
    }

    /// Whether labels are many, or fewer that are all rare, and instances neither few nor long.
    pub fn is_of_many_labels(&self) -> bool {
        let is_usual = !self.has_few_instances() && !self.has_long_instances();
        is_usual && (self.has_many_labels() || self.has_rare_labels_alone())
    }

    /// Features of an instance, in the mean.
    pub fn features_per_instance(&self) -> f64 {
        self.n_entries as f64 / self.n_instances.max(1) as f64
    }
}

/// Labels up to which [`uniform_with_layer_for`] has its smallest intermediate layer, and from which its largest.
const HIDDEN: std::ops::RangeInclusive<usize> = 512..=32_768;

/// [`uniform`] with values that suit sets of such a shape: [`uniform_with_layer_for`], and for many labels of short
/// instances no intermediate layer, embeddings that begin at random, the softmax, four times the connections, and steps
/// that score a tenth of the labels. How they were found: `bench/decisions/uniform-mach-defaults.md`.
pub fn uniform_for(data: DataShape) -> Preset {
    let mut preset = uniform_with_layer_for(data);
    if !data.is_of_many_labels() {
        return preset;
    }
    let params = &mut preset.params;
    (params.encoder, params.loss) = (EncoderParams::bag([512]), Loss::Softmax);
    sum_plainly(params);
    let init = EmbeddingInit::Random;
    (params.learning.init, params.learning.embedding_rate) = (init, init.usual_rate());
    params.learning.input_dropout = 0.0;
    params.learning.wide = Some(WideLearning { negatives: MANY_NEGATIVES, ..WideLearning::default() });
    params.head = HeadParams::Sparse(SparseHeadParams { fan_in: MANY_FAN_IN, ..SparseHeadParams::default() });
    let per_list = (data.n_labels / 10).clamp(*DRAWN.start(), *DRAWN.end());
    // Weighted as with a sum over labels, the way it was measured.
    params.learning.negatives = SamplerParams::Frequency { per_list, power: NegativeParams::USUAL_POWER }.into();
    (preset.training.epochs, preset.training.rate) = (5, 1e-2);
    preset
}

/// Labels that a step of [`uniform_for`] draws of many.
const DRAWN: std::ops::RangeInclusive<usize> = 1_000..=8_000;
/// Connections of each of many labels, which no layer of their own stands below.
pub const MANY_FAN_IN: usize = 128;

/// [`uniform`] with an intermediate layer and batches that suit sets of such a shape: five units for four
/// labels, as a multiple of 512 from 512 to 32,768; batches of 128 at rate 0.002 with 12,000 instances or
/// more, of 32 at 0.003 with fewer.
pub fn uniform_with_layer_for(data: DataShape) -> Preset {
    let mut preset = uniform();
    let hidden = data.n_labels.saturating_mul(5).div_ceil(4).clamp(*HIDDEN.start(), *HIDDEN.end());
    let hidden = hidden.next_multiple_of(*HIDDEN.start());
    if let Some(width) = preset.params.encoder.widths_mut().last_mut() {
        *width = hidden;
    }
    let (batch_size, rate) = if data.has_few_instances() { (32, 3e-3) } else { (128, 2e-3) };
    (preset.training.batch_size, preset.training.rate) = (batch_size, rate);
    let every = xc_model::classifier::ConnectionLearning::usual_rewire_every(batch_size);
    preset.params.learning.connections.rewire_every = every;
    preset
}

/// [`lns`] whose steps score the hardest labels: [`crate::astra`].
pub fn astra() -> Preset {
    astra_for(SHAPES[0].1)
}

/// The same for sets of a shape: encoder, loss, rates and epochs of [`lns_for`], which were found with lists
/// that are much alike.
pub fn astra_for(data: DataShape) -> Preset {
    let preset = lns_for(data);
    // Not known how many: as for very many.
    let n_labels = if data.n_labels == 0 { usize::MAX } else { data.n_labels };
    let mut preset = Preset { name: ASTRA, ..preset };
    preset.params.learning.negatives = AstraParams::default().negatives(n_labels);
    preset
}

/// Training instances below which [`lns_for`] trains a wider network longer, and [`uniform_for`] takes
/// small batches.
pub const FEW: usize = 12_000;
/// Features of an instance, in the mean, from which [`lns_for`] begins with LSA.
pub const LONG: usize = 100;
/// Labels from which [`lns_for`] sums embeddings without a ReLU and without dropout, and takes the softmax.
pub const MANY: usize = 50_000;
/// Instances for which there is a label at least, where fewer labels than [`MANY`] are trained as many are.
pub const FOR_EACH: usize = 4;
/// Instances of which the most frequent label has one at most there.
pub const SHARE: usize = 20;
/// False labels that an instance keeps in a step for the rankers of many labels, twice as many as of others.
const MANY_NEGATIVES: usize = 40;
/// Instances that many labels are trained on in all epochs together, from four to eight of them; where that is more,
/// [`FOR_EACH_LABEL`].
const MANY_TIMES: usize = 1 << 19;
/// Instances for each label. Of 300,000 generated labels of 100,000 instances eight epochs instead of five raise held-out
/// P@1 from 28.9 to 33.8.
const FOR_EACH_LABEL: usize = 3;

/// Whether so many labels are no more than a list of [`lns`] holds: then all are scored.
pub(crate) fn lists_all(n_labels: usize) -> bool {
    let listed = NegativeParams::USUAL_DRAWN + NegativeParams::usual_chosen(Lists::Shared);
    (1..=listed).contains(&n_labels)
}

/// [`lns`] with values that suit sets of such a shape: few instances get wide embeddings, a lower
/// rate and twice the epochs; long ones embeddings that begin with LSA, and the squared hinge; many
/// labels, or fewer that are all rare, sums of embeddings as they are, without a ReLU and without dropout, the softmax
/// and few epochs. How they were found:
/// `bench/decisions/lns-defaults.md`.
pub fn lns_for(data: DataShape) -> Preset {
    let mut preset = lns();
    let params = &mut preset.params;
    if lists_all(data.n_labels) {
        params.learning.negatives = SamplerParams::All.into();
    }
    if data.has_few_instances() {
        params.encoder = EncoderParams::bag([1024]);
        (preset.training.epochs, preset.training.rate) = (20, 3e-3);
    } else if data.has_long_instances() {
        (params.encoder, params.loss) = (EncoderParams::bag([512]), Loss::SquaredHinge);
        begin_with_lsa(params);
    } else if data.is_of_many_labels() {
        sum_plainly(params);
        (params.learning.input_dropout, params.learning.dropout) = (0.0, 0.0);
        params.loss = Loss::Softmax;
        params.learning.wide = Some(WideLearning { negatives: MANY_NEGATIVES, ..WideLearning::default() });
        let times = MANY_TIMES.max(FOR_EACH_LABEL.saturating_mul(data.n_labels));
        preset.training.epochs = (times / data.n_instances.max(1)).clamp(4, 8) as u32;
        preset.training.rate = 5e-3;
    }
    preset
}

/// The settings of a data set in `[daghaghi2021tale]`, section 4: `amazon-670k`, `wikilshtc-325k`, `text8`.
///
/// The paper says neither how many candidates a query keeps nor how fast updates of tables become
/// rarer: 3,000 (text8: 25,000, about what its tables give) and a tenth each time are guesses.
pub fn lns_of(data: &str) -> Option<Preset> {
    let wta = FamilyKind::Wta { bin: 8 };
    let bits = FamilyKind::SimHash { projection: Projection::Sparse };
    let (width, batch_size, kind, n_codes, n_tables, candidates) = match data {
        "amazon-670k" => (128, 1024, wta, 6, 400, 3_000),
        "wikilshtc-325k" => (128, 256, wta, 5, 350, 3_000),
        "text8" => (200, 512, bits, 9, 50, 25_000),
        _ => return None,
    };
    let schedule = RebuildSchedule::Rebuild { every: 50, growth: 1.1 };
    let tables = LshParams { kind, n_tables, n_codes: Some(n_codes), candidates, schedule, ..LshParams::default() };
    let sampler = SamplerParams::LshEmbedding(tables);
    let negatives = NegativeParams { lists: Lists::Own, ..NegativeParams::new(sampler, 0, Loss::Softmax) };
    let mut preset = lns();
    preset.params.learning.wide = None;
    preset.params.learning.negatives = negatives;
    preset.params.encoder = EncoderParams::bag([width]);
    preset.params.loss = Loss::Softmax;
    (preset.training.batch_size, preset.training.rate) = (batch_size, 1e-4);
    Some(preset)
}

/// A word's vector of 200 values, as it is, predicts the words around it through the output layer
/// of [`lns`]. What is kept of the classifier are the vectors: [`xc_model::skipgram`].
pub fn skipgram() -> Preset {
    let preset = lns();
    let preset =
        Preset { training: TrainParams { batch_size: 512, epochs: 5, rate: 1e-3, ..preset.training }, ..preset };
    of_words(preset)
}

/// As [`skipgram`], with the output layer and training of [`lns_of`] `text8`, the only text there.
pub fn skipgram_of(data: &str) -> Option<Preset> {
    (data == "text8").then(|| lns_of(data)).flatten().map(of_words)
}

fn of_words(mut preset: Preset) -> Preset {
    preset.name = SKIPGRAM;
    preset.params.learning.wide = None;
    preset.params.loss = Loss::Softmax;
    preset.params.encoder = EncoderParams::bag([200]);
    sum_plainly(&mut preset.params);
    (preset.params.learning.input_dropout, preset.params.learning.dropout) = (0.0, 0.0);
    preset
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_possible_and_found_by_its_name() {
        for preset in ALL.map(|preset| preset()) {
            preset.params.check(1000, 50_000).unwrap();
            preset.training.check().unwrap();
            assert_eq!(named(preset.name).unwrap().params, preset.params);
        }
        for data in ["amazon-670k", "wikilshtc-325k", "text8"] {
            lns_of(data).unwrap().params.check(1000, 50_000).unwrap();
        }
        for preset in [skipgram(), skipgram_of("text8").unwrap()] {
            preset.params.check(1000, 50_000).unwrap();
            assert_eq!((preset.name, preset.params.encoder.widths()), (SKIPGRAM, &[200][..]));
        }
        assert!(named("tree").is_none() && lns_of("tree").is_none());
    }

    #[test]
    fn few_vectors_make_enough_steps_and_many_the_usual_ones() {
        for n in [0, 1, 40, 300, 3_000, 7_000, 100_000] {
            for preset in ALL.map(|preset| preset()) {
                let (usual, made) = (preset.training.clone(), preset.with_steps_for(n).training);
                let steps = |of: &TrainParams| n.max(1).div_ceil(of.batch_size) * of.epochs as usize;
                assert!(steps(&made) >= LEAST_STEPS.min(100 * n.max(1).div_ceil(32)), "{n}: {made:?}");
                assert!(made.batch_size <= usual.batch_size && made.epochs >= usual.epochs, "{n}: {made:?}");
                if steps(&usual) >= LEAST_STEPS {
                    assert_eq!(made, usual, "{n}");
                }
            }
        }
    }

    #[test]
    fn above_a_transformer_nothing_is_left_of_embeddings() {
        for preset in ALL.map(|preset| preset()) {
            let above = preset.clone().above_tokens();
            above.params.check(384, 50_000).unwrap();
            assert_eq!(above.params.encoder.widths(), &preset.params.encoder.widths()[1..], "{}", preset.name);
            // What is below the layers learns at all of its own rate.
            assert!(!above.params.uses_lsa() && above.params.learning.embedding_rate == 1.0, "{}", preset.name);
            above.training.check().unwrap();
        }
    }

    #[test]
    fn the_intermediate_layer_follows_from_the_number_of_labels() {
        let units = |n_labels| {
            let preset = uniform_with_layer_for(DataShape {
                n_instances: 20_000,
                n_entries: 800_000,
                n_labels,
                most_frequent: 0,
            });
            preset.params.check(1000, n_labels).unwrap();
            *preset.params.encoder.widths().last().unwrap()
        };
        assert_eq!([1, 581, 20_253, 26_215, 50_000_000].map(units), [512, 1024, 25_600, 32_768, 32_768]);
    }

    #[test]
    fn many_labels_of_short_instances_stand_on_the_embeddings() {
        let of = |n_labels, n_instances, n_entries, most_frequent| {
            let preset = uniform_for(DataShape { n_instances, n_entries, n_labels, most_frequent });
            preset.params.check(1000, n_labels).unwrap();
            let HeadParams::Sparse(head) = preset.params.head else { panic!("{:?}", preset.params.head) };
            let drawn = preset.params.learning.negatives.sampler.n_chosen();
            (preset.params.encoder.widths().len(), preset.params.loss, head.fan_in, drawn)
        };
        let (many, others) = (|drawn| (1, Loss::Softmax, MANY_FAN_IN, drawn), (2, Loss::SquaredHinge, 32, 0));
        assert_eq!(of(MANY, FEW, 0, 0), many(MANY / 10));
        assert_eq!(of(100 * MANY, FEW, 0, 0), many(8_000));
        assert_eq!(of(FEW / 4, FEW, 0, FEW / 20), many(1_000));
        assert_eq!(of(FEW / 4, FEW, 0, FEW / 20 + 1), others);
        assert_eq!(of(MANY, FEW, LONG * FEW, 0), others);
        assert_eq!(of(MANY, FEW - 1, 0, 0), others);
    }

    #[test]
    fn usual_values_follow_from_instances_and_their_length() {
        let with_labels = |n_labels, n_instances, n_entries| {
            let preset = lns_for(DataShape { n_instances, n_entries, n_labels, most_frequent: 0 });
            preset.params.check(1000, n_labels).unwrap();
            (preset.params.encoder.widths()[0], preset.params.learning.init, preset.params.loss)
        };
        let of = |n_instances, n_entries| with_labels(MANY - 1, n_instances, n_entries);
        assert_eq!(of(FEW, 30 * FEW), (256, EmbeddingInit::Random, Loss::Bce));
        assert_eq!(of(FEW - 1, 500 * FEW), (1024, EmbeddingInit::Random, Loss::Bce));
        assert_eq!(of(FEW, LONG * FEW), (512, EmbeddingInit::Lsa, Loss::SquaredHinge));
        assert_eq!(of(0, 0).0, 1024);
        assert_eq!(with_labels(MANY, FEW, 30 * FEW), (256, EmbeddingInit::Random, Loss::Softmax));
        let activation = |n_labels, n_entries| {
            let preset = lns_for(DataShape { n_instances: FEW, n_entries, n_labels, most_frequent: 0 });
            preset.params.encoder.activation()
        };
        let activations = [activation(MANY - 1, 0), activation(MANY, 0), activation(MANY - 1, LONG * FEW)];
        assert_eq!(activations, [Activation::Relu, Activation::Identity, Activation::Identity].map(Some));
        let with_most = |most_frequent, n_labels| {
            let data = DataShape { n_instances: FEW, n_entries: 0, n_labels, most_frequent };
            lns_for(data).params.loss
        };
        let losses = [(FEW / 20, FEW / 4), (FEW / 20 + 1, FEW / 4), (FEW / 20, FEW / 4 - 1), (0, FEW / 4)];
        let losses = losses.map(|(most, n_labels)| with_most(most, n_labels));
        assert_eq!(losses, [Loss::Softmax, Loss::Bce, Loss::Bce, Loss::Bce]);
        for (n_instances, n_entries) in [(FEW - 1, 0), (FEW, LONG * FEW)] {
            assert_eq!(with_labels(MANY, n_instances, n_entries), of(n_instances, n_entries));
        }
        let dropout = |n_labels| {
            let learning =
                astra_for(DataShape { n_instances: FEW, n_entries: 0, n_labels, most_frequent: 0 }).params.learning;
            (learning.input_dropout, learning.dropout)
        };
        assert_eq!((dropout(MANY), dropout(MANY - 1)), ((0.0, 0.0), (0.3, 0.3)));
    }
}
