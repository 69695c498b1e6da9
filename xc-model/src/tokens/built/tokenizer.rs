//! Tokenizers of HuggingFace's libraries: texts as ordered ids of tokens.
//!
//! ```text
//!   prefix and text ──▶ tokenizer.json ──▶ ids, cut to `max_tokens`, special tokens of both ends kept
//! ```
//!
//! A model's folder keeps the file as it came, but for merges that are left out at random, so that it answers texts without the folder that it was trained from.

use super::super::check_prefix;
use super::at_work::at_work;
use super::checked::{checked, with_lower_case, without_dropout};
use super::{later_version, pieces, steps};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use thiserror::Error;
use tokenizers::PostProcessor;
use xc_hash::text::{Featurizer, PartArray, PipelineParts, TextsTaken, Tokenise, TokeniseError};
use xc_nn::encoder::transformer::TextRules;
use xc_store::LFS_POINTER;

/// The file of a folder.
pub const FILE: &str = "tokenizer.json";
/// What tokenizers are written in without it.
const OTHER_FORMS: [&str; 5] =
    ["vocab.txt", "vocab.json", "sentencepiece.bpe.model", "spiece.model", "tokenizer.model"];
/// Bytes of the file, at most.
const LIMIT: u64 = 256 << 20;
/// The kind that a stored description states.
const KIND: &str = "tokens";
const VERSION: u32 = 1;
/// The array of a model's folder that holds the file.
pub(crate) const ARRAY: &str = "tokenizer";

/// A tokenizer, and how many tokens a text may have.
#[derive(Debug)]
pub struct Tokenizer {
    /// What messages call the file.
    path: Arc<Path>,
    inner: tokenizers::Tokenizer,
    /// Whether the beginning of a text is read by itself.
    reads_pieces: bool,
    /// The file as it came, without dropout.
    file: Vec<u8>,
    stored: Stored,
    /// Tokens of a text, at most, beside the special ones.
    room: usize,
    /// Texts whose ids were asked for, and those of them that have more tokens than are taken.
    texts: AtomicU64,
    texts_cut: AtomicU64,
}

/// What a model's folder says of its tokens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    kind: Kind,
    version: u32,
    max_tokens: usize,
    n_tokens: usize,
    /// What stands before every text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    prefix: String,
    /// Whether texts are made lower case before all else.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    lower_case: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    Tokens,
}

/// Why there is no tokenizer.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TokenizerError {
    /// A system error.
    #[error("{}: cannot be read", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// What git-lfs keeps in the place of the file.
    #[error("{}: a pointer of git-lfs in place of the file; `git lfs pull` in its folder fetches it", path.display())]
    Pointer {
        /// The file.
        path: PathBuf,
    },
    /// A tokenizer in a form that is not read.
    #[error("{}: not there; {found} is not read: `AutoTokenizer.from_pretrained(DIR).save_pretrained(DIR)` of HuggingFace's transformers writes it", path.display())]
    OtherForm {
        /// The file that is expected.
        path: PathBuf,
        /// The one that is there.
        found: &'static str,
    },
    /// A file that is too long.
    #[error("{}: more than {LIMIT} bytes", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// No tokenizer.
    #[error("{}: no tokenizer: {why}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What the library says.
        why: String,
    },
    /// A token that the network has no embedding for.
    #[error("{}: token {id} ({token:?}); the weights have {n_tokens} tokens: the two do not belong together", path.display())]
    OutOfRange {
        /// The file.
        path: PathBuf,
        /// The token.
        token: String,
        /// Its id.
        id: u32,
        /// Tokens of the network.
        n_tokens: usize,
    },
    /// No room for a token of the text.
    #[error("{}: at most {max_tokens} tokens, {n_special} of them special: room for one of the text is expected", path.display())]
    NoRoom {
        /// The file.
        path: PathBuf,
        /// Tokens of a text, at most.
        max_tokens: usize,
        /// Special tokens of every text.
        n_special: usize,
    },
    /// What cannot stand before every text.
    #[error("{}: what stands before every text: {what}", path.display())]
    Prefix {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// A description in a model's folder that is none.
    #[error("{}: description of tokens", path.display())]
    Config {
        /// The folder.
        path: PathBuf,
        /// Position and cause.
        source: serde_json::Error,
    },
    /// A description of a later version, or without its array.
    #[error("{}: tokens of version {version}, and {n_arrays} arrays; version {VERSION} and the array {ARRAY:?} are expected", path.display())]
    Parts {
        /// The folder.
        path: PathBuf,
        /// The version.
        version: u64,
        /// Arrays that belong to it.
        n_arrays: usize,
    },
}

impl Tokenizer {
    /// Reads `tokenizer.json` of a folder, for a network of `n_tokens` tokens that takes `max_tokens` of a text. What the
    /// file says of truncation and padding does not count.
    ///
    /// # Errors
    /// See [`TokenizerError`].
    pub fn open(folder: &Path, max_tokens: usize, n_tokens: usize) -> Result<Self, TokenizerError> {
        Self::open_by(folder, &TextRules::default(), max_tokens, n_tokens)
    }

    /// The same with what the folder says of lower case beside the file; limits and prompts are the caller's to choose.
    ///
    /// # Errors
    /// See [`TokenizerError`].
    pub fn open_by(
        folder: &Path,
        rules: &TextRules,
        max_tokens: usize,
        n_tokens: usize,
    ) -> Result<Self, TokenizerError> {
        use std::io::Read as _;
        let path = folder.join(FILE);
        let io = |source| TokenizerError::Io { path: path.clone(), source };
        if !path.exists()
            && let Some(found) = OTHER_FORMS.into_iter().find(|name| folder.join(name).is_file())
        {
            return Err(TokenizerError::OtherForm { path, found });
        }
        let meta = std::fs::metadata(&path).map_err(io)?;
        if !meta.is_file() {
            return Err(io(std::io::Error::new(std::io::ErrorKind::InvalidInput, "not a regular file")));
        }
        let mut file = Vec::new();
        std::fs::File::open(&path).and_then(|from| from.take(LIMIT + 1).read_to_end(&mut file)).map_err(io)?;
        if file.len() as u64 > LIMIT {
            return Err(TokenizerError::TooLarge { path });
        }
        if file.starts_with(LFS_POINTER) {
            return Err(TokenizerError::Pointer { path });
        }
        if let Some(lower_case) = rules.tokenizer_lower_case {
            let made = with_lower_case(file, lower_case);
            file = made.map_err(|why| TokenizerError::Malformed { path: path.clone(), why })?;
        }
        Ok(Self::new(&path, file, max_tokens, n_tokens)?.with_lower_case(rules.lower_case))
    }

    /// The same with texts that are made lower case, with what stands before them, before all else.
    pub fn with_lower_case(mut self, lower_case: bool) -> Self {
        self.stored.lower_case = lower_case;
        self
    }

    /// The tokenizer of the content of a file; `path` is what messages call it.
    ///
    /// # Errors
    /// See [`TokenizerError`].
    pub fn new(path: &Path, file: Vec<u8>, max_tokens: usize, n_tokens: usize) -> Result<Self, TokenizerError> {
        let at: Arc<Path> = path.into();
        let path = || path.to_owned();
        let wrong = |why| TokenizerError::Malformed { path: path(), why };
        let file = without_dropout(file).map_err(wrong)?;
        let inner = at_work(&at, || tokenizers::Tokenizer::from_bytes(checked(&file)?)).map_err(wrong)?;
        let reads_pieces = at_work(&at, || Ok(pieces::reads_pieces(&inner))).map_err(wrong)?;
        let n_special = inner.get_post_processor().map_or(0, |post| post.added_tokens(false));
        if max_tokens <= n_special {
            return Err(TokenizerError::NoRoom { path: path(), max_tokens, n_special });
        }
        let past = inner.get_vocab(true).into_iter().filter(|(_, id)| *id as usize >= n_tokens);
        if let Some((token, id)) = past.min_by_key(|(_, id)| *id) {
            return Err(TokenizerError::OutOfRange { path: path(), token, id, n_tokens });
        }
        let stored = Stored {
            kind: Kind::Tokens,
            version: VERSION,
            max_tokens,
            n_tokens,
            prefix: String::new(),
            lower_case: false,
        };
        let (room, texts, texts_cut) = (max_tokens - n_special, AtomicU64::new(0), AtomicU64::new(0));
        let made = Self { path: at, inner, reads_pieces, file, stored, room, texts, texts_cut };
        // A character that no vocabulary has: a tokenizer without a token for what it does not know is found now.
        made.encode("\u{10FFFF} a").map_err(wrong)?;
        Ok(made)
    }

    /// The same with a text of its own before every text: some transformers are trained to read one, such as "query: ".
    /// Its tokens count among those of a text. `path` is what messages call the tokenizer.
    ///
    /// # Errors
    /// A prefix of several lines or more than 4,096 bytes, that leaves no room for a token of a text, or that has tokens
    /// the network does not know.
    pub fn with_prefix(mut self, path: &Path, prefix: &str) -> Result<Self, TokenizerError> {
        let wrong = |what| TokenizerError::Prefix { path: path.to_owned(), what };
        check_prefix(prefix).map_err(wrong)?;
        prefix.clone_into(&mut self.stored.prefix);
        let max_tokens = self.stored.max_tokens;
        if self.encode("").map_err(wrong)?.ids.len() >= max_tokens {
            return Err(wrong(format!("it takes all of at most {max_tokens} tokens")));
        }
        Ok(self)
    }

    /// Whether the description of a model's pipeline is of tokens.
    pub fn describes(config: &Value) -> bool {
        config.get("kind").and_then(Value::as_str) == Some(KIND)
    }

    /// Puts together what [`Tokenise::to_parts`] gave; `folder` is what messages call it.
    ///
    /// # Errors
    /// See [`TokenizerError`].
    pub fn from_parts(folder: &Path, parts: PipelineParts) -> Result<Self, TokenizerError> {
        let config = |source| TokenizerError::Config { path: folder.to_owned(), source };
        let n_arrays = parts.arrays.len();
        // The version first: a later description may have fields that this program would call unknown.
        if let Some(version) = later_version(&parts.config, VERSION) {
            return Err(TokenizerError::Parts { path: folder.to_owned(), version, n_arrays });
        }
        let Stored { version, max_tokens, n_tokens, prefix, lower_case, .. } =
            Stored::deserialize(&parts.config).map_err(config)?;
        match parts.arrays.into_iter().next() {
            Some((name, PartArray::U8(file))) if (name.as_str(), n_arrays, version) == (ARRAY, 1, VERSION) => {
                let made = Self::new(folder, file, max_tokens, n_tokens)?.with_lower_case(lower_case);
                made.with_prefix(folder, &prefix)
            }
            _ => Err(TokenizerError::Parts { path: folder.to_owned(), version: version.into(), n_arrays }),
        }
    }

    /// Most tokens of a text.
    pub fn max_tokens(&self) -> usize {
        self.stored.max_tokens
    }

    /// As a model keeps it.
    pub fn into_featurizer(self) -> Featurizer {
        Featurizer::Tokens(Arc::new(self))
    }

    fn encode(&self, text: &str) -> Result<steps::Made, String> {
        let Stored { prefix, lower_case, .. } = &self.stored;
        let before = steps::Before { prefix, lower_case: *lower_case };
        let made = at_work(&self.path, || pieces::encode(&self.inner, &before, text, self.room, self.reads_pieces))?;
        // Special tokens are ids of the file's that stand in no vocabulary.
        if let Some(id) = made.ids.iter().find(|&&id| id as usize >= self.stored.n_tokens) {
            return Err(format!("token {id}, expected one below {}", self.stored.n_tokens));
        }
        Ok(made)
    }
}

impl Tokenise for Tokenizer {
    fn n_tokens(&self) -> usize {
        self.stored.n_tokens
    }

    fn token(&self, id: u32) -> Option<String> {
        self.inner.id_to_token(id)
    }

    fn append(&self, text: &str, ids: &mut Vec<u32>) -> Result<(), TokeniseError> {
        let of_file = |why| TokeniseError { why: format!("{}: {why}", self.path.display()) };
        let made = self.encode(text).map_err(of_file)?;
        self.texts.fetch_add(1, Ordering::Relaxed);
        self.texts_cut.fetch_add(u64::from(made.is_cut), Ordering::Relaxed);
        ids.extend_from_slice(&made.ids);
        Ok(())
    }

    fn taken(&self) -> TextsTaken {
        let count = |of: &AtomicU64| of.load(Ordering::Relaxed);
        TextsTaken { texts: count(&self.texts), cut: count(&self.texts_cut), max_tokens: self.stored.max_tokens }
    }

    fn to_parts(&self) -> PipelineParts {
        // Numbers and names only.
        let config = serde_json::to_value(&self.stored).unwrap_or(Value::Null);
        PipelineParts { config, arrays: vec![(ARRAY.to_owned(), PartArray::U8(self.file.clone()))] }
    }
}
