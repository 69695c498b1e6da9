//! Vectors of texts by a transformer as it comes: nothing is trained.

use super::{Context, FitError};
use crate::settings::input::InputSettings;
#[cfg(feature = "transformer")]
use crate::settings::transformer::{EncoderName, TransformerSettings};
#[cfg(feature = "transformer")]
use crate::tokens::TextVectors;
use std::path::{Path, PathBuf};
use xc_sparse::dense::MatmulPrecision;

/// Which vectors texts are to have.
#[derive(Clone, Debug, PartialEq)]
pub struct Embed {
    /// The folder of the transformer, as HuggingFace's libraries write it.
    pub from: PathBuf,
    /// Tokens of a text, at most, special ones included.
    pub max_tokens: usize,
    /// What stands before every text; the folder's own default prompt where nothing is said.
    pub prefix: Option<String>,
    /// What its products multiply.
    pub precision: MatmulPrecision,
    /// Whether vectors are scaled to length 1.
    pub normalise: bool,
}

/// What was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Embedded {
    /// Vectors.
    pub rows: usize,
    /// Values of each.
    pub width: usize,
    /// Tokens of all texts.
    pub tokens: u64,
}

impl Embed {
    /// What makes the vectors.
    ///
    /// # Errors
    /// What is wrong with the folder.
    #[cfg(feature = "transformer")]
    pub fn open(&self) -> Result<TextVectors, FitError> {
        Ok(self.open_and_say()?.0)
    }

    /// The same with what is to be said of what the folder asks for.
    ///
    /// # Errors
    /// As [`Embed::open`].
    #[cfg(feature = "transformer")]
    pub fn open_and_say(&self) -> Result<(TextVectors, Vec<String>), FitError> {
        let settings = TransformerSettings {
            encoder: EncoderName::Frozen,
            from: Some(self.from.display().to_string()),
            max_tokens: self.max_tokens,
            prefix: self.prefix.clone(),
            ..TransformerSettings::default()
        };
        super::network::tokens::vectors(&settings, "", self.precision, self.normalise)
    }

    /// Writes the vectors of the texts of a file as rows of an `.npy` file, in their order. *Memory*: the weights, and
    /// what a block of texts needs.
    ///
    /// # Errors
    /// A folder that is no transformer, a file that holds no texts, an output that cannot be written, a build without
    /// feature `transformer`, or an observer that cancels.
    #[cfg(feature = "transformer")]
    pub fn write(
        &self,
        texts: &Path,
        input: &InputSettings,
        output: &Path,
        context: &Context<'_>,
    ) -> Result<Embedded, FitError> {
        use super::data::Queries;
        use crate::model::OwnedRows;
        use xc_hash::text::{Vectorise as _, VectoriseError};
        use xc_sparse::atomic::OutputFile;
        use xc_sparse::io::NpyRows;
        use xc_sparse::rows::Texts;
        /// Texts that are read together.
        const BLOCK: usize = 256;

        context.on_threads(|| {
            let (of, notes) = self.open_and_say()?;
            notes.iter().for_each(|line| context.note(line));
            let mut queries = Queries::texts(texts, input)?;
            let file = OutputFile::create(output).map_err(|e| FitError::unwritable(&e))?;
            let unwritable = |e: std::io::Error| FitError::failed(format_args!("{}: {e}", output.display()));
            let mut out = NpyRows::begin(file, of.width()).map_err(unwritable)?;
            let mut embedded = Embedded { rows: 0, width: of.width(), tokens: 0 };
            let mut done = context.observer.task("texts embedded");
            while let Some(block) = queries.next_batch(BLOCK)? {
                context.check_interrupt()?;
                let OwnedRows::Texts(block) = block else { panic!("{}: rows that are no texts", queries.name()) };
                let named = |VectoriseError { at, why }| {
                    FitError::usage(format_args!("{}: text {}: {why}", queries.name(), embedded.rows + at + 1))
                };
                let (vectors, n_tokens) = of.of(Texts::Strings(&block)).map_err(named)?;
                out.push(&vectors.values).map_err(unwritable)?;
                embedded.rows += block.len();
                embedded.tokens += n_tokens;
                done(block.len() as u64);
            }
            if let Some(line) = of.tokens().taken().note() {
                context.note(format_args!("{}: {line}", queries.name()));
            }
            let file = out.end().map_err(unwritable)?;
            file.commit().map_err(|e| FitError::unwritable(&e))?;
            Ok(embedded)
        })
    }

    /// The same in a build that has no transformers: an error that says so.
    ///
    /// # Errors
    /// Always.
    #[cfg(not(feature = "transformer"))]
    pub fn write(&self, _: &Path, _: &InputSettings, _: &Path, _: &Context<'_>) -> Result<Embedded, FitError> {
        Err(FitError::without_transformers("xc embed"))
    }
}
