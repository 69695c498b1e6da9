//! The folder of a dense model: every parameter of the network under its name.

use super::DenseModel;
use crate::shape::{self, NetworkParams, OpenNetworkError};
use xc_sparse::store::{Container, ContainerWriter, WriteError};

/// The kind that `config.json` names.
pub const KIND: &str = "dense";

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
        shape::write(&self.network, "", writer)
    }

    /// Opens a container of kind [`KIND`]; the arrays stay where the container has them.
    ///
    /// # Errors
    /// An array is missing, has another shape, or holds a value that is not finite.
    pub fn open(container: &Container) -> Result<Self, OpenNetworkError> {
        container.expect_kind(KIND)?;
        let params: NetworkParams = container.parameter("network")?;
        let (n_features, n_labels) = (container.parameter("n_features")?, container.parameter("n_labels")?);
        let network = params.open(container, "", n_features, n_labels)?;
        Ok(Self { params, network })
    }
}
