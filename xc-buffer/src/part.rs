//! A share of work that is done by several processes, which have nothing but files in common.
//!
//! ```
//! use xc_buffer::Part;
//!
//! let parts = ["0/3", "1/3", "2/3"].map(|text| text.parse::<Part>().unwrap());
//! assert_eq!(parts.map(|part| part.range(10)), [0..3, 3..6, 6..10]);
//! assert_eq!(parts.map(|part| part.range(2)), [0..0, 0..1, 1..2]);
//! assert!("3/3".parse::<Part>().is_err());
//! ```

use std::fmt;
use std::ops::Range;
use std::str::FromStr;
use thiserror::Error;

/// Part `index` of `of` parts, from 0 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Part {
    index: u32,
    of: u32,
}

/// A text that names no part.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("got {got:?}, expected I/N: part I of N parts, from 0/N on")]
pub struct PartError {
    got: String,
}

impl Part {
    /// The whole as a single part.
    pub const WHOLE: Self = Self { index: 0, of: 1 };

    /// Part `index` of `of`; `None` if there is no such part.
    pub fn new(index: u32, of: u32) -> Option<Self> {
        (index < of).then_some(Self { index, of })
    }

    /// Its number, from 0.
    pub fn index(self) -> u32 {
        self.index
    }

    /// Number of parts.
    pub fn of(self) -> u32 {
        self.of
    }

    /// Whether it is the part with which the whole begins.
    pub fn is_first(self) -> bool {
        self.index == 0
    }

    /// Whether it is the part with which the whole ends.
    pub fn is_last(self) -> bool {
        self.index + 1 == self.of
    }

    /// What it has of `n` things in a row: those of all parts are all of them, each once. Empty for some parts where
    /// there are more parts than things.
    pub fn range(self, n: u64) -> Range<u64> {
        let end = |parts: u32| (u128::from(n) * u128::from(parts) / u128::from(self.of)) as u64;
        end(self.index)..end(self.index + 1)
    }
}

impl FromStr for Part {
    type Err = PartError;

    fn from_str(text: &str) -> Result<Self, PartError> {
        // Without the sign that numbers may have otherwise.
        let number = |digits: &str| digits.parse().ok().filter(|_| digits.bytes().all(|b| b.is_ascii_digit()));
        let part = text.split_once('/').and_then(|(index, of)| Self::new(number(index)?, number(of)?));
        part.ok_or_else(|| PartError { got: text.to_owned() })
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_part_is_written_as_it_is_read_and_others_are_refused() {
        for text in ["0/1", "3/7", "4294967294/4294967295"] {
            assert_eq!(text.parse::<Part>().unwrap().to_string(), text);
        }
        for text in ["", "1", "/", "1/", "/2", "2/2", "0/0", "-1/2", "+1/2", " 0/2", "0/2/3", "0/4294967296"] {
            assert!(text.parse::<Part>().unwrap_err().to_string().contains("expected I/N"), "{text}");
        }
    }

    proptest! {
        #[test]
        fn parts_are_the_whole_in_order_and_differ_by_one_at_most(n in any::<u64>(), of in 1u32..40) {
            let ranges: Vec<_> = (0..of).map(|index| Part::new(index, of).unwrap().range(n)).collect();
            prop_assert_eq!((ranges[0].start, ranges[of as usize - 1].end), (0, n));
            prop_assert!(ranges.windows(2).all(|pair| pair[0].end == pair[1].start));
            let sizes = || ranges.iter().map(|range| range.end - range.start);
            prop_assert!(sizes().max().unwrap() - sizes().min().unwrap() <= 1);
        }
    }
}
