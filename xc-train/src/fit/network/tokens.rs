//! A transformer below a network, or before it: chosen, put among the parameters, begun from its folder.

use crate::classifier::{Classifier, ClassifierParams, EncoderParams, TokensLearning, TokensParams};
use crate::fit::FitError;
use crate::message::chain;
use crate::settings::transformer::TransformerSettings;
use crate::tokens::{TextVectors, Tokenizer, TokenizerError};
use std::io::Read;
use std::path::Path;
use xc_nn::encoder::transformer::{Folder, FolderError};
use xc_sparse::dense::MatmulPrecision;
use xxhash_rust::xxh3::Xxh3Default;

fn refused(error: &FolderError) -> FitError {
    FitError::usage(chain(error))
}

fn folder(settings: &TransformerSettings) -> Result<Folder, FitError> {
    Folder::open(settings.from.as_deref().unwrap_or_default()).map_err(|e| refused(&e))
}

/// The tokenizer of the folder, for its weights. `of` stands before the names of options in messages.
///
/// # Errors
/// What is wrong with the folder, or does not belong together.
pub(in crate::fit) fn tokenizer(settings: &TransformerSettings, of: &str) -> Result<Tokenizer, FitError> {
    tokenizer_of(&folder(settings)?, settings, of)
}

fn tokenizer_of(folder: &Folder, settings: &TransformerSettings, of: &str) -> Result<Tokenizer, FitError> {
    let (got, most) = (settings.max_tokens, folder.params().positions);
    if got > most {
        let what = format_args!("--{of}max-tokens {got}: {} has {most} positions", folder.path().display());
        return Err(FitError::usage(what));
    }
    let made = Tokenizer::open(folder.path(), got, folder.params().vocabulary);
    let made = made.and_then(|made| made.with_prefix(folder.path(), &settings.prefix));
    made.map_err(|e| match e {
        TokenizerError::Prefix { what, .. } => {
            FitError::usage(format_args!("--{of}prefix {:?}: {what}", settings.prefix))
        }
        e => FitError::usage(chain(&e)),
    })
}

/// Puts the transformer of the folder below the layers of a network.
///
/// # Errors
/// What is wrong with the folder.
pub(super) fn put(settings: &TransformerSettings, params: &mut ClassifierParams) -> Result<(), FitError> {
    let folder = folder(settings)?;
    let widths = params.encoder.widths().to_vec();
    params.encoder = EncoderParams::Tokens(TokensParams { transformer: folder.params().clone(), widths });
    params.learning.tokens = TokensLearning { layers: settings.learning(), begins_with: None };
    Ok(())
}

/// What makes vectors of texts by the transformer of the folder as it comes. `of` stands before the names of options in
/// messages.
///
/// # Errors
/// What is wrong with the folder, or does not belong together.
pub(in crate::fit) fn vectors(
    settings: &TransformerSettings,
    of: &str,
    precision: MatmulPrecision,
    normalise: bool,
) -> Result<TextVectors, FitError> {
    let folder = folder(settings)?;
    let tokenizer = tokenizer_of(&folder, settings, of)?;
    let path = folder.path().to_owned();
    let transformer = folder.read(Default::default()).map_err(|e| refused(&e))?;
    let made = TextVectors::new(&path, tokenizer, transformer, precision, normalise);
    made.map_err(|e| FitError::usage(chain(&e)))
}

/// Gives a classifier the weights of the folder.
///
/// # Errors
/// The folder cannot be read, or is another one by now.
pub(super) fn begin(settings: &TransformerSettings, classifier: &mut Classifier) -> Result<(), FitError> {
    let folder = folder(settings)?;
    let expected = match &classifier.params().encoder {
        EncoderParams::Tokens(of) => of.transformer.clone(),
        _ => return Ok(()),
    };
    if *folder.params() != expected {
        let what = format_args!("{}: it changed while the training began", folder.path().display());
        return Err(FitError::failed(what));
    }
    match classifier.transformer_mut() {
        Some(transformer) => folder.read_into(transformer).map_err(|e| refused(&e)),
        None => Ok(()),
    }
}

/// Hash of the weights in the folder, and of what says how they are used: what is learned follows from them. *Cost*: reads
/// them.
pub(in crate::fit) fn hash(settings: &TransformerSettings) -> Result<String, FitError> {
    let folder = Path::new(settings.from.as_deref().unwrap_or_default());
    let wrong = |path: &Path, error: &std::io::Error| FitError::input(path, error);
    let entries = std::fs::read_dir(folder).map_err(|e| wrong(folder, &e))?;
    let mut files: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|path| path.extension().is_some_and(|end| end == "safetensors"));
    files.extend(["config.json", "tokenizer.json", "1_Pooling/config.json"].map(|name| folder.join(name)));
    files.retain(|path| path.is_file());
    files.sort();
    let (mut hash, mut piece) = (Xxh3Default::new(), vec![0; 1 << 20]);
    for path in files {
        let mut file = std::fs::File::open(&path).map_err(|e| wrong(&path, &e))?;
        loop {
            let n = file.read(&mut piece).map_err(|e| wrong(&path, &e))?;
            if n == 0 {
                break;
            }
            hash.update(&piece[..n]);
        }
    }
    Ok(format!("{:016x}", hash.digest()))
}
