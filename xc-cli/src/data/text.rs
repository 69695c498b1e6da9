//! How text becomes features: the options of the pipeline that is fitted in training and kept in
//! the model.

use crate::error::{CliError, chain};
use clap::{Args, ValueEnum};
use xc_hash::text::{
    Accents, Block, Case, DfBound, Grams, HashingParams, PipelineParams, Slots, TokenRule, VocabularyParams,
};

/// Options of the text pipeline; they have no effect on inputs that are features already.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Text options")]
pub(crate) struct TextArgs {
    /// Longest sequence of words that is a feature: 1 for words, 2 for words and pairs
    #[arg(long = "text.ngrams", value_name = "N", default_value_t = 1)]
    ngrams: u32,
    /// Also use character sequences inside words, e.g. 3-5
    #[arg(long = "text.chars", value_name = "MIN-MAX", value_parser = parse_range)]
    chars: Option<(u32, u32)>,
    /// Hash terms to N features instead of keeping a vocabulary
    #[arg(long = "text.hash", value_name = "N")]
    hash: Option<u32>,
    /// Keep terms that occur in at least N training texts
    #[arg(long = "text.min-df", value_name = "N", default_value_t = 2, conflicts_with = "hash")]
    min_df: u32,
    /// Keep at most N terms, the most frequent ones
    #[arg(long = "text.max-features", value_name = "N", conflicts_with = "hash")]
    max_features: Option<u32>,
    /// Keep the N most frequent words. This option and the next two choose the kinds of terms, in place of
    /// --text.ngrams and --text.chars; 0 leaves a kind out
    #[arg(id = "text_words", long = "text.words", value_name = "N", conflicts_with_all = OTHER_KINDS)]
    words: Option<u32>,
    /// Keep the N most frequent pairs of neighbouring words
    #[arg(id = "text_pairs", long = "text.pairs", value_name = "N", conflicts_with_all = OTHER_KINDS)]
    pairs: Option<u32>,
    /// Keep the N most frequent sequences of three characters inside words
    #[arg(id = "text_trigrams", long = "text.trigrams", value_name = "N", conflicts_with_all = OTHER_KINDS)]
    trigrams: Option<u32>,
    /// Hash terms outside the vocabulary into N additional features, instead of dropping them
    #[arg(id = "text_oov", long = "text.oov", value_name = "N", conflicts_with = "hash")]
    oov: Option<u32>,
    /// Fold all features into N by hashing their numbers; weights that collide are added. 0 folds nothing
    #[arg(id = "text_fold", long = "text.fold", value_name = "N", conflicts_with = "hash")]
    fold: Option<u32>,
    /// Named values of the previous five options; any of these that is given overrides the preset
    #[arg(id = "text_preset", long = "text.preset", value_name = "NAME", value_enum, conflicts_with_all = OTHER_KINDS)]
    preset: Option<Preset>,
    #[command(flatten)]
    tokens: TokenArgs,
}

/// What a word of a text is.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Text options")]
pub(crate) struct TokenArgs {
    /// Shortest word, in characters
    #[arg(long = "text.min-chars", value_name = "N", default_value_t = 2)]
    min_chars: u32,
    /// Split words at white space, instead of taking runs of letters and digits
    #[arg(long = "text.split-at-blanks")]
    split_at_blanks: bool,
    /// Distinguish upper case from lower case
    #[arg(long = "text.keep-case")]
    keep_case: bool,
    /// Drop accents
    #[arg(long = "text.strip-accents")]
    strip_accents: bool,
}

impl TokenArgs {
    /// Parameters of a pipeline that cuts words so.
    pub(crate) fn params(&self) -> PipelineParams {
        PipelineParams {
            case: if self.keep_case { Case::Keep } else { Case::Lower },
            accents: if self.strip_accents { Accents::Strip } else { Accents::Keep },
            tokens: if self.split_at_blanks { TokenRule::Whitespace } else { TokenRule::Words },
            min_token_chars: self.min_chars,
            ..PipelineParams::default()
        }
    }
}

/// The options that choose and bound kinds of terms in another way than one size a kind.
const OTHER_KINDS: [&str; 4] = ["ngrams", "chars", "hash", "max_features"];

/// Sizes that were used together.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Preset {
    /// 125000 words, 20000 pairs, 70000 trigrams, 500000 features for other terms, folded into
    /// 80000: MACH's product search
    Mach,
}

/// How many terms of each kind are kept, and what becomes of the others.
#[derive(Clone, Copy, Default)]
struct Sizes {
    words: Option<u32>,
    pairs: Option<u32>,
    trigrams: Option<u32>,
    oov: Option<u32>,
    fold: Option<u32>,
}

impl Preset {
    fn sizes(self) -> Sizes {
        match self {
            // [medini2019mach], section 4.2.
            Self::Mach => Sizes {
                words: Some(125_000),
                pairs: Some(20_000),
                trigrams: Some(70_000),
                oov: Some(500_000),
                fold: Some(80_000),
            },
        }
    }
}

/// Values of the options that a preset of this name stands for.
pub(crate) fn sizes_of_preset(name: &str) -> Vec<(&'static str, u32)> {
    let sizes = Preset::from_str(name, false).map(Preset::sizes).unwrap_or_default();
    let named = [
        ("text.words", sizes.words),
        ("text.pairs", sizes.pairs),
        ("text.trigrams", sizes.trigrams),
        ("text.oov", sizes.oov),
        ("text.fold", sizes.fold),
    ];
    named.into_iter().filter_map(|(option, size)| Some((option, size?))).collect()
}

fn parse_range(text: &str) -> Result<(u32, u32), String> {
    let wrong = || format!("got {text:?}, expected two lengths such as 3-5");
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
        let sizes = self.sizes();
        // A fold is by the hash alone, as in the paper's program: nearly all weights are positive
        // anyway.
        let fold =
            sizes.fold.filter(|&n| n > 0).map(|n_features| HashingParams { n_features, ..HashingParams::default() });
        let (blocks, oov_slots) = (self.blocks(sizes), sizes.oov.unwrap_or(0));
        let params = PipelineParams { blocks, oov_slots, fold, ..self.tokens.params() };
        params.check().map_err(|e| CliError::usage(format_args!("text options: {}", chain(&e))))?;
        Ok(params)
    }

    /// The preset's values with what was typed in their place.
    fn sizes(&self) -> Sizes {
        let preset = self.preset.map(Preset::sizes).unwrap_or_default();
        Sizes {
            words: self.words.or(preset.words),
            pairs: self.pairs.or(preset.pairs),
            trigrams: self.trigrams.or(preset.trigrams),
            oov: self.oov.or(preset.oov),
            fold: self.fold.or(preset.fold),
        }
    }

    fn blocks(&self, sizes: Sizes) -> Vec<Block> {
        let vocabulary = |max_features| {
            let min_df = DfBound::Count(self.min_df);
            Slots::Vocabulary(VocabularyParams { min_df, max_features, ..VocabularyParams::default() })
        };
        let (words, trigrams) = (|min, max| Grams::Words { min, max }, Grams::CharsInWords { min: 3, max: 3 });
        let kinds = [(words(1, 1), sizes.words), (words(2, 2), sizes.pairs), (trigrams, sizes.trigrams)];
        if kinds.iter().any(|(_, size)| size.is_some()) {
            let kept = kinds.into_iter().filter(|(_, size)| size.unwrap_or(0) > 0);
            return kept.map(|(grams, size)| Block { grams, slots: vocabulary(size), scale: 1.0 }).collect();
        }
        let slots = match self.hash {
            Some(n_features) => Slots::Hashed(HashingParams { n_features, ..HashingParams::default() }),
            None => vocabulary(self.max_features),
        };
        let chars = self.chars.map(|(min, max)| Grams::CharsInWords { min, max });
        [Some(words(1, self.ngrams)), chars]
            .into_iter()
            .flatten()
            .map(|grams| Block { grams, slots, scale: 1.0 })
            .collect()
    }
}
