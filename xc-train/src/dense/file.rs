//! The folder of a dense model: every parameter of the network under its name.

use super::{DenseModel, DenseParams};
use std::path::PathBuf;
use thiserror::Error;
use xc_sparse::store::{ArrayRef, Container, ContainerWriter, OpenError, WriteError};

/// The kind that `config.json` names.
pub const KIND: &str = "dense";

/// Why a folder does not open as a dense model.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenDenseError {
    /// The container itself.
    #[error(transparent)]
    Container(#[from] OpenError),
    /// The shape is impossible.
    #[error("{}: parameter network: widths {:?} and dropout {}; wanted at least one width and dropout in [0, 1)", path.display(), met.widths, met.dropout)]
    Shape {
        /// The folder.
        path: PathBuf,
        /// The shape met.
        met: DenseParams,
    },
    /// A value is not a finite number.
    #[error("{}: array {name}: value {at} is not finite", path.display())]
    NotFinite {
        /// The folder.
        path: PathBuf,
        /// The array.
        name: String,
        /// Position in it.
        at: usize,
    },
}

impl DenseModel {
    /// Adds parameters and arrays to a container of kind [`KIND`].
    ///
    /// # Errors
    /// The container refuses.
    pub fn write(&self, writer: &mut ContainerWriter) -> Result<(), WriteError> {
        writer.set_parameter("n_features", self.n_features() as u64);
        writer.set_parameter("n_labels", self.n_labels() as u64);
        // Numbers and names only.
        let shape = serde_json::to_value(&self.params).unwrap_or_else(|e| panic!("parameters are plain numbers: {e}"));
        writer.set_parameter("network", shape);
        for named in self.network.parameters() {
            let shape = [named.parameter.rows(), named.parameter.width()];
            writer.add(&named.name, ArrayRef::new(named.parameter.values(), &shape))?;
        }
        Ok(())
    }

    /// Reads a container of kind [`KIND`] into memory.
    ///
    /// # Errors
    /// An array is missing, has another shape, or holds a value that is not finite.
    pub fn open(container: &Container) -> Result<Self, OpenDenseError> {
        container.expect_kind(KIND)?;
        let params: DenseParams = container.parameter("network")?;
        if params.widths.is_empty() || !(0.0..1.0).contains(&params.dropout) {
            return Err(OpenDenseError::Shape { path: container.folder().to_owned(), met: params });
        }
        let (n_features, n_labels) = (container.parameter("n_features")?, container.parameter("n_labels")?);
        // The largest arrays first: a wrong size is noticed before memory is taken for it.
        container.array_shaped::<f32>("bag.table", &[n_features, params.widths[0]])?;
        container.array_shaped::<f32>("head.weights", &[n_labels, params.widths[params.widths.len() - 1]])?;
        for (layer, pair) in params.widths.windows(2).enumerate() {
            container.array_shaped::<f32>(&format!("layer{}.weights", layer + 1), &[pair[1], pair[0]])?;
        }
        let mut model = Self::new(n_features, n_labels, params);
        for named in model.network.parameters_mut() {
            let shape = [named.parameter.rows(), named.parameter.width()];
            let array = container.array_shaped::<f32>(&named.name, &shape)?;
            if let Some(at) = array.iter().position(|v| !v.is_finite()) {
                return Err(OpenDenseError::NotFinite { path: container.folder().to_owned(), name: named.name, at });
            }
            named.parameter.values_mut().copy_from_slice(&array);
        }
        Ok(model)
    }
}
