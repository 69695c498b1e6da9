//! The words of a text by how often they occur.

use super::CorpusError;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use xc_hash::text::{self, Pipeline, PipelineParams, Vocabulary, normalise};

/// Bytes of a line that are cut into words at once: a text may be a single line.
const PIECE: usize = 1 << 16;

/// Which words have vectors, and which are beside one another, as a model keeps it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WordsParams {
    /// Words on each side that are near a word.
    pub window: usize,
    /// Words that occur less often are dropped.
    pub min_count: u64,
    /// Most words, those that occur most often.
    pub vocabulary: Option<usize>,
    /// Share of the text above which occurrences of a word are left out; 0: none is.
    pub subsample: f64,
}

impl Default for WordsParams {
    fn default() -> Self {
        Self { window: 2, min_count: 5, vocabulary: None, subsample: 0.0 }
    }
}

/// Cuts lines into words.
pub(super) struct Cutter {
    params: PipelineParams,
    normal: String,
    words: text::Words,
}

impl Cutter {
    pub(super) fn new(params: &PipelineParams) -> Self {
        Self { params: params.clone(), normal: String::new(), words: text::Words::default() }
    }

    /// Hands the words of a line to `take`, in their order. *Cost*: memory for a piece of the line.
    pub(super) fn each(&mut self, line: &str, mut take: impl FnMut(&str)) {
        let Self { params, normal, words } = self;
        let mut rest = line;
        while !rest.is_empty() {
            // Pieces end behind a blank, which belongs to no word.
            let from = rest.floor_char_boundary(PIECE.min(rest.len()));
            let end = blank(&rest.as_bytes()[from..]).map_or(rest.len(), |at| from + at + 1);
            let (piece, others) = rest.split_at(end);
            rest = others;
            normalise(piece, params.case, params.accents, normal);
            words.cut(normal, params.tokens, params.min_token_chars);
            (0..words.len()).for_each(|i| take(words.gram(i, 1)));
        }
    }
}

/// The first blank.
fn blank(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|&b| b == b' ')
}

/// Counts of words while a text is being read.
pub struct WordCounts {
    cutter: Cutter,
    counts: HashMap<Box<str>, u64>,
}

impl WordCounts {
    /// Nothing yet. Of the parameters the spelling and the cutting of words count.
    pub fn new(params: &PipelineParams) -> Self {
        Self { cutter: Cutter::new(params), counts: HashMap::new() }
    }

    /// Counts the words of a line. *Cost*: memory for each different word.
    pub fn add(&mut self, line: &str) {
        let Self { cutter, counts } = self;
        cutter.each(line, |word| match counts.get_mut(word) {
            Some(count) => *count += 1,
            None => drop(counts.insert(word.into(), 1)),
        });
    }

    /// The words that are kept, most frequent first, equal ones in byte order.
    ///
    /// # Errors
    /// There is no word, or fewer than two are kept.
    pub fn finish(self, params: &WordsParams) -> Result<CorpusWords, CorpusError> {
        let n_different = self.counts.len();
        if n_different == 0 {
            return Err(CorpusError::NoWords);
        }
        let kept = self.counts.into_iter().filter(|(_, count)| *count >= params.min_count);
        let mut kept: Vec<(Box<str>, u64)> = kept.collect();
        kept.sort_unstable_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        kept.truncate(params.vocabulary.unwrap_or(usize::MAX));
        if kept.len() < 2 {
            return Err(CorpusError::FewWords { n_kept: kept.len(), n_different, min_count: params.min_count });
        }
        CorpusWords::new(self.cutter.params, kept)
    }
}

/// Words, most frequent first: a word's number is its place.
pub struct CorpusWords {
    names: Vec<String>,
    counts: Vec<u64>,
    pipeline: Pipeline,
    /// Number of the word that each feature of the pipeline counts.
    of_feature: Vec<u32>,
}

impl CorpusWords {
    fn new(params: PipelineParams, kept: Vec<(Box<str>, u64)>) -> Result<Self, CorpusError> {
        let (names, counts): (Vec<String>, Vec<u64>) = kept.into_iter().map(|(w, n)| (w.into_string(), n)).unzip();
        let too_many = |_| CorpusError::TooMany { n: names.len() };
        let n = u32::try_from(names.len()).map_err(too_many)?;
        let mut of_feature: Vec<u32> = (0..n).collect();
        of_feature.sort_unstable_by_key(|&word| names[word as usize].as_bytes());
        let (mut bytes, mut ends) = (Vec::new(), Vec::with_capacity(names.len()));
        for &word in &of_feature {
            bytes.extend_from_slice(names[word as usize].as_bytes());
            ends.push(u32::try_from(bytes.len()).map_err(too_many)?);
        }
        // In byte order, each once: they were the keys of a map.
        let vocabulary = Vocabulary::try_new(bytes, ends).unwrap_or_else(|e| panic!("sorted words: {e}"));
        let pipeline = Pipeline::of_words(params, vocabulary).map_err(|_| CorpusError::TooMany { n: names.len() })?;
        Ok(Self { names, counts, pipeline, of_feature })
    }

    /// The words.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// How often each occurs in the text.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Number of words.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Never: there are at least two.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Counts the words of a query; its features are words in byte order.
    pub fn pipeline(&self) -> &Pipeline {
        &self.pipeline
    }

    /// Number of the word that each feature of the pipeline counts.
    pub fn of_feature(&self) -> &[u32] {
        &self.of_feature
    }

    /// The number of a word in its normal spelling.
    pub(super) fn id(&self, word: &str) -> Option<u32> {
        let feature = self.pipeline.vocabulary(0)?.id(word)?;
        Some(self.of_feature[feature as usize])
    }

    pub(super) fn params(&self) -> &PipelineParams {
        self.pipeline.params()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(lines: &[&str], min_count: u64, most: Option<usize>) -> Result<CorpusWords, CorpusError> {
        let mut counts = WordCounts::new(&PipelineParams { min_token_chars: 1, ..PipelineParams::default() });
        lines.iter().for_each(|line| counts.add(line));
        counts.finish(&WordsParams { min_count, vocabulary: most, ..WordsParams::default() })
    }

    #[test]
    fn words_stand_by_count_then_in_byte_order_and_rare_ones_are_dropped() {
        let words = counted(&["b a C c", "c, B ä x"], 1, None).unwrap();
        assert_eq!(words.names(), ["c", "b", "a", "x", "ä"]);
        assert_eq!(words.counts(), [3, 2, 1, 1, 1]);
        for (number, name) in words.names().iter().enumerate() {
            assert_eq!(words.id(name), Some(number as u32), "{name}");
        }
        assert_eq!(words.id("d"), None);
        assert_eq!(counted(&["b a C c", "c, B ä x"], 2, None).unwrap().names(), ["c", "b"]);
        assert_eq!(counted(&["b a C c", "c, B ä x"], 1, Some(3)).unwrap().names(), ["c", "b", "a"]);
    }

    #[test]
    fn a_long_line_is_cut_into_the_words_that_it_has() {
        let line: String = (0..30_000).map(|i| format!("wörd{} ", i % 7)).collect();
        assert!(line.len() > 3 * PIECE);
        let words = counted(&[&line], 1, None).unwrap();
        assert_eq!((words.len(), words.counts().iter().sum::<u64>()), (7, 30_000));
        let glued = "ä".repeat(PIECE);
        assert_eq!(counted(&[&format!("{glued} b")], 1, None).unwrap().len(), 2);
    }

    #[test]
    fn texts_without_words_or_with_one_are_told_apart() {
        assert!(matches!(counted(&["", " ,"], 1, None), Err(CorpusError::NoWords)));
        let few = counted(&["a a b"], 2, None).err();
        assert!(matches!(few, Some(CorpusError::FewWords { n_kept: 1, n_different: 2, min_count: 2 })), "{few:?}");
    }
}
