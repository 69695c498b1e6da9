//! Which vertices a search has seen.

/// A bit each, which are cleared one by one where they are few.
#[derive(Clone, Debug, Default)]
pub(crate) struct Visited {
    pub(crate) words: Vec<u32>,
    /// Those whose bits are set.
    pub(crate) seen: Vec<u32>,
}

impl Visited {
    /// None of `n` vertices was seen.
    pub(crate) fn reset(&mut self, n: usize) {
        let words = n.div_ceil(32);
        if self.words.len() != words || self.seen.len() > words / 4 {
            self.words.clear();
            self.words.resize(words, 0);
        } else {
            self.seen.iter().for_each(|&vertex| self.words[vertex as usize / 32] = 0);
        }
        self.seen.clear();
    }

    /// Whether it had not been seen; it has been now.
    pub(crate) fn insert(&mut self, vertex: u32) -> bool {
        let (word, bit) = (&mut self.words[vertex as usize / 32], 1 << (vertex % 32));
        let is_new = *word & bit == 0;
        *word |= bit;
        if is_new {
            self.seen.push(vertex);
        }
        is_new
    }
}
