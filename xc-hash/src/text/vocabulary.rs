//! Terms that were seen in training, and their ids.
//!
//! All terms lie in one string of bytes in ascending byte order; the id of a term is its rank. A
//! hash table of (hash, id) pairs finds them.
//!
//! ```text
//!   bytes  ablebakercat     ends  4 9 12      able = 0   baker = 1   cat = 2
//! ```
//!
//! *Memory*: the bytes, 4 bytes of `ends` and about 10 to 18 bytes of table a term.

use crate::murmur3_32;
use hashbrown::HashTable;
use rayon::prelude::*;
use std::ops::{Range, RangeInclusive};
use thiserror::Error;

/// Why arrays are not a vocabulary.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum VocabularyError {
    /// An end is not above the one before it, or above the bytes.
    #[error("term {term} ends at byte {end}, which must be above {previous} and at most {n_bytes}")]
    End {
        /// The term's id.
        term: usize,
        /// Its end.
        end: u32,
        /// The end of the term before it.
        previous: u32,
        /// Number of bytes.
        n_bytes: usize,
    },
    /// The last end is not the number of bytes.
    #[error("the last term ends at byte {end} of {n_bytes}")]
    Tail {
        /// The last end.
        end: u32,
        /// Number of bytes.
        n_bytes: usize,
    },
    /// A term is not UTF-8.
    #[error("term {term} is not UTF-8")]
    Utf8 {
        /// The term's id.
        term: usize,
    },
    /// Terms are not ascending and unique.
    #[error("term {term} is not above the term before it")]
    Order {
        /// The term's id.
        term: usize,
    },
    /// The terms together are longer than ends can say.
    #[error("the terms take {n_bytes} bytes together; at most {} can be stored", u32::MAX)]
    TooLong {
        /// Number of bytes.
        n_bytes: u64,
    },
}

/// Terms in ascending byte order; a term's id is its rank.
#[derive(Clone, Default)]
pub struct Vocabulary {
    bytes: Vec<u8>,
    ends: Vec<u32>,
    table: HashTable<(u32, u32)>,
}

impl std::fmt::Debug for Vocabulary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Vocabulary({} terms, {} bytes)", self.len(), self.bytes.len())
    }
}

impl PartialEq for Vocabulary {
    fn eq(&self, other: &Self) -> bool {
        self.ends == other.ends && self.bytes == other.bytes
    }
}

impl Vocabulary {
    /// Checks stored arrays and builds the table. *Cost*: O(bytes), tens of nanoseconds a term.
    ///
    /// # Errors
    /// Ends that do not rise to the number of bytes, an empty term, bad UTF-8, terms out of order
    /// or twice.
    pub fn try_new(bytes: Vec<u8>, ends: Vec<u32>) -> Result<Self, VocabularyError> {
        let n_bytes = bytes.len();
        let mut previous = 0u32;
        let mut before: &[u8] = &[];
        for (term, &end) in ends.iter().enumerate() {
            if end <= previous || end as usize > n_bytes {
                return Err(VocabularyError::End { term, end, previous, n_bytes });
            }
            let this = &bytes[previous as usize..end as usize];
            if std::str::from_utf8(this).is_err() {
                return Err(VocabularyError::Utf8 { term });
            }
            if this <= before {
                return Err(VocabularyError::Order { term });
            }
            (previous, before) = (end, this);
        }
        if previous as usize != n_bytes {
            return Err(VocabularyError::Tail { end: previous, n_bytes });
        }
        Ok(Self::index(bytes, ends))
    }

    /// From terms that are ascending and unique.
    fn from_sorted<'a>(terms: impl Iterator<Item = &'a [u8]>) -> Result<Self, VocabularyError> {
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        for term in terms {
            bytes.extend_from_slice(term);
            let end =
                u32::try_from(bytes.len()).map_err(|_| VocabularyError::TooLong { n_bytes: bytes.len() as u64 })?;
            ends.push(end);
        }
        Ok(Self::index(bytes, ends))
    }

    fn index(bytes: Vec<u8>, ends: Vec<u32>) -> Self {
        let mut table = HashTable::with_capacity(ends.len());
        let mut start = 0;
        for (id, &end) in ends.iter().enumerate() {
            let hash = murmur3_32(&bytes[start..end as usize], 0);
            table.insert_unique(spread(hash), (hash, id as u32), |&(hash, _)| spread(hash));
            start = end as usize;
        }
        Self { bytes, ends, table }
    }

    /// Number of terms.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// True when there is no term.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The term of an id.
    ///
    /// # Panics
    /// If `id >= len()`.
    pub fn term(&self, id: u32) -> &str {
        // Terms come from `&str` or passed the UTF-8 check in `try_new`.
        std::str::from_utf8(self.term_bytes(id)).unwrap_or_default()
    }

    fn term_bytes(&self, id: u32) -> &[u8] {
        let i = id as usize;
        let start = if i == 0 { 0 } else { self.ends[i - 1] as usize };
        &self.bytes[start..self.ends[i] as usize]
    }

    /// The id of a term, if it is known.
    pub fn id(&self, term: &str) -> Option<u32> {
        self.find(term.as_bytes(), murmur3_32(term.as_bytes(), 0))
    }

    /// As [`Self::id`], where the caller has the term's murmur3 under seed 0.
    #[inline]
    pub(super) fn find(&self, term: &[u8], hash: u32) -> Option<u32> {
        self.table.find(spread(hash), |&(h, id)| h == hash && self.term_bytes(id) == term).map(|&(_, id)| id)
    }

    pub(super) fn into_arrays(self) -> (Vec<u8>, Vec<u32>) {
        (self.bytes, self.ends)
    }
}

/// 32 hash bits over 64, since the table takes its bucket from the low and its tag from the high
/// ones.
#[inline]
fn spread(hash: u32) -> u64 {
    (hash as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Some of the hashes that terms have under seed 0.
pub(super) type HashRange = Range<u64>;

/// All of them.
pub(super) const ALL_HASHES: HashRange = 0..1 << 32;

/// Counts of terms while a vocabulary is being fitted: an arena of bytes and one entry a term.
#[derive(Default)]
pub(super) struct TermCounts {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    table: HashTable<u32>,
    /// Number of the text being read, from 1.
    text: u32,
}

#[derive(Clone, Copy)]
struct Entry {
    start: usize,
    len: u32,
    hash: u32,
    /// Texts that have the term.
    df: u32,
    /// Occurrences; stops at the largest number, which keeps sums independent of their order.
    count: u32,
    /// The last text that counted into `df`.
    last: u32,
    /// Whether it is chosen however rare it is.
    is_kept: bool,
}

impl TermCounts {
    /// What follows belongs to another text. Holds for 2^32 - 1 texts, which the caller checks.
    pub(super) fn next_text(&mut self) {
        self.text = self.text.wrapping_add(1);
    }

    /// Counts one occurrence of a term whose hash lies in `hashes`. Terms beyond 4 GiB each do not
    /// occur: texts are shorter. `keep`: it is chosen however rare it is.
    #[inline]
    pub(super) fn add(&mut self, term: &[u8], hashes: &HashRange, keep: bool) {
        let hash = murmur3_32(term, 0);
        if !hashes.contains(&u64::from(hash)) {
            return;
        }
        let text = self.text;
        let entry = self.entry(term, hash);
        entry.count = entry.count.saturating_add(1);
        entry.is_kept |= keep;
        if entry.last != text {
            entry.last = text;
            entry.df += 1;
        }
    }

    #[inline]
    fn entry(&mut self, term: &[u8], hash: u32) -> &mut Entry {
        let Self { bytes, entries, table, .. } = self;
        let found = table.find(spread(hash), |&at| {
            let e = &entries[at as usize];
            e.hash == hash && e.len as usize == term.len() && &bytes[e.start..e.start + term.len()] == term
        });
        let at = match found {
            Some(&at) => at,
            None => {
                let at = entries.len() as u32;
                let (start, len) = (bytes.len(), term.len() as u32);
                entries.push(Entry { start, len, hash, df: 0, count: 0, last: 0, is_kept: false });
                bytes.extend_from_slice(term);
                table.insert_unique(spread(hash), at, |&at| spread(entries[at as usize].hash));
                at
            }
        };
        &mut entries[at as usize]
    }

    fn term(&self, e: &Entry) -> &[u8] {
        &self.bytes[e.start..e.start + e.len as usize]
    }

    /// Adds the counts of other texts.
    pub(super) fn merge(&mut self, other: TermCounts) {
        if self.entries.len() < other.entries.len() {
            let small = std::mem::replace(self, other);
            return self.merge(small);
        }
        for e in &other.entries {
            let mine = self.entry(other.term(e), e.hash);
            mine.df += e.df;
            mine.count = mine.count.saturating_add(e.count);
            mine.is_kept |= e.is_kept;
        }
    }

    /// Number of different terms.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Bytes that the counts fill. What was set aside for them may be twice as much.
    pub(super) fn n_bytes(&self) -> usize {
        self.bytes.len() + self.entries.len() * (size_of::<Entry>() + size_of::<u32>())
    }

    /// Forgets the terms whose hash lies outside `hashes`.
    pub(super) fn retain(&mut self, hashes: &HashRange) {
        let all = std::mem::take(self);
        self.text = all.text;
        self.take_from(&all, all.entries.iter().filter(|e| hashes.contains(&u64::from(e.hash))));
    }

    /// Forgets all but those terms that [`Self::select`] can choose from these counts and counts of
    /// other terms.
    pub(super) fn keep(&mut self, range: &RangeInclusive<u32>, most: Option<u32>) {
        let all = std::mem::take(self);
        self.take_from(&all, all.most_frequent(range, most));
    }

    fn take_from<'a>(&mut self, other: &TermCounts, entries: impl IntoIterator<Item = &'a Entry>) {
        for e in entries {
            let start = self.bytes.len();
            *self.entry(other.term(e), e.hash) = Entry { start, ..*e };
        }
    }

    /// The terms with a df in `range` and those that are kept, the `most` frequent of them (those that are kept first; ties:
    /// the smaller term), and their dfs by id.
    pub(super) fn select(
        self,
        range: RangeInclusive<u32>,
        most: Option<u32>,
    ) -> Result<(Vocabulary, Vec<u32>), VocabularyError> {
        let mut kept = self.most_frequent(&range, most);
        kept.par_sort_unstable_by(|a, b| self.term(a).cmp(self.term(b)));
        let vocabulary = Vocabulary::from_sorted(kept.iter().map(|e| self.term(e)))?;
        Ok((vocabulary, kept.iter().map(|e| e.df).collect()))
    }

    fn most_frequent(&self, range: &RangeInclusive<u32>, most: Option<u32>) -> Vec<&Entry> {
        let mut kept: Vec<&Entry> = self.entries.iter().filter(|e| e.is_kept || range.contains(&e.df)).collect();
        if let Some(most) = most
            && (most as usize) < kept.len()
        {
            let rank = |e: &Entry| (e.is_kept, e.count);
            kept.par_sort_unstable_by(|a, b| rank(b).cmp(&rank(a)).then_with(|| self.term(a).cmp(self.term(b))));
            kept.truncate(most as usize);
        }
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(texts: &[&[&str]]) -> TermCounts {
        let mut counts = TermCounts::default();
        for text in texts {
            counts.next_text();
            text.iter().for_each(|term| counts.add(term.as_bytes(), &ALL_HASHES, false));
        }
        counts
    }

    #[test]
    fn ids_are_ranks_and_the_table_finds_them() {
        let (vocabulary, df) = counted(&[&["cat", "able", "cat"], &["cat", "é"]]).select(1..=9, None).unwrap();
        assert_eq!((vocabulary.term(0), vocabulary.term(1), vocabulary.term(2)), ("able", "cat", "é"));
        assert_eq!(df, [1, 2, 1]);
        assert_eq!((vocabulary.id("cat"), vocabulary.id("dog"), vocabulary.id("")), (Some(1), None, None));
        let (bytes, ends) = vocabulary.clone().into_arrays();
        assert_eq!(Vocabulary::try_new(bytes, ends).unwrap(), vocabulary);
    }

    #[test]
    fn the_most_frequent_by_occurrences_then_by_spelling() {
        let texts: &[&[&str]] = &[&["b", "b", "b", "a", "c"], &["a", "c"], &["d"]];
        let (vocabulary, df) = counted(texts).select(1..=9, Some(2)).unwrap();
        assert_eq!((vocabulary.term(0), vocabulary.term(1), df), ("a", "b", vec![2, 1]));
        assert!(counted(texts).select(4..=9, None).unwrap().0.is_empty());
    }

    #[test]
    fn terms_that_are_kept_are_chosen_however_rare_they_are_and_before_all_others() {
        let mut counts = counted(&[&["a", "b", "b"], &["a", "b", "rare"]]);
        counts.next_text();
        ["kept", "a"].iter().for_each(|term| counts.add(term.as_bytes(), &ALL_HASHES, true));
        let mut merged = counted(&[&["b", "other"]]);
        merged.merge(counts);
        let terms = |(vocabulary, df): (Vocabulary, Vec<u32>)| {
            (0..vocabulary.len() as u32).map(|id| vocabulary.term(id).to_owned()).zip(df).collect::<Vec<_>>()
        };
        let named =
            |pairs: &[(&str, u32)]| pairs.iter().map(|(term, df)| ((*term).to_owned(), *df)).collect::<Vec<_>>();
        merged.keep(&(2..=9), Some(2));
        assert_eq!(terms(merged.select(2..=9, Some(2)).unwrap()), named(&[("a", 3), ("kept", 1)]));
    }

    #[test]
    fn merged_counts_are_those_of_one_reader() {
        let (one, two): (&[&[&str]], &[&[&str]]) = (&[&["a", "b"], &["b"]], &[&["b", "c", "c"]]);
        let mut merged = counted(one);
        merged.merge(counted(two));
        let mut other_way = counted(two);
        other_way.merge(counted(one));
        let all = [one, two].concat();
        for counts in [merged, other_way] {
            assert_eq!(counts.select(2..=9, None).unwrap(), counted(&all).select(2..=9, None).unwrap());
        }
    }
}
