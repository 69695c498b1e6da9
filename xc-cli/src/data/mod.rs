//! From files that the user named to rows and labels in memory.

mod input;
mod labels;
mod queries;
mod text;
mod training;

pub(crate) use input::InputArgs;
pub(crate) use labels::{label_format, read_label_set, read_numbers};
pub(crate) use queries::{Queries, QueryRows};
pub(crate) use text::TextArgs;
pub(crate) use training::{Labelled, Making, read_labelled, read_training, with_names};
