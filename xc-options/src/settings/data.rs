//! How rows of features are weighted and scaled before they are learned from.

use super::{Choices, Setting, Table, Values};
use crate::tune::Scale;
use Values::{Bool, Switch};
use xc_hash::text::{Idf, Norm, TermWeighting, Tf};

/// Whether rows are scaled to length 1; without a value it is true.
pub const NORMALISE: &str = "normalise";

/// Settings of rows of features; vectors stay as they are.
pub const TABLE: Table = Table {
    rows: &[
        Setting::new("tfidf", Switch, "")
            .help("Weight the features: (1 + ln tf) * (ln((1 + N)/(1 + df)) + 1); stored in the model")
            .searched(&["false", "true"], 0, Scale::Named, "rare features tell more, unless they are weighted already"),
        Setting::new(NORMALISE, Bool, "BOOL")
            .help("L2-normalise rows, in training and in prediction (stored in the model)"),
    ],
    starts: &[],
};

/// Whether rows are scaled to length 1: unless it was said otherwise all but vectors are.
pub fn normalises(choices: &Choices, is_vectors: bool) -> bool {
    choices.value("normalise").unwrap_or(!is_vectors)
}

/// How sparse features are weighted; `None`: not at all.
pub fn weighting(choices: &Choices, is_vectors: bool) -> Option<TermWeighting> {
    let norm = if normalises(choices, is_vectors) { Norm::L2 } else { Norm::None };
    match choices.get("tfidf") {
        Some(_) => Some(TermWeighting { norm, ..TermWeighting::default() }),
        None => (norm != Norm::None).then_some(TermWeighting { tf: Tf::Raw, idf: Idf::None, norm }),
    }
}
