//! Label trees: train, save, judge.

mod judge;
mod memory;
mod part;

pub use part::check_part;

use super::data::{Dataset, Datasets};
use super::memory::Standing;
use super::place::drop_checkpoint;
use super::report::{Judging, Report};
use super::save::{Target, save_created};
use super::source::MEMORY;
use super::{Context, FitError};
use judge::judge;
use memory::Forecast;
use serde_json::{Map, Value, json};
use std::path::Path;
use std::time::Instant;
use xc_hash::text::Featurizer;
use xc_model::Extras;
use xc_model::TrainingRows;
use xc_model::message::{chain, counted, format_bytes};
use xc_sparse::CsrMatrix;
use xc_store::{CheckpointFolder, Container, ContainerWriter, WriteError, to_parameter};
use xc_tree::{
    BuildError, KeptError, StoredTrees, TrainError, TrainInput, TreeModel, TreeParams, WeightCounts, checkpoint_key,
    train_out_of_core,
};

/// What trees are learned from.
pub struct TreeInputs {
    instances: Datasets,
    rows: TrainingRows,
    label_features: Option<CsrMatrix>,
    instance_weights: Option<Vec<f32>>,
    label_costs: Option<Vec<f32>>,
}

impl TreeInputs {
    /// Instances, of which those that are held out judge, and what trees take beside them: a row of features for each label, a
    /// weight for each instance, those held out among them, and a cost for each label.
    pub fn new(
        instances: Datasets,
        label_features: Option<CsrMatrix>,
        mut instance_weights: Option<Vec<f32>>,
        label_costs: Option<Vec<f32>>,
    ) -> Self {
        let rows = instances.training_rows();
        if let (Some(weights), Some(split)) = (&mut instance_weights, &instances.split) {
            *weights = split.kept.iter().map(|&row| weights[row as usize]).collect();
        }
        Self { instances: instances.parted(), rows, label_features, instance_weights, label_costs }
    }

    /// The instances that are learned from.
    pub fn train(&self) -> &Dataset {
        &self.instances.train
    }

    fn train_input(&self) -> TrainInput<'_> {
        let data = &self.instances.train;
        TrainInput {
            label_features: self.label_features.as_ref().map(|m| m.view()),
            instance_weights: self.instance_weights.as_deref(),
            label_costs: self.label_costs.as_deref(),
            ..TrainInput::new(data.sparse().view(), &data.labels)
        }
    }

    /// Bytes of the features and labels in memory.
    fn n_bytes(&self) -> u64 {
        let label_features = self.label_features.as_ref().map_or(0, |m| 8 * (m.nnz() + m.rows()));
        self.instances.n_bytes() + label_features as u64
    }
}

/// What `config.json` keeps of the settings: nothing that depends on the machine or the run.
fn kept_parameters(params: &TreeParams) -> Value {
    to_parameter(&TreeParams { max_memory_bytes: None, ..params.clone() })
}

/// One training run of trees, of parameters that are known.
pub struct TreeSession<'a> {
    /// What is learned from is called so in messages.
    source: &'a Path,
    target: Target<'a>,
    params: &'a TreeParams,
    inputs: &'a TreeInputs,
    context: &'a Context<'a>,
}

impl<'a> TreeSession<'a> {
    /// A run whose model stays in memory. Rows come scaled by what makes the features, so that
    /// [`TreeParams::normalise_rows`] is to be false.
    pub fn new(inputs: &'a TreeInputs, params: &'a TreeParams, context: &'a Context<'a>) -> Self {
        Self { source: Path::new(MEMORY), target: Target::Memory, params, inputs, context }
    }

    /// With what messages call the instances, and where the model goes.
    #[must_use]
    pub fn between(self, source: &'a Path, target: Target<'a>) -> Self {
        Self { source, target, ..self }
    }
}

impl TreeSession<'_> {
    fn forecast(&self) -> Forecast<'_> {
        let Self { params, inputs, context, .. } = self;
        context.observer.released();
        Forecast {
            input: inputs.train_input(),
            params,
            threads: context.threads,
            of_text: matches!(inputs.instances.train.maker, Some(Featurizer::Text(_))),
            standing: Standing::now(inputs.n_bytes()),
            stays: self.target.folder().is_none(),
        }
    }

    /// What `config.json` keeps of the parameters.
    pub fn kept(&self) -> Value {
        kept_parameters(self.params)
    }

    /// Bytes that will be resident at most, the data included.
    pub fn needed(&self) -> u64 {
        self.forecast().needed()
    }

    /// Refuses what does not fit, and says what is going to happen. Gives the bytes that are needed.
    fn begin(&self) -> Result<u64, FitError> {
        self.context.check_interrupt()?;
        let needed = self.forecast().check(self.context)?;
        self.context.note(summary(self.params, self.inputs.train(), needed));
        Ok(needed)
    }

    /// Trains and saves the model, and says how good it is. `folder` is that of the checkpoint; a model that stays in memory
    /// has none, and is given.
    ///
    /// # Errors
    /// Too little memory, a checkpoint or a model that cannot be written, an observer that cancels.
    pub fn run(
        &self,
        folder: Option<CheckpointFolder>,
        read_s: f64,
        judging: &Judging,
    ) -> Result<(Report, Option<Container>), FitError> {
        let Self { source, target, params, inputs, context } = *self;
        let (input, data) = (inputs.train_input(), &inputs.instances.train);
        let needed = self.begin()?;
        let start = Instant::now();
        let watch = context.observer.of_trees();
        let checkpoint = folder.map(|folder| folder.begin(checkpoint_key(&input, params))).transpose()?;
        let trained = match &checkpoint {
            Some(checkpoint) => train_out_of_core(&input, params, &*watch, checkpoint).map(Trees::Stored),
            None => TreeModel::train_with(&input, params, &*watch, None).map(Trees::Model),
        };
        drop(watch);
        let trees = trained.map_err(|e| training_error(source, &e))?;
        let train_s = start.elapsed().as_secs_f64();
        context.check_interrupt()?;

        let start = Instant::now();
        let (training, rows) = (Some(kept_parameters(params)), Some(&inputs.rows));
        let (maker, names) = (data.maker.as_ref(), data.names.as_deref());
        let extras = Extras { maker, names, input: Some(&data.form), training, rows };
        let folder = target.folder().unwrap_or(Path::new(""));
        let (counts, container) = match &trees {
            Trees::Stored(trees) => {
                let create = || ContainerWriter::create(folder, xc_tree::KIND);
                (save_trees(create, extras, trees, params, context)?, None)
            }
            Trees::Model(model) => {
                let counts = model.weight_counts();
                warn_if_pruned_away(&counts, params, context);
                (counts, target.save(xc_tree::KIND, extras, |writer| Ok(model.write(writer)?))?)
            }
        };
        let what = format!("{}, {} weights", counted(params.n_trees, "tree"), counts.weights);
        drop(trees);
        let save_s = start.elapsed().as_secs_f64();
        if let Some(checkpoint) = checkpoint {
            drop_checkpoint(checkpoint, context);
        }

        let (metrics, curve) = judge(folder, container.as_ref(), &inputs.instances, judging, context)?;
        let report = Report {
            kind: xc_tree::KIND,
            model: folder.to_owned(),
            read_s,
            train_s,
            save_s,
            metrics,
            curve,
            what,
            further: Map::from_iter([("memory".to_owned(), json!({ "total_bytes": needed }))]),
            logged: Map::from_iter([("parameters".to_owned(), kept_parameters(params))]),
            data: Some(inputs.rows.fingerprint()),
        };
        Ok((report, container))
    }
}

/// One line before the work begins.
fn summary(params: &TreeParams, data: &Dataset, needed: u64) -> String {
    format!(
        "train tree: {}, {}, {}; {} of branching {}; about {} of memory",
        counted(data.len(), "instance"),
        counted(data.width(), "feature"),
        counted(data.labels.n_labels(), "label"),
        if params.n_trees == 1 { "one tree".to_owned() } else { counted(params.n_trees, "tree") },
        params.cluster.branching,
        format_bytes(needed)
    )
}

/// Trees that were trained.
enum Trees<'c> {
    /// In the checkpoint.
    Stored(StoredTrees<'c>),
    /// In memory.
    Model(TreeModel),
}

/// Packs trees and saves them as the model that `create` begins.
///
/// # Errors
/// The folder cannot be written, or the work is cancelled.
pub fn save_trees(
    create: impl FnOnce() -> Result<ContainerWriter, WriteError>,
    extras: Extras<'_>,
    trees: &StoredTrees<'_>,
    params: &TreeParams,
    context: &Context<'_>,
) -> Result<WeightCounts, FitError> {
    let mut counts = WeightCounts::default();
    save_created(create, extras, |writer| {
        counts = trees.write(writer, &xc_buffer::Unwatched(context.observer)).map_err(|e| packing_error(&e))?;
        Ok::<(), FitError>(())
    })?;
    warn_if_pruned_away(&counts, params, context);
    Ok(counts)
}

fn warn_if_pruned_away(counts: &WeightCounts, params: &TreeParams, context: &Context<'_>) {
    if counts.is_pruned_away() {
        context.warn(pruned_away(counts, params));
    }
}

/// What is wrong with a model most of whose rankers have no weight, and which option is to blame.
fn pruned_away(counts: &WeightCounts, params: &TreeParams) -> String {
    let WeightCounts { nodes, bare, .. } = counts;
    let linear = &params.linear;
    let cause = match linear.max_weights {
        Some(0) => "--linear.max-weights 0 drops all".to_owned(),
        _ => format!(
            "a smaller --linear.prune-below than {} or a larger --linear.cost than {} keeps more",
            linear.prune_below, linear.cost
        ),
    };
    format!(
        "{bare} of {nodes} clusters and labels kept no weight: their scores are the same for every instance; {cause}"
    )
}

fn training_error(train: &Path, error: &TrainError) -> FitError {
    let line = format!("{}: {}", train.display(), chain(error));
    match error {
        TrainError::Cancelled => FitError::interrupted(),
        TrainError::Memory { .. } => FitError::missing(line),
        TrainError::Build(error) => build_error(error),
        TrainError::Checkpoint(error) => error.into(),
        _ => FitError::usage(line),
    }
}

fn packing_error(error: &KeptError) -> FitError {
    match error {
        KeptError::Checkpoint(error) => error.into(),
        KeptError::Build(error) => build_error(error),
        KeptError::Write(error) => error.into(),
        KeptError::Memory { .. } => FitError::missing(error),
        KeptError::Cancelled => FitError::interrupted(),
        _ => FitError::failed(chain(error)),
    }
}

fn build_error(error: &BuildError) -> FitError {
    FitError::failed(format_args!("packing the model: {}", chain(error)))
}
