//! Models that are fitted on rows which they were not trained on: blends, and calibrated models.

use super::held_out::{HeldOut, Validation};
use serde_json::json;
use std::path::Path;
use xc_data::{FileForm, Format};
use xc_model::Extras;
use xc_model::Model;
use xc_model::blend::{DEPTH, KIND};
use xc_model::message::chain;
use xc_model::{QueryOptions, ScoreOptions, TrainingRows, write_blend};
use xc_nn::trainer::TrainError;
use xc_store::ContainerWriter;
use xc_train::blend::{Below, FitParams, FittedRule, RuleFitError, fit as fit_blend};
use xc_train::calibrate::{CalibrateParams, CurveFitError, FittedCurve, fit as fit_curve};
use xc_train::fit::{Context, FitError, save_with};

/// What was fitted, and to how many rows.
#[derive(Debug)]
pub struct FittedTo<T> {
    /// What was fitted.
    pub fitted: T,
    /// Rows that took part.
    pub instances: usize,
    /// Rows that were left out, since a model was trained on them.
    pub left_out: usize,
}

/// Blends models into one and saves it in the folder `output`. `refits` are models trained again on all rows, which
/// take the places of the members, in the same order. Members are stored in the order of their hashes: the same ones give the
/// same bytes in whichever order they are named. What is said of members is in the order in which they are given.
///
/// # Errors
/// Models that do not go together, rows that members were trained on, rows that nothing can be fitted to, a folder that
/// cannot be written, or an observer that cancels.
pub fn blend(
    members: Vec<Model>,
    refits: Option<Vec<Model>>,
    rows: &HeldOut,
    params: &FitParams,
    output: impl AsRef<Path>,
    context: &Context<'_>,
) -> Result<FittedTo<FittedRule>, FitError> {
    let output = output.as_ref();
    params.check().map_err(|e| FitError::usage(chain(&e)))?;
    ContainerWriter::check(output)?;
    if members.is_empty() {
        return Err(FitError::usage("a blend: a member at least is expected"));
    }
    let refused = |e: xc_model::MembersError| FitError::usage(chain(&e));
    context.on_threads(|| {
        Model::check_members(&members).map_err(refused)?;
        refits.as_ref().map_or(Ok(()), |refits| Model::check_refits(&members, refits)).map_err(refused)
    })?;
    let (members, refits, order) = by_hash(members, refits);
    let (members, refits, first) = (&members[..], refits.as_deref(), &members[0]);
    context.on_threads(|| {
        let rows = &*rows.for_model(first);
        let seen = rows.training_rows(members, context)?;
        let names = first.label_names()?;
        let validation = rows.read(members, &seen, first.dictionary()?, context)?;
        let n_labels = first.describe().n_labels;
        let validation = Validation { labels: validation.labels.within(n_labels), ..validation };
        let n = validation.labels.len();
        let numbers = members.len() * 4 + 2;
        let needed = (n * DEPTH * members.len() * (4 * numbers + 40)) as u64;
        context.budget.check("xc blend", needed, |_| None)?;
        context.note(format_args!(
            "blend: {} members, {n} validation instances{}",
            members.len(),
            if validation.n_left_out == 0 { String::new() } else { format!("; {} left out", validation.n_left_out) }
        ));
        let answers = validation.ask(rows, members, &QueryOptions::top(DEPTH), context)?;
        // Of the member that learned from most rows, in whichever order they were named: one that knows labels by their names
        // alone has learned from a row for each.
        let rows_of = |of: &&TrainingRows| (of.n_instances(), of.label_counts().to_vec());
        let most = seen.iter().flatten().max_by_key(rows_of);
        let counts = most.map(TrainingRows::label_counts).unwrap_or_default();
        let mut counts = counts.to_vec();
        counts.resize(n_labels, 0);
        let cancel = xc_buffer::Unwatched(context.observer);
        let fitted = fit_blend(&answers, &validation.labels, &counts, params, &cancel);
        let folder = |below: Below| members[below.member].folder().display().to_string();
        let fitted = fitted.map_err(|e| match &e {
            RuleFitError::Below(below) => FitError::usage(format_args!(
                "no rule ranks as well as {} alone ({below}): answer with that model, or choose a rule with --rule",
                folder(*below)
            )),
            e => blend_error(e, rows.source.name()),
        })?;
        if let Some(below) = fitted.below {
            context.warn(format_args!("the rule ranks less well than {} alone: {below}", folder(below)));
        }
        context.check_interrupt()?;
        let training = json!({
            "fit": params,
            "instances": n,
            "candidates": fitted.n_candidates,
            "true_candidates": fitted.n_true,
            "rules": fitted.judged,
        });
        let form = rows.input.or(first.input()).kept(Format::Jsonl);
        let form = FileForm { format: first.input().format, ..form };
        let (names, training) = (names.as_deref(), Some(training));
        let extras = Extras { names, input: Some(&form), training, ..Extras::default() };
        let (inside, fitted_with) = match refits {
            Some(refits) => (refits, Some(members)),
            None => (members, None),
        };
        save_with(output, KIND, extras, |writer| {
            write_blend(writer, &fitted.rule, &fitted.features, inside, fitted_with)
        })?;
        let fitted = as_given(fitted, &order);
        Ok(FittedTo { fitted, instances: n, left_out: validation.n_left_out })
    })
}

/// Models in the order of their hashes, each with its refit, and the place of each where they were given.
fn by_hash(members: Vec<Model>, refits: Option<Vec<Model>>) -> (Vec<Model>, Option<Vec<Model>>, Vec<usize>) {
    let mut order: Vec<usize> = (0..members.len()).collect();
    order.sort_by_key(|&at| members[at].config_hash().to_owned());
    let sorted = |models: Vec<Model>| {
        let mut models: Vec<_> = models.into_iter().map(Some).collect();
        order.iter().filter_map(|&at| models[at].take()).collect()
    };
    (sorted(members), refits.map(sorted), order)
}

/// What was fitted, with what is said of members in the order in which they were given.
fn as_given(fitted: FittedRule, order: &[usize]) -> FittedRule {
    let mut members: Vec<_> = order.iter().copied().zip(fitted.members).collect();
    members.sort_by_key(|(at, _)| *at);
    let below = fitted.below.map(|below| Below { member: order[below.member], ..below });
    FittedRule { members: members.into_iter().map(|(_, metrics)| metrics).collect(), below, ..fitted }
}

/// Fits probabilities and thresholds of a model's scores, and saves the model with them in the folder `output`, which
/// may be its own.
///
/// # Errors
/// Rows that the model was trained on, rows that nothing can be fitted to, a folder that cannot be written, or an
/// observer that cancels.
pub fn calibrate(
    model: &Model,
    rows: &HeldOut,
    params: &CalibrateParams,
    output: impl AsRef<Path>,
    context: &Context<'_>,
) -> Result<FittedTo<FittedCurve>, FitError> {
    /// Bytes at work for an answer in each fold.
    const PAIR_BYTES: u64 = 24;
    if params.top_k == 0 {
        return Err(FitError::usage("--top-k 0: at least 1 is expected"));
    }
    let output = output.as_ref();
    ContainerWriter::check(output)?;
    let models = std::slice::from_ref(model);
    context.on_threads(|| {
        let rows = &*rows.for_model(model);
        let seen = rows.training_rows(models, context)?;
        let validation = rows.read(models, &seen, model.dictionary()?, context)?;
        let (n, n_labels) = (validation.labels.len(), model.describe().n_labels);
        let n_pairs = n as u64 * params.top_k.min(n_labels) as u64;
        let needed = n_pairs * PAIR_BYTES * params.folds.min(n) as u64;
        context.budget.check("xc calibrate", needed, |_| None)?;
        let scores = ScoreOptions { raw: true, threshold: None };
        let options = QueryOptions { scores, ..QueryOptions::top(params.top_k) };
        let answers = validation.ask(rows, models, &options, context)?;
        let fitted =
            fit_curve(&answers[0], &validation.labels, n_labels, params, &xc_buffer::Unwatched(context.observer));
        let fitted = fitted.map_err(|e| match &e {
            CurveFitError::Cancelled => FitError::interrupted(),
            CurveFitError::Setting { .. } => FitError::usage(chain(&e)),
            _ => FitError::input(rows.source.name(), &e),
        })?;
        context.check_interrupt()?;
        model.save_calibrated(&fitted.calibration, output)?;
        Ok(FittedTo { fitted, instances: n, left_out: validation.n_left_out })
    })
}

fn blend_error(error: &RuleFitError, rows: &Path) -> FitError {
    match error {
        RuleFitError::Train { source: TrainError::Cancelled { .. }, .. } => FitError::interrupted(),
        RuleFitError::Train { .. } => FitError::failed(chain(error)),
        RuleFitError::Setting { .. } | RuleFitError::TooLarge { .. } => FitError::usage(chain(error)),
        _ => FitError::input(rows, error),
    }
}
