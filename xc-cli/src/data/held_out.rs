//! Rows that models were not trained on, out of files that the user named.

use super::InputArgs;
use crate::error::CliError;
use std::path::{Path, PathBuf};
use xc_data::FileForm;
use xc_options::data::{Files, HeldOut};

/// Rows that models are fitted to once they are trained.
#[derive(clap::Args, Debug)]
pub(crate) struct HeldOutArgs {
    /// Instances with labels that were not trained on
    #[arg(long, value_name = "FILE")]
    validation: PathBuf,
    /// Labels of these instances, if --validation does not contain them
    #[arg(long, value_name = "FILE")]
    validation_labels: Option<PathBuf>,
    /// Leave out all instances that were trained on, however many: --validation may then be the training file that
    /// instances were held out of
    #[arg(long)]
    held_out: bool,
    /// Accept a model that does not record which rows it was trained on (an imported one): you know that none of these
    /// rows is in --validation
    #[arg(long)]
    unknown_rows: bool,
    #[command(flatten)]
    format: InputArgs,
}

impl HeldOutArgs {
    fn files(&self) -> impl Iterator<Item = &Path> {
        std::iter::once(&self.validation).chain(&self.validation_labels).map(PathBuf::as_path)
    }

    /// Refuses files that cannot be opened, before the models are.
    pub(crate) fn check(&self) -> Result<(), CliError> {
        self.files().try_for_each(|path| match std::fs::File::open(path) {
            Ok(_) => Ok(()),
            Err(error) => Err(CliError::input(path, &error)),
        })
    }

    /// The rows, for models of which `kept` says what they were trained with.
    ///
    /// # Errors
    /// An option about the form of files that these do not have.
    pub(crate) fn rows(&self, kept: &FileForm) -> Result<HeldOut, CliError> {
        self.format.refuse_idle(&self.format.or(kept), self.files())?;
        let (train, train_labels) = (self.validation.clone(), self.validation_labels.clone());
        Ok(HeldOut {
            input: self.format.settings(),
            leave_out_seen: self.held_out,
            allow_unverified: self.unknown_rows,
            ..HeldOut::new(Files { train, train_labels, ..Files::default() })
        })
    }
}
