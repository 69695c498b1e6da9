//! What the files that a model was trained on look like, for those who read others for it.

use serde::{Deserialize, Serialize};
use xc_store::{Container, ContainerWriter, OpenError};

/// Name of the parameter in `config.json`.
const PARAMETER: &str = "input";

/// The form of the training files, as far as a reader of further ones cannot tell it from them. What
/// is `None` was not stated: the reader's default holds. The specification is `docs/formats/model.md`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct InputForm {
    /// Name of the format, as `xc_data::Format` has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    /// Fields or columns that make the text, in their order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text_fields: Option<Vec<String>>,
    /// Field or column with the labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_field: Option<String>,
    /// Fields or columns that are 1 where the label of their name is true, in place of `label_field`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_fields: Option<Vec<String>>,
    /// What divides a string of labels; empty: nothing does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_separator: Option<String>,
    /// Field or column with what an instance is known by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id_field: Option<String>,
    /// What stands between the fields of a table; `None`: a comma in CSV, a tab in TSV.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delimiter: Option<char>,
    /// Whether quotes are text in a table.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_quotes: bool,
    /// Whether a table begins with its first instance, and columns are named by number.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_header: bool,
    /// Number of the first svmlight feature, 0 or 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub svmlight_base: Option<u8>,
    /// Number of the first svmlight label, 0 or 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub svmlight_label_base: Option<u8>,
}

impl InputForm {
    /// Puts it into a model that is being saved.
    pub fn write(&self, writer: &mut ContainerWriter) {
        // A map of strings and numbers becomes JSON, whatever they are.
        writer.set_parameter(PARAMETER, serde_json::to_value(self).unwrap_or_default());
    }

    /// That of a saved model; all `None` where it has none.
    ///
    /// # Errors
    /// Another value where it should be.
    pub fn read(container: &Container) -> Result<Self, OpenError> {
        match container.parameters().contains_key(PARAMETER) {
            true => container.parameter(PARAMETER),
            false => Ok(Self::default()),
        }
    }
}
