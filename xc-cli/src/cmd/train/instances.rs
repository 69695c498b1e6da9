//! What networks learn from, wherever it comes from, and others to watch.

use super::corpus::WordText;
use super::inputs::{DataArgs, PlaceArgs};
use crate::context::Context;
use crate::data::{Dataset, Datasets, KnownLabels, Split, read_vectors, vector_source};
use crate::error::{CliError, chain};
use std::path::{Path, PathBuf};
use xc_nn::{Features, TargetRows};
use xc_sparse::LabelRows;
use xc_sparse::io::{LabelNames, UnknownLabels};
use xc_train::classifier::InputKind;
use xc_train::model::HoldOut;

/// Where a command's instances come from.
pub(super) trait Source {
    /// The training file, and where the model will be.
    fn place(&self) -> &PlaceArgs;

    /// What the instances are, before they are read.
    fn input(&self) -> InputKind {
        InputKind::Sparse
    }

    /// Where the model of all instances goes, if one is trained after the one without those held out.
    fn refit(&self) -> Option<&Path> {
        None
    }

    /// Whether there is a file of instances to judge by.
    fn has_validation(&self) -> bool {
        false
    }

    /// Refuses options that are impossible, before the long work.
    fn check(&self) -> Result<(), CliError>;

    /// Reads everything that the options name, and says which instances are held out.
    fn read(&self, hold_out: Option<HoldOut>, context: &Context) -> Result<Instances, CliError>;
}

/// Instances in memory.
#[expect(clippy::large_enum_variant, reason = "a command has one of them")]
pub(super) enum Instances {
    /// With labels, out of files.
    Files(Datasets),
    /// Words of a text.
    Words(WordText),
}

impl Instances {
    /// Features of the instances to learn from.
    pub(super) fn features(&self) -> Features<'_> {
        match self {
            Self::Files(sets) => sets.train.features(),
            Self::Words(text) => text.corpus.features(),
        }
    }

    /// Their labels, where they are those of a file.
    pub(super) fn labels(&self) -> Option<&LabelRows> {
        match self {
            Self::Files(sets) => Some(&sets.train.labels),
            Self::Words(_) => None,
        }
    }

    /// Their labels.
    pub(super) fn targets(&self) -> TargetRows<'_> {
        match self {
            Self::Files(sets) => (&sets.train.labels).into(),
            Self::Words(text) => text.corpus.targets(),
        }
    }

    /// The instances of the validation file, where there is one.
    pub(super) fn validation(&self) -> Option<&Dataset> {
        self.files().and_then(|sets| sets.validation.as_ref())
    }

    /// Instances out of files.
    pub(super) fn files(&self) -> Option<&Datasets> {
        match self {
            Self::Files(sets) => Some(sets),
            Self::Words(_) => None,
        }
    }

    /// Bytes in memory.
    pub(super) fn n_bytes(&self) -> u64 {
        match self {
            Self::Files(sets) => sets.n_bytes(),
            Self::Words(text) => text.corpus.n_bytes(),
        }
    }

    /// Bytes that stay in files until they are looked at.
    pub(super) fn mapped_bytes(&self) -> u64 {
        let sets = self.files().into_iter().flat_map(|sets| std::iter::once(&sets.train).chain(&sets.validation));
        sets.map(Dataset::mapped_bytes).sum()
    }
}

/// Files of instances, sparse or as vectors.
#[derive(clap::Args, Debug)]
pub(crate) struct FileArgs {
    /// Vectors of the training instances, npy; --train then gives only their labels
    #[arg(long, value_name = "FILE.npy", conflicts_with_all = ["train_labels", "tfidf"])]
    features: Option<PathBuf>,
    /// Vectors of the validation instances, npy; --validation then gives only their labels
    #[arg(long, value_name = "FILE.npy", requires = "validation", conflicts_with = "validation_labels")]
    validation_features: Option<PathBuf>,
    #[command(flatten)]
    pub(super) data: DataArgs,
}

impl Source for FileArgs {
    fn place(&self) -> &PlaceArgs {
        &self.data.place
    }

    fn input(&self) -> InputKind {
        if self.features.is_some() { InputKind::Dense } else { InputKind::Sparse }
    }

    fn refit(&self) -> Option<&Path> {
        self.data.refit.as_deref()
    }

    fn has_validation(&self) -> bool {
        self.data.validation.is_some()
    }

    fn check(&self) -> Result<(), CliError> {
        self.data.text.params().map(drop)
    }

    fn read(&self, hold_out: Option<HoldOut>, context: &Context) -> Result<Instances, CliError> {
        self.data.refuse_idle(self.features.as_deref(), None, context)?;
        self.read_files(hold_out, context).map(Instances::Files)
    }
}

impl FileArgs {
    /// Vectors of the training instances, where they are apart.
    pub(super) fn features(&self) -> Option<&Path> {
        self.features.as_deref()
    }

    /// Reads everything that the options name.
    pub(super) fn read_files(&self, hold_out: Option<HoldOut>, context: &Context) -> Result<Datasets, CliError> {
        read(self, hold_out, context)
    }
}

/// Reads everything that the options name. Vectors and sparse features do not go together.
fn read(args: &FileArgs, hold_out: Option<HoldOut>, context: &Context) -> Result<Datasets, CliError> {
    let FileArgs { data, features, validation_features } = args;
    let format = data.input.format;
    let train = vector_source(&data.place.train, data.train_labels.as_deref(), features.as_deref(), format, "train")?;
    let validation = match &data.validation {
        Some(main) => {
            let features = validation_features.as_deref();
            vector_source(main, data.validation_labels.as_deref(), features, format, "validation")?
        }
        None => None,
    };
    let Some(train) = train else {
        if let Some(source) = validation {
            return Err(CliError::usage(format_args!(
                "{}: vectors, but the training instances of {} are sparse features; both are expected in one form",
                source.vectors.display(),
                data.place.train.display()
            )));
        }
        return data.read(&[], &data.text.params()?, hold_out, context);
    };
    if data.tfidf {
        return Err(CliError::usage("--tfidf: vectors are used as they are"));
    }
    if data.normalise == Some(true) {
        return Err(CliError::usage("--normalise: vectors are used as they are"));
    }
    for path in [Some(train.vectors), Some(train.labels), data.names.path(), data.validation.as_deref()]
        .into_iter()
        .chain([validation.as_ref().map(|s| s.vectors), validation.as_ref().map(|s| s.labels)])
        .flatten()
    {
        std::fs::File::open(path).map_err(|e| CliError::usage(format_args!("{}: {}", path.display(), chain(&e))))?;
    }
    let names = data.names.read()?;
    let known = KnownLabels { names: names.as_ref(), unknown: UnknownLabels::Refuse };
    let learned = read_vectors(&train, &known, &data.input, context)?;
    if learned.labels.nnz() == 0 {
        return Err(CliError::usage(format_args!(
            "{}: no instance has a label; at least one label is expected",
            train.labels.display()
        )));
    }
    let validation = match (validation, &data.validation) {
        (Some(source), _) => {
            // The names came out of a dictionary, which has each once.
            let names = learned.names.clone().and_then(|names| LabelNames::try_new(names).ok());
            let known = KnownLabels { names: names.as_ref(), unknown: UnknownLabels::Append };
            let held_out = read_vectors(&source, &known, &data.input, context)?;
            let (got, expected) = (held_out.width(), learned.width());
            if got != expected {
                return Err(CliError::usage(format_args!(
                    "{}: vectors of {got} values; those of {} have {expected}",
                    source.vectors.display(),
                    train.vectors.display()
                )));
            }
            Some(held_out)
        }
        (None, Some(main)) => {
            return Err(CliError::usage(format_args!(
                "{}: no vectors; --validation-features FILE.npy is expected, since the training instances are vectors",
                main.display()
            )));
        }
        (None, None) => None,
    };
    let split = hold_out.map(|hold_out| Split::new(&data.place.train, &learned, hold_out)).transpose()?;
    Ok(Datasets { train: learned, validation, split, label_texts: None })
}
