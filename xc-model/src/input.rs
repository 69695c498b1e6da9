//! What a model remembers of the files that it was trained on, for those who read others for it.

use xc_data::FileForm;
use xc_store::{Container, ContainerWriter, OpenError};

/// Name of the parameter in `config.json`.
const PARAMETER: &str = "input";

/// Puts the form of the training files into a model that is being saved.
pub fn write_form(form: &FileForm, writer: &mut ContainerWriter) {
    // A map of strings and numbers becomes JSON, whatever they are.
    writer.set_parameter(PARAMETER, serde_json::to_value(form).unwrap_or_default());
}

/// That of a saved model; nothing is stated where it has none.
///
/// # Errors
/// Another value where it should be.
pub fn read_form(container: &Container) -> Result<FileForm, OpenError> {
    match container.parameters().contains_key(PARAMETER) {
        true => container.parameter(PARAMETER),
        false => Ok(FileForm::default()),
    }
}
