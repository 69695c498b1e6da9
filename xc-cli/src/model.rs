//! Model folders: opening and saving, with what a person is told.

use crate::answer::SearchArgs;
use crate::context::Context;
use crate::error::{CliError, chain};
use std::path::{Path, PathBuf};
use xc_hash::text::Featurizer;
use xc_sparse::io::LabelNames;
use xc_sparse::store::{Container, ContainerWriter, OpenMode, WriteError};
use xc_train::Model;
use xc_train::model::{self, InputForm, OpenModelError, OpenOptions, TrainingRows, UseIndex, write_pipeline};
use xc_tree::TreeModel;

/// How a model is opened.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub(crate) struct OpenArgs {
    /// Open the model without checking it: fast, but a damaged folder is undefined behaviour (a crash, wrong answers,
    /// anything); use it only for folders that xc wrote and nobody else can change
    #[arg(long)]
    pub(crate) trusted: bool,
    /// Read the model into memory, in large pages, instead of mapping its files: opening is slower, answers are faster,
    /// and other programs may write to the files afterwards
    #[arg(long)]
    pub(crate) in_memory: bool,
}

impl OpenArgs {
    /// Opens a model of any kind, to be searched in this way. What is left out is said.
    pub(crate) fn open(self, folder: &Path, search: &SearchArgs, context: &Context) -> Result<Model, CliError> {
        let options = OpenOptions {
            repetitions: search.repetitions().map(<[u32]>::to_vec),
            index: search.index(),
            post_processor: search.post_processor().map(str::to_owned),
            ..OpenOptions::default()
        };
        self.open_with(folder, options, context)
    }

    /// Opens a model to be searched as it was saved to be.
    pub(crate) fn open_as_saved(self, folder: &Path, context: &Context) -> Result<Model, CliError> {
        self.open_with(folder, OpenOptions::default(), context)
    }

    /// Opens a model that is not searched: an index of its labels is not looked at.
    pub(crate) fn open_whole(self, folder: &Path, context: &Context) -> Result<Model, CliError> {
        self.open_with(folder, OpenOptions { index: UseIndex::Never, ..OpenOptions::default() }, context)
    }

    fn open_with(self, folder: &Path, options: OpenOptions, context: &Context) -> Result<Model, CliError> {
        let mode = if self.in_memory { OpenMode::Read } else { OpenMode::Map };
        let options = OpenOptions { mode, ..options };
        let open = || if self.trusted { trusted(folder, &options) } else { Model::open_with(folder, &options) };
        let model = context.on_threads(open).map_err(|e| open_error(&e))?;
        model.warnings().for_each(|warning| context.warn(chain(warning)));
        Ok(model)
    }
}

#[allow(unsafe_code, reason = "the user makes the promise: --trusted")]
fn trusted(folder: &Path, options: &OpenOptions) -> Result<Model, OpenModelError> {
    // SAFETY: whoever says --trusted promises that the folder was written by this program and has
    // not changed since.
    unsafe { Model::open_trusted(folder, options) }
}

/// Opens a tree model that this process has just saved: without reading all of it.
#[allow(unsafe_code, reason = "what was written a moment ago is not checked")]
pub(crate) fn open_just_saved(container: &Container) -> Result<TreeModel, CliError> {
    // SAFETY: this process wrote the arrays from rows that it checked, and folders of models are
    // replaced whole, never written in place.
    unsafe { xc_tree::trusted::open(container) }.map_err(|e| CliError::failed(chain(&e)))
}

/// A model that does not open is what the user named.
pub(crate) fn open_error(error: &OpenModelError) -> CliError {
    CliError::usage(chain(error))
}

/// The names of a folder's labels as a dictionary.
pub(crate) fn dictionary(names: Option<Vec<String>>, folder: &Path) -> Result<Option<LabelNames>, CliError> {
    let path = folder.join("labels.txt");
    let of_file = |names: LabelNames| names.of_file(&path.display().to_string());
    let names = names.map(|names| LabelNames::try_new(names).map(of_file)).transpose();
    names.map_err(|e| CliError::input(&path, &e))
}

/// Maps the files of a folder, all of which have to be sound.
pub(crate) fn open_container(folder: &Path) -> Result<Container, CliError> {
    let container = model::open_container(folder, OpenMode::Map).map_err(|e| open_error(&e))?;
    if let Some((_, first)) = container.lost().next() {
        return Err(CliError::usage(chain(first)));
    }
    Ok(container)
}

/// What a model is saved with.
pub(crate) struct Extras<'a> {
    pub(crate) maker: Option<&'a Featurizer>,
    pub(crate) names: Option<&'a [String]>,
    /// What the training files look like.
    pub(crate) input: Option<&'a InputForm>,
    /// How it was trained, for a person and for `inspect`.
    pub(crate) training: Option<serde_json::Value>,
    /// The rows that it was trained on, where they are known.
    pub(crate) rows: Option<&'a TrainingRows>,
}

/// Saves what `write` adds to a model of some kind, in one step: the folder is the old one or the
/// new one, never a part.
pub(crate) fn save_with(
    folder: &Path,
    kind: &str,
    extras: Extras<'_>,
    write: impl FnOnce(&mut ContainerWriter) -> Result<(), WriteError>,
) -> Result<(), CliError> {
    let create = || ContainerWriter::create(folder, kind);
    save_created(create, extras, |writer| write(writer).map_err(|e| write_error(&e)))
}

/// Saves what `write` adds to what `create` began.
pub(crate) fn save_created(
    create: impl FnOnce() -> Result<ContainerWriter, WriteError>,
    extras: Extras<'_>,
    write: impl FnOnce(&mut ContainerWriter) -> Result<(), CliError>,
) -> Result<(), CliError> {
    let failed = |e: WriteError| write_error(&e);
    let mut writer = create().map_err(failed)?;
    if let Some(training) = extras.training {
        writer.set_parameter("training", training);
    }
    if let Some(input) = extras.input {
        input.write(&mut writer);
    }
    if let Some(maker) = extras.maker {
        write_pipeline(&mut writer, maker.to_parts()).map_err(failed)?;
    }
    if let Some(names) = extras.names {
        writer.labels(names).map_err(failed)?;
    }
    if let Some(rows) = extras.rows {
        rows.write(&mut writer).map_err(failed)?;
    }
    write(&mut writer)?;
    writer.finish().map_err(failed)
}

/// A model folder that may not be written is exit code 2 when the path cannot be (something that must not
/// be replaced is there, or no folder to put it in), otherwise 1.
pub(crate) fn write_error(error: &WriteError) -> CliError {
    if error.is_misnamed() { CliError::usage(chain(error)) } else { CliError::failed(chain(error)) }
}

/// What is written must not take the place of the model's own files.
pub(crate) fn refuse_inside(option: &str, output: &Path, model: &Path) -> Result<(), CliError> {
    if output == Path::new("-") {
        return Ok(());
    }
    // A folder that is absent is said when the file is made.
    match (xc_sparse::atomic::parent_of(output).canonicalize(), model.canonicalize()) {
        (Ok(folder), Ok(model)) if folder.starts_with(&model) => Err(CliError::usage(format_args!(
            "{option} {}: inside the folder of the model, which answers must not change",
            output.display()
        ))),
        _ => Ok(()),
    }
}

/// `MODEL` + `.suffix`, beside the model.
pub(crate) fn beside(model: &Path, suffix: &str) -> PathBuf {
    // "dir/model/" and "dir/model" name the same folder.
    let mut name = model.components().as_path().as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    PathBuf::from(name)
}

/// Whether two paths lead to one folder.
pub(crate) fn is_same(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}
