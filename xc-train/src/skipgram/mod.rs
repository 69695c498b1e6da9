//! Word vectors from running text: skip-gram (`[mikolov2013distributed]`).
//!
//! ```text
//!   text ──▶ words by count ──▶ word w, the words beside it ──▶ Classifier ──▶ a vector for each word
//!            WordCounts         Corpus: one-hot, multi-hot      bag, no ReLU    SkipgramModel: the nearest by cosine
//! ```
//!
//! Each word of the text is an instance: its only feature is the word, its true labels are the
//! different words at most `window` places away in its line. The classifier is any whose input are
//! sparse features; [`preset::skipgram`](crate::preset::skipgram) is the usual one.
//!
//! ```
//! use xc_hash::text::PipelineParams;
//! use xc_train::skipgram::{CorpusBuilder, WordCounts, WordsParams};
//!
//! let text = ["the cat sat on the mat", "the dog sat on the cat"];
//! let mut counts = WordCounts::new(&PipelineParams::default());
//! text.iter().for_each(|line| counts.add(line));
//! let words = counts.finish(&WordsParams { min_count: 2, ..WordsParams::default() })?;
//! assert_eq!(words.names(), ["the", "cat", "on", "sat"]);
//!
//! let mut corpus = CorpusBuilder::new(&words, 0.0, 0);
//! text.iter().for_each(|line| corpus.add_line(line));
//! let corpus = corpus.finish(2)?;
//! let mut beside = Vec::new();
//! corpus.targets().append(1, &mut beside); // "cat" in the first line: the, sat, on
//! assert_eq!(beside, [0, 2, 3]);
//! # Ok::<(), xc_train::skipgram::CorpusError>(())
//! ```
//!
//! # References
//! `[mikolov2013distributed]` for windows, vocabulary and sub-sampling; `[daghaghi2021tale]` for
//! the task as a classification with several true labels. *Differs in*: a window is never made
//! smaller at random, its words are one instance's labels, and the words that sub-sampling leaves
//! out are the same in each epoch.

mod corpus;
mod words;

pub use corpus::{Corpus, CorpusBuilder, CorpusError};
pub use words::{CorpusWords, WordCounts, WordsParams};
