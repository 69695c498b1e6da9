//! Kinds of models as values: usual parameters, changed, checked and trained, without a name of a setting and without a folder.
//!
//! ```
//! use xc_data::Data;
//! use xc_sparse::LabelRows;
//! use xc_train::fit::{Context, Silent};
//! use xc_train::kinds::{FeatureParams, Fit, NetworkKind};
//!
//! let texts = ["audio library", "audio sound", "mail reader", "mail client"].map(str::to_owned).to_vec();
//! let data = Data::new(texts, LabelRows::from_lists([[0], [0], [1], [1]], 2)?);
//! let context = Context::new(&Silent);
//! let mut lns = NetworkKind::Lns.usual(&FeatureParams::default().shape(&data, &context)?)?;
//! lns.network.training.epochs = 5;
//! let fitted = lns.fit(&data, None, &context)?;
//! assert_eq!(fitted.model.describe().n_labels, 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! What [`NetworkKind::usual`] and the others give is what `xc train` takes where nothing is chosen, and the folder that
//! [`Fit::fit_into`] writes has the bytes of that run.

use super::data::{Datasets, Making};
use super::network::{Instances, NetworkSession, Outputs, params_error};
use super::reading::ArrayReader;
use super::save::Target;
use super::source::MEMORY;
use super::tree::{TreeInputs, TreeSession};
use super::{Context, FitError, Fitted, Judging, Place, Report};
use crate::astra::AstraParams;
use crate::network::NetworkParams;
use crate::preset::{self, ASTRA, DENSE, LNS, Preset, UNIFORM};
use std::path::Path;
use std::time::Instant;
use xc_data::Data;
use xc_model::Model;
use xc_model::classifier::{ConnectionLearning, InputKind};
use xc_model::mach::MachLayout;
use xc_model::message::chain;
use xc_nn::Loss;
use xc_nn::sampler::SamplerParams;
use xc_nn::trainer::Monitor;
use xc_sparse::rows::Rows;
use xc_store::{CheckpointFolder, CheckpointLayout, Container};
use xc_tree::TreeParams;

pub use super::network::TrainingShape;
pub use super::reading::FeatureParams;

/// A model before it is trained, and how it is.
pub trait Fit {
    /// Trains a model into the folder of a place, or, without a place, in memory: the model is given then.
    ///
    /// # Errors
    /// As [`Fit::fit`] and [`Fit::fit_into`].
    fn train(
        &self,
        data: &Data<'_>,
        judge: Option<&Data<'_>>,
        place: Option<&Place>,
        context: &Context<'_>,
    ) -> Result<(Report, Option<Model>), FitError>;

    /// Trains a model that stays in memory: no file is read or written. `judge` are instances that it does not learn from: a
    /// network keeps the epoch that is best on them, and the report has the metrics of the finished model.
    ///
    /// All that is drawn follows from the seed of the context.
    ///
    /// *Memory*: all weights, and once more while they become the model.
    ///
    /// # Errors
    /// Parameters that are impossible for these instances, by their place; instances that nothing can be learned from; too
    /// little memory; an observer that cancels.
    fn fit(&self, data: &Data<'_>, judge: Option<&Data<'_>>, context: &Context<'_>) -> Result<Fitted, FitError> {
        let (report, model) = self.train(data, judge, None, context)?;
        Ok(Fitted { model: model.unwrap_or_else(|| panic!("a model that stays in memory")), report })
    }

    /// Trains a model into a folder, with a checkpoint beside it, from which an interrupted run goes on.
    ///
    /// # Errors
    /// As [`Fit::fit`]; the folder cannot be written; a part ([`Place::part`]): of trees [`TreeSession::run_part`] trains one, of
    /// MACH a layout has the repetitions.
    fn fit_into(
        &self,
        data: &Data<'_>,
        judge: Option<&Data<'_>>,
        place: &Place,
        context: &Context<'_>,
    ) -> Result<Report, FitError> {
        Ok(self.train(data, judge, Some(place), context)?.0)
    }
}

impl FeatureParams {
    /// What usual parameters of networks follow from.
    ///
    /// *Cost*: makes the features.
    ///
    /// # Errors
    /// Instances that no feature can be made of.
    pub fn shape(&self, data: &Data<'_>, context: &Context<'_>) -> Result<TrainingShape, FitError> {
        let sets = context.on_threads(|| self.datasets(data, None, false, context))?;
        Ok(TrainingShape::of(&Instances::Files(sets)))
    }

    fn datasets(
        &self,
        data: &Data<'_>,
        judge: Option<&Data<'_>>,
        vectors_as_rows: bool,
        context: &Context<'_>,
    ) -> Result<Datasets, FitError> {
        let are_vectors = matches!(data.rows(), Rows::Dense(_));
        let weighting = self.weighting.filter(|_| !are_vectors);
        let making = Making::Fit { text: &self.text, weighting, hold_out: None, tokens: None };
        let (train, validation) =
            ArrayReader { given: None, vectors_as_rows, context }.datasets(data, judge, making)?;
        Ok(Datasets { train, validation, split: None, label_texts: None })
    }
}

/// Kinds of networks with an output for each label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkKind {
    /// A dense output layer.
    Dense,
    /// A sparse one (`[schultheis2023uniform]`).
    Uniform,
    /// A dense one of which a step scores some labels (`[daghaghi2021tale]`).
    Lns,
    /// The same with the labels that are most easily mistaken for true ones (`[mehta2024astra]`).
    Astra,
}

impl NetworkKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Dense, Self::Uniform, Self::Lns, Self::Astra];

    /// The name that folders of the kind state.
    pub fn name(self) -> &'static str {
        match self {
            Self::Dense => DENSE,
            Self::Uniform => UNIFORM,
            Self::Lns => LNS,
            Self::Astra => ASTRA,
        }
    }

    /// What the kind begins with for instances of a shape, a transformer below not among them.
    pub fn preset_for(self, shape: &TrainingShape) -> Preset {
        let sparse = shape.sparse_data();
        let preset = match self {
            Self::Dense => preset::dense(),
            Self::Uniform => match (sparse, shape.data) {
                (Some(data), _) => preset::uniform_for(data),
                (None, Some(data)) => preset::uniform_with_layer_for(data),
                (None, None) => preset::uniform(),
            },
            Self::Lns => sparse.map_or_else(preset::lns, preset::lns_for),
            Self::Astra => sparse.map_or_else(preset::astra, preset::astra_for),
        };
        match self {
            Self::Uniform => shape.above_input(preset),
            Self::Dense | Self::Lns | Self::Astra => suited_to(shape, preset),
        }
    }

    /// What suits instances of a shape ([`FeatureParams::shape`]).
    ///
    /// # Errors
    /// No network of the kind suits them.
    pub fn usual(self, shape: &TrainingShape) -> Result<NetworkFit, FitError> {
        let mut network = usual(&self.preset_for(shape), shape);
        // Of vectors and tokens too these follow from labels and batches.
        let learning = &mut network.classifier.learning;
        match self {
            Self::Dense => {}
            Self::Uniform => {
                let every = ConnectionLearning::usual_rewire_every(network.training.batch_size);
                learning.connections.rewire_every = every;
            }
            Self::Lns if preset::lists_all(shape.n_labels) => learning.negatives = SamplerParams::All.into(),
            Self::Lns => {}
            Self::Astra => learning.negatives = AstraParams::default().negatives(shape.n_labels),
        }
        check(&network, shape, shape.n_labels)?;
        Ok(NetworkFit { kind: self, features: FeatureParams::default(), network })
    }
}

/// A preset with the softmax where no instance has more than one label, with enough steps for few vectors, and as it is
/// above a transformer where instances are tokens.
pub fn suited_to(shape: &TrainingShape, mut preset: Preset) -> Preset {
    if shape.most_labels <= 1 {
        preset.params.loss = Loss::Softmax;
    }
    if let (InputKind::Dense, Some(data)) = (shape.input, shape.data) {
        preset = preset.with_steps_for(data.n_instances);
    }
    shape.above_input(preset)
}

/// A preset over instances of a shape, with a wide term where it has something to add.
fn usual(preset: &Preset, shape: &TrainingShape) -> NetworkParams {
    let mut network = NetworkParams::of(preset, shape.input);
    if !has_usual_wide(shape.n_features, &network) {
        network.classifier.learning.wide = None;
    }
    network.training.monitor = Monitor::default();
    network
}

/// Whether a network over so many features usually has a wide term: embeddings with a value for every second feature keep
/// all of them anyway. Beside 1,024 values rankers cost delicious (500 features) 0.7 points of held-out P@1 at the best
/// weight, and gain bibtex (1,836) nothing.
pub fn has_usual_wide(n_features: usize, network: &NetworkParams) -> bool {
    let width = network.classifier.encoder.widths().first().copied().unwrap_or(0);
    n_features >= width.saturating_mul(2)
}

/// A network with an output for each label.
#[derive(Clone, Debug, PartialEq)]
pub struct NetworkFit {
    /// Its kind.
    pub kind: NetworkKind,
    /// How instances become features.
    pub features: FeatureParams,
    /// Encoder, head, loss, training.
    pub network: NetworkParams,
}

/// Networks over hashed labels (`[medini2019mach]`).
#[derive(Clone, Debug, PartialEq)]
pub struct MachFit {
    /// Repetitions, buckets, hash functions.
    pub layout: MachLayout,
    /// How instances become features.
    pub features: FeatureParams,
    /// The network of each repetition, and how it is trained.
    pub network: NetworkParams,
}

/// Label trees (`[prabhu2018parabel]`, `[khandagale2020bonsai]`).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TreeFit {
    /// How instances become features.
    pub features: FeatureParams,
    /// The trees. Rows come scaled by [`TreeFit::features`], so that [`TreeParams::normalise_rows`] is not read.
    pub params: TreeParams,
}

impl NetworkFit {
    /// Says whether such a network can be trained on instances of a shape.
    ///
    /// # Errors
    /// What is impossible, by its place.
    pub fn check(&self, shape: &TrainingShape) -> Result<(), FitError> {
        check(&self.network, shape, shape.n_labels)
    }
}

impl MachFit {
    /// What suits instances of a shape.
    ///
    /// # Errors
    /// No such network suits them.
    pub fn usual(shape: &TrainingShape) -> Result<Self, FitError> {
        let network = usual(&suited_to(shape, preset::mach()), shape);
        let made = Self { layout: MachLayout::usual(shape.n_labels), features: FeatureParams::default(), network };
        made.check(shape)?;
        Ok(made)
    }

    /// Says whether such networks can be trained on instances of a shape.
    ///
    /// # Errors
    /// What is impossible, by its place.
    pub fn check(&self, shape: &TrainingShape) -> Result<(), FitError> {
        check(&self.network, shape, self.layout.n_buckets as usize)?;
        let params = self.layout.params(self.network.classifier.clone());
        let sizing = params.sizing(shape.n_labels, self.layout.numbers.len());
        sizing.map(drop).map_err(|e| FitError::usage(format_args!("layout: {}", chain(&e))))
    }
}

fn check(network: &NetworkParams, shape: &TrainingShape, n_outputs: usize) -> Result<(), FitError> {
    network.check().map_err(|e| FitError::usage(chain(&e)))?;
    network.classifier.check(shape.n_features, n_outputs).map_err(|e| params_error(&e))
}

/// Does `run`, which is told where the model goes and the folder of its checkpoint.
fn at(
    place: Option<&Place>,
    layout: CheckpointLayout,
    context: &Context<'_>,
    run: impl FnOnce(Target<'_>, Option<CheckpointFolder>) -> Result<(Report, Option<Container>), FitError> + Send,
) -> Result<(Report, Option<Model>), FitError> {
    context.on_threads(|| {
        let Some(place) = place else {
            let (report, container) = run(Target::Memory, None)?;
            let Some(container) = container else { panic!("a model that stays in memory") };
            let Fitted { model, report } = Fitted::new(report, container)?;
            return Ok((report, Some(model)));
        };
        if let Some(part) = place.part {
            return Err(FitError::usage(format_args!("part {part}: a whole model is expected here")));
        }
        place.check_model()?;
        let folder = place.claim_checkpoint(layout, context)?;
        Ok((run(Target::Folder(&place.model), Some(folder))?.0, None))
    })
}

/// Trains a network over outputs.
fn train(
    outputs: &Outputs,
    (features, network): (&FeatureParams, &NetworkParams),
    (data, judge): (&Data<'_>, Option<&Data<'_>>),
    place: Option<&Place>,
    context: &Context<'_>,
) -> Result<(Report, Option<Model>), FitError> {
    at(place, outputs.checkpoint(), context, |target, folder| {
        let start = Instant::now();
        let instances = Instances::Files(features.datasets(data, judge, false, context)?);
        let read_s = start.elapsed().as_secs_f64();
        let shape = TrainingShape::of(&instances);
        check(network, &shape, outputs.len(&shape))?;
        let mut network = network.clone();
        (network.classifier.learning.seed, network.training.seed) = (context.seed, context.seed);
        if judge.is_none() {
            // Nothing can be measured but the loss.
            network.training.monitor = Monitor::Loss;
        }
        let session = NetworkSession::new(outputs, (instances, shape), network, true, context);
        let session = session.between(Path::new(MEMORY), target);
        let memory = session.announce(false)?;
        session.run(folder, read_s, memory, &Judging::default())
    })
}

impl Fit for NetworkFit {
    fn train(
        &self,
        data: &Data<'_>,
        judge: Option<&Data<'_>>,
        place: Option<&Place>,
        context: &Context<'_>,
    ) -> Result<(Report, Option<Model>), FitError> {
        let outputs = Outputs::labels(self.kind.name());
        train(&outputs, (&self.features, &self.network), (data, judge), place, context)
    }
}

impl Fit for MachFit {
    fn train(
        &self,
        data: &Data<'_>,
        judge: Option<&Data<'_>>,
        place: Option<&Place>,
        context: &Context<'_>,
    ) -> Result<(Report, Option<Model>), FitError> {
        let outputs = Outputs::buckets(self.layout.clone());
        train(&outputs, (&self.features, &self.network), (data, judge), place, context)
    }
}

impl Fit for TreeFit {
    fn train(
        &self,
        data: &Data<'_>,
        judge: Option<&Data<'_>>,
        place: Option<&Place>,
        context: &Context<'_>,
    ) -> Result<(Report, Option<Model>), FitError> {
        at(place, xc_tree::CHECKPOINT, context, |target, folder| {
            let start = Instant::now();
            let sets = self.features.datasets(data, judge, true, context)?;
            let read_s = start.elapsed().as_secs_f64();
            let params = TreeParams { seed: context.seed, normalise_rows: false, ..self.params.clone() };
            let inputs = TreeInputs::new(sets, None, None, None);
            let session = TreeSession::new(&inputs, &params, context).between(Path::new(MEMORY), target);
            session.run(folder, read_s, &Judging::default())
        })
    }
}
