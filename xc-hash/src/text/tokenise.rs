//! Normal text to words.
//!
//! *Rule* ([`TokenRule::Words`]): a word is a longest run of alphanumeric characters, `_` and
//! combining marks; it is kept when it has at least `min_token_chars` characters. With 2 these are
//! the tokens of scikit-learn's `\b\w\w+\b`, apart from combining marks: there they cut a word in
//! two (decomposed accents, vowel signs of Indic scripts).

use serde::{Deserialize, Serialize};
use unicode_normalization::char::canonical_combining_class;

/// What a token is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TokenRule {
    /// Runs of letters, digits and `_`.
    #[default]
    Words,
    /// Runs of anything but white space: for text that is already cut into terms.
    Whitespace,
}

/// The words of one text, joined by single blanks, so that a word n-gram is a slice.
///
/// ```text
///   "Rules of-the  Committee"   joined "rules of the committee"
///                               spans   0..5  6..8  9..12  13..22      bigram 1: joined[6..12]
/// ```
#[derive(Clone, Debug, Default)]
pub struct Words {
    joined: String,
    spans: Vec<(usize, usize)>,
}

impl Words {
    /// Cuts `text` afresh; what was here before is forgotten, its memory reused.
    pub fn cut(&mut self, text: &str, rule: TokenRule, min_token_chars: u32) {
        self.joined.clear();
        self.spans.clear();
        match rule {
            TokenRule::Words => self.cut_where(text, min_token_chars, &WORD_BYTE, is_word_char),
            TokenRule::Whitespace => self.cut_where(text, min_token_chars, &VISIBLE_BYTE, |c| !is_space(c)),
        }
    }

    #[inline]
    fn cut_where(&mut self, text: &str, min_chars: u32, ascii: &[bool; 128], inside: impl Fn(char) -> bool) {
        let bytes = text.as_bytes();
        let (mut at, mut start, mut n_chars) = (0, 0, 0u32);
        while at < bytes.len() {
            let byte = bytes[at];
            let (belongs, width) = if byte < 128 {
                (ascii[byte as usize], 1)
            } else {
                match text[at..].chars().next() {
                    Some(c) => (inside(c), c.len_utf8()),
                    None => break,
                }
            };
            if belongs {
                if n_chars == 0 {
                    start = at;
                }
                n_chars = n_chars.saturating_add(1);
            } else {
                if n_chars > 0 && n_chars >= min_chars {
                    self.push(&text[start..at]);
                }
                n_chars = 0;
            }
            at += width;
        }
        if n_chars > 0 && n_chars >= min_chars {
            self.push(&text[start..]);
        }
    }

    fn push(&mut self, word: &str) {
        if !self.spans.is_empty() {
            self.joined.push(' ');
        }
        let start = self.joined.len();
        self.joined.push_str(word);
        self.spans.push((start, self.joined.len()));
    }

    /// Number of words.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// True when the text has no word.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The `n` words from word `i` on, joined by single blanks.
    ///
    /// # Panics
    /// If `n` is 0 or `i + n > len()`.
    #[inline]
    pub fn gram(&self, i: usize, n: usize) -> &str {
        &self.joined[self.spans[i].0..self.spans[i + n - 1].1]
    }
}

fn is_word_char(c: char) -> bool {
    c == '_' || c.is_alphanumeric() || canonical_combining_class(c) != 0
}

/// White space as Python sees it: Unicode's property and the four ASCII information separators.
pub(super) fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

const WORD_BYTE: [bool; 128] = {
    let mut table = [false; 128];
    let mut b = 0;
    while b < 128 {
        table[b] = (b as u8).is_ascii_alphanumeric() || b as u8 == b'_';
        b += 1;
    }
    table
};

const VISIBLE_BYTE: [bool; 128] = {
    let mut table = [true; 128];
    let mut b = 9;
    while b <= 13 {
        table[b] = false;
        b += 1;
    }
    b = 28;
    while b <= 32 {
        table[b] = false;
        b += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words(text: &str, rule: TokenRule, min: u32) -> Vec<String> {
        let mut cut = Words::default();
        cut.cut("something before", rule, 1);
        cut.cut(text, rule, min);
        (0..cut.len()).map(|i| cut.gram(i, 1).to_string()).collect()
    }

    #[test]
    fn words_of_two_characters_and_more_by_default_rule() {
        assert_eq!(words("a bc, d_e 7 42! x", TokenRule::Words, 2), ["bc", "d_e", "42"]);
        assert_eq!(words("a bc, 7", TokenRule::Words, 1), ["a", "bc", "7"]);
        assert_eq!(words("été—naïve 中文 😀😀", TokenRule::Words, 2), ["été", "naïve", "中文"]);
        assert_eq!(words("हिन्दी cafe\u{301}s", TokenRule::Words, 2), ["हिन्दी", "cafe\u{301}s"]);
        assert_eq!(words("a-b c++\u{1c}d\u{a0}e", TokenRule::Whitespace, 1), ["a-b", "c++", "d", "e"]);
        for text in ["", " ", "?!…", "😀"] {
            assert!(words(text, TokenRule::Words, 1).is_empty(), "{text:?}");
        }
    }

    #[test]
    fn a_gram_is_words_joined_by_one_blank() {
        let mut cut = Words::default();
        cut.cut("rules  of-the\tcommittee", TokenRule::Words, 2);
        assert_eq!(cut.gram(1, 3), "of the committee");
        assert_eq!(cut.gram(0, 1), "rules");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        #[test]
        fn tables_and_characters_agree(text in "\\PC{0,40}|[\\x00-\\x7f]{0,40}|[a_ é中\u{301}.\\x1c]{0,30}", min in 1u32..4) {
            let by_chars: Vec<String> = text
                .split(|c| !is_word_char(c))
                .filter(|w| w.chars().count() >= min as usize)
                .map(String::from)
                .collect();
            prop_assert_eq!(words(&text, TokenRule::Words, min), by_chars);
            let by_space: Vec<String> = text
                .split(is_space)
                .filter(|w| w.chars().count() >= min as usize)
                .map(String::from)
                .collect();
            prop_assert_eq!(words(&text, TokenRule::Whitespace, min), by_space);
        }
    }
}
