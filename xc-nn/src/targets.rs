//! The true labels of all instances: lists, or windows around the words of a text.

use xc_sparse::LabelRows;
use xc_sparse::rows::sort_unique;

/// The true labels of all instances.
#[derive(Clone, Copy, Debug)]
pub enum TargetRows<'a> {
    /// A list for each.
    Lists(&'a LabelRows),
    /// Words around each word of a text, computed on demand.
    Windows(Windows<'a>),
}

impl<'a> From<&'a LabelRows> for TargetRows<'a> {
    fn from(lists: &'a LabelRows) -> Self {
        Self::Lists(lists)
    }
}

impl TargetRows<'_> {
    /// Number of instances.
    pub fn len(&self) -> usize {
        match self {
            Self::Lists(lists) => lists.len(),
            Self::Windows(windows) => windows.words.len(),
        }
    }

    /// True when there is no instance.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of labels that may occur.
    pub fn n_labels(&self) -> usize {
        match self {
            Self::Lists(lists) => lists.n_labels(),
            Self::Windows(windows) => windows.n_words,
        }
    }

    /// Appends the labels of instance `i`, ascending and unique.
    ///
    /// # Panics
    /// If `i >= len()`.
    pub fn append(&self, i: usize, out: &mut Vec<u32>) {
        match self {
            Self::Lists(lists) => out.extend_from_slice(lists.row(i)),
            Self::Windows(windows) => windows.append(i, out),
        }
    }

    /// How many of the instances `rows` have each label.
    ///
    /// # Panics
    /// If one of them does not exist.
    pub fn counts(&self, rows: &[u32]) -> Vec<u32> {
        let (mut counts, mut labels) = (vec![0u32; self.n_labels()], Vec::new());
        for &row in rows {
            labels.clear();
            self.append(row as usize, &mut labels);
            labels.iter().for_each(|&label| counts[label as usize] += 1);
        }
        counts
    }

    /// Largest number of labels of an instance: exact for lists, an upper bound for windows. *Cost*: one
    /// pass over the lists.
    pub fn most(&self) -> usize {
        match self {
            Self::Lists(lists) => lists.iter().map(<[u32]>::len).max().unwrap_or(0),
            Self::Windows(windows) => windows.window.saturating_mul(2),
        }
    }
}

/// For each word of a text, the different words at most `window` places before or after it in its
/// line.
#[derive(Clone, Copy, Debug)]
pub struct Windows<'a> {
    words: &'a [u32],
    begins: &'a [bool],
    window: usize,
    n_words: usize,
}

impl<'a> Windows<'a> {
    /// `words` are ids below `n_words`, line after line; `begins` says which of them begin a line.
    ///
    /// # Panics
    /// If the lists differ in length, or an id is not below `n_words`.
    pub fn new(words: &'a [u32], begins: &'a [bool], window: usize, n_words: usize) -> Self {
        assert!(words.len() == begins.len(), "{} words, {} beginnings", words.len(), begins.len());
        assert!(words.iter().all(|&word| (word as usize) < n_words), "a word is not below {n_words}");
        Self { words, begins, window, n_words }
    }

    fn append(&self, i: usize, out: &mut Vec<u32>) {
        let before = (0..self.window.min(i)).take_while(|back| !self.begins[i - back]).count();
        let behind = &self.begins[i + 1..self.begins.len().min(i.saturating_add(self.window).saturating_add(1))];
        let behind = behind.iter().take_while(|begins| !**begins).count();
        let start = out.len();
        out.extend_from_slice(&self.words[i - before..i]);
        out.extend_from_slice(&self.words[i + 1..=i + behind]);
        sort_unique(out, start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_window_ends_where_its_line_does_and_has_each_word_once() {
        let words = [4, 2, 4, 0, 1, 2, 2];
        let begins = [true, false, false, false, true, false, false];
        let row = |i, window| {
            let mut out = vec![9];
            TargetRows::Windows(Windows::new(&words, &begins, window, 5)).append(i, &mut out);
            out
        };
        assert_eq!(row(0, 2), [9, 2, 4]);
        assert_eq!(row(1, 2), [9, 0, 4]);
        assert_eq!(row(3, 1), [9, 4]);
        assert_eq!(row(4, 2), [9, 2]);
        // A word may stand beside itself.
        assert_eq!(row(5, 2), [9, 1, 2]);
        assert_eq!(row(3, usize::MAX / 2), [9, 2, 4]);
        let windows = TargetRows::Windows(Windows::new(&words, &begins, 2, 5));
        assert_eq!((windows.len(), windows.n_labels(), windows.most()), (7, 5, 4));
        assert_eq!(windows.counts(&[0, 4, 5]), [0, 1, 3, 0, 1]);
    }

    proptest! {
        #[test]
        fn windows_are_those_of_each_line_alone(
            lines in prop::collection::vec(prop::collection::vec(0u32..6, 1..9), 0..6),
            window in 1usize..5,
        ) {
            let (words, begins): (Vec<u32>, Vec<bool>) =
                lines.iter().flat_map(|line| line.iter().enumerate().map(|(at, &word)| (word, at == 0))).unzip();
            let windows = Windows::new(&words, &begins, window, 6);
            let mut i = 0;
            for line in &lines {
                for at in 0..line.len() {
                    let near = |&(other, _): &(usize, &u32)| other != at && other.abs_diff(at) <= window;
                    let mut expected: Vec<u32> = line.iter().enumerate().filter(near).map(|(_, &w)| w).collect();
                    expected.sort_unstable();
                    expected.dedup();
                    let mut got = Vec::new();
                    windows.append(i, &mut got);
                    prop_assert_eq!(got, expected);
                    i += 1;
                }
            }
        }
    }
}
