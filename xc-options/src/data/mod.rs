//! From files and arrays that somebody named to rows and labels in memory; rows that models were not trained on.

mod combine;
mod embed;
mod held_out;
mod label_rows;
mod labels;
mod merge;
mod queries;
mod read;
mod reading;
mod require;
mod side;
mod source;
mod vectors;
pub(crate) mod words;

pub use combine::{FittedTo, blend, calibrate};
pub use embed::embed;
pub use held_out::{HeldOut, query_error};
pub use label_rows::{add_label_rows, in_order_of_labels};
pub use labels::{NamesFile, label_format, label_of, read_label_set, read_numbers, read_rows, strings_for};
pub use merge::{Merged, merge};
pub use queries::Queries;
pub use read::{LabelsFrom, read_labelled, read_training};
pub use reading::{Reading, TextReader};
pub use require::{report_alike, report_graded, report_joined, report_separator, report_unseen, require_labels};
pub use side::{read_side_file, without_mark};
pub use source::{Files, Source};
pub use vectors::{KnownLabels, VectorSource, is_vectors, read_vectors, vector_source};
