//! A text that words are learned from: gone through twice, once to count its words.

use crate::fit::FitError;
use crate::skipgram::{Corpus, CorpusBuilder, CorpusError, CorpusWords, WordCounts, WordsParams};
use std::path::Path;
use xc_buffer::is_control;
use xc_hash::text::PipelineParams;
use xc_model::message::chain;

/// A text in memory, and its words.
pub struct WordText {
    pub(super) words: CorpusWords,
    pub(super) corpus: Corpus,
}

impl WordText {
    /// Reads a text, which messages call `path`; `each_line` hands on its lines, and is called twice.
    ///
    /// *Cost*: memory for each different word, the longest line, and 5 bytes a word.
    ///
    /// # Errors
    /// What `each_line` says; too few words.
    pub fn read(
        params: &WordsParams,
        tokens: &PipelineParams,
        path: &Path,
        each_line: impl Fn(&mut dyn FnMut(&str)) -> Result<(), FitError>,
        seed: u64,
    ) -> Result<Self, FitError> {
        let refused = |e: CorpusError| {
            let option = match e {
                CorpusError::FewWords { .. } => " (--min-count, --vocabulary)",
                _ => "",
            };
            FitError::usage(format_args!("{}: {}{option}", path.display(), chain(&e)))
        };
        let mut counts = WordCounts::new(tokens);
        each_line(&mut |line| counts.add(line))?;
        let words = counts.finish(params).map_err(refused)?;
        if let Some(word) = words.names().iter().find(|word| word.contains(is_control)) {
            return Err(FitError::usage(format_args!(
                "{}: the word {word:?} has a control character; printable words are expected",
                path.display()
            )));
        }
        let mut builder = CorpusBuilder::new(&words, params.subsample, seed);
        each_line(&mut |line| builder.add_line(line))?;
        let corpus = builder.finish(params.window).map_err(refused)?;
        Ok(Self { words, corpus })
    }
}
