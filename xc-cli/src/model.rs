//! Model folders: opening and saving, with what a person is told.

use crate::context::Context;
use crate::error::{CliError, chain};
use std::path::Path;
use xc_model::Model;
use xc_model::{OpenModelError, OpenOptions, UseIndex};
use xc_options::settings::search::LabelSearch;
use xc_store::OpenMode;
pub(crate) use xc_train::fit::{beside, open_container};

/// How a model is opened.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub(crate) struct OpenArgs {
    /// Open the model without checking it: fast, but a damaged folder is undefined behaviour (a crash, wrong answers,
    /// anything); use it only for folders that xc wrote and nobody else can change
    #[arg(long, conflicts_with = "verify")]
    pub(crate) trusted: bool,
    /// Read the model into memory, in large pages, instead of mapping its files: opening is slower, answers are faster,
    /// and other programs may write to the files afterwards
    #[arg(long)]
    pub(crate) in_memory: bool,
}

impl OpenArgs {
    /// Opens a model of any kind, to be searched in this way. What is left out is said.
    pub(crate) fn open(self, folder: &Path, search: &LabelSearch, context: &Context) -> Result<Model, CliError> {
        self.open_with(folder, search.opening(), context)
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
        let options = OpenOptions { mode, verify: context.verify, ..options };
        let open = || if self.trusted { trusted(folder, &options) } else { Model::open_with(folder, &options) };
        let model = context.on_threads(open)?;
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

/// What is written must not take the place of the model's own files.
pub(crate) fn refuse_inside(option: &str, output: &Path, model: &Path) -> Result<(), CliError> {
    if output == Path::new("-") {
        return Ok(());
    }
    // A folder that is absent is said when the file is made.
    match (xc_store::atomic::parent_of(output).canonicalize(), model.canonicalize()) {
        (Ok(folder), Ok(model)) if folder.starts_with(&model) => Err(CliError::usage(format_args!(
            "{option} {}: inside the folder of the model, which answers must not change",
            output.display()
        ))),
        _ => Ok(()),
    }
}
