//! A text that words are learned from: read twice, once to count its words.

use crate::context::Context;
use crate::data::TokenArgs;
use crate::error::{CliError, chain};
use std::path::Path;
use xc_sparse::io::{Format, ReadError, ReadErrorKind, ReadOptions, open_text};
use xc_sparse::store::is_control;
use xc_train::skipgram::{Corpus, CorpusBuilder, CorpusError, WordCounts, Words, WordsParams};

/// Which words there are, and which are beside one another.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Word options")]
pub(crate) struct WordArgs {
    /// Context window: words on each side, within a line
    #[arg(long, value_name = "N", default_value_t = 2)]
    window: usize,
    /// Keep words that occur at least N times
    #[arg(long, value_name = "N", default_value_t = 5)]
    min_count: u64,
    /// Keep at most N words, the most frequent ones [default: all]
    #[arg(long, value_name = "N")]
    vocabulary: Option<usize>,
    /// Leave out occurrences of words whose share of the text is above SHARE, more of them for more frequent words;
    /// word2vec uses 1e-3, 0 leaves out none
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, allow_negative_numbers = true)]
    subsample: f64,
    #[command(flatten)]
    tokens: TokenArgs,
}

/// A text in memory, and its words.
pub(super) struct WordText {
    pub(super) words: Words,
    pub(super) corpus: Corpus,
}

impl WordArgs {
    /// Refuses what is impossible.
    pub(super) fn check(&self) -> Result<(), CliError> {
        let refused = |line: String| Err(CliError::usage(line));
        match self {
            Self { window: 0, .. } => refused("--window 0: at least 1 is expected".to_owned()),
            Self { window, .. } if *window > u32::MAX as usize => {
                refused(format!("--window {window}: at most {} is expected", u32::MAX))
            }
            Self { vocabulary: Some(n @ (0 | 1)), .. } => refused(format!("--vocabulary {n}: at least 2 is expected")),
            Self { subsample, .. } if !(*subsample >= 0.0 && subsample.is_finite()) => {
                refused(format!("--subsample {subsample}: a share from 0 on is expected"))
            }
            _ => Ok(()),
        }
    }

    /// What a model keeps of them.
    pub(super) fn settings(&self) -> serde_json::Value {
        let Self { window, min_count, vocabulary, subsample, .. } = self;
        serde_json::json!({ "window": window, "min_count": min_count, "vocabulary": vocabulary, "subsample": subsample })
    }

    /// Reads the text. *Cost*: memory for each different word, the longest line, and 5 bytes a
    /// word.
    pub(super) fn read(&self, path: &Path, context: &Context) -> Result<WordText, CliError> {
        let meta = std::fs::metadata(path);
        let meta = meta.map_err(|e| CliError::usage(format_args!("{}: {}", path.display(), chain(&e))))?;
        if !meta.is_file() {
            return Err(CliError::usage(format_args!(
                "{}: a file of text is expected, which can be read twice",
                path.display()
            )));
        }
        let refused = |e: CorpusError| {
            let option = match e {
                CorpusError::FewWords { .. } => " (--min-count, --vocabulary)",
                _ => "",
            };
            CliError::usage(format_args!("{}: {}{option}", path.display(), chain(&e)))
        };
        let mut counts = WordCounts::new(&self.tokens.params());
        each_line(path, context, |line| counts.add(line))?;
        let params = WordsParams { min_count: self.min_count, most: self.vocabulary };
        let words = counts.finish(&params).map_err(refused)?;
        if let Some(word) = words.names().iter().find(|word| word.contains(is_control)) {
            return Err(CliError::usage(format_args!(
                "{}: the word {word:?} has a control character; printable words are expected",
                path.display()
            )));
        }
        let mut builder = CorpusBuilder::new(&words, self.subsample, context.seed);
        each_line(path, context, |line| builder.add_line(line))?;
        let corpus = builder.finish(self.window).map_err(refused)?;
        Ok(WordText { words, corpus })
    }
}

/// Hands on the lines of a text, or the texts of a JSONL file.
fn each_line(path: &Path, context: &Context, mut take: impl FnMut(&str)) -> Result<(), CliError> {
    let format = Format::of_name(path).filter(|format| *format == Format::Jsonl).unwrap_or(Format::FastText);
    let blocks = match open_text(path, &ReadOptions { format: Some(format), ..ReadOptions::default() }) {
        // A file without a line has no word either, which says more.
        Err(e) if matches!(e.kind(), ReadErrorKind::Empty { .. }) => return Ok(()),
        blocks => blocks?,
    };
    for block in blocks {
        context.check_interrupt()?;
        block.map_err(|e: ReadError| CliError::from(e))?.instances.iter().for_each(|instance| take(&instance.text));
    }
    Ok(())
}
