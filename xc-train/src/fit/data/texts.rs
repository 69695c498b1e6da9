//! Texts as features, wherever they come from.

use super::making::{Making, count_empty};
use super::text_source::TextSource;
use super::{Dataset, text_advice};
use crate::fit::{Context, FitError};
use crate::model::OwnedRows;
use crate::model::training_rows::hash_text;
use crate::tokens::tokenise;
use std::sync::Arc;
use xc_hash::text::{Featurizer, FitPipelineError, FitStreamError, Pipeline, Tokenise};
use xc_sparse::CsrMatrix;
use xc_sparse::io::{LabelCollector, ReadError};
use xc_sparse::rows::{Texts, TokenRows};

/// Text is read once to learn the pipeline and once to apply it, rather than kept.
///
/// # Errors
/// Text that cannot be read, or that no feature can be made of; features where a model of features is applied.
pub fn read_texts(
    source: &TextSource<'_>,
    with_labels: bool,
    making: Making<'_>,
    context: &Context,
) -> Result<Dataset, FitError> {
    if let Making::Apply { maker: Some(Featurizer::Tokens(of)), .. } = making {
        return read_tokens(source, with_labels, of, context);
    }
    let path = source.name();
    let fitted;
    let pipeline = match making {
        Making::Fit { text, hold_out, .. } => {
            // What is set aside may be twice what the terms fill, and twice that while threads'
            // counts are added up.
            let term_bytes = context.max_memory.map_or(usize::MAX, |limit| (limit / 4) as usize);
            let mut n_texts = 0;
            let fit = Pipeline::fit_stream_within(text.clone(), term_bytes, |sink| -> Result<(), FitError> {
                for block in source.blocks()? {
                    context.check_interrupt()?;
                    let block = block?;
                    n_texts += block.instances.len();
                    let texts = block.instances.into_iter().map(|i| i.text);
                    let learned = |text: &String| hold_out.is_none_or(|hold_out| !hold_out.takes(hash_text(text)));
                    let texts: Vec<String> = texts.filter(learned).collect();
                    sink.add(&texts);
                }
                Ok(())
            });
            fitted = fit.map_err(|e| match e {
                FitStreamError::Source(e) => e,
                FitStreamError::Fit(_) if n_texts == 0 => {
                    FitError::usage(format_args!("{}: no instance; at least one is expected", path.display()))
                }
                FitStreamError::Fit(e @ FitPipelineError::TermBytes { .. }) => {
                    FitError::missing(format_args!("{}: {e}; --max-memory is too small", path.display()))
                }
                FitStreamError::Fit(e @ FitPipelineError::NoFeatures { .. }) => {
                    let more = text_advice::remedy(source, text, hold_out);
                    FitError::usage(format_args!("{}: {e}{more}", path.display()))
                }
                FitStreamError::Fit(e) => FitError::input(path, &e),
            })?;
            &fitted
        }
        Making::Apply { maker: Some(Featurizer::Text(pipeline)), .. } => pipeline,
        Making::Apply { .. } => {
            let name = path.display();
            return Err(FitError::usage(format_args!(
                "{name}: holds text; features are expected, since the model was trained on features"
            )));
        }
    };
    let mut labels = LabelCollector::of(&source.options());
    let (mut indptr, mut indices, mut values) = (vec![0usize], Vec::new(), Vec::new());
    let mut hashes = Vec::new();
    for block in source.blocks()? {
        context.check_interrupt()?;
        let block = block?;
        let texts: Vec<&str> = block.instances.iter().map(|i| &*i.text).collect();
        let rows = pipeline.transform_batch(&texts);
        hashes.extend(texts.iter().map(|text| hash_text(text)));
        let base = indices.len();
        indptr.extend(rows.indptr[1..].iter().map(|end| base + end));
        indices.extend_from_slice(&rows.indices);
        values.extend_from_slice(&rows.values);
        for (instance, &line) in block.instances.iter().zip(&block.lines) {
            let list = if with_labels { &*instance.labels } else { &[] };
            labels.push(list).map_err(|kind| ReadError::line(&path.display().to_string(), line, kind))?;
        }
    }
    let n_instances = indptr.len() - 1;
    if let Making::Fit { text, hold_out, .. } = making {
        let kept = (pipeline.n_features(), n_instances, count_empty(&indptr));
        if let Some(line) = text_advice::warning(source, text, hold_out, kept) {
            context.warn(line);
        }
    }
    let features = CsrMatrix::from_checked((n_instances, pipeline.n_features()), indptr, indices, values);
    let found = labels.finish();
    let maker = match making {
        Making::Fit { .. } => Some(Featurizer::Text(pipeline.clone())),
        Making::Apply { .. } => None,
    };
    Ok(Dataset {
        features: OwnedRows::Sparse(features),
        labels: found.labels,
        names: found.names,
        maker,
        of_texts: true,
        hashes,
        form: Default::default(),
    })
}

/// Texts as tokens; what made them stays with them.
fn read_tokens(
    source: &TextSource<'_>,
    with_labels: bool,
    of: &Arc<dyn Tokenise>,
    context: &Context,
) -> Result<Dataset, FitError> {
    let path = source.name();
    let mut labels = LabelCollector::of(&source.options());
    let (mut rows, mut hashes) = (TokenRows::new(of.n_tokens()), Vec::new());
    for block in source.blocks()? {
        context.check_interrupt()?;
        let block = block?;
        let texts: Vec<&str> = block.instances.iter().map(|i| &*i.text).collect();
        let some = tokenise(&**of, Texts::Slices(&texts));
        let some =
            some.map_err(|(at, e)| FitError::usage(format_args!("{}: text {}: {e}", path.display(), rows.len() + at)))?;
        let some = some.view();
        (0..some.len()).for_each(|i| rows.push(some.row(i)).unwrap_or_else(|e| panic!("ids that were checked: {e}")));
        hashes.extend(texts.iter().map(|text| hash_text(text)));
        for (instance, &line) in block.instances.iter().zip(&block.lines) {
            let list = if with_labels { &*instance.labels } else { &[] };
            labels.push(list).map_err(|kind| ReadError::line(&path.display().to_string(), line, kind))?;
        }
    }
    let found = labels.finish();
    Ok(Dataset {
        features: OwnedRows::Tokens(rows),
        labels: found.labels,
        names: found.names,
        maker: Some(Featurizer::Tokens(Arc::clone(of))),
        of_texts: true,
        hashes,
        form: Default::default(),
    })
}
