//! Tokenizers that read the beginning of a text by itself as they read it in the whole text: of these no more of a text is read
//! than fills its tokens.
//!
//! ```text
//!   ... the c a b│ c o m e s ...      two letters or digits of ASCII, a blank, another one: what stands before the blank is a piece
//! ```
//!
//! Steps that are known change what is on either side of such a blank without a look at the other, and one of them ends a word
//! there; a model looks at one word at a time. So the words of a piece are the first words of the text. Of other steps nothing is
//! assumed: their texts are read whole.

use super::steps::{self, Before, Made, READ, normalised};
use serde_json::Value;
use tokenizers::normalizers::{Precompiled, Replace};
use tokenizers::{NormalizerWrapper, PreTokenizerWrapper, Tokenizer};

/// Bytes of the first piece, at least, and for each token that is wanted.
const FIRST: usize = 4096;
const A_TOKEN: usize = 16;
/// What the next piece has more of: at worst a third is read beside the whole text.
const LONGER: usize = 4;
/// What tokenizers of SentencePiece write for a blank.
const MARK: char = '\u{2581}';

/// The first ids of a text ([`steps::encode`]). Where the tokenizer reads pieces, no more is read than fills the room.
///
/// # Errors
/// As [`steps::encode`].
pub(super) fn encode(
    of: &Tokenizer,
    before: &Before<'_>,
    text: &str,
    room: usize,
    reads_pieces: bool,
) -> tokenizers::Result<Made> {
    if reads_pieces {
        for end in ends(text, room) {
            let made = steps::encode_whole(of, before, &text[..end], room)?;
            if made.is_cut {
                return Ok(made);
            }
        }
    }
    steps::encode(of, before, text, room)
}

/// Where pieces of a text end from which `room` tokens are wanted, shorter ones first; none is the text.
fn ends(text: &str, room: usize) -> impl Iterator<Item = usize> {
    let first = room.saturating_mul(A_TOKEN).max(FIRST);
    let sizes = std::iter::successors(Some(first), |size| size.checked_mul(LONGER));
    let sizes = sizes.take_while(move |&size| size < text.len().min(READ));
    let mut before = 0;
    sizes.filter_map(move |size| {
        let end = last_end(&text.as_bytes()[before..size]).map(|end| before + end);
        before = size;
        end
    })
}

/// The last place in a text that ends a piece.
fn last_end(text: &[u8]) -> Option<usize> {
    let ends =
        |four: &[u8]| matches!(four, [a, b, b' ', c] if [a, b, c].iter().all(|byte| byte.is_ascii_alphanumeric()));
    text.windows(4).rposition(ends).map(|at| at + 2)
}

/// Whether the first words of a text are those of each of its pieces.
pub(super) fn reads_pieces(of: &Tokenizer) -> bool {
    let mut blank = Blank { may_be_mark: false, ends_word: false };
    let normalizer = of.get_normalizer();
    let steps_are_known = normalizer.is_none_or(|step| blank.is_behind(step))
        && of.get_pre_tokenizer().is_some_and(|step| blank.splits_behind(step));
    // A token with a blank in it may begin in a piece and end behind it.
    let is_within_words = |token: &str| token.chars().skip(1).all(|c| c != ' ' && c != MARK);
    let tokens = of.get_added_vocabulary().get_added_tokens_decoder();
    let mut tokens = tokens.values().map(|token| &*token.content);
    let stays = |token| normalizer.is_none_or(|step| normalised(step, token).is_ok_and(|made| is_within_words(&made)));
    steps_are_known && blank.ends_word && tokens.all(|token| is_within_words(token) && stays(token))
}

/// What steps have made of the blank behind a piece.
struct Blank {
    may_be_mark: bool,
    /// Whether a word ends before it, so that steps see no further.
    ends_word: bool,
}

impl Blank {
    /// Whether it is still there behind a normalizer, with letters or digits around it.
    fn is_behind(&mut self, step: &NormalizerWrapper) -> bool {
        match step {
            NormalizerWrapper::Sequence(steps) => steps.as_ref().iter().all(|step| self.is_behind(step)),
            NormalizerWrapper::BertNormalizer(_)
            | NormalizerWrapper::StripNormalizer(_)
            | NormalizerWrapper::StripAccents(_)
            | NormalizerWrapper::NFC(_)
            | NormalizerWrapper::NFD(_)
            | NormalizerWrapper::NFKC(_)
            | NormalizerWrapper::NFKD(_)
            | NormalizerWrapper::Lowercase(_)
            | NormalizerWrapper::Nmt(_)
            | NormalizerWrapper::Prepend(_) => true,
            NormalizerWrapper::Precompiled(map) => keeps_ascii(map),
            NormalizerWrapper::Replace(step) => self.is_behind_replace(step),
            NormalizerWrapper::ByteLevel(_) => false,
        }
    }

    fn is_behind_replace(&mut self, step: &Replace) -> bool {
        // The library shows the pattern of no step but in this form.
        let Ok(written) = serde_json::to_value(step) else { return false };
        let pattern = |kind: &str| written.pointer(&format!("/pattern/{kind}")).and_then(Value::as_str);
        match (pattern("String"), pattern("Regex")) {
            (Some(" "), _) => {
                self.may_be_mark |= step.content.starts_with(MARK);
                step.content == " " || step.content.chars().eq([MARK])
            }
            (Some(pattern), _) => {
                let is_other = |c: char| !c.is_ascii_alphanumeric() && c != ' ' && c != MARK;
                !pattern.is_empty() && pattern.chars().all(is_other)
            }
            // Two blanks or more: there is one.
            (None, pattern) => pattern == Some(" {2,}"),
        }
    }

    /// Whether it is there behind what splits texts, or a word ends before it.
    fn splits_behind(&mut self, step: &PreTokenizerWrapper) -> bool {
        let is_blank = !self.may_be_mark;
        match step {
            PreTokenizerWrapper::Sequence(steps) => steps.as_ref().iter().all(|step| self.splits_behind(step)),
            PreTokenizerWrapper::BertPreTokenizer(_)
            | PreTokenizerWrapper::Whitespace(_)
            | PreTokenizerWrapper::WhitespaceSplit(_) => {
                self.ends_word |= is_blank;
                true
            }
            PreTokenizerWrapper::Punctuation(_) | PreTokenizerWrapper::Digits(_) => true,
            PreTokenizerWrapper::ByteLevel(step) => {
                self.ends_word |= is_blank && step.use_regex;
                self.ends_word
            }
            PreTokenizerWrapper::Metaspace(step) => {
                let by = step.get_replacement();
                self.ends_word |= step.get_split() && !by.is_ascii() && (is_blank || by == MARK);
                self.ends_word
            }
            // Each works on a word by itself.
            PreTokenizerWrapper::Delimiter(_)
            | PreTokenizerWrapper::Split(_)
            | PreTokenizerWrapper::UnicodeScripts(_)
            | PreTokenizerWrapper::FixedLength(_) => self.ends_word,
        }
    }
}

/// Whether a map of characters leaves blanks, and letters and digits of ASCII what they are.
fn keeps_ascii(map: &Precompiled) -> bool {
    let is_one = |made: &str| matches!(made.as_bytes(), [byte] if byte.is_ascii_alphanumeric());
    let mut letters = (0..=0x7f).map(char::from).filter(char::is_ascii_alphanumeric);
    letters.all(|c| map.transform(c.encode_utf8(&mut [0; 4])).is_none_or(is_one))
        && [" ", "\u{2581}"].into_iter().all(|c| map.transform(c).is_none_or(|made| made == c))
}

#[cfg(test)]
mod tests {
    use super::super::steps::words;
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn tokenizer(normalizers: &[Value], pre_tokenizers: &[Value], added: &[Value]) -> Tokenizer {
        let sequence = |of: &str, steps: &[Value]| json!({ "type": "Sequence", of: steps });
        let file = json!({
            "version": "1.0",
            "added_tokens": added,
            "normalizer": sequence("normalizers", normalizers),
            "pre_tokenizer": sequence("pretokenizers", pre_tokenizers),
            "model": { "type": "WordLevel", "vocab": { "?": 0, "ab": 1, "<m>": 2, "c d": 3 }, "unk_token": "?" }
        });
        Tokenizer::from_bytes(file.to_string()).unwrap()
    }

    fn replace(pattern: Value, content: &str) -> Value {
        json!({ "type": "Replace", "pattern": pattern, "content": content })
    }

    fn mark(scheme: &str, split: bool) -> Value {
        json!({ "type": "Metaspace", "replacement": MARK, "prepend_scheme": scheme, "split": split })
    }

    fn bytes(use_regex: bool) -> Value {
        json!({ "type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": use_regex })
    }

    /// A map of characters of SentencePiece that makes `made` of `X`.
    fn map(made: &str) -> Value {
        let x = u32::from(b'X');
        let mut units = [0u32; 256];
        units[x as usize] = x | 1 << 8 | (1 ^ x) << 10;
        units[1] = 1 << 31;
        let map: Vec<u8> =
            1024u32.to_le_bytes().into_iter().chain(units.into_iter().flat_map(u32::to_le_bytes)).collect();
        let map = [&map[..], made.as_bytes(), &[0]].concat();
        json!({ "type": "Precompiled", "precompiled_charsmap": base64::encode(map) })
    }

    fn added(content: &str, strips: bool, is_word: bool, normalized: bool) -> Value {
        json!({ "id": if content == "c d" { 3 } else { 2 }, "content": content, "single_word": is_word, "lstrip": strips,
            "rstrip": strips, "normalized": normalized, "special": false })
    }

    fn any_normalizer() -> impl Strategy<Value = Value> {
        let bert = |clean: bool, lower: bool| {
            json!({ "type": "BertNormalizer", "clean_text": clean, "handle_chinese_chars": true, "strip_accents": null,
                "lowercase": lower })
        };
        const PLAIN: &[&str] = &["NFC", "NFD", "NFKC", "NFKD", "StripAccents", "Lowercase", "Nmt", "ByteLevel"];
        prop_oneof![
            4 => prop::sample::select(PLAIN).prop_map(|kind| json!({ "type": kind })),
            2 => any::<(bool, bool)>().prop_map(move |(clean, lower)| bert(clean, lower)),
            1 => any::<(bool, bool)>().prop_map(|(l, r)| json!({ "type": "Strip", "strip_left": l, "strip_right": r })),
            1 => Just(json!({ "type": "Prepend", "prepend": MARK })),
            1 => prop::sample::select(vec!["x", " ", "é"]).prop_map(map),
            2 => prop::sample::select(vec![
                replace(json!({ "String": " " }), "\u{2581}"),
                replace(json!({ "String": " " }), ""),
                replace(json!({ "String": "``" }), "\" "),
                replace(json!({ "String": "b c" }), "x"),
                replace(json!({ "String": "b" }), " "),
                replace(json!({ "Regex": " {2,}" }), "\u{2581}"),
                replace(json!({ "Regex": ". ." }), "x"),
            ]),
        ]
    }

    fn any_pre_tokenizer() -> impl Strategy<Value = Value> {
        const PLAIN: &[&str] = &["BertPreTokenizer", "Whitespace", "WhitespaceSplit", "UnicodeScripts"];
        const BEHAVIORS: &[&str] = &["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"];
        let split = |pattern: &str, behavior: &str| json!({ "type": "Split", "pattern": { "String": pattern }, "behavior": behavior, "invert": false });
        let of = (prop::sample::select(BEHAVIORS), any::<bool>());
        prop_oneof![
            4 => prop::sample::select(PLAIN).prop_map(|kind| json!({ "type": kind })),
            2 => of.prop_map(move |(behavior, blank)| match blank {
                true => split(" ", behavior),
                false => json!({ "type": "Punctuation", "behavior": behavior }),
            }),
            1 => any::<bool>().prop_map(|each| json!({ "type": "Digits", "individual_digits": each })),
            1 => any::<bool>().prop_map(bytes),
            2 => (prop::sample::select(vec!["always", "first", "never"]), any::<bool>()).prop_map(|(s, split)| mark(s, split)),
            1 => (1usize..4).prop_map(|length| json!({ "type": "FixedLength", "length": length })),
        ]
    }

    /// Texts of what steps look at.
    fn any_text() -> impl Strategy<Value = String> {
        let part = prop::sample::select(vec![
            " ", "  ", "a", "b", "ab", "X", "7", "c d", "<m>", "<m> ", "``", "'s", ".", ",-", "é", "e\u{301}",
            "\u{301}", "猫", "\u{2581}", "\t", "\u{0}", "\u{200d}", "Σ", "\u{fdfa}", "ｱﾞ", "\u{600}", "\n", "\u{a0}",
            "G", "\u{307}",
        ]);
        prop::collection::vec(part, 0..8).prop_map(|parts| parts.concat())
    }

    #[test]
    fn tokenizers_as_they_are_published_read_pieces() {
        let bert = json!({ "type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null,
            "lowercase": true });
        let of = |kind: &str| json!({ "type": kind });
        let blanks = replace(json!({ "Regex": " {2,}" }), " ");
        let is_read = |normalizers: &[Value], pre: &[Value]| reads_pieces(&tokenizer(normalizers, pre, &[]));
        assert!(is_read(&[bert], &[of("BertPreTokenizer")]));
        assert!(is_read(&[], &[bytes(true)]) && is_read(&[], &[of("Whitespace")]));
        assert!(is_read(&[map("x"), blanks.clone()], &[mark("always", true)]));
        assert!(is_read(&[map("x")], &[of("WhitespaceSplit"), mark("first", true)]));
        assert!(is_read(&[of("NFC"), replace(json!({ "String": " " }), "\u{2581}")], &[mark("first", true)]));
        // No step ends words, or not at what blanks have become.
        assert!(!is_read(&[], &[]) && !is_read(&[], &[bytes(false)]) && !is_read(&[], &[mark("always", false)]));
        assert!(!is_read(&[replace(json!({ "String": " " }), "\u{2581}")], &[of("Whitespace")]));
        assert!(!is_read(&[of("ByteLevel")], &[of("Whitespace")]) && !is_read(&[map(" ")], &[of("Whitespace")]));
        assert!(!is_read(&[], &[json!({ "type": "FixedLength", "length": 3 }), of("Whitespace")]));
        for (content, expected) in [("<m>", true), (" <m>", true), ("c d", false)] {
            let of = tokenizer(&[], &[of("Whitespace")], &[added(content, true, false, false)]);
            assert_eq!(reads_pieces(&of), expected, "{content}");
        }
    }

    #[test]
    fn pieces_end_before_blanks_and_grow() {
        let text = format!("{}{}", " ".repeat(5000), "ab cd, e f g h ".repeat(10_000));
        let got: Vec<usize> = ends(&text, 1).collect();
        assert_eq!(got.len(), 2, "{got:?}");
        assert!(got.iter().all(|&end| text[..end].ends_with("ab") && text[end..].starts_with(" cd")) && got[0] > 5000);
        assert!(ends(&text, 1 << 30).next().is_none() && ends(&text[..4096], 1).next().is_none());
        assert!(ends(&"猫 ".repeat(10_000), 1).next().is_none() && ends(&"a".repeat(100_000), 1).next().is_none());
        assert!(ends(&"ab cd ".repeat(1 << 20), 1).all(|end| end < READ));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]

        #[test]
        fn the_words_of_a_piece_are_the_first_of_the_text(
            normalizers in prop::collection::vec(any_normalizer(), 0..3),
            pre in prop::collection::vec(any_pre_tokenizer(), 1..3),
            token in prop::sample::select(vec!["<m>", "c d", "b", " <m>"]),
            how in any::<(bool, bool, bool)>(),
            begin in any_text(),
            end in any_text(),
        ) {
            let of = tokenizer(&normalizers, &pre, &[added(token, how.0, how.1, how.2)]);
            if reads_pieces(&of) {
                for letters in ["ab", "b7", "aX"] {
                    let piece = format!("{begin}{letters}");
                    let (some, all) = (words(&of, &piece), words(&of, &format!("{piece} c{end}")));
                    prop_assert_eq!(all.get(..some.len()), Some(&some[..]), "{:?}", all);
                }
            }
        }
    }
}
