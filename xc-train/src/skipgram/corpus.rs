//! A text as the numbers of its words: what word vectors learn from.

use super::CorpusWords;
use super::words::Cutter;
use thiserror::Error;
use xc_hash::stream::{Purpose, mix, name, unit};
use xc_nn::{OneHot, Rows, TargetRows, Windows};

/// Why a text is nothing to learn from.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum CorpusError {
    /// No line has a word.
    #[error("no word; at least two different ones are expected")]
    NoWords,
    /// Nothing is beside a word.
    #[error("{n_kept} of {n_different} different words occur {min_count} times or more; at least two are expected")]
    FewWords {
        /// Words that are kept.
        n_kept: usize,
        /// Words that there are.
        n_different: usize,
        /// Times that a word has to occur.
        min_count: u64,
    },
    /// More words than numbers.
    #[error("{n} words, expected fewer than 2^31 different ones, of fewer than 2^32 bytes")]
    TooMany {
        /// Different words.
        n: usize,
    },
    /// More places than a trainer can number.
    #[error("more than {} words in the text", u32::MAX)]
    TooLong,
    /// Every line holds a single word at most.
    #[error("no line has two of the words that are kept; no word has a neighbour")]
    NoNeighbours,
}

/// A text, word by word.
///
/// *Memory*: 5 bytes a word.
#[derive(Clone, Debug)]
pub struct Corpus {
    words: Vec<u32>,
    begins: Vec<bool>,
    window: usize,
    n_words: usize,
}

impl Corpus {
    /// Number of instances: words of the text that have another one beside them.
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// Never: there are at least two.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The word at each place.
    pub fn features(&self) -> Rows<'_> {
        Rows::OneHot(OneHot::new(&self.words, self.n_words))
    }

    /// The words beside each place.
    pub fn targets(&self) -> TargetRows<'_> {
        TargetRows::Windows(Windows::new(&self.words, &self.begins, self.window, self.n_words))
    }

    /// Bytes that it takes in memory, and a trainer for the order of its instances: 9 a word.
    pub fn n_bytes(&self) -> u64 {
        9 * self.words.len() as u64
    }
}

/// Takes the lines of a text.
pub struct CorpusBuilder<'w> {
    names: &'w CorpusWords,
    cutter: Cutter,
    /// Chance that an occurrence of each word stays; none where all do.
    stays: Vec<f64>,
    stream: u64,
    /// Known words seen so far.
    seen: u64,
    words: Vec<u32>,
    begins: Vec<bool>,
    is_too_long: bool,
}

impl<'w> CorpusBuilder<'w> {
    /// Nothing yet. With `subsample` above 0, occurrences of a word that makes up the share f of
    /// the text stay with chance min(1, sqrt(subsample / f) + subsample / f), as word2vec's program
    /// has it (its paper leaves the second term out); which ones depends on the seed and their
    /// place alone.
    ///
    /// # Panics
    /// If `subsample` is below 0 or no number.
    pub fn new(names: &'w CorpusWords, subsample: f64, seed: u64) -> Self {
        assert!(subsample >= 0.0, "subsample {subsample}, expected 0 or more");
        let total = names.counts().iter().sum::<u64>() as f64;
        let chance = |&count: &u64| {
            let ratio = subsample * total / count as f64;
            ratio.sqrt() + ratio
        };
        let stays = if subsample > 0.0 { names.counts().iter().map(chance).collect() } else { Vec::new() };
        Self {
            names,
            cutter: Cutter::new(names.params()),
            stays,
            stream: name(seed, Purpose::Subsample, &[]),
            seen: 0,
            words: Vec::new(),
            begins: Vec::new(),
            is_too_long: false,
        }
    }

    /// Appends the words of a line that are kept. A single one has nothing beside it and is left
    /// out.
    pub fn add_line(&mut self, line: &str) {
        let Self { names, cutter, stays, stream, seen, words, begins, .. } = self;
        let start = words.len();
        cutter.each(line, |word| {
            let Some(word) = names.id(word) else { return };
            let draw = || unit(mix(*stream, *seen));
            if stays.get(word as usize).is_none_or(|&chance| chance >= 1.0 || draw() < chance) {
                begins.push(words.len() == start);
                words.push(word);
            }
            *seen += 1;
        });
        if words.len() == start + 1 {
            words.pop();
            begins.pop();
        }
        self.is_too_long |= self.words.len() > u32::MAX as usize;
    }

    /// The text, where words at most `window` places away are beside a word.
    ///
    /// # Errors
    /// Nothing is beside a word; there are 2^32 words or more.
    ///
    /// # Panics
    /// If `window` is 0.
    pub fn finish(self, window: usize) -> Result<Corpus, CorpusError> {
        assert!(window > 0, "window 0, expected at least 1");
        let Self { names, words, begins, is_too_long, .. } = self;
        if is_too_long {
            return Err(CorpusError::TooLong);
        }
        if words.is_empty() {
            return Err(CorpusError::NoNeighbours);
        }
        Ok(Corpus { words, begins, window, n_words: names.len() })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{WordCounts, WordsParams};
    use super::*;
    use xc_hash::text::PipelineParams;

    fn words(lines: &[&str], min_count: u64) -> CorpusWords {
        let mut counts = WordCounts::new(&PipelineParams { min_token_chars: 1, ..PipelineParams::default() });
        lines.iter().for_each(|line| counts.add(line));
        counts.finish(&WordsParams { min_count, ..WordsParams::default() }).unwrap()
    }

    fn corpus(lines: &[&str], names: &CorpusWords, subsample: f64, seed: u64) -> Result<Corpus, CorpusError> {
        let mut builder = CorpusBuilder::new(names, subsample, seed);
        lines.iter().for_each(|line| builder.add_line(line));
        builder.finish(2)
    }

    #[test]
    fn words_that_are_dropped_leave_no_gap_and_lonely_ones_are_left_out() {
        let lines = ["a rare b a", "b", "odd a", "", "b b"];
        let names = words(&lines, 2);
        assert_eq!(names.names(), ["b", "a"]);
        let corpus = corpus(&lines, &names, 0.0, 0).unwrap();
        assert_eq!(corpus.words, [1, 0, 1, 0, 0]);
        assert_eq!(corpus.begins, [true, false, false, true, false]);
        let mut beside = Vec::new();
        corpus.targets().append(0, &mut beside);
        assert_eq!(beside, [0, 1]);
        assert_eq!((corpus.features().len(), corpus.features().width(), corpus.n_bytes()), (5, 2, 45));
    }

    #[test]
    fn frequent_words_are_left_out_as_often_as_the_rule_says() {
        let text: String = (0..60_000).map(|i| if i % 3 == 0 { "rare ".into() } else { "often ".to_owned() }).collect();
        let names = words(&[&text], 1);
        let share = |subsample, seed| {
            let corpus = corpus(&[&text], &names, subsample, seed).unwrap();
            [0, 1].map(|word| {
                let n = corpus.words.iter().filter(|&&w| w == word).count();
                n as f64 / names.counts()[word as usize] as f64
            })
        };
        let (t, [often, rare]) = (0.1f64, share(0.1, 7));
        for (got, f) in [(often, 2.0 / 3.0), (rare, 1.0 / 3.0)] {
            let expected = (t / f).sqrt() + t / f;
            assert!((got - expected).abs() < 4.0 * (0.25f64 / 20_000.0).sqrt(), "{got}, expected {expected}");
        }
        assert_ne!(share(0.1, 7), share(0.1, 8));
        assert_eq!(share(10.0, 7), [1.0, 1.0]);
    }

    #[test]
    fn a_text_of_lonely_words_is_refused() {
        let lines = ["a", "b", "a", "b"];
        let names = words(&lines, 1);
        assert_eq!(corpus(&lines, &names, 0.0, 0).err(), Some(CorpusError::NoNeighbours));
    }
}
