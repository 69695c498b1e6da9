//! `--refit`: the same training again, on all instances, once those held out have done their part.

use super::inputs::PlaceArgs;
use crate::error::CliError;
use crate::model;
use std::path::Path;
use xc_train::model::HoldOut;

/// The second of two training runs.
pub(super) struct Refit {
    /// Where it leaves its model.
    pub(super) place: PlaceArgs,
    /// Whether an interrupted run had finished the first one: it is not done again.
    pub(super) is_under_way: bool,
}

impl Refit {
    /// What `--refit` asks for.
    ///
    /// # Errors
    /// No instance is held out; the folder is that of the first model or cannot be written.
    pub(super) fn plan(
        folder: Option<&Path>,
        place: &PlaceArgs,
        hold_out: Option<HoldOut>,
    ) -> Result<Option<Self>, CliError> {
        let Some(folder) = folder else { return Ok(None) };
        let shown = folder.display();
        if hold_out.is_none() {
            return Err(CliError::usage(format_args!(
                "--refit {shown}: no instance is held out, so the model learns from all; --validation-fraction is expected"
            )));
        }
        if place.checkpoint.is_some() {
            return Err(CliError::usage(format_args!(
                "--refit {shown}: two training runs cannot share one --checkpoint; expected without it"
            )));
        }
        if folder.components().eq(place.model.components()) {
            return Err(CliError::usage(format_args!("--refit {shown}: is --model; another folder is expected")));
        }
        let mut again = PlaceArgs { model: folder.to_owned(), ..place.clone() };
        again.check_model()?;
        let is_under_way = place.resume && again.checkpoint().is_dir();
        again.resume = is_under_way;
        Ok(Some(Self { place: again, is_under_way }))
    }
}

/// Epochs that a model was trained for, where its folder says so.
pub(super) fn epochs_of(folder: &Path) -> Result<Option<u32>, CliError> {
    let container = model::open_container(folder)?;
    let epochs = container.parameters().get("training").and_then(|training| training.get("epochs"));
    Ok(epochs.and_then(serde_json::Value::as_u64).and_then(|epochs| u32::try_from(epochs).ok()))
}
