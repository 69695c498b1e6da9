//! From files that the user named to rows and labels in memory.

mod dataset;
mod idle;
mod input;
mod label_rows;
mod labels;
mod queries;
mod side;
mod text;
mod text_advice;
mod training;
mod vectors;

pub(crate) use dataset::{Dataset, Datasets, FeatureRows, Split};
pub(crate) use input::{InputArgs, RowArgs, report_unseen, require_labels};
pub(crate) use label_rows::add_label_rows;
pub(crate) use labels::{NamesArgs, label_format, label_of, read_label_set, read_numbers, read_rows, strings_for};
pub(crate) use queries::{Queries, QueryRows};
pub(crate) use side::{read_side_file, without_mark};
pub(crate) use text::{TextArgs, TokenArgs, sizes_of_preset};
pub(crate) use training::{LabelsFrom, Making, read_labelled, read_training, with_names};
pub(crate) use vectors::{KnownLabels, is_vectors, read_vectors, vector_source};
