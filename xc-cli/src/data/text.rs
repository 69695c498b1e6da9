//! How text becomes features: the options of the pipeline that is fitted in training and kept in the model.

use crate::error::CliError;
use clap::Args;
use xc_hash::text::{
    Accents, Block, Case, DfBound, Grams, HashParams, PipelineParams, Slots, TokenRule, VocabularyParams,
};

/// Options of the text pipeline; they have no effect on inputs that are features already.
#[derive(Args, Clone, Debug)]
pub(crate) struct TextArgs {
    /// Longest run of words that is a feature: 1 for words, 2 for words and pairs
    #[arg(long = "text.ngrams", value_name = "N", default_value_t = 1, help_heading = "Text options")]
    ngrams: u32,
    /// Also use runs of characters inside words, e.g. 3-5
    #[arg(long = "text.chars", value_name = "MIN-MAX", value_parser = parse_range, help_heading = "Text options")]
    chars: Option<(u32, u32)>,
    /// Hash terms to so many features rather than keeping a vocabulary
    #[arg(long = "text.hash", value_name = "N", help_heading = "Text options")]
    hash: Option<u32>,
    /// Keep terms that occur in at least so many training texts
    #[arg(
        long = "text.min-df",
        value_name = "N",
        default_value_t = 2,
        conflicts_with = "hash",
        help_heading = "Text options"
    )]
    min_df: u32,
    /// Keep at most so many terms, the most frequent ones
    #[arg(long = "text.max-features", value_name = "N", conflicts_with = "hash", help_heading = "Text options")]
    max_features: Option<u32>,
    /// Shortest word, in characters
    #[arg(long = "text.min-chars", value_name = "N", default_value_t = 2, help_heading = "Text options")]
    min_chars: u32,
    /// Words are what white space separates, rather than runs of letters and digits
    #[arg(long = "text.split-at-blanks", help_heading = "Text options")]
    split_at_blanks: bool,
    /// Tell capitals from small letters
    #[arg(long = "text.keep-case", help_heading = "Text options")]
    keep_case: bool,
    /// Drop accents
    #[arg(long = "text.strip-accents", help_heading = "Text options")]
    strip_accents: bool,
}

fn parse_range(text: &str) -> Result<(u32, u32), String> {
    let wrong = || format!("met {text:?}, wanted two lengths such as 3-5");
    let (min, max) = text.split_once('-').ok_or_else(wrong)?;
    let range = (min.parse().map_err(|_| wrong())?, max.parse().map_err(|_| wrong())?);
    if range.0 == 0 || range.1 < range.0 { Err(wrong()) } else { Ok(range) }
}

impl TextArgs {
    /// The pipeline that these options say.
    ///
    /// # Errors
    /// Values that make no sense together.
    pub(crate) fn params(&self) -> Result<PipelineParams, CliError> {
        let slots = match self.hash {
            Some(n_features) => Slots::Hashed(HashParams { n_features, ..HashParams::default() }),
            None => Slots::Vocabulary(VocabularyParams {
                min_df: DfBound::Count(self.min_df),
                max_features: self.max_features,
                ..VocabularyParams::default()
            }),
        };
        let mut blocks = vec![Block { grams: Grams::Words { min: 1, max: self.ngrams }, slots, scale: 1.0 }];
        if let Some((min, max)) = self.chars {
            blocks.push(Block { grams: Grams::CharsInWords { min, max }, slots, scale: 1.0 });
        }
        let params = PipelineParams {
            case: if self.keep_case { Case::Keep } else { Case::Lower },
            accents: if self.strip_accents { Accents::Strip } else { Accents::Keep },
            tokens: if self.split_at_blanks { TokenRule::Whitespace } else { TokenRule::Words },
            min_token_chars: self.min_chars,
            blocks,
            ..PipelineParams::default()
        };
        params.check().map_err(|e| CliError::usage(format_args!("text options: {e}")))?;
        Ok(params)
    }
}
