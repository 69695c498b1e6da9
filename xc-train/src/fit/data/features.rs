//! Features that are in memory, as instances.

use super::Dataset;
use super::making::{Making, count_empty};
use crate::fit::{Context, FitError};
use std::path::Path;
use xc_data::{LabelNames, UnknownLabels, hash_rows};
use xc_hash::text::{Featurizer, Idf, RowWeights};
use xc_model::OwnedRows;
use xc_sparse::rows::Rows;
use xc_sparse::{CsrMatrix, LabelRows};

/// Labels of a file, and a name for each where names were given or found.
///
/// # Errors
/// More labels than names, where others are refused.
pub fn with_names(
    path: &Path,
    mut labels: LabelRows,
    found: Option<Vec<String>>,
    names: Option<&LabelNames>,
    unknown: UnknownLabels,
) -> Result<(LabelRows, Option<Vec<String>>), FitError> {
    let Some(names) = names else { return Ok((labels, found)) };
    if labels.n_labels() < names.len() {
        labels = labels.with_n_labels(names.len());
    }
    if unknown == UnknownLabels::Refuse && labels.n_labels() > names.len() {
        return Err(FitError::usage(format_args!(
            "{}: {} labels; {} gives {} names, and one for each label is expected",
            path.display(),
            labels.n_labels(),
            names.file().unwrap_or("--label-names"),
            names.len()
        )));
    }
    Ok((labels, Some(names.names().to_vec())))
}

/// Weights each row in place.
fn weigh(weights: &RowWeights, rows: &mut CsrMatrix) -> Result<(), xc_hash::text::WeightRowsError> {
    let n_features = rows.cols();
    let (indptr, indices, values) = rows.parts_mut();
    weights.apply(n_features, indptr, indices, values)
}

/// Instances of features that are in memory, weighted and scaled as it was said. `name` is what messages call them;
/// `may_count`: whether whole numbers may be counts of words.
///
/// # Errors
/// Text where a model of text is to be applied, or values that cannot be weighted.
pub fn of_features(
    name: &Path,
    mut features: CsrMatrix,
    labels: LabelRows,
    making: Making<'_>,
    may_count: bool,
    context: &Context,
) -> Result<Dataset, FitError> {
    let wrong = |e: xc_hash::text::WeightRowsError| FitError::input(name, &e);
    let rows = features.view();
    let hashes = hash_rows(Rows::Sparse(rows));
    context.check_interrupt()?;
    let shown = name.display();
    if let Making::Fit { weighting, .. } = &making
        && weighting.is_none_or(|weighting| weighting.idf == Idf::None)
        && may_count
        && are_whole_numbers(features.data())
    {
        let more = if weighting.is_none() { ", and rows learn best at length 1 (--normalise true)" } else { "" };
        context.note(format_args!("{shown}: features are whole numbers; word counts do better with --tfidf{more}"));
    }
    context.check_interrupt()?;
    let maker = match making {
        Making::Fit { weighting: Some(weighting), hold_out, .. } => {
            let kept = hold_out.map(|hold_out| rows.select(&hold_out.split(&hashes).kept));
            let learned = kept.as_ref().map_or(features.view(), |kept| kept.view());
            let (indptr, indices, counts) = (learned.indptr(), learned.indices(), learned.data());
            let weights = RowWeights::fit(weighting, learned.cols(), indptr, indices, counts).map_err(wrong)?;
            context.check_interrupt()?;
            weigh(&weights, &mut features).map_err(wrong)?;
            Some(Featurizer::Rows(weights))
        }
        Making::Fit { weighting: None, .. } | Making::Apply { maker: None, .. } => None,
        Making::Apply { maker: Some(Featurizer::Rows(weights)), .. } => {
            weigh(weights, &mut features).map_err(wrong)?;
            None
        }
        Making::Apply { maker: Some(_), .. } | Making::Unmade => {
            return Err(FitError::usage(format_args!(
                "{shown}: holds features; text is expected, since the model was trained on text"
            )));
        }
    };
    let empty = count_empty(features.indptr());
    if matches!(making, Making::Fit { .. }) && empty * 10 > features.rows() {
        let n = features.rows();
        context.warn(format_args!("{shown}: {empty} of {n} instances are without a feature: they teach the bias only"));
    }
    Ok(Dataset {
        features: OwnedRows::Sparse(features),
        labels,
        names: None,
        maker,
        of_texts: false,
        hashes,
        form: Default::default(),
    })
}

/// Whether values are what somebody counted.
fn are_whole_numbers(values: &[f32]) -> bool {
    !values.is_empty() && values.iter().all(|v| v.fract() == 0.0)
}

/// No label for so many instances.
pub fn no_labels(n_instances: usize) -> LabelRows {
    let indptr = vec![0; n_instances + 1];
    // Empty lists satisfy every rule of label rows.
    LabelRows::try_new(indptr, Vec::new(), 0).unwrap_or_else(|e| panic!("empty label lists are no label lists: {e}"))
}
