//! Label trees: what settings mean, read, train.

mod explain;

pub(super) use explain::resolve;

use super::{Outcome, Training};
use crate::settings::{refuse_idle, tree};
use serde_json::{Map, json};
use std::time::Instant;
use xc_data::HoldOut;
use xc_train::fit::{Context, FitError, Judging, TreeSession, check_part};
use xc_tree::{CHECKPOINT, Preset, TreeParams};

/// A training run of trees.
struct Tree<'a> {
    of: &'a Training,
    preset: Preset,
}

impl Tree<'_> {
    /// The preset with the changes that were asked for.
    ///
    /// # Errors
    /// A value out of range, or one that changes nothing.
    fn params(&self, seed: u64) -> Result<TreeParams, FitError> {
        let choices = &self.of.choices;
        let mut params = tree::params(self.preset, choices)?;
        params.seed = seed;
        // Rows come scaled: what makes the features, kept in the model, does that (--normalise).
        params.normalise_rows = false;
        let (needs, has) = (params.representation.needs_label_features(), self.of.source.has_label_features());
        if needs && !has {
            return Err(FitError::usage("--cluster.representation asks for label features; expected --label-features"));
        }
        let which = "--cluster.representation label-features or pifa-and-label-features";
        let splits = choices.validation_fraction().is_some() || choices.split_seed().is_none();
        refuse_idle(&[("label-features", has && !needs, which), ("split-seed", !splits, "--validation-fraction")])?;
        Ok(params)
    }
}

/// Refuses settings that cannot be, before any data are read.
pub(super) fn check(of: &Training, seed: u64) -> Result<(), FitError> {
    of.reading().map(drop)?;
    params(of, seed).map(drop)
}

/// The parameters of a run.
pub(super) fn params(of: &Training, seed: u64) -> Result<TreeParams, FitError> {
    Tree::new(of).params(seed)
}

impl<'a> Tree<'a> {
    fn new(of: &'a Training) -> Self {
        Self { of, preset: of.choices.value("preset").unwrap_or(Preset::Default) }
    }
}

/// Trains and saves a model, and says how good it is; or what would be done.
pub(super) fn train(
    of: &Training,
    explain: bool,
    hold_out: Option<HoldOut>,
    judging: &Judging,
    context: &Context<'_>,
) -> Result<Outcome, FitError> {
    // What can be refused is refused before the long work: settings first, then the output, then the
    // inputs.
    let (args, place) = (Tree::new(of), &of.place);
    let params = args.params(context.seed)?;
    if let Some(part) = place.part {
        check_part(part, &params, of.source.has_validation() || hold_out.is_some())?;
    }
    let named = of.reading()?.with_vectors_as_rows();
    let folder = match explain || of.in_memory {
        true => None,
        false => {
            place.check_model()?;
            Some(place.claim_checkpoint(CHECKPOINT, context)?)
        }
    };
    named.refuse_idle()?;
    let start = Instant::now();
    let inputs = named.ready().read_for_trees(hold_out, context)?;
    let read_s = start.elapsed().as_secs_f64();

    let session = TreeSession::new(&inputs, &params, context).between(of.source.name(), of.target());
    if explain {
        let plan = explain::plan(&args, &params, inputs.train(), session.kept(), session.needed());
        return Ok(Outcome::Planned(plan?));
    }
    if let Some(part) = place.part
        && let Some(folder) = folder
    {
        return Ok(Outcome::Trained(Box::new(session.run_part(part, folder, read_s)?), None));
    }
    let (mut report, container) = session.run(folder, read_s, judging)?;
    let preset = Map::from_iter([("preset".to_owned(), json!(args.preset))]);
    report.logged = preset.into_iter().chain(report.logged).collect();
    Ok(Outcome::Trained(Box::new(report), container))
}
