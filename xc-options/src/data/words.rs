//! A text that words are learned from.

use super::Source;
use std::path::Path;
use xc_data::{Format, ReadError, ReadErrorKind, ReadOptions, open_text};
use xc_hash::text::PipelineParams;
use xc_sparse::rows::Rows;
use xc_train::fit::{Context, FitError, WordText};
use xc_train::skipgram::WordsParams;

/// Reads the text of a source. *Cost*: memory for each different word, the longest line, and 5 bytes a word.
pub(crate) fn read_words(
    params: &WordsParams,
    tokens: &PipelineParams,
    source: &Source,
    context: &Context<'_>,
) -> Result<WordText, FitError> {
    let path = source.name();
    if let Source::Files(_) = source {
        let meta = std::fs::metadata(path).map_err(|e| FitError::input(path, &e))?;
        if !meta.is_file() {
            return Err(FitError::usage(format_args!(
                "{}: a file of text is expected, which can be read twice",
                path.display()
            )));
        }
    }
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
    WordText::read(params, tokens, path, each_line, context.seed)
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
