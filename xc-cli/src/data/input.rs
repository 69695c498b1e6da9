//! How the user says what a file holds.

use clap::Args;
use xc_sparse::io::{Format, IndexBase, JsonlFields, ReadOptions};

/// Options about the form of input files.
#[derive(Args, Clone, Debug)]
pub(crate) struct InputArgs {
    /// Format of the input: xc, svmlight, fasttext, jsonl, npz or npy [default: from name and
    /// content]
    #[arg(long, value_name = "FORMAT", help_heading = "Input options")]
    pub(crate) format: Option<Format>,
    /// JSONL fields that make the text, joined by blanks
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "text", help_heading = "Input options")]
    pub(crate) text_fields: Vec<String>,
    /// Number of the first svmlight feature; svmlight files differ, so it has to be said
    #[arg(long, value_name = "0|1", value_parser = parse_base, help_heading = "Input options")]
    pub(crate) svmlight_base: Option<IndexBase>,
    /// Number of the first svmlight label
    #[arg(long, value_name = "0|1", value_parser = parse_base, default_value = "0", help_heading = "Input options")]
    pub(crate) svmlight_label_base: IndexBase,
}

fn parse_base(text: &str) -> Result<IndexBase, &'static str> {
    match text {
        "0" => Ok(IndexBase::Zero),
        "1" => Ok(IndexBase::One),
        _ => Err("0 or 1 is expected"),
    }
}

impl InputArgs {
    /// The readers' options that these say.
    pub(crate) fn options(&self) -> ReadOptions {
        ReadOptions {
            format: self.format,
            svmlight_base: self.svmlight_base,
            svmlight_label_base: self.svmlight_label_base,
            fields: JsonlFields { text: self.text_fields.clone(), ..JsonlFields::default() },
            ..ReadOptions::default()
        }
    }
}
