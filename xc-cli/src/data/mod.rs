//! From files that the user named to rows and labels in memory.

mod args;
mod held_out;

pub(crate) use args::{InputArgs, NamesArgs, RowArgs, TextArgs, of_labels, of_tables};
pub(crate) use held_out::HeldOutArgs;
pub(crate) use xc_options::data::{
    Queries, label_format, label_of, read_label_set, read_labelled, read_rows, read_side_file, report_graded,
    report_joined, report_unseen, require_labels, strings_for, without_mark,
};
pub(crate) use xc_train::fit::data::{Dataset, Making};
