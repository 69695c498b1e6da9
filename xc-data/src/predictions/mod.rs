//! Ranked lists in files.
//!
//! | form | one line per instance |
//! |---|---|
//! | lines | `label:score label:score`, best first, empty if there are none |
//! | lines with names | `name:score TAB name:score` |
//! | jsonl | `{"labels":[4,9],"scores":[0.5,0.25]}`, `"names"` if labels have names; `{"error":"..."}` |
//! | npz | a csr matrix, rows in ranking order |
//!
//! The specification is `docs/formats/predictions.md`.

mod read;
mod write;

pub use read::{Predictions, read_prediction_stream, read_predictions, read_predictions_of};
pub use write::{
    AnswerNotes, PredictionFormat, push_prediction_csv, push_prediction_error, push_prediction_json,
    push_prediction_line, push_prediction_names, write_prediction_jsonl, write_prediction_lines, write_prediction_npz,
};

/// The columns of predictions as CSV.
pub const PREDICTION_CSV_HEADER: &str = "id,rank,label,name,score";
