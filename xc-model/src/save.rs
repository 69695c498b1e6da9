//! What stands beside the arrays of a model in its folder.

use crate::{TrainingRows, write_pipeline};
#[cfg(feature = "data")]
use xc_data::FileForm;
use xc_hash::text::Featurizer;
use xc_store::{ContainerWriter, WriteError};

/// What a model is saved with.
#[derive(Clone, Debug, Default)]
pub struct Extras<'a> {
    /// What makes its features.
    pub maker: Option<&'a Featurizer>,
    /// Names of its labels.
    pub names: Option<&'a [String]>,
    /// What the training files look like.
    #[cfg(feature = "data")]
    pub input: Option<&'a FileForm>,
    /// How it was trained, for a person and for `inspect`.
    pub training: Option<serde_json::Value>,
    /// The rows that it was trained on, where they are known.
    pub rows: Option<&'a TrainingRows>,
}

impl Extras<'_> {
    /// Adds all of it to a container.
    ///
    /// # Errors
    /// The container refuses.
    pub fn write(&self, writer: &mut ContainerWriter) -> Result<(), WriteError> {
        if let Some(training) = &self.training {
            writer.set_parameter("training", training.clone());
        }
        #[cfg(feature = "data")]
        if let Some(input) = self.input {
            crate::write_form(input, writer);
        }
        if let Some(maker) = self.maker {
            write_pipeline(writer, maker.to_parts())?;
        }
        if let Some(names) = self.names {
            writer.labels(names)?;
        }
        self.rows.map_or(Ok(()), |rows| rows.write(writer))
    }
}
