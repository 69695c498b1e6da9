//! Text to weighted feature rows.

mod ngrams;
mod normalise;
mod pipeline;
mod tokenise;
mod vectorizer;
mod vocabulary;
mod weighting;

pub use ngrams::Grams;
pub use normalise::{Accents, Case, normalise};
pub use pipeline::{
    FeatureMaker, FitPipelineError, FitStreamError, OpenPipelineError, PartArray, Pipeline, PipelineParams,
    PipelineParts, PipelineScratch, TextSink,
};
pub use tokenise::{TokenRule, Words};
pub use vectorizer::{Block, BlockError, DfBound, HashParams, HashSign, Slots, VocabularyParams};
pub use vocabulary::{Vocabulary, VocabularyError};
pub use weighting::{Idf, Norm, RowWeights, Tf, WeightRowsError, Weighting};
