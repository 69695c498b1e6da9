//! Names of labels, each at hand without a value of its own.

use xc_sparse::rank::LabelId;

/// The text of all names, one a line, and where each begins.
pub(super) struct NamesOfLabels {
    text: String,
    begins: Vec<usize>,
}

impl NamesOfLabels {
    pub(super) fn of(text: String) -> Self {
        let begins = text.lines().map(|line| line.as_ptr() as usize - text.as_ptr() as usize).collect();
        Self { text, begins }
    }

    pub(super) fn name(&self, label: LabelId) -> Option<&str> {
        self.text[*self.begins.get(label as usize)?..].lines().next()
    }
}
