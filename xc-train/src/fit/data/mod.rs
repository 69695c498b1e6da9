//! From files or arrays to rows and labels in memory.

mod dataset;
mod label_rows;
mod labels;
mod making;
mod queries;
mod read;
mod require;
mod side;
mod text_advice;
mod text_source;
mod texts;
mod vectors;

pub(crate) use read::no_labels;

pub(in crate::fit) use dataset::split;
pub use dataset::{Dataset, Datasets};
pub use label_rows::{add_label_rows, in_order_of_labels};
pub use labels::{NamesFile, label_format, label_of, read_label_set, read_numbers, read_rows, strings_for};
pub use making::Making;
pub use queries::Queries;
pub use read::{LabelsFrom, of_features, read_labelled, read_training, with_names};
pub use require::{report_alike, report_graded, report_joined, report_separator, report_unseen, require_labels};
pub use side::{read_side_file, without_mark};
pub use text_source::TextSource;
pub use texts::read_texts;
pub use vectors::{KnownLabels, VectorSource, is_vectors, of_vectors, read_vectors, vector_source};
