//! How text becomes features: the settings of the pipeline that is fitted in training and kept in the model.

use super::{At, Choices, Setting, SettingError, SettingPlace, Table, Values, field};
use crate::tune::Scale;
use Values::{Names, Size, Switch, Text};
use xc_hash::text::{
    Accents, Block, Case, DfBound, Grams, HashingParams, PipelineParams, Slots, TokenRule, VocabularyParams,
};
use xc_model::message::chain;

const fn row(name: &'static str, at: At<TextSettings>, values: Values, unit: &'static str) -> Setting {
    Setting::new(name, values, unit).at(SettingPlace::Terms(at)).heading("Text options")
}

/// Settings that choose and bound kinds of terms in another way than one size a kind.
const OTHER_KINDS: &[&str] = &["text.ngrams", "text.chars", "text.hash", "text.max-features"];

const HASH: &[&str] = &["text.hash"];

/// Places are those of [`TextSettings`]. They have no effect on inputs that are features already.
pub const TABLE: Table = Table {
    rows: &[
        row("text.ngrams", field!(ngrams), Size, "N")
            .help("Longest sequence of words that is a feature: 1 for words, 2 for words and pairs")
            .searched(&["1", "2"], 0, Scale::Ordered, "pairs of words tell apart what single words do not"),
        row("text.chars", field!(chars), Text(check_range), "MIN-MAX")
            .help("Also use character sequences inside words, e.g. 3-5")
            .searched(
                &["none", "3-4", "3-5"],
                0,
                Scale::Ordered,
                "parts of words join inflections, misspellings and names",
            ),
        row("text.hash", field!(hash), Size, "N").help("Hash terms to N features instead of keeping a vocabulary"),
        row("text.min-df", field!(min_df), Size, "N")
            .help("Keep terms that occur in at least N training texts")
            .excludes(HASH)
            .searched(
                &["1", "2", "3", "5"],
                1,
                Scale::Ordered,
                "terms of one text help where texts are few, and are noise where they are many",
            ),
        row("text.max-features", field!(max_features), Size, "N")
            .help("Keep at most N terms, the most frequent ones")
            .excludes(HASH),
        row("text.words", field!(words), Size, "N").of_preset()
            .help(
                "Keep the N most frequent words. This option and the next two choose the kinds of terms, in place of \
                 --text.ngrams and --text.chars; 0 leaves a kind out",
            )
            .excludes(OTHER_KINDS),
        row("text.pairs", field!(pairs), Size, "N").of_preset()
            .help("Keep the N most frequent pairs of neighbouring words")
            .excludes(OTHER_KINDS),
        row("text.trigrams", field!(trigrams), Size, "N").of_preset()
            .help("Keep the N most frequent sequences of three characters inside words")
            .excludes(OTHER_KINDS),
        row("text.oov", field!(oov), Size, "N").of_preset()
            .help("Hash terms outside the vocabulary into N additional features, instead of dropping them")
            .excludes(HASH),
        row("text.fold", field!(fold), Size, "N").of_preset()
            .help(
                "Fold all features into N by hashing their numbers; weights that collide are added. 0 folds nothing",
            )
            .excludes(HASH),
        row("text.preset", field!(preset), Names(&["mach"]), "NAME")
            .help(
                "Named values of the previous five options; any of these that is given overrides the preset. mach: 125000 \
                 words, 20000 pairs, 70000 trigrams, 500000 features for other terms, folded into 80000",
            )
            .excludes(OTHER_KINDS),
    ],
    starts: &[],
};

const fn of_words(name: &'static str, at: At<PipelineParams>, values: Values, unit: &'static str) -> Setting {
    Setting::new(name, values, unit).at(SettingPlace::Text(at)).heading("Text options")
}

const SPLIT_AT_BLANKS: At<PipelineParams> = At::Form {
    name: "tokens",
    get: |of| Some((of.tokens == TokenRule::Whitespace).into()),
    put: |of, value| {
        of.tokens = if *value == true { TokenRule::Whitespace } else { TokenRule::Words };
        Ok(())
    },
};

const KEEP_CASE: At<PipelineParams> = At::Form {
    name: "case",
    get: |of| Some((of.case == Case::Keep).into()),
    put: |of, value| {
        of.case = if *value == true { Case::Keep } else { Case::Lower };
        Ok(())
    },
};

const STRIP_ACCENTS: At<PipelineParams> = At::Form {
    name: "accents",
    get: |of| Some((of.accents == Accents::Strip).into()),
    put: |of, value| {
        of.accents = if *value == true { Accents::Strip } else { Accents::Keep };
        Ok(())
    },
};

/// What a word of a text is; places are those of [`PipelineParams`].
pub const TOKENS: Table = Table {
    rows: &[
        of_words("text.min-chars", field!(min_token_chars), Size, "N").help("Shortest word, in characters"),
        of_words("text.split-at-blanks", SPLIT_AT_BLANKS, Switch, "")
            .help("Split words at white space, instead of taking runs of letters and digits"),
        of_words("text.keep-case", KEEP_CASE, Switch, "").help("Distinguish upper case from lower case"),
        of_words("text.strip-accents", STRIP_ACCENTS, Switch, "").help("Drop accents"),
    ],
    starts: &[],
};

/// Which terms of a text are features.
#[derive(Clone, Debug, PartialEq)]
pub struct TextSettings {
    /// Longest sequence of words.
    pub ngrams: u32,
    /// Lengths of sequences of characters inside words: `3-5`.
    pub chars: Option<String>,
    /// Features that terms are hashed to.
    pub hash: Option<u32>,
    /// Texts that a term occurs in, at least.
    pub min_df: u32,
    /// Terms, at most.
    pub max_features: Option<u32>,
    /// Words that are kept.
    pub words: Option<u32>,
    /// Pairs of words that are kept.
    pub pairs: Option<u32>,
    /// Sequences of three characters that are kept.
    pub trigrams: Option<u32>,
    /// Features of other terms.
    pub oov: Option<u32>,
    /// Features that all are folded into.
    pub fold: Option<u32>,
    /// Sizes by name.
    pub preset: Option<String>,
}

impl Default for TextSettings {
    fn default() -> Self {
        Self {
            ngrams: 1,
            chars: None,
            hash: None,
            min_df: 2,
            max_features: None,
            words: None,
            pairs: None,
            trigrams: None,
            oov: None,
            fold: None,
            preset: None,
        }
    }
}

/// The pipeline that choices say.
///
/// # Errors
/// Values that make no sense together.
pub fn params(choices: &Choices) -> Result<PipelineParams, SettingError> {
    let settings = TextSettings::new(choices)?;
    // A fold is by the hash alone, as in the paper's program: nearly all weights are positive anyway.
    let fold =
        settings.fold.filter(|&n| n > 0).map(|n_features| HashingParams { n_features, ..HashingParams::default() });
    let (blocks, oov_slots) = (settings.blocks(), settings.oov.unwrap_or(0));
    let words = TOKENS.place(PipelineParams::default(), choices)?;
    let params = PipelineParams { blocks, oov_slots, fold, ..words };
    params.check().map_err(|e| SettingError::of("text.*", chain(&e)))?;
    Ok(params)
}

fn check_range(text: &str) -> Result<(), String> {
    parse_range(text).map(drop)
}

fn parse_range(text: &str) -> Result<(u32, u32), String> {
    let wrong = || format!("got {text:?}, expected two lengths such as 3-5");
    let (min, max) = text.split_once('-').ok_or_else(wrong)?;
    let range = (min.parse().map_err(|_| wrong())?, max.parse().map_err(|_| wrong())?);
    if range.0 == 0 || range.1 < range.0 { Err(wrong()) } else { Ok(range) }
}

impl TextSettings {
    /// Those of the preset, if one was chosen, with what was chosen in their place.
    ///
    /// # Errors
    /// A number out of range.
    pub fn new(choices: &Choices) -> Result<Self, SettingError> {
        let usual = match choices.value::<String>("text.preset").as_deref() {
            // [medini2019mach], section 4.2.
            Some("mach") => Self {
                words: Some(125_000),
                pairs: Some(20_000),
                trigrams: Some(70_000),
                oov: Some(500_000),
                fold: Some(80_000),
                ..Self::default()
            },
            _ => Self::default(),
        };
        TABLE.place(usual, choices)
    }

    fn blocks(&self) -> Vec<Block> {
        let vocabulary = |max_features| {
            let min_df = DfBound::Count(self.min_df);
            Slots::Vocabulary(VocabularyParams { min_df, max_features, ..VocabularyParams::default() })
        };
        let (words, trigrams) = (|min, max| Grams::Words { min, max }, Grams::CharsInWords { min: 3, max: 3 });
        let kinds = [(words(1, 1), self.words), (words(2, 2), self.pairs), (trigrams, self.trigrams)];
        if kinds.iter().any(|(_, size)| size.is_some()) {
            let kept = kinds.into_iter().filter(|(_, size)| size.unwrap_or(0) > 0);
            return kept.map(|(grams, size)| Block { grams, slots: vocabulary(size), scale: 1.0 }).collect();
        }
        let slots = match self.hash {
            Some(n_features) => Slots::Hashed(HashingParams { n_features, ..HashingParams::default() }),
            None => vocabulary(self.max_features),
        };
        let chars = self.chars.as_deref().and_then(|text| parse_range(text).ok());
        let chars = chars.map(|(min, max)| Grams::CharsInWords { min, max });
        [Some(words(1, self.ngrams)), chars]
            .into_iter()
            .flatten()
            .map(|grams| Block { grams, slots, scale: 1.0 })
            .collect()
    }
}
