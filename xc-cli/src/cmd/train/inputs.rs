//! What training reads for every kind of model: instances with labels, and others to judge by.

use crate::data::NamesArgs;
use std::path::PathBuf;
use xc_buffer::Part;
use xc_options::data::Files;
use xc_train::fit::Place;

/// What is trained on, and where the model and its checkpoint are kept.
#[derive(clap::Args, Clone, Debug, Default)]
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
#[derive(clap::Args, Debug, Default)]
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
}

/// Files of instances, sparse or as vectors.
#[derive(clap::Args, Debug, Default)]
pub(crate) struct FileArgs {
    /// Vectors of the training instances, npy; --train then gives only their labels
    #[arg(long, value_name = "FILE.npy", conflicts_with_all = ["train_labels", "tfidf"])]
    pub(super) features: Option<PathBuf>,
    /// Vectors of the validation instances, npy; --validation then gives only their labels
    #[arg(long, value_name = "FILE.npy", requires = "validation", conflicts_with = "validation_labels")]
    pub(super) validation_features: Option<PathBuf>,
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

/// Files of trees.
#[derive(clap::Args, Debug)]
pub(super) struct OfTrees {
    /// Train part I of N of the trees, from 0/N on, as a process of its own; --model is then the folder of the part, and
    /// `xc merge` makes the model of all N. Not with validation instances or matcher-aware negatives
    #[arg(long, value_name = "I/N")]
    pub(super) part: Option<Part>,
    /// Features or text of the labels, one row per label, for --cluster.representation
    #[arg(long, value_name = "FILE")]
    pub(super) label_features: Option<PathBuf>,
    /// Weight of each training instance in the loss, one number per line
    #[arg(long, value_name = "FILE", help_heading = "Ranker options")]
    pub(super) instance_weights: Option<PathBuf>,
    /// Cost factor of each label's own ranker, one number per line
    #[arg(long, value_name = "FILE", help_heading = "Ranker options")]
    pub(super) label_costs: Option<PathBuf>,
}

/// A part of MACH.
#[derive(clap::Args, Debug)]
pub(super) struct OfMach {
    /// Train part I of N of the repetitions, from 0/N on, as a process of its own: `xc merge` makes one model of all
    #[arg(long, value_name = "I/N")]
    pub(super) part: Option<Part>,
}

/// Files of ASTRA.
#[derive(clap::Args, Debug)]
pub(super) struct OfAstra {
    /// Texts or features of the labels, one row per label: each becomes a training instance with that label, and its
    /// features are made as those of the others
    #[arg(long, value_name = "FILE")]
    pub(super) label_features: Option<PathBuf>,
}

/// Files of word vectors.
#[derive(clap::Args, Debug)]
pub(super) struct OfWords {
    /// File for the vectors in word2vec's text format [default: MODEL.vectors.txt]
    // Another id than the vectors that are read.
    #[arg(id = "written_vectors", long = "vectors", value_name = "FILE")]
    pub(super) vectors: Option<PathBuf>,
}
