//! Which bucket a label falls into, in each repetition, and which labels a bucket holds.

mod lists;
mod progression;

pub use lists::BucketLists;
pub(crate) use progression::Progression;

use rayon::prelude::*;
use std::ops::Range;
use thiserror::Error;
use xc_hash::universal::{
    AffineHash, BucketHash, UniversalFamily, UniversalHash, UniversalParams, UniversalParamsError,
};
use xc_sparse::rank::LabelId;

/// The buckets of L labels in some of the repetitions of one seed.
///
/// A repetition has a *number*, which together with the parameters names its hash function, and a
/// *position* within this assignment; any selection of numbers is an assignment. Labels are implicit:
/// nothing is stored for them.
///
/// # Listing a bucket without a table
/// With [`UniversalFamily::Prime`], label x falls into bucket k when u = (a x + b) mod p is one of k, k + B,
/// k + 2B, ... < p. Each such u has the one preimage a^-1 (u - b) mod p, and stepping from one to
/// the next adds a^-1 B modulo p:
///
/// ```text
///   L = 10, p = 11, B = 3, a = 4, b = 5; a^-1 = 3, step = 3 * 3 mod 11 = 9
///   bucket 1:   u = 1, 4, 7, 10   ─▶   x = 10, 8, 6, 4        x = 10 is no label: skipped
/// ```
///
/// The other families need [`Assignment::build_lists`] first: 4 L bytes per repetition.
#[derive(Clone, Debug)]
pub struct Assignment {
    params: UniversalParams,
    numbers: Vec<u32>,
    hashes: Vec<UniversalHash>,
    inverses: Vec<u64>,
    lists: Vec<BucketLists>,
}

/// Why an assignment cannot be made.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum AssignError {
    /// No repetition at all.
    #[error("0 repetitions, expected at least 1")]
    NoRepetitions,
    /// A repetition named twice would count twice.
    #[error("repetition {number} is named twice")]
    Repeated {
        /// Its number.
        number: u32,
    },
    /// A repetition that does not exist.
    #[error("repetition {number} is not among those of the assignment")]
    Absent {
        /// Its number.
        number: u32,
    },
    /// The hash functions do not exist.
    #[error(transparent)]
    Hash(#[from] UniversalParamsError),
}

/// A bucket was to be listed, and the family needs lists that were not built.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("the labels of a bucket of family {family} are known after build_lists only; family prime needs no lists")]
pub struct NoListsError {
    /// The family.
    pub family: UniversalFamily,
}

impl Assignment {
    /// The repetitions with these numbers, in this order.
    ///
    /// *Cost*: see [`UniversalParams::hash`].
    pub fn try_new(params: UniversalParams, numbers: &[u32]) -> Result<Self, AssignError> {
        if numbers.is_empty() {
            return Err(AssignError::NoRepetitions);
        }
        let mut sorted = numbers.to_vec();
        sorted.sort_unstable();
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(AssignError::Repeated { number: pair[0] });
        }
        let hashes = numbers.iter().map(|&number| params.hash(number)).collect::<Result<Vec<_>, _>>()?;
        let inverses = hashes.iter().map(|hash| prime(hash).map_or(0, progression::inverse)).collect();
        Ok(Self { params, numbers: numbers.to_vec(), hashes, inverses, lists: Vec::new() })
    }

    /// The first `n_repetitions` repetitions.
    pub fn first(params: UniversalParams, n_repetitions: u32) -> Result<Self, AssignError> {
        Self::try_new(params, &(0..n_repetitions).collect::<Vec<_>>())
    }

    /// Some of the repetitions, by number, in the order given.
    pub fn select(&self, numbers: &[u32]) -> Result<Self, AssignError> {
        if let Some(&number) = numbers.iter().find(|&number| !self.numbers.contains(number)) {
            return Err(AssignError::Absent { number });
        }
        let mut selected = Self::try_new(self.params, numbers)?;
        if !self.lists.is_empty() {
            let at = |number: &u32| self.numbers.iter().position(|n| n == number);
            selected.lists = numbers.iter().filter_map(at).map(|position| self.lists[position].clone()).collect();
        }
        Ok(selected)
    }

    /// The same repetitions for more labels; existing labels keep their buckets, so nothing has to be
    /// retrained. Lists are not carried over.
    ///
    /// # Errors
    /// [`UniversalFamily::Prime`] grows only up to its prime.
    pub fn grown_to(&self, n_labels: usize) -> Result<Self, AssignError> {
        Self::try_new(self.params.grown_to(n_labels as u64)?, &self.numbers)
    }

    /// The parameters of the hash functions.
    pub fn params(&self) -> &UniversalParams {
        &self.params
    }

    /// Number of labels, L.
    pub fn n_labels(&self) -> usize {
        self.params.n_keys as usize
    }

    /// Number of buckets of a repetition, B.
    pub fn n_buckets(&self) -> usize {
        self.params.n_buckets as usize
    }

    /// Number of repetitions here, R.
    pub fn n_repetitions(&self) -> usize {
        self.numbers.len()
    }

    /// Numbers of the repetitions, by position.
    pub fn numbers(&self) -> &[u32] {
        &self.numbers
    }

    /// Hash function of the repetition at `position`.
    ///
    /// # Panics
    /// If `position >= n_repetitions()`.
    pub fn hash(&self, position: usize) -> &UniversalHash {
        &self.hashes[position]
    }

    /// Bucket of a label.
    ///
    /// # Panics
    /// If `position >= n_repetitions()`, or the label is not below `n_labels()`.
    #[inline]
    pub fn bucket(&self, position: usize, label: LabelId) -> u32 {
        assert!((label as usize) < self.n_labels(), "label {label} of {}", self.n_labels());
        self.hashes[position].bucket(label)
    }

    /// Buckets of some labels, ascending and unique: the target of a repetition's classifier.
    ///
    /// # Panics
    /// As [`Assignment::bucket`].
    pub fn buckets_of(&self, position: usize, labels: &[LabelId], out: &mut Vec<u32>) {
        out.clear();
        out.extend(labels.iter().map(|&label| self.bucket(position, label)));
        out.sort_unstable();
        out.dedup();
    }

    /// Buckets of consecutive labels, one per entry of `out`.
    ///
    /// *Cost*: for [`UniversalFamily::Prime`], additions and comparisons only, sixteen labels at a time if the
    /// machine supports it.
    ///
    /// # Panics
    /// If `out` is not as long as `labels`, `position >= n_repetitions()`, or a label is not below
    /// `n_labels()`.
    pub fn bucket_range(&self, position: usize, labels: Range<LabelId>, out: &mut [u32]) {
        assert_eq!(labels.len(), out.len(), "labels and room for their buckets");
        assert!(
            labels.is_empty() || labels.end as usize <= self.n_labels(),
            "labels {labels:?} of {}",
            self.n_labels()
        );
        if let UniversalHash::Prime(hash) = &self.hashes[position] {
            crate::product::buckets(&Progression::of_labels(labels.start, 1).hashed(hash), out);
        } else {
            out.iter_mut().zip(labels).for_each(|(bucket, label)| *bucket = self.hashes[position].bucket(label));
        }
    }

    /// Builds the lists that the families other than [`UniversalFamily::Prime`] need for
    /// [`Assignment::labels_of`] and the exact decode. Does nothing for the prime family.
    ///
    /// *Cost*: one pass over the labels; 4 L + 8 B bytes per repetition are kept. Repetitions are built
    /// in parallel.
    pub fn build_lists(&mut self) {
        if self.params.family != UniversalFamily::Prime && self.lists.is_empty() {
            let n_labels = self.params.n_keys as u32;
            self.lists = self.hashes.par_iter().map(|hash| BucketLists::new(hash, n_labels)).collect();
        }
    }

    /// Labels of a bucket. The prime family gives them in the order of their residues, the others
    /// ascending.
    ///
    /// # Errors
    /// When lists are needed and [`Assignment::build_lists`] was not called.
    ///
    /// # Panics
    /// If `position >= n_repetitions()` or `bucket >= n_buckets()`.
    pub fn labels_of(&self, position: usize, bucket: u32) -> Result<impl Iterator<Item = LabelId>, NoListsError> {
        let source = self.source(position, bucket)?;
        let n_labels = self.params.n_keys;
        Ok((0..source.len()).map(move |t| source.label(t)).filter(move |&x| x < n_labels).map(|x| x as LabelId))
    }

    /// The labels of a bucket as the decoders walk them.
    pub(crate) fn source(&self, position: usize, bucket: u32) -> Result<Source<'_>, NoListsError> {
        assert!(bucket < self.params.n_buckets, "bucket {bucket} of {}", self.params.n_buckets);
        if let Some(hash) = prime(&self.hashes[position]) {
            Ok(Source::Progression(Progression::of_bucket(hash, self.inverses[position], bucket)))
        } else if let Some(lists) = self.lists.get(position) {
            Ok(Source::List(lists.labels(bucket)))
        } else {
            Err(NoListsError { family: self.params.family })
        }
    }

    /// Consecutive labels as the decoders walk them.
    pub(crate) fn range(&self, labels: Range<LabelId>) -> Source<'static> {
        match self.params.family {
            UniversalFamily::Prime => Source::Progression(Progression::of_labels(labels.start, labels.len() as u32)),
            _ => Source::Range(labels),
        }
    }
}

/// The function, if it belongs to the prime family.
pub(crate) fn prime(hash: &UniversalHash) -> Option<&AffineHash> {
    match hash {
        UniversalHash::Prime(hash) => Some(hash),
        _ => None,
    }
}

/// Labels that are scored together.
#[derive(Clone, Debug)]
pub(crate) enum Source<'a> {
    /// Equal steps modulo the prime; some may not be labels.
    Progression(Progression),
    /// Consecutive labels of another family.
    Range(Range<LabelId>),
    /// A list.
    List(&'a [LabelId]),
}

impl Source<'_> {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Progression(steps) => steps.len as usize,
            Self::Range(labels) => labels.len(),
            Self::List(labels) => labels.len(),
        }
    }

    /// The elements from `from` on, `len` of them.
    pub(crate) fn slice(&self, from: usize, len: usize) -> Self {
        match self {
            Self::Progression(steps) => {
                Self::Progression(Progression { start: steps.at(from as u32), len: len as u32, ..*steps })
            }
            Self::Range(labels) => {
                let start = labels.start + from as u32;
                Self::Range(start..start + len as u32)
            }
            Self::List(labels) => Self::List(&labels[from..from + len]),
        }
    }

    /// The one at `t`, which may be no label where it is not below their number.
    pub(crate) fn label(&self, t: usize) -> u64 {
        match self {
            Self::Progression(steps) => steps.at(t as u32),
            Self::Range(labels) => u64::from(labels.start) + t as u64,
            Self::List(labels) => u64::from(labels[t]),
        }
    }
}
