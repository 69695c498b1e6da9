//! Instances of text formats.

use super::ids::RowId;
use super::label::LabelRef;

/// One instance of a text format.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextInstance {
    /// Its id, if ids are read.
    pub id: Option<RowId>,
    /// The text.
    pub text: String,
    /// Labels in the order of the file; repetitions are kept.
    pub labels: Vec<LabelRef>,
}

impl TextInstance {
    /// Empties it.
    pub(crate) fn clear(&mut self) {
        self.id = None;
        self.text.clear();
        self.labels.clear();
    }
}
