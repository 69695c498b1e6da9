//! What every kind of training reads: instances with labels, and others to judge by.

use crate::context::Context;
use crate::data::{InputArgs, Labelled, Making, TextArgs, read_labelled, read_training};
use crate::error::{CliError, io_text};
use crate::model::{self, beside};
use std::io;
use std::path::{Path, PathBuf};
use xc_hash::text::PipelineParams;
use xc_sparse::io::{LabelNames, UnknownLabels};
use xc_sparse::store::ContainerWriter;

/// Options that every kind of training takes.
#[derive(clap::Args, Debug)]
pub(crate) struct DataArgs {
    /// Training instances
    #[arg(long, value_name = "FILE")]
    pub(super) train: PathBuf,
    /// Labels of the training instances, where --train does not carry them (npz, npy, two-file form)
    #[arg(long, value_name = "FILE")]
    pub(super) train_labels: Option<PathBuf>,
    /// Folder to save the model in; an existing model is replaced when the new one is complete
    #[arg(long, value_name = "DIR")]
    pub(super) model: PathBuf,
    /// Instances to score the finished model on
    #[arg(long, value_name = "FILE")]
    pub(super) validation: Option<PathBuf>,
    /// Labels of the validation instances, where --validation does not carry them
    #[arg(long, value_name = "FILE", requires = "validation")]
    pub(super) validation_labels: Option<PathBuf>,
    /// Names of the labels, one a line in order of the ids; kept in the model
    #[arg(long, value_name = "FILE")]
    pub(super) label_names: Option<PathBuf>,
    /// Weight the features: (1 + ln tf) * (ln((1 + N)/(1 + df)) + 1), rows of length 1; kept in the model
    #[arg(long)]
    pub(super) tfidf: bool,
    /// Folder for finished parts of the training [default: MODEL.checkpoint]; removed on success
    #[arg(long, value_name = "DIR")]
    pub(super) checkpoint: Option<PathBuf>,
    /// Go on from the checkpoint of an interrupted run with the same data and options
    #[arg(long)]
    pub(super) resume: bool,
    #[command(flatten)]
    pub(super) input: InputArgs,
    #[command(flatten)]
    pub(super) text: TextArgs,
}

/// Everything that was named, opened and checked.
pub(super) struct Instances {
    pub(super) train: Labelled,
    pub(super) validation: Option<Labelled>,
}

impl Instances {
    /// Bytes of the features and labels in memory.
    pub(super) fn n_bytes(&self) -> u64 {
        let of = |d: &Labelled| 8 * d.features.nnz() + 8 * d.features.rows() + 4 * d.labels.nnz() + 8 * d.labels.len();
        (of(&self.train) + self.validation.as_ref().map_or(0, of)) as u64
    }
}

impl DataArgs {
    /// Where finished parts are kept.
    pub(super) fn checkpoint(&self) -> PathBuf {
        self.checkpoint.clone().unwrap_or_else(|| beside(&self.model, "checkpoint"))
    }

    /// Refuses a model folder that may not be written, before the long work.
    pub(super) fn check_model(&self) -> Result<(), CliError> {
        ContainerWriter::check(&self.model).map_err(|e| model::write_error(&e))
    }

    /// Reads everything; `further` files are only looked at.
    pub(super) fn read(
        &self,
        further: &[&Option<PathBuf>],
        text: &PipelineParams,
        context: &Context,
    ) -> Result<Instances, CliError> {
        // The further files are looked at first: a wrong name should not cost the reading of a large one.
        let named = [&self.train_labels, &self.validation, &self.validation_labels, &self.label_names];
        for path in named.into_iter().chain(further.iter().copied()).flatten().chain([&self.train]) {
            std::fs::File::open(path)
                .map_err(|e| CliError::usage(format_args!("{}: {}", path.display(), io_text(&e))))?;
        }
        let train = read_training(
            &self.train,
            self.train_labels.as_deref(),
            self.label_names.as_deref(),
            &self.input,
            text,
            self.tfidf,
            context,
        )?;
        let validation = match &self.validation {
            Some(path) => Some(read_held_out(path, self.validation_labels.as_deref(), &train, &self.input, context)?),
            None => None,
        };
        Ok(Instances { train, validation })
    }

    /// A folder left by another run is gone on with only when that was asked for. `is_part` knows the names of what a
    /// checkpoint consists of: nothing else is removed.
    pub(super) fn prepare_checkpoint(&self, is_part: fn(&str) -> bool, context: &Context) -> Result<(), CliError> {
        let folder = self.checkpoint();
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                if self.resume {
                    context.warn(format_args!("{}: no checkpoint; training begins anew", folder.display()));
                }
                return Ok(());
            }
            Err(e) => return Err(CliError::usage(format_args!("{}: {}", folder.display(), io_text(&e)))),
        };
        // The folder is removed in the end: what is not ours must not be in it. Behind a dot stands what a killed save left.
        let mut names = entries.flatten().map(|e| e.file_name());
        let foreign = names.find(|n| !is_part(n.to_string_lossy().trim_start_matches('.')));
        if let Some(name) = foreign {
            return Err(CliError::usage(format_args!(
                "{}: holds {:?}, which is no part of a checkpoint; another --checkpoint is wanted",
                folder.display(),
                name
            )));
        }
        if self.resume {
            return Ok(());
        }
        context.warn(format_args!("{}: removed; --resume would have gone on from it", folder.display()));
        std::fs::remove_dir_all(&folder)
            .map_err(|e| CliError::failed(format_args!("{}: cannot be removed: {}", folder.display(), io_text(&e))))
    }

    /// Removes what has served.
    pub(super) fn drop_checkpoint(&self, context: &Context) {
        let folder = self.checkpoint();
        if let Err(e) = std::fs::remove_dir_all(&folder)
            && e.kind() != io::ErrorKind::NotFound
        {
            context.warn(format_args!("{}: cannot be removed: {}", folder.display(), io_text(&e)));
        }
    }
}

/// Instances that the model has not seen, made into features as the training instances were.
fn read_held_out(
    path: &Path,
    labels: Option<&Path>,
    data: &Labelled,
    input: &InputArgs,
    context: &Context,
) -> Result<Labelled, CliError> {
    let names = match &data.names {
        // The names came out of a dictionary, which has each once.
        Some(names) => LabelNames::try_new(names.clone()).ok(),
        None => None,
    };
    let making = Making::Apply { maker: data.maker.as_ref(), n_features: data.features.cols() };
    let held_out = read_labelled(path, labels, names.as_ref(), UnknownLabels::Append, input, making, context)?;
    if held_out.features.rows() == 0 {
        return Err(CliError::usage(format_args!("{}: no instance; at least one is wanted", path.display())));
    }
    Ok(held_out)
}
