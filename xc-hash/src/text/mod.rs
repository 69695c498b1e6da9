//! Text to weighted feature rows: the rules.
//!
//! *Lower case* ([`Case::Lower`]): every character alone is mapped by Unicode's full table, and a
//! final sigma becomes an ordinary one. *Accents* ([`Accents::Strip`]): then compatibility
//! decomposition, and characters of a non-zero combining class are dropped.
//!
//! *Words* ([`TokenRule::Words`]): longest runs of alphanumeric characters, `_` and combining
//! marks, of at least `min_token_chars` characters. With 2 this is scikit-learn's `\b\w\w+\b`,
//! apart from combining marks, which cut words there.
//!
//! *Terms* ([`Grams`]): runs of words joined by one blank, or of characters; scikit-learn's `word`,
//! `char`, `char_wb`.
//!
//! *Slots* ([`Slots`]): the term's rank among the kept terms in byte order, then slots for other
//! terms by hash (`oov_slots`); or `|murmur3 as i32| mod n_features`, with the hash's sign on the
//! count where [`HashSign::Alternate`] asks for it. Blocks follow one another; slots for unknown
//! terms that they share ([`PipelineParams::oov_slots`]) follow them. A slot whose counts
//! cancel is absent.
//!
//! *Features*: the slots; or, where [`PipelineParams::fold`] says so, `|murmur3 of the slot's
//! number as i32| mod n_features`, to which the weights of all its slots are added.
//!
//! *Kept terms* ([`VocabularyParams`]): `min_df <= df <= max_df` (shares are shares of the texts),
//! then the `max_features` with most occurrences, equal ones by byte order.
//!
//! *Weights* ([`TermWeighting`]), with n fitted texts, df of them having the slot, tf a row's count of
//! it:
//!
//! ```text
//!   weight = tf part * idf part * scale of the block, then folding, then each row divided by its norm
//!   tf     Sublinear 1 + ln tf                  Raw tf                  Binary 1
//!   idf    Smooth ln((1 + n)/(1 + df)) + 1      Plain ln(n / df) + 1    None 1
//!   norm   L2 square root of squares            L1 sum of sizes         None 1
//! ```

mod alike;
mod block;
mod ngrams;
mod normalise;
mod pipeline;
mod tokenise;
mod tokens;
mod vocabulary;
mod weighting;

pub use alike::{Alike, alike};
pub use block::{Block, BlockError, DfBound, HashSign, HashingParams, Slots, VocabularyParams};
pub use ngrams::Grams;
pub use normalise::{Accents, Case, normalise};
pub use pipeline::{
    FeatureRows, Featurizer, FitPipelineError, FitStreamError, OpenPipelineError, PartArray, Pipeline, PipelineParams,
    PipelineParts, PipelineScratch, TextSink,
};
pub use tokenise::{TokenRule, Words};
pub use tokens::{TextsTaken, Tokenise, TokeniseError, Vectorise, VectoriseError};
pub use vocabulary::{Vocabulary, VocabularyError};
pub use weighting::{Idf, Norm, RowWeights, TermWeighting, Tf, WeightRowsError};
