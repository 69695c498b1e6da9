#![doc = include_str!("../README.md")]
//!
//! Every text format may be compressed with gzip, zstd, bzip2 or xz, which is detected from the content. Text is
//! split into blocks of whole lines that all threads parse; the result depends neither on the number of
//! threads nor on the block size.
//!
//! Rules of every format: features are returned in ascending order, and a repeated feature in a row is
//! an error; an entry of value 0 is equivalent to a missing one and is dropped; NaN and infinities are
//! errors; a repeated label in a row counts once; rows without labels and rows without features are
//! kept; ids and bounds in a header are checked, and allocations never rely on them.

#![deny(unsafe_code)] // constructors without checks alone may have it

mod blocks;
mod compression;
mod cut;
mod data;
mod dataset;
mod detect;
mod digits;
mod entries;
mod error;
mod fields;
mod file_form;
mod foreign;
mod form;
mod format;
mod formats;
mod hold_out;
mod ids;
mod instance;
mod join;
mod label;
mod lines;
mod names;
mod number;
mod options;
mod parser;
mod predictions;
mod row;
mod source;
mod stream;
mod vectors;
mod write;

use formats::{csv, fasttext, jsonl, npy, npz, svmlight, vecs, xc_text};

pub use compression::Compression;
pub use csv::{push_field as push_csv_field, write_csv};
pub use cut::PartRows;
pub use data::{Data, DataRows, read_data};
pub use dataset::{
    LabelLists, TextBlocks, TextDataset, first_fields, holds_text, open_text, read_dataset, read_dataset_until,
    read_ids, read_labels, read_labels_and_ids, read_labels_of, read_text,
};
pub use digits::push_f32;
pub use entries::IndexBase;
pub use error::{ArrayProblem, Bound, BoundFrom, FieldOf, LineError, ReadError, ReadErrorKind, Snippet};
pub use fasttext::{FASTTEXT_PREFIX, TextRows, push_fasttext_row, write_fasttext};
pub use fields::{LabelSeparator, Parts, join_text};
pub use file_form::{FEATURES_FIELD, FileForm};
pub use foreign::ForeignFile;
pub use format::{Format, FormatNameError};
pub use hold_out::{HoldOut, Split, hash_row, hash_rows, hash_text};
pub use ids::{RowId, RowIds};
pub use instance::TextInstance;
pub use join::{Join, JoinError, Joined, Unmatched};
pub use jsonl::{
    json_error, labels_of_json, line_text, missing_field, push_jsonl_features, push_jsonl_text, write_jsonl_features,
    write_jsonl_text,
};
pub use label::{CollectedLabels, LabelCollector, LabelNames, LabelRef, LabelStrings, RepeatedName, UnknownLabels};
pub use lines::{Line, LineBlock, LineBlocks};
pub use names::{NameColumn, read_label_names, read_label_names_field, write_label_names};
pub use npy::{NpyRows, read_npy, write_npy};
pub use npz::{NpzLayout, NpzMatrix, read_npz, read_npz_matrix, write_npz, write_npz_arrays};
pub use options::{ReadOptions, UnseenCount};
pub use parser::{InstanceBuffer, InstanceParser};
pub use predictions::{
    AnswerNotes, PREDICTION_CSV_HEADER, PredictionFormat, Predictions, push_prediction_csv, push_prediction_error,
    push_prediction_json, push_prediction_line, push_prediction_names, read_prediction_stream, read_predictions,
    read_predictions_of, write_prediction_jsonl, write_prediction_lines, write_prediction_npz,
};
pub use row::RowBuffer;
pub use source::Source;
pub use stream::{Content, InstanceReader};
pub use svmlight::{SvmlightBases, push_svmlight_row, write_svmlight};
pub use vecs::{write_fbin, write_fvecs};
pub use vectors::Vectors;
pub use xc_text::{HeaderRule, XcHeader, push_xc_header, push_xc_row, write_xc, write_xc_features, write_xc_labels};
