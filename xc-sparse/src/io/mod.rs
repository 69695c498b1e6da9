//! Files of instances, labels and predictions: readers and writers.
//!
//! | format | instances | labels | reader |
//! |---|---|---|---|
//! | XC text, one file or two | sparse features | ids | [`read_dataset`] |
//! | svmlight | sparse features | ids | [`read_dataset`] |
//! | JSONL | text, or sparse features | ids or names | [`read_instances`] |
//! | fastText | text | names | [`read_text`] |
//! | npz, npy | sparse or dense features | from a second file | [`read_dataset`] |
//!
//! Every text format may be compressed with gzip or zstd; that is told from the content. Text is cut into blocks of
//! whole lines that all threads parse; the result does not depend on the number of threads nor on the block size.
//!
//! Rules that hold in every format: features come out ascending, and one named twice in a row is an error; an entry of
//! value 0 says no more than its absence and is dropped; NaN and infinities are errors; a label named twice in a row
//! counts once; rows without labels and rows without features are kept; ids and bounds in a header are checked and
//! never believed for the size of an allocation.

mod blocks;
mod dataset;
mod entries;
mod error;
mod fasttext;
mod format;
mod jsonl;
mod label;
mod npz;
mod number;
mod options;
mod row;
mod source;
mod svmlight;
mod xc_text;

pub use dataset::{
    Instances, LabelLists, TextBlocks, TextDataset, holds_text, open_text, read_dataset, read_instances, read_labels,
    read_text,
};
pub use entries::IndexBase;
pub use error::{ArrayProblem, Bound, BoundFrom, LineError, ReadError, ReadErrorKind, Snippet};
pub use fasttext::{FASTTEXT_PREFIX, FastTextLabels, TextRows, parse_fasttext_line};
pub use format::{Format, FormatNameError};
pub use jsonl::{JsonlFields, parse_jsonl_features, parse_jsonl_text};
pub use label::{CollectedLabels, LabelCollector, LabelNames, LabelRef, TextInstance, UnknownLabels};
pub use options::ReadOptions;
pub use row::{Limits, RowBlock, RowBuffer};
pub use source::{Compression, Source};
pub use svmlight::{SvmlightBases, parse_svmlight_line};
pub use xc_text::{HeaderRule, XcHeader, parse_xc_line};
