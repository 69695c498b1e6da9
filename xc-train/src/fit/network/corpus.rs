//! A text that words are learned from: gone through twice, once to count its words.

use crate::fit::{Context, FitError, Source};
use crate::skipgram::{Corpus, CorpusBuilder, CorpusError, CorpusWords, WordCounts, WordsParams};
use std::path::Path;
use xc_buffer::is_control;
use xc_data::{Format, ReadError, ReadErrorKind, ReadOptions, open_text};
use xc_hash::text::PipelineParams;
use xc_model::message::chain;
use xc_sparse::rows::Rows;

/// A text in memory, and its words.
pub struct WordText {
    pub(super) words: CorpusWords,
    pub(super) corpus: Corpus,
}

impl WordText {
    /// Reads a text. *Cost*: memory for each different word, the longest line, and 5 bytes a word.
    ///
    /// # Errors
    /// It cannot be read twice, or has too few words.
    pub fn read(
        params: &WordsParams,
        tokens: &PipelineParams,
        source: &Source,
        context: &Context<'_>,
    ) -> Result<Self, FitError> {
        let path = source.name();
        let each_line = |take: &mut dyn FnMut(&str)| match source {
            Source::Files(files) => each_line(&files.train, context, take),
            Source::Memory(arrays) => match arrays.train.rows() {
                Rows::Texts(texts) => {
                    texts.iter().for_each(take);
                    Ok(())
                }
                _ => Err(FitError::usage(format_args!("{}: texts are expected", path.display()))),
            },
        };
        if let Source::Files(_) = source {
            let meta = std::fs::metadata(path).map_err(|e| FitError::input(path, &e))?;
            if !meta.is_file() {
                return Err(FitError::usage(format_args!(
                    "{}: a file of text is expected, which can be read twice",
                    path.display()
                )));
            }
        }
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
        let mut builder = CorpusBuilder::new(&words, params.subsample, context.seed);
        each_line(&mut |line| builder.add_line(line))?;
        let corpus = builder.finish(params.window).map_err(refused)?;
        Ok(Self { words, corpus })
    }
}

/// Hands on the lines of a text, or the texts of a JSONL file.
fn each_line(path: &Path, context: &Context<'_>, take: &mut dyn FnMut(&str)) -> Result<(), FitError> {
    let format = Format::of_name(path).filter(|format| *format == Format::Jsonl).unwrap_or(Format::FastText);
    let blocks = match open_text(path, &ReadOptions::from(format)) {
        // A file without a line has no word either, which says more.
        Err(e) if matches!(e.kind(), ReadErrorKind::Empty { .. }) => return Ok(()),
        blocks => blocks?,
    };
    for block in blocks {
        context.check_interrupt()?;
        block.map_err(|e: ReadError| FitError::from(e))?.instances.iter().for_each(|instance| take(&instance.text));
    }
    Ok(())
}
