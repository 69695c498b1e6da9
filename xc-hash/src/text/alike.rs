//! Names that look alike: they differ in blanks at their ends, case, Unicode form or a fraction of 0 alone.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use unicode_normalization::UnicodeNormalization;

/// Names that look like others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Alike<'a> {
    /// Number of names that look like an earlier one.
    pub n: usize,
    /// The first three of them, behind those that they look like.
    pub examples: Vec<[&'a str; 2]>,
}

/// Finds names that differ from an earlier one only in blanks at their ends, in case, in the Unicode form of their characters
/// (`é` as one character or as two), or as `1.0` from `1`.
///
/// *Cost*: a table of all names; some hundred nanoseconds for each.
pub fn alike<'a>(names: impl IntoIterator<Item = &'a str>) -> Alike<'a> {
    let mut first: HashMap<Cow<'a, str>, &'a str> = HashMap::new();
    let mut found = Alike::default();
    for name in names {
        match first.entry(form(name)) {
            Entry::Vacant(entry) => _ = entry.insert(name),
            Entry::Occupied(entry) => {
                found.n += 1;
                if found.examples.len() < 3 {
                    found.examples.push([entry.get(), name]);
                }
            }
        }
    }
    found
}

fn form(name: &str) -> Cow<'_, str> {
    let name = name.trim();
    // What tables make of whole numbers in a column with a gap.
    let is_whole = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let name = name.strip_suffix(".0").filter(|whole| is_whole(whole)).unwrap_or(name);
    match name.is_ascii() {
        true if name.bytes().any(|b| b.is_ascii_uppercase()) => name.to_ascii_lowercase().into(),
        true => name.into(),
        // Small letters of some composed capitals are no composed ones.
        false => name.nfc().collect::<String>().to_lowercase().nfc().collect::<String>().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_look_alike_are_found_whatever_they_differ_in() {
        let names = ["café", "Tea", "cafe\u{301}", " tea", "rain", "CAF\u{c9}", "rain ", "sun"];
        let found = alike(names);
        assert_eq!(found.n, 4);
        assert_eq!(found.examples, [["café", "cafe\u{301}"], ["Tea", " tea"], ["café", "CAF\u{c9}"]]);
        assert_eq!(alike(["1", "10.0", "1.0", "10"]).n, 2);
        assert_eq!(alike(["a", "b", "a b", "ab", "cafe", "1.0", "1.5", ".0", "v1.0", "v1"]).n, 0);
        assert_eq!(alike([]), Alike::default());
    }
}
