//! Texts as ordered ids of tokens, as vectors of these, and what a model's folder keeps of the way they are made.

#[cfg(feature = "transformer")]
mod built;
#[cfg(not(feature = "transformer"))]
#[path = "absent.rs"]
mod built;
mod words;

pub use built::tokenizer_at_work;
#[cfg(feature = "convert")]
pub(crate) use built::write_transformer;
#[cfg(feature = "transformer")]
pub use built::{FILE, TextVectors, TextVectorsError, Tokenizer, TokenizerError, TokensAndWordsError};
pub use words::TokensAndWords;
pub(crate) use words::features as features_of;
#[cfg(feature = "convert")]
pub(crate) const WORDS_PREFIX: &str = words::PREFIX;

use rayon::prelude::*;
use xc_dense::DenseMatrix;
use xc_hash::text::{Featurizer, Tokenise, TokeniseError, Vectorise, VectoriseError};
use xc_sparse::rows::{Texts, TokenRows, TokenView};
use xc_store::Container;
use xc_tree::text::StoredPipelineError;

/// Texts that one task tokenises.
const TEXTS: usize = 64;

/// Bytes of a prefix, at most: it is tokenised with every text.
const LONGEST_PREFIX: usize = 4096;

/// Whether a text can stand before every text: one line, of at most 4,096 bytes.
///
/// # Errors
/// What was expected of it.
pub fn check_prefix(text: &str) -> Result<(), String> {
    match text.len() {
        _ if text.contains(['\n', '\r']) => Err("expected one line".to_owned()),
        n if n > LONGEST_PREFIX => Err(format!("{n} bytes, expected at most {LONGEST_PREFIX}")),
        _ => Ok(()),
    }
}

/// The tokens of many texts, shared by the threads of the ambient pool; features of their words beside them where the
/// tokenizer makes some.
///
/// # Errors
/// The first text of which the tokenizer makes no tokens, with its number.
pub fn tokenise(of: &dyn Tokenise, texts: Texts<'_>) -> Result<TokenRows, (usize, TokeniseError)> {
    let firsts: Vec<usize> = (0..texts.len()).step_by(TEXTS).collect();
    let some = |&first: &usize| {
        let (mut ids, mut ends) = (Vec::new(), Vec::new());
        for i in first..texts.len().min(first + TEXTS) {
            of.append(texts.get(i), &mut ids).map_err(|e| (i, e))?;
            ends.push(ids.len() as u64);
        }
        Ok((ids, ends))
    };
    // One text is not to start a pool.
    let parts: Vec<Result<(Vec<u32>, Vec<u64>), _>> =
        if firsts.len() > 1 { firsts.par_iter().map(some).collect() } else { firsts.iter().map(some).collect() };
    let (mut ids, mut ends) = (Vec::new(), Vec::with_capacity(texts.len()));
    for part in parts {
        let (some, their_ends) = part?;
        ends.extend(their_ends.iter().map(|end| ids.len() as u64 + end));
        ids.extend(some);
    }
    let tokens = TokenRows::try_new(ids, ends, of.n_tokens()).unwrap_or_else(|e| panic!("ids that were checked: {e}"));
    Ok(match of.words() {
        Some(pipeline) => {
            tokens.with_words(features_of(pipeline, texts)).unwrap_or_else(|e| panic!("a row a text: {e}"))
        }
        None => tokens,
    })
}

/// The vectors of the tokens of texts.
///
/// # Errors
/// The first text that has none.
pub fn vectorise(of: &dyn Vectorise, tokens: TokenView<'_>) -> Result<DenseMatrix, VectoriseError> {
    let rows: Vec<&[u32]> = (0..tokens.len()).map(|i| tokens.row(i)).collect();
    let mut vectors = Vec::with_capacity(rows.len() * of.width());
    of.append(&rows, &mut vectors)?;
    Ok(DenseMatrix::new(rows.len(), of.width(), vectors))
}

/// What makes a model's features, tokens or vectors, as its folder keeps it; `None` where rows are used as they come.
///
/// # Errors
/// Arrays or a description that make neither.
pub fn read_pipeline(container: &Container) -> Result<Option<Featurizer>, StoredPipelineError> {
    if let Some(made) = built::read(container)? {
        return Ok(Some(made));
    }
    xc_tree::text::read_pipeline(container)
}
