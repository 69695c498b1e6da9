//! Spellings: a number becomes a word that can be read aloud, one word a number and one number a
//! word.

use xc_hash::stream::Order;

const CONSONANTS: &[u8; 16] = b"bdfghjklmnprstvz";
const VOWELS: &[u8; 5] = b"aeiou";
const SYLLABLES: u64 = 80;
/// Names of labels end in one of these, words in a vowel: no name is a word.
const ENDINGS: [&str; 4] = ["n", "r", "s", "x"];

/// Words of two, three and four syllables; the rest have five. Each is at most 80 to the power of
/// the syllables.
const WORDS_OF_LENGTH: [u64; 3] = [500, 100_000, 30_000_000];

/// Spells word number `rank`: frequent words are short.
pub(super) fn push_word(rank: u64, out: &mut String) {
    let (mut count, mut offset) = (2, rank);
    for words in WORDS_OF_LENGTH {
        if offset < words {
            break;
        }
        offset -= words;
        count += 1;
    }
    // Neighbours in frequency must not look alike, so the numbers of one length are shuffled; the
    // spelling of a number is the same for every seed.
    let mut code = Order::new(SYLLABLES.pow(count), 0x5e11).at(offset);
    for _ in 0..count {
        push_syllable(code % SYLLABLES, out);
        code /= SYLLABLES;
    }
}

/// The name that only label `label` has: "Tamoves".
pub(super) fn push_proper_name(label: u64, out: &mut String) {
    let start = out.len();
    push_word(label / ENDINGS.len() as u64, out);
    out.push_str(ENDINGS[(label % ENDINGS.len() as u64) as usize]);
    capitalise(out, start);
}

/// Turns the letter at `at` into a capital.
pub(super) fn capitalise(text: &mut str, at: usize) {
    if let Some(letter) = text.get_mut(at..at + 1) {
        letter.make_ascii_uppercase();
    }
}

fn push_syllable(code: u64, out: &mut String) {
    out.push(CONSONANTS[(code / 5) as usize] as char);
    out.push(VOWELS[(code % 5) as usize] as char);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_two_numbers_share_a_spelling() {
        let mut seen = HashSet::new();
        for rank in (0..20_000).chain(99_000..120_000).chain(30_099_000..30_101_000) {
            let mut word = String::new();
            push_word(rank, &mut word);
            let longer = [500, 100_500, 30_100_500].iter().take_while(|&&end| end <= rank).count();
            assert_eq!(word.len(), 4 + 2 * longer, "{rank} {word}");
            assert!(seen.insert(word), "{rank}");
        }
        for label in 0..30_000 {
            let mut name = String::new();
            push_proper_name(label, &mut name);
            assert!(seen.insert(name.to_lowercase()), "{label} {name}");
        }
    }
}
