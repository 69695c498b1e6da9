//! A transformer below a network, or before it: chosen, put among the parameters, begun from its folder.

use super::{Embed, Embedded};
use crate::fit::{Context, FitError};
use crate::network::{EncoderName, Pretrained, TextEncoder};
use std::io::Read;
use std::path::{Path, PathBuf};
use xc_data::NpyRows;
use xc_dense::MatmulPrecision;
use xc_hash::text::{Featurizer, Vectorise as _, VectoriseError};
use xc_model::classifier::{Classifier, ClassifierParams, EncoderParams, TokensLearning, TokensParams};
use xc_model::message::chain;
use xc_model::tokens::{TextVectors, Tokenizer, TokenizerError};
use xc_nn::encoder::transformer::{Folder, FolderError, find_folder};
use xc_sparse::rows::Texts;
use xc_store::atomic::OutputFile;
use xxhash_rust::xxh3::Xxh3Default;

fn refused(error: &FolderError) -> FitError {
    FitError::usage(chain(error))
}

/// Where the folder is that was named.
fn place(of: &Pretrained) -> Result<PathBuf, FitError> {
    find_folder(&of.from).map_err(|e| refused(&e))
}

fn folder(of: &Pretrained) -> Result<Folder, FitError> {
    Folder::open(place(of)?).map_err(|e| refused(&e))
}

/// The tokenizer of the folder, for its weights, and what is to be said of it. `of` stands before the names of options in
/// messages.
///
/// # Errors
/// What is wrong with the folder, or does not belong together.
fn tokenizer(settings: &Pretrained, of: &str) -> Result<(Tokenizer, Vec<String>), FitError> {
    let folder = folder(settings)?;
    let (made, mut notes) = tokenizer_of(&folder, settings, of)?;
    notes.extend(unscaled(&folder));
    Ok((made, notes))
}

/// Networks read vectors as they are, whatever the folder says of their length.
fn unscaled(folder: &Folder) -> Option<String> {
    let module = folder.normalises()?;
    let path = folder.path().display();
    Some(format!("{path}: vectors are not scaled to length 1 ({module}): networks learn faster from them as they are"))
}

fn tokenizer_of(folder: &Folder, settings: &Pretrained, of: &str) -> Result<(Tokenizer, Vec<String>), FitError> {
    let (got, most, path) = (settings.max_tokens, folder.params().positions, folder.path());
    if got > most {
        let what = format_args!("--{of}max-tokens {got}: {} has {most} positions", path.display());
        return Err(FitError::usage(what));
    }
    let (rules, mut notes) = (folder.text_rules(), Vec::new());
    let max_tokens = match rules.max_tokens.filter(|&most| most < got) {
        Some(most) => {
            notes.push(format!("{}: at most {most} tokens of a text are read (max_seq_length)", path.display()));
            most
        }
        None => got,
    };
    let (prefix, whose) = match (&settings.prefix, &rules.prompt) {
        (Some(prefix), _) => (&**prefix, format!("--{of}prefix {prefix:?}")),
        (None, Some(prompt)) => {
            let whose = format!("{}: default prompt {prompt:?}", path.display());
            notes.push(format!("{whose} stands before every text; --{of}prefix '' leaves it out"));
            (&**prompt, whose)
        }
        (None, None) => ("", String::new()),
    };
    let made = Tokenizer::open_by(path, rules, max_tokens, folder.params().vocabulary);
    let made = made.and_then(|made| made.with_prefix(path, prefix)).map_err(|e| match e {
        TokenizerError::Prefix { what, .. } => FitError::usage(format_args!("{whose}: {what}")),
        e => FitError::usage(chain(&e)),
    })?;
    Ok((made, notes))
}

/// [`TextEncoder::put_below`].
pub(super) fn put(encoder: &TextEncoder, params: &mut ClassifierParams) -> Result<(), FitError> {
    let folder = folder(&encoder.pretrained)?;
    let widths = params.encoder.widths().to_vec();
    params.encoder = EncoderParams::Tokens(TokensParams { transformer: folder.params().clone(), widths });
    params.learning.tokens = TokensLearning { layers: encoder.layers, begins_with: None };
    Ok(())
}

/// What makes vectors of texts by the transformer of the folder as it comes, and what is to be said of it. `of` stands before the names of options in
/// messages.
///
/// # Errors
/// What is wrong with the folder, or does not belong together.
fn vectors(
    settings: &Pretrained,
    of: &str,
    precision: MatmulPrecision,
    normalise: bool,
) -> Result<(TextVectors, Vec<String>), FitError> {
    let folder = folder(settings)?;
    let (tokenizer, mut notes) = tokenizer_of(&folder, settings, of)?;
    // Whoever asks for vectors alone says whether they are scaled.
    if !of.is_empty() {
        notes.extend(unscaled(&folder));
    }
    let path = folder.path().to_owned();
    let transformer = folder.read(Default::default()).map_err(|e| refused(&e))?;
    let made = TextVectors::new(&path, tokenizer, transformer, precision, normalise);
    Ok((made.map_err(|e| FitError::usage(chain(&e)))?, notes))
}

/// Gives a classifier the weights of the folder.
///
/// # Errors
/// The folder cannot be read, or is another one by now.
pub(in crate::fit) fn begin(settings: &Pretrained, classifier: &mut Classifier) -> Result<(), FitError> {
    let folder = folder(settings)?;
    let Some(of) = classifier.params().encoder.tokens() else { return Ok(()) };
    if *folder.params() != of.transformer {
        let what = format_args!("{}: it changed while the training began", folder.path().display());
        return Err(FitError::failed(what));
    }
    match classifier.transformer_mut() {
        Some(transformer) => folder.read_into(transformer).map_err(|e| refused(&e)),
        None => Ok(()),
    }
}

/// [`TextEncoder::hash`].
pub(super) fn hash(settings: &Pretrained) -> Result<String, FitError> {
    let folder = &*place(settings)?;
    let wrong = |path: &Path, error: &std::io::Error| FitError::input(path, error);
    let of_folder = |folder: &Path| -> Result<Vec<PathBuf>, FitError> {
        let entries = std::fs::read_dir(folder).map_err(|e| wrong(folder, &e))?;
        Ok(entries.filter_map(|entry| Some(entry.ok()?.path())).collect())
    };
    let mut files = of_folder(folder)?;
    // Modules have folders of their own.
    for inside in files.clone().iter().filter(|path| path.is_dir()) {
        files.extend(of_folder(inside)?);
    }
    files.retain(|path| path.extension().is_some_and(|end| end == "safetensors" || end == "json") && path.is_file());
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

/// [`TextEncoder::featurizer`].
pub(super) fn featurizer(
    encoder: &TextEncoder,
    of: &str,
    precision: MatmulPrecision,
) -> Result<(Featurizer, Vec<String>), FitError> {
    if encoder.encoder == EncoderName::Frozen {
        // At length 1 networks learn slower: 6 points of P@1 less after as many epochs.
        let (made, notes) = vectors(&encoder.pretrained, of, precision, false)?;
        return Ok((made.into_featurizer(), notes));
    }
    let (made, notes) = tokenizer(&encoder.pretrained, of)?;
    Ok((made.into_featurizer(), notes))
}

impl Embed {
    /// What makes the vectors.
    ///
    /// # Errors
    /// What is wrong with the folder.
    pub fn open(&self) -> Result<TextVectors, FitError> {
        Ok(self.open_and_say()?.0)
    }

    /// The same with what is to be said of what the folder asks for.
    ///
    /// # Errors
    /// As [`Embed::open`].
    pub fn open_and_say(&self) -> Result<(TextVectors, Vec<String>), FitError> {
        vectors(&self.pretrained, "", self.precision, self.normalise)
    }

    /// Writes the vectors of texts as rows of an `.npy` file, in their order. `next` gives the texts in blocks, which messages
    /// call `name`. *Memory*: the weights, and what a block of texts needs.
    ///
    /// # Errors
    /// A folder that is no transformer, what `next` says, an output that cannot be written, a build without feature
    /// `transformer`, or an observer that cancels.
    pub fn write(
        &self,
        name: &str,
        next: &mut (dyn FnMut() -> Result<Option<Vec<String>>, FitError> + Send),
        output: &Path,
        context: &Context<'_>,
    ) -> Result<Embedded, FitError> {
        context.on_threads(|| {
            let (of, notes) = self.open_and_say()?;
            notes.iter().for_each(|line| context.note(line));
            let mut block = next()?;
            let file = OutputFile::create(output).map_err(|e| FitError::unwritable(&e))?;
            let unwritable = |e: std::io::Error| FitError::failed(format_args!("{}: {e}", output.display()));
            let mut out = NpyRows::begin(file, of.width()).map_err(unwritable)?;
            let mut embedded = Embedded { rows: 0, width: of.width(), tokens: 0 };
            let mut done = context.observer.task("texts embedded");
            while let Some(texts) = block {
                context.check_interrupt()?;
                let named = |VectoriseError { at, why }| {
                    FitError::usage(format_args!("{name}: text {}: {why}", embedded.rows + at + 1))
                };
                let (vectors, n_tokens) = of.of(Texts::Strings(&texts)).map_err(named)?;
                out.push(&vectors.values).map_err(unwritable)?;
                embedded.rows += texts.len();
                embedded.tokens += n_tokens;
                done(texts.len() as u64);
                block = next()?;
            }
            if let Some(line) = of.tokens().taken().note() {
                context.note(format_args!("{name}: {line}"));
            }
            let file = out.end().map_err(unwritable)?;
            file.commit().map_err(|e| FitError::unwritable(&e))?;
            Ok(embedded)
        })
    }
}
