//! Fitting: one pass for vocabularies, one for the frequencies of hashed features, each only where
//! needed.
//!
//! # Terms that do not fit into memory
//! Where a bound is given, a pass over the texts counts the terms whose hash lies below a border.
//! It begins with all of them, and whenever a thread's counts outgrow its share of the bound, the
//! border moves half way down and all threads forget what lies above. Behind the pass, terms that
//! can no longer be chosen are forgotten too, and the next pass counts the hashes from the border
//! on. Every term that is counted in a pass is counted in all texts, so the outcome does not depend
//! on where borders fell.

use super::super::block::{BlockError, FittedBlock, Slots, VocabularyParams, lay_out};
use super::super::vocabulary::{ALL_HASHES, HashRange, TermCounts, VocabularyError};
use super::super::weighting::{Idf, RowWeights, TermWeighting};
use super::{Cut, Pipeline, PipelineParams, PipelineScratch};
use rayon::prelude::*;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use thiserror::Error;

/// Why a pipeline cannot be fitted.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum FitPipelineError {
    /// The parameters make no sense.
    #[error("pipeline parameters")]
    Params(#[from] BlockError),
    /// Nothing would remain of any text.
    #[error("no feature is left: {}", no_features(*n_texts, *n_terms, *min_chars))]
    NoFeatures {
        /// Number of texts.
        n_texts: u64,
        /// Number of different terms, over all vocabulary blocks.
        n_terms: u64,
        /// Characters that a word has at least.
        min_chars: u32,
    },
    /// The terms of a block do not fit.
    #[error("block {block}")]
    Vocabulary {
        /// The block, from 0.
        block: usize,
        /// What is wrong.
        source: VocabularyError,
    },
    /// More texts than can be counted.
    #[error("{n_texts} texts; frequencies are counted up to {}", u32::MAX)]
    TooManyTexts {
        /// Number of texts.
        n_texts: u64,
    },
    /// Terms would have to be counted in too many passes.
    #[error(
        "the different terms of the texts do not fit into {term_bytes} bytes, even in {MAX_PASSES} passes over them"
    )]
    TermBytes {
        /// The bound given.
        term_bytes: usize,
    },
    /// The source gave another number of texts when it was read again.
    #[error("the first pass found {first} texts, a later one {second}; all must read the same texts")]
    PassesDiffer {
        /// Texts in the first pass.
        first: u64,
        /// Texts in the other pass.
        second: u64,
    },
}

/// Where the features went.
fn no_features(n_texts: u64, n_terms: u64, min_chars: u32) -> String {
    let characters = if min_chars == 1 { "character" } else { "characters" };
    match (n_texts, n_terms) {
        (0, _) => "there is no text".to_owned(),
        (_, 0) => format!("none of {n_texts} texts has a term of words with at least {min_chars} {characters}"),
        _ => format!("none of {n_terms} different terms of {n_texts} texts is within the document-frequency bounds"),
    }
}

/// Why a pipeline cannot be fitted to a stream.
#[derive(Debug, Error)]
pub enum FitStreamError<E: std::error::Error + 'static> {
    /// The texts could not be read.
    #[error("reading the texts")]
    Source(#[source] E),
    /// They could not be used.
    #[error(transparent)]
    Fit(#[from] FitPipelineError),
}

/// Takes the texts of one pass, batch after batch.
pub struct TextSink<'a> {
    pass: Pass<'a>,
    n_texts: u64,
}

enum Pass<'a> {
    Terms(&'a TermPass<'a>),
    Frequencies { pipeline: &'a Pipeline, df: &'a [AtomicU32] },
}

/// Passes over the texts that count terms, at most; a bound that needs more is refused.
const MAX_PASSES: u64 = 64;

/// A pass that counts terms of some hashes.
struct TermPass<'a> {
    params: &'a PipelineParams,
    workers: Vec<Mutex<Worker>>,
    first: u64,
    /// The first hash that is not counted; only ever goes down.
    end: AtomicU64,
    /// Bytes that the counts of one worker may fill.
    room: usize,
}

/// What one thread has counted.
struct Worker {
    cut: Cut,
    /// One a block; hashed blocks stay empty.
    counts: Vec<TermCounts>,
    hashes: HashRange,
}

impl TermPass<'_> {
    fn new(params: &PipelineParams, hashes: HashRange, room: usize) -> TermPass<'_> {
        let worker = || {
            let counts = params.blocks.iter().map(|_| TermCounts::default()).collect();
            Mutex::new(Worker { cut: Cut::default(), counts, hashes: hashes.clone() })
        };
        let workers: Vec<_> = (0..rayon::current_num_threads().max(1)).map(|_| worker()).collect();
        let room = room / workers.len();
        TermPass { params, workers, first: hashes.start, end: AtomicU64::new(hashes.end), room }
    }

    fn add(&self, texts: &[impl AsRef<str>], keep: bool) {
        // One thread has one index, so nobody waits here.
        let index = rayon::current_thread_index().unwrap_or(0) % self.workers.len();
        let mut worker = lock(&self.workers[index]);
        let Worker { cut, counts, hashes } = &mut *worker;
        for text in texts {
            cut.cut(self.params, text.as_ref());
            for (block, counts) in self.params.blocks.iter().zip(counts.iter_mut()) {
                if let Slots::Vocabulary(_) = block.slots {
                    counts.next_text();
                    block.grams.visit(&cut.words, &cut.chars, |term| counts.add(term, hashes, keep));
                }
            }
            self.make_room(counts, hashes);
        }
    }

    /// Moves the border down while the counts are too large, and forgets what lies above it.
    fn make_room(&self, counts: &mut [TermCounts], hashes: &mut HashRange) {
        loop {
            let width = hashes.end - hashes.start;
            if counts.iter().map(TermCounts::n_bytes).sum::<usize>() > self.room && width > 0 {
                // Below the smallest part there is nothing: the pass ends with no hash counted,
                // which is refused.
                let half = if width / 2 < ALL_HASHES.end / MAX_PASSES { 0 } else { width / 2 };
                self.end.fetch_min(hashes.start + half, Ordering::Relaxed);
            }
            let end = self.end.load(Ordering::Relaxed);
            if end == hashes.end {
                return;
            }
            hashes.end = end;
            counts.iter_mut().for_each(|counts| counts.retain(hashes));
        }
    }

    /// The hashes that were counted, and the counts of each block.
    fn finish(self) -> (HashRange, Vec<TermCounts>) {
        let hashes = self.first..self.end.into_inner();
        let mut sums: Vec<TermCounts> = self.params.blocks.iter().map(|_| TermCounts::default()).collect();
        for worker in self.workers {
            let worker = worker.into_inner().unwrap_or_else(PoisonError::into_inner);
            for (sum, mut part) in sums.iter_mut().zip(worker.counts) {
                if worker.hashes != hashes {
                    part.retain(&hashes);
                }
                sum.merge(part);
            }
        }
        (hashes, sums)
    }
}

impl TextSink<'_> {
    /// Counts these texts, in parallel; batches of some thousand texts keep all threads busy.
    ///
    /// *Determinism*: counts are sums; neither batches nor threads show in them.
    pub fn add<T: AsRef<str> + Sync>(&mut self, texts: &[T]) {
        self.count(texts, false);
    }

    /// The same of texts whose terms are all features, however rare they are, as far as there is room for so many.
    pub fn keep<T: AsRef<str> + Sync>(&mut self, texts: &[T]) {
        self.count(texts, true);
    }

    fn count<T: AsRef<str> + Sync>(&mut self, texts: &[T], keep: bool) {
        self.n_texts += texts.len() as u64;
        const PIECE: usize = 32;
        match self.pass {
            Pass::Terms(pass) => texts.par_chunks(PIECE).for_each(|texts| pass.add(texts, keep)),
            Pass::Frequencies { pipeline, df } => {
                texts.par_chunks(PIECE).for_each_init(PipelineScratch::default, |scratch, texts| {
                    for text in texts {
                        pipeline.count(text.as_ref(), scratch);
                        for &feature in &scratch.features {
                            df[feature as usize].fetch_add(1, Ordering::Relaxed);
                        }
                    }
                })
            }
        }
    }
}

fn lock(worker: &Mutex<Worker>) -> MutexGuard<'_, Worker> {
    worker.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pipeline {
    /// Learns vocabularies and frequencies from texts in memory.
    ///
    /// *Cost*: one pass over the texts; a second one if hashed features (or slots for unknown
    /// terms) need an idf. Memory: every different term once a thread.
    ///
    /// # Errors
    /// Parameters that make no sense; no feature left (no text, or no term within the bounds).
    pub fn fit<T: AsRef<str> + Sync>(params: PipelineParams, texts: &[T]) -> Result<Self, FitPipelineError> {
        let fitted = Self::fit_stream(params, |sink| {
            sink.add(texts);
            Ok::<(), std::convert::Infallible>(())
        });
        fitted.map_err(|error| match error {
            FitStreamError::Fit(error) => error,
            FitStreamError::Source(never) => match never {},
        })
    }

    /// Learns from texts that are read once or twice: `read` is called for each pass and gives all
    /// texts to the sink.
    ///
    /// # Errors
    /// Those of [`Self::fit`] and of `read`; passes with different numbers of texts.
    pub fn fit_stream<E, F>(params: PipelineParams, read: F) -> Result<Self, FitStreamError<E>>
    where
        E: std::error::Error + 'static,
        F: FnMut(&mut TextSink<'_>) -> Result<(), E>,
    {
        Self::fit_stream_within(params, usize::MAX, read)
    }

    /// As [`Self::fit_stream`], where the terms being counted fill at most some `term_bytes` bytes
    /// over all threads: what does not fit is counted in further passes over the texts, with the
    /// same outcome.
    ///
    /// *Memory*: what is set aside for the terms may reach twice `term_bytes`, and twice that again
    /// for a moment while the counts of the threads are added up; beside them, the terms that may
    /// still be chosen (for a block with `max_features`, no more than these) and a block of texts.
    ///
    /// # Errors
    /// Those of [`Self::fit_stream`]; a bound so small that 64 passes do not do.
    pub fn fit_stream_within<E, F>(
        params: PipelineParams,
        term_bytes: usize,
        mut read: F,
    ) -> Result<Self, FitStreamError<E>>
    where
        E: std::error::Error + 'static,
        F: FnMut(&mut TextSink<'_>) -> Result<(), E>,
    {
        params.check().map_err(FitPipelineError::from)?;
        let with_idf = params.weighting.idf != Idf::None;
        let learns_terms = params.blocks.iter().any(|b| matches!(b.slots, Slots::Vocabulary(_)));
        let learns_slots = with_idf
            && (params.oov_slots > 0
                || params.blocks.iter().any(|b| match b.slots {
                    Slots::Hashed(_) => true,
                    Slots::Vocabulary(v) => v.oov_slots > 0,
                }));

        let mut terms = ChosenTerms::new(&params);
        let mut n_texts = None;
        let mut hashes = ALL_HASHES;
        while learns_terms && hashes.start < ALL_HASHES.end {
            let pass = TermPass::new(&params, hashes.clone(), term_bytes);
            let got = read_pass(&mut read, Pass::Terms(&pass), &mut n_texts)?;
            let (counted, counts) = pass.finish();
            if counted.is_empty() {
                return Err(FitPipelineError::TermBytes { term_bytes }.into());
            }
            terms.add(&params, got, counts, counted == ALL_HASHES);
            // As many again: hashes are even, so they need as much memory.
            hashes = counted.end..ALL_HASHES.end.min(counted.end + (counted.end - counted.start));
        }
        let (blocks, n_slots, term_df) = terms.close(&params, n_texts.unwrap_or(0))?;
        let unweighted = RowWeights::from_df(TermWeighting { idf: Idf::None, ..params.weighting }, 0, n_slots, &[]);
        let mut pipeline = Pipeline { params, blocks, weights: unweighted };

        let mut df = Vec::new();
        if learns_slots {
            let counted: Vec<AtomicU32> = (0..n_slots).map(|_| AtomicU32::new(0)).collect();
            read_pass(&mut read, Pass::Frequencies { pipeline: &pipeline, df: &counted }, &mut n_texts)?;
            df = counted.into_iter().map(AtomicU32::into_inner).collect();
        } else if with_idf {
            df = term_df;
        }
        let n_texts = n_texts.unwrap_or(0);
        if n_texts > u32::MAX as u64 {
            return Err(FitPipelineError::TooManyTexts { n_texts }.into());
        }
        pipeline.weights = RowWeights::from_df(pipeline.params.weighting, n_texts, n_slots, &df);
        Ok(pipeline)
    }
}

/// Reads all texts once; gives their number, which has to be that of the pass before.
fn read_pass<E, F>(read: &mut F, pass: Pass<'_>, n_texts: &mut Option<u64>) -> Result<u64, FitStreamError<E>>
where
    E: std::error::Error + 'static,
    F: FnMut(&mut TextSink<'_>) -> Result<(), E>,
{
    let mut sink = TextSink { pass, n_texts: 0 };
    read(&mut sink).map_err(FitStreamError::Source)?;
    let second = sink.n_texts;
    match n_texts.replace(second) {
        Some(first) if first != second => Err(FitPipelineError::PassesDiffer { first, second }.into()),
        _ => Ok(second),
    }
}

/// The terms of the passes so far that may come into the vocabularies.
struct ChosenTerms {
    /// One a block; hashed blocks stay empty.
    counts: Vec<TermCounts>,
    /// Different terms found, over all blocks.
    n_terms: u64,
}

impl ChosenTerms {
    fn new(params: &PipelineParams) -> Self {
        Self { counts: params.blocks.iter().map(|_| TermCounts::default()).collect(), n_terms: 0 }
    }

    /// `whole`: no other counts are to come.
    fn add(&mut self, params: &PipelineParams, n_texts: u64, counts: Vec<TermCounts>, whole: bool) {
        for ((kept, mut counts), block) in self.counts.iter_mut().zip(counts).zip(&params.blocks) {
            self.n_terms += counts.len() as u64;
            if whole {
                *kept = counts;
            } else if let Slots::Vocabulary(v) = block.slots {
                let range = df_range(&v, n_texts);
                counts.keep(&range, v.max_features);
                kept.merge(counts);
                if v.max_features.is_some_and(|most| kept.len() > most as usize) {
                    kept.keep(&range, v.max_features);
                }
            }
        }
    }

    /// Blocks with their vocabularies, number of slots, and the df of all terms.
    fn close(
        self,
        params: &PipelineParams,
        n_texts: u64,
    ) -> Result<(Vec<FittedBlock>, usize, Vec<u32>), FitPipelineError> {
        let (mut learned, mut term_df) = (Vec::new(), Vec::new());
        for (i, (&block, counts)) in params.blocks.iter().zip(self.counts).enumerate() {
            let vocabulary = match block.slots {
                Slots::Hashed(_) => None,
                Slots::Vocabulary(v) => {
                    let (vocabulary, df) = counts
                        .select(df_range(&v, n_texts), v.max_features)
                        .map_err(|source| FitPipelineError::Vocabulary { block: i, source })?;
                    term_df.extend(df);
                    Some(vocabulary)
                }
            };
            learned.push((block, vocabulary));
        }
        let (blocks, n_slots) = lay_out(learned, params.oov_slots)?;
        if n_slots == 0 {
            return Err(FitPipelineError::NoFeatures {
                n_texts,
                n_terms: self.n_terms,
                min_chars: params.min_token_chars,
            });
        }
        Ok((blocks, n_slots, term_df))
    }
}

fn df_range(v: &VocabularyParams, n_texts: u64) -> RangeInclusive<u32> {
    v.min_df.at_least(n_texts)..=v.max_df.map_or(u32::MAX, |bound| bound.at_most(n_texts))
}
