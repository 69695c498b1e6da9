//! Fitting: one pass for vocabularies, one for the frequencies of hashed features, each only where needed.

use super::super::vectorizer::lay_out;
use super::super::vocabulary::{TermCounts, VocabularyError};
use super::*;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use thiserror::Error;

/// Why a pipeline cannot be fitted.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum FitPipelineError {
    /// The parameters make no sense.
    #[error("pipeline parameters: {0}")]
    Params(#[from] BlockError),
    /// Nothing would remain of any text.
    #[error(
        "no feature is left: {n_texts} texts, {n_terms} different terms, none within the document-frequency bounds"
    )]
    NoFeatures {
        /// Number of texts.
        n_texts: u64,
        /// Number of different terms, over all vocabulary blocks.
        n_terms: u64,
    },
    /// The terms of a block do not fit.
    #[error("block {block}: {source}")]
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
    /// The source gave another number of texts when it was read again.
    #[error("the first pass met {first} texts, the second {second}; both must read the same texts")]
    PassesDiffer {
        /// Texts in the first pass.
        first: u64,
        /// Texts in the second pass.
        second: u64,
    },
}

/// Why a pipeline cannot be fitted to a stream.
#[derive(Debug, Error)]
pub enum FitStreamError<E: std::error::Error + 'static> {
    /// The texts could not be read.
    #[error("reading the texts: {0}")]
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
    Terms { params: &'a PipelineParams, workers: &'a [Mutex<Worker>] },
    Frequencies { pipeline: &'a Pipeline, df: &'a [AtomicU32] },
}

/// What one thread has counted.
#[derive(Default)]
struct Worker {
    cut: Cut,
    /// One a block; hashed blocks stay empty.
    counts: Vec<TermCounts>,
}

impl TextSink<'_> {
    /// Counts these texts, in parallel; batches of some thousand texts keep all threads busy.
    ///
    /// *Determinism*: counts are sums; neither batches nor threads show in them.
    pub fn add<T: AsRef<str> + Sync>(&mut self, texts: &[T]) {
        self.n_texts += texts.len() as u64;
        const PIECE: usize = 32;
        match self.pass {
            Pass::Terms { params, workers } => texts.par_chunks(PIECE).for_each(|texts| {
                // One thread has one index, so nobody waits here.
                let index = rayon::current_thread_index().unwrap_or(0) % workers.len();
                let mut worker = lock(&workers[index]);
                let Worker { cut, counts } = &mut *worker;
                for text in texts {
                    cut.cut(params, text.as_ref());
                    for (block, counts) in params.blocks.iter().zip(counts.iter_mut()) {
                        if let Slots::Vocabulary(_) = block.slots {
                            counts.next_text();
                            block.grams.visit(&cut.words, &cut.chars, |term| counts.add(term));
                        }
                    }
                }
            }),
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
    /// *Cost*: one pass over the texts; a second one if hashed features (or slots for unknown terms) need an idf.
    /// Memory: every different term once a thread.
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

    /// Learns from texts that are read once or twice: `read` is called for each pass and gives all texts to the sink.
    ///
    /// # Errors
    /// Those of [`Self::fit`] and of `read`; two passes with different numbers of texts.
    pub fn fit_stream<E, F>(params: PipelineParams, mut read: F) -> Result<Self, FitStreamError<E>>
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

        let n_workers = rayon::current_num_threads().max(1);
        let workers: Vec<Mutex<Worker>> = (0..n_workers)
            .map(|_| {
                let counts = params.blocks.iter().map(|_| TermCounts::default()).collect();
                Mutex::new(Worker { counts, ..Worker::default() })
            })
            .collect();
        let mut n_texts = None;
        if learns_terms {
            let mut sink = TextSink { pass: Pass::Terms { params: &params, workers: &workers }, n_texts: 0 };
            read(&mut sink).map_err(FitStreamError::Source)?;
            n_texts = Some(sink.n_texts);
        }
        let (blocks, n_slots, term_df) = close_terms(&params, workers, n_texts.unwrap_or(0))?;
        let unweighted = RowWeights::from_df(Weighting { idf: Idf::None, ..params.weighting }, 0, n_slots, &[]);
        let mut pipeline = Pipeline { params, blocks, weights: unweighted };

        let mut df = Vec::new();
        if learns_slots {
            let counted: Vec<AtomicU32> = (0..n_slots).map(|_| AtomicU32::new(0)).collect();
            let mut sink = TextSink { pass: Pass::Frequencies { pipeline: &pipeline, df: &counted }, n_texts: 0 };
            read(&mut sink).map_err(FitStreamError::Source)?;
            let second = sink.n_texts;
            if let Some(first) = n_texts.replace(second)
                && first != second
            {
                return Err(FitPipelineError::PassesDiffer { first, second }.into());
            }
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

/// Merges what the threads counted and keeps the terms within bounds. Returns blocks, width, and the df of all terms.
fn close_terms(
    params: &PipelineParams,
    workers: Vec<Mutex<Worker>>,
    n_texts: u64,
) -> Result<(Vec<FittedBlock>, usize, Vec<u32>), FitPipelineError> {
    let mut counts: Vec<TermCounts> = params.blocks.iter().map(|_| TermCounts::default()).collect();
    for worker in workers {
        let worker = worker.into_inner().unwrap_or_else(PoisonError::into_inner);
        for (sum, part) in counts.iter_mut().zip(worker.counts) {
            sum.merge(part);
        }
    }
    let n_terms: u64 = counts.iter().map(|c| c.len() as u64).sum();
    let (mut learned, mut term_df) = (Vec::new(), Vec::new());
    for (i, (&block, counts)) in params.blocks.iter().zip(counts).enumerate() {
        let vocabulary = match block.slots {
            Slots::Hashed(_) => None,
            Slots::Vocabulary(v) => {
                let range = v.min_df.at_least(n_texts)..=v.max_df.map_or(u32::MAX, |bound| bound.at_most(n_texts));
                let (vocabulary, df) = counts
                    .select(range, v.max_features)
                    .map_err(|source| FitPipelineError::Vocabulary { block: i, source })?;
                term_df.extend(df);
                Some(vocabulary)
            }
        };
        learned.push((block, vocabulary));
    }
    let (blocks, n_slots) = lay_out(learned, params.oov_slots)?;
    if n_slots == 0 {
        return Err(FitPipelineError::NoFeatures { n_texts, n_terms });
    }
    Ok((blocks, n_slots, term_df))
}
