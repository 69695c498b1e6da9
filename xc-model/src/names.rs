//! Names of labels.

use super::{Model, OpenModelError};
#[cfg(feature = "data")]
use xc_data::LabelNames;
use xc_sparse::rank::LabelId;
#[cfg(feature = "data")]
use xc_store::Container;

impl Model {
    /// Names of the labels, if there are any. *Cost*: reads the file at each call.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn label_names(&self) -> Result<Option<Vec<String>>, OpenModelError> {
        Ok(self.container.labels()?)
    }

    /// The same as a dictionary. *Cost*: reads the file at each call.
    ///
    /// # Errors
    /// The file is damaged, or two labels have one name.
    #[cfg(feature = "data")]
    pub fn dictionary(&self) -> Result<Option<LabelNames>, OpenModelError> {
        dictionary(&self.container)
    }

    /// Whether a label has a whole number as its name, which is not told from an id. Names of more than 2^20 labels are not
    /// looked at: they would be read for this alone.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn has_names_like_ids(&self) -> Result<bool, OpenModelError> {
        if self.describe().n_labels > 1 << 20 {
            return Ok(false);
        }
        let text = self.container.label_text()?.unwrap_or_default();
        Ok(text.lines().any(|name| !name.is_empty() && name.bytes().all(|b| b.is_ascii_digit())))
    }

    /// The name of a label; `None` if labels have no names, or there is no such label.
    ///
    /// *Cost*: the first call reads the file of names and keeps its text, with the place of each name.
    ///
    /// # Errors
    /// The file is damaged; the next call reads it again.
    pub fn name_of(&self, label: LabelId) -> Result<Option<&str>, OpenModelError> {
        if self.names.get().is_none() {
            let text = self.container.label_text()?.unwrap_or_default();
            // Another thread that was quicker has read the same.
            _ = self.names.set(NamesOfLabels::of(text));
        }
        Ok(self.names.get().and_then(|names| names.name(label)))
    }
}

/// The names of labels in a container, which messages call by their file.
///
/// # Errors
/// As [`Model::dictionary`].
#[cfg(feature = "data")]
pub fn dictionary(container: &Container) -> Result<Option<LabelNames>, OpenModelError> {
    let Some(names) = container.labels()? else { return Ok(None) };
    let path = container.folder().join("labels.txt");
    match LabelNames::try_new(names) {
        Ok(names) => Ok(Some(names.of_file(&path.display().to_string()))),
        Err(source) => Err(OpenModelError::RepeatedName { path, source }),
    }
}

/// The text of all names, one a line, and where each begins.
pub(crate) struct NamesOfLabels {
    text: String,
    begins: Vec<usize>,
}

impl NamesOfLabels {
    pub(crate) fn of(text: String) -> Self {
        let begins = text.lines().map(|line| line.as_ptr() as usize - text.as_ptr() as usize).collect();
        Self { text, begins }
    }

    pub(crate) fn name(&self, label: LabelId) -> Option<&str> {
        self.text[*self.begins.get(label as usize)?..].lines().next()
    }
}
