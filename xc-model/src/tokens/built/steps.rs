//! The way from a text to ids, step by step, with a bound of what the steps may make of it: a file can ask for steps that
//! multiply every text, and a text can be as long as a file.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokenizers::normalizers::Replace;
use tokenizers::{
    Decoder as _, Model as _, NormalizedString, Normalizer, NormalizerWrapper, OffsetReferential, OffsetType,
    PreTokenizedString, PreTokenizer as _, PreTokenizerWrapper, Tokenizer, TruncationDirection,
};

/// Bytes of a text that are read, at most: thousands for each token that a transformer takes.
pub(super) const READ: usize = 1 << 20;
/// Bytes that steps make of what is read, at most.
const MADE: usize = 16 << 20;
/// Bytes of a text longer than what is read that tell how much is made of it, and what is made of such a text, about: it is cut
/// anyway, and a byte that is made takes dozens of memory.
const TRIED: usize = 64 << 10;
const MADE_OF_LONG: usize = 5 << 19;

/// What is said of a step that makes more.
fn too_much(step: &impl serde::Serialize) -> String {
    let written = serde_json::to_value(step).unwrap_or_default();
    let name = written.get("type").and_then(serde_json::Value::as_str).unwrap_or("a step of its");
    format!("{name} makes more than {MADE} bytes of one text")
}

/// What becomes of a text before the steps of its tokenizer.
pub(super) struct Before<'a> {
    /// What stands before it.
    pub(super) prefix: &'a str,
    /// Whether all of it is made lower case.
    pub(super) lower_case: bool,
}

/// Ids of a text with special tokens, and whether the text has more.
pub(super) struct Made {
    pub(super) ids: Vec<u32>,
    pub(super) is_cut: bool,
}

/// The first ids of a text: at most `room`, and the special tokens. They are those of the library where the text has no more
/// than [`READ`] bytes; of longer ones the first are read, fewer where the steps multiply them.
///
/// # Errors
/// What the library says, or that too much was made of the text.
pub(super) fn encode(of: &Tokenizer, before: &Before<'_>, text: &str, room: usize) -> tokenizers::Result<Made> {
    let read = &text[..n_read(of, text)?];
    let made = encode_whole(of, before, read, room)?;
    Ok(Made { is_cut: made.is_cut || read.len() < text.len(), ..made })
}

/// Bytes of a text that are read.
fn n_read(of: &Tokenizer, text: &str) -> tokenizers::Result<usize> {
    if text.len() <= READ {
        return Ok(text.len());
    }
    let made = n_made(&split(of, &text[..text.floor_char_boundary(TRIED)])?).max(1);
    Ok(text.floor_char_boundary(READ.min(TRIED * MADE_OF_LONG / made)))
}

/// The same of all of a text, however long.
pub(super) fn encode_whole(of: &Tokenizer, before: &Before<'_>, read: &str, room: usize) -> tokenizers::Result<Made> {
    let whole = if before.prefix.is_empty() { read } else { &*format!("{}{read}", before.prefix) };
    let whole = if before.lower_case { &*whole.to_lowercase() } else { whole };
    let mut pieces = split(of, whole)?;
    // One more than there is room for says that there are more.
    of.get_model().tokenize_in_pretokenized(&mut pieces, Some((room + 1, TruncationDirection::Right)))?;
    let mut of_text = pieces.into_encoding(None, 0, OffsetType::None)?;
    let is_cut = of_text.len() > room;
    if is_cut {
        // The library would make an encoding of every `room` tokens behind the first.
        of_text = of_text.get_ids()[..room].iter().map(|&id| (id, String::new(), (0, 0), None, 0)).collect();
    }
    let ids = of.post_process(of_text, None, true)?.get_ids().to_vec();
    Ok(Made { ids, is_cut })
}

/// The words of a text, as the model is to see them.
fn split(of: &Tokenizer, whole: &str) -> tokenizers::Result<PreTokenizedString> {
    let limited = of.get_normalizer().map(Limited::new);
    let mut pieces = of.get_added_vocabulary().extract_and_normalize(limited.as_ref(), whole);
    if let Some(what) = limited.and_then(|limited| limited.over.into_inner()) {
        return Err(what.into());
    }
    if let Some(step) = of.get_pre_tokenizer() {
        pre_tokenise(step, &mut pieces)?;
    }
    Ok(pieces)
}

/// What a normalizer makes of a short text of a file; an error where that is too much.
pub(super) fn normalised(by: &NormalizerWrapper, text: &str) -> Result<String, String> {
    let (limited, mut made) = (Limited::new(by), NormalizedString::from(text));
    // Errors of the library are found where texts are read.
    let _ = limited.normalize(&mut made);
    limited.over.into_inner().map_or_else(|| Ok(made.get().to_owned()), Err)
}

/// A normalizer that stops where it has made too much of all the pieces of a text, and remembers it: the library does not
/// look at its errors.
struct Limited<'a> {
    steps: &'a NormalizerWrapper,
    made: AtomicUsize,
    /// What is said of the step that made too much.
    over: OnceLock<String>,
}

impl<'a> Limited<'a> {
    fn new(steps: &'a NormalizerWrapper) -> Self {
        Self { steps, made: AtomicUsize::new(0), over: OnceLock::new() }
    }

    fn step(&self, step: &NormalizerWrapper, text: &mut NormalizedString) -> tokenizers::Result<()> {
        if let NormalizerWrapper::Sequence(steps) = step {
            return steps.as_ref().iter().try_for_each(|step| self.step(step, text));
        }
        let room = MADE - self.made.load(Ordering::Relaxed);
        if self.over.get().is_none() && least(step, text.get(), room)? <= room {
            step.normalize(text)?;
            if text.get().len() <= room {
                return Ok(());
            }
        }
        text.clear();
        Err(self.over.get_or_init(|| too_much(step)).as_str().into())
    }
}

impl Normalizer for Limited<'_> {
    fn normalize(&self, text: &mut NormalizedString) -> tokenizers::Result<()> {
        let done = self.step(self.steps, text);
        self.made.fetch_add(text.get().len(), Ordering::Relaxed);
        done
    }
}

/// Bytes that a step makes of a text, before it makes them: of steps that may make any number of a byte they are counted
/// where they could be more than `room`.
fn least(step: &NormalizerWrapper, text: &str, room: usize) -> tokenizers::Result<usize> {
    match step {
        NormalizerWrapper::Prepend(step) => Ok(text.len() + step.prepend.len()),
        NormalizerWrapper::Replace(step) if (text.len() + 1).saturating_mul(step.content.len() + 1) > room => {
            let with = |content: &str| {
                let mut other: Replace = step.clone();
                content.clone_into(&mut other.content);
                other.decode_chain(vec![text.to_owned()]).map(|made| made.iter().map(String::len).sum::<usize>())
            };
            let (without, n_replaced) = (with("")?, with("x")?);
            Ok(without.saturating_add((n_replaced - without).saturating_mul(step.content.len())))
        }
        _ => Ok(0),
    }
}

fn pre_tokenise(step: &PreTokenizerWrapper, pieces: &mut PreTokenizedString) -> tokenizers::Result<()> {
    if let PreTokenizerWrapper::Sequence(steps) = step {
        return steps.as_ref().iter().try_for_each(|step| pre_tokenise(step, pieces));
    }
    step.pre_tokenize(pieces)?;
    // Others cut, or leave out.
    let grows = matches!(step, PreTokenizerWrapper::ByteLevel(_) | PreTokenizerWrapper::Metaspace(_));
    if grows && n_made(pieces) > MADE { Err(too_much(step).into()) } else { Ok(()) }
}

/// Bytes of all words.
fn n_made(pieces: &PreTokenizedString) -> usize {
    let words = pieces.get_splits(OffsetReferential::Normalized, OffsetType::None);
    words.iter().map(|(text, ..)| text.len()).sum()
}

/// The words of a text, or the ids of those that are tokens by themselves: for tests.
#[cfg(test)]
pub(super) fn words(of: &Tokenizer, text: &str) -> Vec<String> {
    let pieces = split(of, text).unwrap();
    let words = pieces.get_splits(OffsetReferential::Normalized, OffsetType::None).into_iter();
    let shown = words.map(|(word, _, tokens)| match tokens {
        Some(tokens) => format!("{:?}", tokens.iter().map(|token| token.id).collect::<Vec<_>>()),
        None => word.to_owned(),
    });
    shown.collect()
}
