//! Texts as features, tokens or vectors, wherever they come from.

use super::making::{Making, count_empty};
use super::text_source::TextSource;
use super::{Dataset, text_advice};
use crate::fit::{Context, FitError};
use std::sync::Arc;
use xc_data::{CollectedLabels, LabelCollector, ReadError, hash_text};
use xc_dense::DenseMatrix;
use xc_hash::text::{Featurizer, FitPipelineError, FitStreamError, Pipeline, TextsTaken, Tokenise, Vectorise};
use xc_model::OwnedRows;
use xc_model::tokens::{TokensAndWords, tokenise, vectorise};
use xc_sparse::rows::{Texts, TokenRows};
use xc_sparse::{CsrMatrix, CsrView};

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
            if let Making::Fit { tokens: Some(tokens), .. } = making {
                let n_features = fitted.n_features();
                let of: Arc<dyn Tokenise> = Arc::new(TokensAndWords::new(Arc::clone(tokens), fitted));
                let data = read_tokens(source, with_labels, &of, context)?;
                warn_of_words(source, &making, data.features().words(), n_features, context);
                return Ok(data);
            }
            &fitted
        }
        Making::Apply { maker: Some(Featurizer::Text(pipeline)), .. } => pipeline,
        Making::Apply { maker: Some(Featurizer::Tokens(of)), .. } => {
            return read_tokens(source, with_labels, of, context);
        }
        Making::Apply { maker: Some(Featurizer::Vectors(of)), .. } => {
            return read_vectors_of(source, with_labels, of, context);
        }
        Making::Unmade => {
            let found = each_block(source, with_labels, context, |_| Ok(()))?;
            return Ok(dataset(OwnedRows::Sparse(CsrMatrix::zero((found.1.len(), 0))), None, found));
        }
        Making::Apply { .. } => {
            let name = path.display();
            return Err(FitError::usage(format_args!(
                "{name}: holds text; features are expected, since the model was trained on features"
            )));
        }
    };
    let (mut indptr, mut indices, mut values) = (vec![0usize], Vec::new(), Vec::new());
    let found = each_block(source, with_labels, context, |texts| {
        let rows = pipeline.transform_batch(texts);
        let base = indices.len();
        indptr.extend(rows.indptr[1..].iter().map(|end| base + end));
        indices.extend_from_slice(&rows.indices);
        values.extend_from_slice(&rows.values);
        Ok(())
    })?;
    let shape = (indptr.len() - 1, pipeline.n_features());
    let features = CsrMatrix::from_checked(shape, indptr, indices, values);
    warn_of_words(source, &making, Some(features.view()), pipeline.n_features(), context);
    let maker = matches!(making, Making::Fit { .. }).then(|| Featurizer::Text(pipeline.clone()));
    Ok(dataset(OwnedRows::Sparse(features), maker, found))
}

/// Says what is odd about features that were learned of texts.
fn warn_of_words(
    source: &TextSource<'_>,
    making: &Making<'_>,
    rows: Option<CsrView<'_>>,
    n_features: usize,
    context: &Context,
) {
    let (Making::Fit { text, hold_out, .. }, Some(rows)) = (making, rows) else { return };
    let kept = (n_features, rows.rows(), count_empty(rows.indptr()));
    text_advice::warning(source, text, *hold_out, kept).into_iter().for_each(|line| context.warn(line));
}

/// Labels of texts, and what each text is known by.
type Found = (CollectedLabels, Vec<u64>);

fn dataset(features: OwnedRows, maker: Option<Featurizer>, (found, hashes): Found) -> Dataset {
    let (labels, names) = (found.labels, found.names);
    Dataset { features, labels, names, maker, of_texts: true, hashes, form: Default::default() }
}

/// Texts as tokens, with features of their words where the tokenizer makes some; what made them stays with them.
fn read_tokens(
    source: &TextSource<'_>,
    with_labels: bool,
    of: &Arc<dyn Tokenise>,
    context: &Context,
) -> Result<Dataset, FitError> {
    let (mut rows, before) = (TokenRows::new(of.n_tokens()), of.taken());
    let found = each_block(source, with_labels, context, |texts| {
        let some = tokenise(&**of, Texts::Slices(texts)).map_err(|(at, e)| untold(source, rows.len() + at, &e))?;
        rows.append(&some).unwrap_or_else(|e| panic!("tokens of one tokenizer: {e}"));
        Ok(())
    })?;
    note_cut(source, of.taken().since(before), context);
    Ok(dataset(OwnedRows::Tokens(rows), Some(Featurizer::Tokens(Arc::clone(of))), found))
}

/// Texts as vectors; what made them stays with them.
fn read_vectors_of(
    source: &TextSource<'_>,
    with_labels: bool,
    of: &Arc<dyn Vectorise>,
    context: &Context,
) -> Result<Dataset, FitError> {
    /// Texts between two looks at an interrupt: seconds where they are long.
    const SOME: usize = 256;
    let (mut vectors, before) = (Vec::<f32>::new(), of.tokens().taken());
    let mut done = context.observer.task("texts embedded");
    let found = each_block(source, with_labels, context, |texts| {
        // A plan needs their number alone.
        for texts in texts.chunks(SOME).filter(|_| !context.plans) {
            context.check_interrupt()?;
            let first = vectors.len() / of.width();
            let tokens = tokenise(of.tokens(), Texts::Slices(texts));
            let tokens = tokens.map_err(|(at, e)| untold(source, first + at, &e))?;
            let some = vectorise(&**of, tokens.view()).map_err(|e| untold(source, first + e.at, &e))?;
            vectors.extend_from_slice(&some.values);
            done(texts.len() as u64);
        }
        Ok(())
    })?;
    note_cut(source, of.tokens().taken().since(before), context);
    let n = found.1.len();
    vectors.resize(n * of.width(), 0.0);
    let features = OwnedRows::Dense(DenseMatrix::new(n, of.width(), vectors));
    Ok(dataset(features, Some(Featurizer::Vectors(Arc::clone(of))), found))
}

/// Says how many texts are longer than what is read of them.
fn note_cut(source: &TextSource<'_>, taken: TextsTaken, context: &Context) {
    taken.note().into_iter().for_each(|line| context.note(format_args!("{}: {line}", source.name().display())));
}

/// Goes through all texts, block by block; gives their labels, and what each text is known by.
fn each_block(
    source: &TextSource<'_>,
    with_labels: bool,
    context: &Context,
    mut work: impl FnMut(&[&str]) -> Result<(), FitError>,
) -> Result<Found, FitError> {
    let (mut labels, mut hashes) = (LabelCollector::of(&source.options()), Vec::new());
    for block in source.blocks()? {
        context.check_interrupt()?;
        let block = block?;
        // What is wrong with labels is said before the work.
        for (instance, &line) in block.instances.iter().zip(&block.lines) {
            let list = if with_labels { &*instance.labels } else { &[] };
            let refused = |kind| ReadError::line(&source.name().display().to_string(), line, kind);
            labels.push(list).map_err(refused)?;
        }
        let texts: Vec<&str> = block.instances.iter().map(|i| &*i.text).collect();
        work(&texts)?;
        hashes.extend(texts.iter().map(|text| hash_text(text)));
    }
    Ok((labels.finish(), hashes))
}

/// A text that has no tokens or no vector.
fn untold(source: &TextSource<'_>, at: usize, error: &dyn std::fmt::Display) -> FitError {
    FitError::usage(format_args!("{}: text {at}: {error}", source.name().display()))
}
