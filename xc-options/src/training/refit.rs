//! The same training again, on all instances, once those held out have done their part.

use super::Training;
use super::network::for_all;
use std::path::Path;
use xc_data::HoldOut;
use xc_model::classifier::WIDE;
use xc_train::fit::{FitError, Place, open_container};

/// The second of two training runs.
#[derive(Clone, Debug)]
pub struct Refit {
    /// Where it leaves its model.
    place: Place,
    /// Whether an interrupted run had finished the first one: it is not done again.
    pub is_under_way: bool,
}

impl Refit {
    /// What a folder for a model of all instances asks for.
    ///
    /// # Errors
    /// No instance is held out; the folder is that of the first model or cannot be written.
    pub(super) fn plan(folder: &Path, place: &Place, hold_out: Option<HoldOut>) -> Result<Self, FitError> {
        let shown = folder.display();
        if hold_out.is_none() {
            return Err(FitError::usage(format_args!(
                "--refit {shown}: no instance is held out, so the model learns from all; --validation-fraction is expected"
            )));
        }
        if place.checkpoint.is_some() {
            return Err(FitError::usage(format_args!(
                "--refit {shown}: two training runs cannot share one --checkpoint; expected without it"
            )));
        }
        if folder.components().eq(place.model.components()) {
            return Err(FitError::usage(format_args!("--refit {shown}: is --model; another folder is expected")));
        }
        let mut again = Place { model: folder.to_owned(), ..place.clone() };
        again.check_model()?;
        let is_under_way = place.resume && again.checkpoint().is_dir();
        again.resume = is_under_way;
        Ok(Self { place: again, is_under_way })
    }

    /// The second run, once the first is done: networks are trained for as many epochs as `first` came to, and count
    /// as much beside the rankers of a wide term as instances that were held out from `first` said.
    ///
    /// # Errors
    /// The model of the first run cannot be opened.
    pub fn training(&self, first: &Training) -> Result<Training, FitError> {
        let learned = FirstRun::of(&first.place.model)?;
        let choices = for_all(&first.choices, learned.epochs, learned.weight);
        Ok(Training { choices, place: self.place.clone(), refit: None, ..first.clone() })
    }
}

/// What instances that were held out said of a model.
struct FirstRun {
    /// Epochs that it was trained for, where its folder says so.
    epochs: Option<u32>,
    /// Weight of its network beside a wide term, where it has one.
    weight: Option<f64>,
}

impl FirstRun {
    fn of(folder: &Path) -> Result<Self, FitError> {
        let container = open_container(folder)?;
        let value = |name: &str, field: &str| container.parameters().get(name).and_then(|of| of.get(field));
        let epochs = value("training", "epochs").and_then(serde_json::Value::as_u64);
        let weight = value(WIDE, "weight").and_then(serde_json::Value::as_f64);
        Ok(Self { epochs: epochs.and_then(|epochs| u32::try_from(epochs).ok()), weight })
    }
}
