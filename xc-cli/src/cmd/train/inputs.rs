//! What training reads for every kind of model: instances with labels, and others to judge by.

use crate::context::Context;
use crate::data::{
    Dataset, Datasets, InputArgs, Making, NamesArgs, Split, TextArgs, is_vectors, read_labelled, read_training,
};
use crate::error::{CliError, chain};
use crate::interrupt;
use crate::model::{beside, write_error};
use crate::output::check_in_folder;
use std::io;
use std::path::{Path, PathBuf};
use xc_hash::text::{Idf, Norm, PipelineParams, Tf, Weighting};
use xc_sparse::io::{LabelNames, UnknownLabels};
use xc_sparse::store::{Checkpoint, CheckpointError, CheckpointFolder, ContainerWriter, Layout};
use xc_train::model::HoldOut;

/// What is trained on, and where the model and its checkpoint are kept.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct PlaceArgs {
    /// Training instances
    #[arg(long, value_name = "FILE")]
    pub(in crate::cmd) train: PathBuf,
    /// Folder to save the model in; an existing model is replaced when the new one is complete
    #[arg(
        long,
        value_name = "DIR",
        required_unless_present = "explain",
        default_value = "MODEL",
        hide_default_value = true
    )]
    pub(in crate::cmd) model: PathBuf,
    /// Checkpoint folder: new, empty or from an interrupted run; deleted on success [default: MODEL.checkpoint]
    #[arg(long, value_name = "DIR")]
    pub(in crate::cmd) checkpoint: Option<PathBuf>,
    /// Continue from the checkpoint of an interrupted run with the same data and options
    #[arg(long)]
    pub(in crate::cmd) resume: bool,
    /// Discard an unfinished checkpoint, if there is one, and start over
    #[arg(long, conflicts_with = "resume")]
    pub(in crate::cmd) restart: bool,
    /// Dry run: read the data, and show every option, its origin and the memory needed
    #[arg(long)]
    pub(in crate::cmd) explain: bool,
}

/// Options of every kind of model that is trained on instances with labels.
#[derive(clap::Args, Debug)]
pub(crate) struct DataArgs {
    #[command(flatten)]
    pub(in crate::cmd) place: PlaceArgs,
    /// Labels of the training instances, if --train is npz, npy or the two-file form: a scipy npz, or any input format
    #[arg(long, value_name = "FILE")]
    pub(in crate::cmd) train_labels: Option<PathBuf>,
    /// Validation instances; networks also use them for model selection (--monitor, --keep), unless
    /// --validation-fraction is given
    #[arg(long, value_name = "FILE")]
    pub(in crate::cmd) validation: Option<PathBuf>,
    /// Labels of the validation instances, if --validation does not contain them
    #[arg(long, value_name = "FILE", requires = "validation")]
    pub(in crate::cmd) validation_labels: Option<PathBuf>,
    /// After the run with --validation-fraction, train again on all instances (networks: for the same number of epochs),
    /// and save that model in this folder
    #[arg(long, value_name = "DIR")]
    pub(in crate::cmd) refit: Option<PathBuf>,
    #[command(flatten)]
    pub(in crate::cmd) names: NamesArgs,
    /// Weight the features: (1 + ln tf) * (ln((1 + N)/(1 + df)) + 1); stored in the model
    #[arg(long)]
    pub(in crate::cmd) tfidf: bool,
    /// L2-normalise rows, in training and in prediction (stored in the model) [default: true; false for vectors, which
    /// networks use as they are]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    pub(in crate::cmd) normalise: Option<bool>,
    #[command(flatten)]
    pub(in crate::cmd) input: InputArgs,
    #[command(flatten)]
    pub(in crate::cmd) text: TextArgs,
}

impl PlaceArgs {
    /// Where finished parts are kept.
    pub(in crate::cmd) fn checkpoint(&self) -> PathBuf {
        self.checkpoint.clone().unwrap_or_else(|| beside(&self.model, "checkpoint"))
    }

    /// Refuses a model folder that may not be written, before the long work.
    pub(in crate::cmd) fn check_model(&self) -> Result<(), CliError> {
        if self.model.file_name().is_none() {
            let model = self.model.display();
            return Err(CliError::usage(format_args!("--model {model}: a path that ends in a name is expected")));
        }
        ContainerWriter::check(&self.model).map_err(|e| write_error(&e))?;
        let log = beside(&self.model, "log");
        if log.exists() && !log.is_dir() {
            return Err(CliError::usage(format_args!("{}: a file; the log's folder is expected there", log.display())));
        }
        check_in_folder(&log.join("train.json"))
    }

    /// Takes the checkpoint folder for this run alone, before the long work. What another run left
    /// is gone on with, or removed, only when that was asked for.
    pub(in crate::cmd) fn claim_checkpoint(
        &self,
        layout: Layout,
        context: &Context,
    ) -> Result<CheckpointFolder, CliError> {
        let path = self.checkpoint();
        let (model, inside) = (resolve(&self.model)?, resolve(&path)?);
        if model.starts_with(&inside) || inside.starts_with(&model) {
            return Err(CliError::usage(format_args!(
                "--model {}, --checkpoint {}: one lies in the other; two folders are expected",
                self.model.display(),
                path.display()
            )));
        }
        let refused = |e: CheckpointError| checkpoint_error(&e);
        let folder = CheckpointFolder::claim(&path, layout).map_err(refused)?;
        match folder.has_parts().map_err(refused)? {
            true if self.restart => folder.clear().map_err(|e| checkpoint_error(&e))?,
            true if !self.resume => {
                return Err(CliError::usage(format_args!(
                    "{}: the checkpoint of an interrupted run; --resume goes on from it, --restart removes it",
                    path.display()
                )));
            }
            false if self.resume => {
                context.warn(format_args!("{}: no checkpoint; training begins anew", path.display()));
            }
            _ => {}
        }
        interrupt::resumable(path);
        Ok(folder)
    }
}

impl DataArgs {
    /// Whether rows are scaled to length 1: unless an option says otherwise all but vectors are.
    pub(in crate::cmd) fn normalises(&self) -> bool {
        self.normalise.unwrap_or_else(|| !is_vectors(&self.place.train, self.input.format))
    }

    /// Refuses options about forms of files that none of them has; `vectors` are those of the instances, where
    /// they are apart, `further` a file that text may stand in too.
    pub(in crate::cmd) fn refuse_idle(
        &self,
        vectors: Option<&Path>,
        further: Option<&Path>,
        context: &Context,
    ) -> Result<(), CliError> {
        let train = &*self.place.train;
        let labels = [&self.train_labels, &self.validation, &self.validation_labels];
        let files = std::iter::once(train).chain(labels.into_iter().flatten().map(PathBuf::as_path)).chain(further);
        self.input.refuse_idle(files, context)?;
        let is_vectors = vectors.is_some() || is_vectors(train, self.input.format);
        self.input.refuse_idle_of_text(train, is_vectors, further, context)?;
        match vectors.is_some() {
            true => context.options.refuse(&["normalise"], "vectors are used as they are"),
            false => Ok(()),
        }
    }

    /// How sparse features are weighted; `None`: not at all.
    fn weighting(&self) -> Option<Weighting> {
        let norm = if self.normalises() { Norm::L2 } else { Norm::None };
        match self.tfidf {
            true => Some(Weighting { norm, ..Weighting::default() }),
            false => (norm != Norm::None).then_some(Weighting { tf: Tf::Raw, idf: Idf::None, norm }),
        }
    }

    /// Reads everything; `further` files are only looked at.
    pub(in crate::cmd) fn read(
        &self,
        further: &[&Option<PathBuf>],
        text: &PipelineParams,
        hold_out: Option<HoldOut>,
        context: &Context,
    ) -> Result<Datasets, CliError> {
        // The further files are looked at first: a wrong name should not cost the reading of a
        // large one.
        let named = [&self.train_labels, &self.validation, &self.validation_labels, &self.names.label_names];
        for path in named.into_iter().chain(further.iter().copied()).flatten().chain([&self.place.train]) {
            std::fs::File::open(path)
                .map_err(|e| CliError::usage(format_args!("{}: {}", path.display(), chain(&e))))?;
        }
        let train = read_training(
            &self.place.train,
            self.train_labels.as_deref(),
            &self.names,
            &self.input,
            text,
            self.weighting(),
            hold_out,
            context,
        )?;
        let validation = match &self.validation {
            Some(path) => Some(read_held_out(path, self.validation_labels.as_deref(), &train, &self.input, context)?),
            None => None,
        };
        let split = hold_out.map(|hold_out| Split::new(&self.place.train, &train, hold_out)).transpose()?;
        Ok(Datasets { train, validation, split, label_texts: None })
    }
}

/// What `--validation-fraction` asks for.
///
/// # Errors
/// No share from 0 to below 1.
pub(in crate::cmd) fn hold_out(share: Option<f64>, seed: u64) -> Result<Option<HoldOut>, CliError> {
    match share {
        Some(got) if !(0.0..1.0).contains(&got) => {
            Err(CliError::usage(format_args!("--validation-fraction {got}: a share from 0 to below 1 is expected")))
        }
        share => Ok(share.filter(|&share| share > 0.0).map(|share| HoldOut { share, seed, part: 0 })),
    }
}

/// The same path whatever links and dots lead to it; what it names need not exist.
fn resolve(path: &Path) -> Result<PathBuf, CliError> {
    let refused = |e: io::Error| CliError::usage(format_args!("{}: {}", path.display(), chain(&e)));
    if let Ok(found) = path.canonicalize() {
        return Ok(found);
    }
    // Folders that do not exist may be named inside of one another: the deepest that does exist
    // leads to the others.
    let path = std::path::absolute(path).map_err(refused)?;
    let mut ancestors = path.ancestors().skip(1).filter_map(|parent| Some((parent, parent.canonicalize().ok()?)));
    let (parent, found) = ancestors.next().ok_or_else(|| refused(io::ErrorKind::NotFound.into()))?;
    Ok(path.strip_prefix(parent).map_or_else(|_| path.clone(), |rest| found.join(rest)))
}

/// A checkpoint's error as the program says it.
pub(in crate::cmd) fn checkpoint_error(error: &CheckpointError) -> CliError {
    if error.is_failure() { CliError::failed(chain(error)) } else { CliError::usage(chain(error)) }
}

/// Removes the checkpoint that has served.
pub(in crate::cmd) fn drop_checkpoint(checkpoint: Checkpoint, context: &Context) {
    let path = checkpoint.path().to_owned();
    if let Err(e) = checkpoint.finish() {
        context.warn(format_args!("{}: cannot be removed: {}", path.display(), chain(&e)));
    }
}

/// Instances that the model has not seen, made into features as the training instances were.
fn read_held_out(
    path: &Path,
    labels: Option<&Path>,
    data: &Dataset,
    input: &InputArgs,
    context: &Context,
) -> Result<Dataset, CliError> {
    let names = match &data.names {
        // The names came out of a dictionary, which has each once.
        Some(names) => LabelNames::try_new(names.clone()).ok(),
        None => None,
    };
    let making = Making::Apply { maker: data.maker.as_ref(), n_features: data.width() };
    let held_out = read_labelled(path, labels.into(), names.as_ref(), UnknownLabels::Append, input, making, context)?;
    if held_out.len() == 0 {
        return Err(CliError::usage(format_args!("{}: no instance; at least one is expected", path.display())));
    }
    Ok(held_out)
}
