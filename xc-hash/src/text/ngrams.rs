//! Runs of words or of characters: the terms that become features.
//!
//! ```text
//!   Words 1..=2          "new york city"   new  york  city  "new york"  "york city"
//!   Chars 3..=3          "a cat"           "a c"  " ca"  "cat"
//!   CharsInWords 3..=3   "a cat"           " a "  " ca"  "cat"  "at "
//! ```
//!
//! The same terms as scikit-learn's analysers `word`, `char` and `char_wb`: character n-grams see
//! runs of two or more white-space characters as one blank; `CharsInWords` pads every
//! blank-separated word with a blank on each side and takes a padded word that is shorter than n
//! whole, once.

use super::tokenise::{Words, is_space};
use serde::{Deserialize, Serialize};

/// Which runs are terms; `min` and `max` are lengths, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Grams {
    /// `min` to `max` words in a row, joined by one blank.
    Words {
        /// Fewest words.
        min: u32,
        /// Most words.
        max: u32,
    },
    /// `min` to `max` characters in a row, over the borders of words.
    Chars {
        /// Fewest characters.
        min: u32,
        /// Most characters.
        max: u32,
    },
    /// `min` to `max` characters in a row inside one blank-padded word.
    CharsInWords {
        /// Fewest characters.
        min: u32,
        /// Most characters.
        max: u32,
    },
}

impl Grams {
    /// Fewest and most words or characters of a term.
    pub fn range(self) -> (u32, u32) {
        match self {
            Grams::Words { min, max } | Grams::Chars { min, max } | Grams::CharsInWords { min, max } => (min, max),
        }
    }

    pub(super) fn of_words(self) -> bool {
        matches!(self, Grams::Words { .. })
    }

    /// Calls `visit` for each term, repeated ones included.
    #[inline]
    pub(super) fn visit(self, words: &Words, chars: &Chars, mut visit: impl FnMut(&[u8])) {
        let (min, max) = (self.range().0 as usize, self.range().1 as usize);
        match self {
            Grams::Words { .. } => {
                for n in min..=max.min(words.len()) {
                    for i in 0..=words.len() - n {
                        visit(words.gram(i, n).as_bytes());
                    }
                }
            }
            Grams::Chars { .. } => {
                for n in min..=max.min(chars.n_collapsed()) {
                    for i in 0..=chars.n_collapsed() - n {
                        visit(chars.collapsed_gram(i, n));
                    }
                }
            }
            Grams::CharsInWords { .. } => {
                for &(first, end) in &chars.padded {
                    let len = end - first;
                    for n in min..=max {
                        if n >= len {
                            // The whole padded word; longer n would only repeat it.
                            visit(chars.padded_gram(first, len));
                            break;
                        }
                        for i in first..=end - n {
                            visit(chars.padded_gram(i, n));
                        }
                    }
                }
            }
        }
    }
}

/// One text cut into characters, twice: with white space collapsed, and word by word with padding.
#[derive(Clone, Debug, Default)]
pub(super) struct Chars {
    collapsed: String,
    /// Byte at which each character of `collapsed` starts, and the end.
    collapsed_at: Vec<usize>,
    spaced: String,
    spaced_at: Vec<usize>,
    /// Ranges in characters of `spaced`, one a word, blanks on both sides included.
    padded: Vec<(usize, usize)>,
}

impl Chars {
    /// Cuts the normal form of a text afresh for what `plain` and `in_words` ask.
    pub(super) fn cut(&mut self, text: &str, plain: bool, in_words: bool) {
        self.collapsed.clear();
        self.collapsed_at.clear();
        self.spaced.clear();
        self.spaced_at.clear();
        self.padded.clear();
        if plain {
            let mut run = text.chars().peekable();
            while let Some(c) = run.next() {
                self.collapsed_at.push(self.collapsed.len());
                // A single white-space character stays what it is; two and more become one blank.
                if is_space(c) && run.peek().is_some_and(|&next| is_space(next)) {
                    while run.next_if(|&next| is_space(next)).is_some() {}
                    self.collapsed.push(' ');
                } else {
                    self.collapsed.push(c);
                }
            }
            self.collapsed_at.push(self.collapsed.len());
        }
        if in_words {
            for word in text.split(is_space).filter(|w| !w.is_empty()) {
                let first = self.spaced_at.len();
                for c in std::iter::once(' ').chain(word.chars()).chain(std::iter::once(' ')) {
                    self.spaced_at.push(self.spaced.len());
                    self.spaced.push(c);
                }
                self.padded.push((first, self.spaced_at.len()));
            }
            self.spaced_at.push(self.spaced.len());
        }
    }

    fn n_collapsed(&self) -> usize {
        self.collapsed_at.len().saturating_sub(1)
    }

    #[inline]
    fn collapsed_gram(&self, i: usize, n: usize) -> &[u8] {
        &self.collapsed.as_bytes()[self.collapsed_at[i]..self.collapsed_at[i + n]]
    }

    #[inline]
    fn padded_gram(&self, i: usize, n: usize) -> &[u8] {
        &self.spaced.as_bytes()[self.spaced_at[i]..self.spaced_at[i + n]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::tokenise::TokenRule;

    fn terms(text: &str, grams: Grams) -> Vec<String> {
        let (mut words, mut chars) = (Words::default(), Chars::default());
        words.cut(text, TokenRule::Words, 2);
        chars.cut(text, true, true);
        let mut out = Vec::new();
        grams.visit(&words, &chars, |term| out.push(String::from_utf8(term.to_vec()).unwrap()));
        out
    }

    #[test]
    fn words_in_ascending_length() {
        assert_eq!(
            terms("new york city", Grams::Words { min: 1, max: 2 }),
            ["new", "york", "city", "new york", "york city"]
        );
        assert!(terms("new york", Grams::Words { min: 3, max: 4 }).is_empty());
        assert!(terms("", Grams::Words { min: 1, max: 9 }).is_empty());
    }

    #[test]
    fn characters_over_word_borders() {
        assert_eq!(terms("a cat", Grams::Chars { min: 3, max: 3 }), ["a c", " ca", "cat"]);
        assert_eq!(terms("a\t\n b\tc", Grams::Chars { min: 1, max: 1 }), ["a", " ", "b", "\t", "c"]);
        assert_eq!(terms("é😀", Grams::Chars { min: 2, max: 5 }), ["é😀"]);
        assert!(terms("", Grams::Chars { min: 1, max: 3 }).is_empty());
    }

    #[test]
    fn characters_inside_padded_words() {
        assert_eq!(terms("a cat", Grams::CharsInWords { min: 3, max: 3 }), [" a ", " ca", "cat", "at "]);
        // " a " is shorter than 4: once, whole, not again for 5.
        assert_eq!(terms("a", Grams::CharsInWords { min: 4, max: 6 }), [" a "]);
        assert_eq!(terms("a", Grams::CharsInWords { min: 2, max: 4 }), [" a", "a ", " a "]);
        assert!(terms("  ", Grams::CharsInWords { min: 1, max: 3 }).is_empty());
    }
}
