//! Formats that are not read: how they are known, and what makes readable files of them.

use std::path::Path;
use xc_store::LFS_POINTER;

/// A format that is not read, but known by its first bytes, and what makes a readable file of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ForeignFile {
    /// Parquet.
    #[error(
        "Parquet is not read: python -c 'import pandas; pandas.read_parquet(\"FILE\").to_json(\"FILE.jsonl\", \
         orient=\"records\", lines=True)' makes JSONL of it"
    )]
    Parquet,
    /// Arrow, or Feather.
    #[error(
        "Arrow and Feather are not read: python -c 'import pandas; pandas.read_feather(\"FILE\").to_json(\"FILE.jsonl\", \
         orient=\"records\", lines=True)' makes JSONL of it"
    )]
    Arrow,
    /// HDF5.
    #[error("HDF5 is not read: with h5py and numpy, numpy.save makes npy of an array")]
    Hdf5,
    /// A Python pickle.
    #[error(
        "a Python pickle is not read: to_json(path, orient=\"records\", lines=True) of pandas, numpy.save or \
         scipy.sparse.save_npz write files that are"
    )]
    Pickle,
    /// ARFF, of Weka, MEKA and MULAN.
    #[error(
        "ARFF is not read: with scipy.io.arff.loadarff (dense files) or scikit-multilearn's load_from_arff, and \
         scipy.sparse.save_npz for features and labels, it becomes two npz files"
    )]
    Arff,
    /// Text of Vowpal Wabbit.
    #[error(
        "text of Vowpal Wabbit is not read: expected the labels as __label__NAME in front of the words (fasttext), or \
         JSONL; sed -E 's/^([^ |]+)[^|]*\\|[^ ]* */__label__\\1 /' FILE makes fasttext of words with one label a line"
    )]
    VowpalWabbit,
    /// Text in UTF-16, as Excel and PowerShell write it.
    #[error("text in UTF-16 is not read: iconv -f UTF-16 -t UTF-8 FILE makes UTF-8 of it")]
    Utf16,
    /// What git has in place of a file that git-lfs keeps.
    #[error("a pointer of git-lfs, not the file that it stands for: git lfs pull gets that")]
    LfsPointer,
    /// A table whose first line tells Excel its separator.
    #[error(
        "a first line sep=... is Excel's own and is not read: tail -n +2 FILE leaves it out, and --delimiter states the separator"
    )]
    SepLine,
    /// Several arrays in one archive.
    #[error(
        "an archive of numpy.savez is not read: numpy.save writes one array, scipy.sparse.save_npz a sparse matrix"
    )]
    Savez,
}

impl ForeignFile {
    /// What is told by the first bytes of a file that is to be text, of whatever format.
    pub(super) fn of_text(head: &[u8]) -> Option<Self> {
        let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
        let is_sep =
            text.len() > 4 && text[..4].eq_ignore_ascii_case(b"sep=") && matches!(text.get(5), Some(b'\n' | b'\r'));
        match () {
            () if head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff") => Some(Self::Utf16),
            () if text.starts_with(LFS_POINTER) => Some(Self::LfsPointer),
            () if is_sep => Some(Self::SepLine),
            () => None,
        }
    }

    /// The format that is not read, by the first bytes of a file.
    pub(super) fn of_content(head: &[u8]) -> Option<Self> {
        for (magic, format) in [
            (&b"PAR1"[..], Self::Parquet),
            (b"ARROW1", Self::Arrow),
            (b"\x89HDF\r\n", Self::Hdf5),
            (b"\x80\x04", Self::Pickle),
            (b"\x80\x05", Self::Pickle),
        ] {
            if head.starts_with(magic) {
                return Some(format);
            }
        }
        if let Some(of_text) = Self::of_text(head) {
            return Some(of_text);
        }
        let word = |word: &str, line: &[u8]| {
            line.len() >= word.len() && line[..word.len()].eq_ignore_ascii_case(word.as_bytes())
        };
        // Comments of ARFF begin with a per cent sign.
        let mut lines = head.split(|&b| b == b'\n').map(<[u8]>::trim_ascii_start);
        let first = lines.find(|line| !line.is_empty() && line[0] != b'%').unwrap_or_default();
        (word("@relation", first) || word("@attribute", first)).then_some(Self::Arff)
    }
}

/// Whether a line looks like a label, and a bar in front of the features.
pub(super) fn is_vowpal_wabbit(line: &[u8]) -> bool {
    let has_bar = line.starts_with(b"|") || line.windows(2).any(|pair| pair == b" |");
    has_bar && line.first().is_some_and(|b| b.is_ascii_digit() || b"+-.|".contains(b))
}

/// Whether the name of a file says that it is Parquet.
pub(super) fn is_named_parquet(path: &Path) -> bool {
    path.extension().is_some_and(|e| e.eq_ignore_ascii_case("parquet") || e.eq_ignore_ascii_case("pq"))
}
