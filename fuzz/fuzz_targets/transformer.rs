//! Transformers of texts. The first byte says how: what a model's folder keeps of tokens, of tokens and words or of vectors; a
//! folder as HuggingFace's libraries write it whose weights are written anew from the input; such a folder as it stands in
//! the input. What opens answers, a text alone as among others, and is stored and opened again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::path::Path;
use xc_buffer::dtype::DType;
use xc_dense::MatmulPrecision;
use xc_fuzz::{blocks, check_message, folder, pipeline_parts, sections, words};
use xc_hash::text::{PipelineParts, Tokenise, Vectorise as _};
use xc_model::tokens::{TextVectors, Tokenizer, TokensAndWords, tokenise};
use xc_nn::encoder::transformer::{Folder, Transformer, TransformerLearning};
use xc_nn::state::State as _;
use xc_sparse::rows::Texts;
use xc_store::atomic::OutputFolder;
use xc_store::{NamedFloats, write_tensors};

/// Tokens of a text, at most.
const MOST: usize = 16;

fuzz_target!(|input: (u8, &[u8])| match input.0 % 3 {
    0 => stored(input.1),
    1 => with_weights_anew(input.1),
    _ => {
        let [config, pooling, tokenizer, text, weights] = sections(input.1);
        of_folder(config, pooling, tokenizer, weights, text);
    }
});

fn stored(input: &[u8]) {
    let Some((parts, text)) = pipeline_parts(input) else { return };
    let path = Path::new("model");
    let kind = [Tokenizer::describes, TokensAndWords::describes, TextVectors::describes];
    match kind.map(|is_of| is_of(&parts.config)) {
        [true, ..] => check_tokens(|parts| Tokenizer::from_parts(path, parts), parts, &text),
        [_, true, _] => check_tokens(|parts| TokensAndWords::from_parts(path, parts), parts, &text),
        [.., true] => match TextVectors::from_parts(path, parts) {
            Ok(made) => check_vectors(made, &text),
            Err(error) => check_message(path, &error.to_string()),
        },
        _ => {}
    }
}

/// The texts that are asked: long texts are work, not an error.
fn texts(text: &str) -> [String; 3] {
    [text.chars().take(300).collect(), "The cat, une été: sat!".to_owned(), String::new()]
}

fn check_tokens<T: Tokenise, E: std::error::Error>(
    from_parts: impl Fn(PipelineParts) -> Result<T, E>,
    parts: PipelineParts,
    text: &str,
) {
    let made = match from_parts(parts) {
        Ok(made) => made,
        Err(error) => return check_message(Path::new("model"), &error.to_string()),
    };
    let parts = made.to_parts();
    let again = from_parts(parts.clone()).unwrap_or_else(|e| panic!("what was stored opens: {e}"));
    assert!(again.to_parts() == parts);
    let texts = texts(text);
    match tokenise(&made, Texts::Strings(&texts)) {
        Ok(rows) => {
            for (i, text) in texts.iter().enumerate() {
                let mut ids = Vec::new();
                again.append(text, &mut ids).expect("as among others");
                assert_eq!(ids, rows.view().row(i));
                assert!(ids.iter().all(|&id| (id as usize) < made.n_tokens()));
            }
        }
        Err((at, error)) => assert!(at < texts.len() && !error.to_string().contains('\n'), "{error}"),
    }
}

fn check_vectors(made: TextVectors, text: &str) {
    let parts = made.to_parts();
    let [made, again] = [parts.clone(), parts].map(|parts| TextVectors::from_parts(Path::new("model"), parts));
    let (made, again) = (made.expect("what was stored opens"), again.expect("it opens twice"));
    let texts = texts(text);
    let bits = |values: &[f32]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
    match made.of(Texts::Strings(&texts)) {
        Ok((vectors, _)) => {
            for (i, text) in texts.iter().enumerate() {
                let (alone, _) = again.of(Texts::Slices(&[&**text])).expect("as among others");
                let vector = vectors.view().row(i);
                assert!(vector.iter().all(|v| v.is_finite()));
                assert_eq!(bits(alone.view().row(0)), bits(vector));
            }
        }
        Err(error) => assert!(error.at < texts.len() && !error.to_string().contains('\n'), "{error}"),
    }
}

fn with_weights_anew(input: &[u8]) {
    let parts: [&[u8]; 40] = sections(input);
    let blocks = blocks(&parts[4..]);
    let mut arrays: Vec<NamedFloats<'_>> = Vec::new();
    let values: Vec<Vec<f32>> =
        blocks.iter().map(|block| words(block.bytes).into_iter().map(f32::from_bits).collect()).collect();
    for (block, values) in blocks.iter().zip(&values) {
        if block.dtype == DType::F32 && arrays.iter().all(|(name, ..)| name != block.name) {
            arrays.push((block.name.to_owned(), block.shape.clone(), values));
        }
    }
    let mut weights = Vec::new();
    write_tensors(&arrays, &mut weights).expect("memory");
    of_folder(parts[0], parts[1], parts[2], &weights, parts[3]);
}

fn of_folder(config: &[u8], pooling: &[u8], tokenizer: &[u8], weights: &[u8], text: &[u8]) {
    let mut files = vec![("config.json", config), ("tokenizer.json", tokenizer), ("model.safetensors", weights)];
    // Without the file, the mean is taken.
    files.extend((!pooling.is_empty()).then_some(("1_Pooling/config.json", pooling)));
    let path = folder("transformer", &files);
    let read = |path: &Path| Folder::open(path).and_then(|folder| folder.read(TransformerLearning::default()));
    let transformer = match read(&path) {
        Ok(transformer) => transformer,
        Err(error) => return check_message(&path, &error.to_string()),
    };
    let again = folder("exported", &[]);
    let to = OutputFolder::create(again.join("folder")).expect("a folder in memory");
    transformer.write_folder(&to).expect("memory takes a small transformer");
    to.commit().expect("memory");
    let again = read(&again.join("folder")).expect("what was written is read");
    assert!(again.params() == transformer.params() && bits(&again) == bits(&transformer));
    let (n_tokens, most) = (transformer.params().vocabulary, transformer.params().positions.min(MOST));
    let tokenizer = match Tokenizer::open(&path, most, n_tokens) {
        Ok(tokenizer) => tokenizer,
        Err(error) => return check_message(&path, &error.to_string()),
    };
    let made = TextVectors::new(&path, tokenizer, transformer, MatmulPrecision::F32, false);
    check_vectors(made.expect("they have the same tokens"), &String::from_utf8_lossy(text));
}

/// All weights.
fn bits(of: &Transformer) -> Vec<u32> {
    let parameters = of.parameters();
    parameters.iter().flat_map(|named| named.parameter.values().iter().map(|v| v.to_bits())).collect()
}
