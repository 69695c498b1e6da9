//! What is saved beside the arrays of a model.

use crate::{TrainingRows, write_pipeline};
#[cfg(feature = "data")]
use xc_data::FileForm;
use xc_hash::text::Featurizer;
use xc_store::{ContainerWriter, WriteError};

/// What is saved beside the arrays of a model. Default: nothing.
#[derive(Clone, Debug, Default)]
pub struct Extras<'a> {
    /// The pipeline that makes features, tokens or vectors of queries.
    pub maker: Option<&'a Featurizer>,
    /// The names of its labels, one for each.
    pub names: Option<&'a [String]>,
    /// The form of the training files.
    #[cfg(feature = "data")]
    pub input: Option<&'a FileForm>,
    /// How it was trained: free-form JSON that `xc inspect` shows.
    pub training: Option<serde_json::Value>,
    /// The rows that it was trained on. Fits of blends and calibrations refuse a model without them, unless they are
    /// told otherwise.
    pub rows: Option<&'a TrainingRows>,
}

impl Extras<'_> {
    /// Adds all of it to a container.
    ///
    /// # Errors
    /// A label name with a control character; the container cannot be written.
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
