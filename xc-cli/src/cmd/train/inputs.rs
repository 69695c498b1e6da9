//! What training reads for every kind of model: instances with labels, and others to judge by.

use crate::data::{InputArgs, NamesArgs, OfData, TextArgs};
use crate::settings::Chosen;
use std::path::PathBuf;
use xc_options::data::Files;
use xc_options::settings::Choices;
use xc_train::fit::Place;

/// What is trained on, and where the model and its checkpoint are kept.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct PlaceArgs {
    /// Training instances; - is stdin, kept in a file beside --model until the end
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
    #[command(flatten)]
    pub(in crate::cmd) weighting: Chosen<OfData>,
    #[command(flatten)]
    pub(in crate::cmd) input: InputArgs,
    #[command(flatten)]
    pub(in crate::cmd) text: TextArgs,
}

impl PlaceArgs {
    /// The same for the library.
    pub(in crate::cmd) fn place(&self) -> Place {
        let Self { model, checkpoint, resume, restart, .. } = self.clone();
        Place { model, checkpoint, resume, restart, ..Place::default() }
    }
}

impl DataArgs {
    /// The files.
    pub(in crate::cmd) fn files(&self) -> Files {
        Files {
            train: self.place.train.clone(),
            train_labels: self.train_labels.clone(),
            validation: self.validation.clone(),
            validation_labels: self.validation_labels.clone(),
            names: self.names.file(),
            ..Files::default()
        }
    }

    /// What was chosen of the settings that say what they hold.
    pub(in crate::cmd) fn choices(&self) -> Choices {
        let mut choices = self.weighting.choices.clone();
        [&self.input.choices, &self.text.terms.choices, &self.text.tokens.choices]
            .into_iter()
            .for_each(|more| choices.extend(more));
        choices
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
    pub(in crate::cmd) data: DataArgs,
}

impl FileArgs {
    /// The files.
    pub(in crate::cmd) fn files(&self) -> Files {
        let (features, validation_features) = (self.features.clone(), self.validation_features.clone());
        Files { features, validation_features, ..self.data.files() }
    }
}
