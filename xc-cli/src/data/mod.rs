//! From files that the user named to rows and labels in memory.

mod input;
mod labels;
mod text;
mod training;

pub(crate) use input::InputArgs;
pub(crate) use labels::{read_label_names, read_label_set};
pub(crate) use text::TextArgs;
pub(crate) use training::{Labelled, Making, read_labelled, read_training};
