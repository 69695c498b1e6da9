//! The folder of a uniform model: every parameter under its name, connections beside them.

use super::{Output, UniformModel, UniformParams, UniformParamsError};
use crate::head::{Dense, Sparse};
use crate::shape::{self, NamedShape, OpenNetworkError, push_layer, stored_arrays};
use crate::state::State;
use crate::{Decay, Init, Network, Parameter};
use std::path::PathBuf;
use thiserror::Error;
use xc_sparse::store::{Container, ContainerWriter, MappedArray, OpenError, WriteError};
use xc_sparse::uniform::{Connections, OpenConnectionsError};

/// The kind that `config.json` names.
pub const KIND: &str = "uniform";

/// What the names of the connections' arrays begin with.
const PREFIX: &str = "head.";

/// Why a folder does not open as a uniform model.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenUniformError {
    /// The container itself.
    #[error(transparent)]
    Container(#[from] OpenError),
    /// The parameters make no model.
    #[error("{}: parameter uniform", path.display())]
    Params {
        /// The folder.
        path: PathBuf,
        /// What is wrong.
        source: UniformParamsError,
    },
    /// An array of the layers.
    #[error(transparent)]
    Network(#[from] OpenNetworkError),
    /// An array of the connections.
    #[error(transparent)]
    Connections(#[from] OpenConnectionsError),
}

impl UniformModel {
    /// Adds parameters and arrays to a container of kind [`KIND`].
    ///
    /// # Errors
    /// The container refuses.
    pub fn write(&self, writer: &mut ContainerWriter) -> Result<(), WriteError> {
        writer.set_parameter("n_features", self.n_features() as u64);
        writer.set_parameter("n_labels", self.n_labels() as u64);
        // Numbers and names only.
        let shape = serde_json::to_value(&self.params).unwrap_or_else(|e| panic!("parameters are plain numbers: {e}"));
        writer.set_parameter("uniform", shape);
        shape::write(&self.network, "", writer)?;
        match self.network.head() {
            Output::Sparse(sparse) => sparse.connections().write(PREFIX, writer),
            Output::Dense(_) => Ok(()),
        }
    }

    /// Opens a container of kind [`KIND`]; the arrays stay where the container has them.
    ///
    /// *Cost*: with `check` a pass over all arrays, which finds values that are not finite, connections out of range and connections
    /// twice. Without it the caller vouches for the file; a wrong connection then ends an answer with a panic.
    ///
    /// # Errors
    /// See [`OpenUniformError`].
    pub fn open(container: &Container, check: bool) -> Result<Self, OpenUniformError> {
        container.expect_kind(KIND)?;
        let params: UniformParams = container.parameter("uniform")?;
        let (n_features, n_labels) = (container.parameter("n_features")?, container.parameter("n_labels")?);
        params
            .check(n_features, n_labels)
            .map_err(|source| OpenUniformError::Params { path: container.folder().to_owned(), source })?;
        // Every array before a layer is made: no memory is taken that the file does not account for.
        let below = stored_arrays(container, "", &params.encoder_arrays(n_features), check)?;
        let width = params.top_width(n_features);
        let mut of_head: Vec<NamedShape> = Vec::new();
        let output = match params.sparse() {
            Some(sparse) => {
                of_head.push((format!("{PREFIX}bias"), [n_labels, 1]));
                let biases = stored_arrays(container, "", &of_head, check)?;
                let per_label = sparse.uniform.then_some(sparse.per_output);
                let connections =
                    Connections::open(container, PREFIX, n_labels, width, per_label, sparse.weights, check)?;
                let mut bias = Parameter::zeros(n_labels, 1, Decay::No);
                biases.into_iter().for_each(|values| bias.set_stored(values));
                Output::Sparse(params.as_trained(Sparse::from_parts(sparse, connections, bias)))
            }
            None => {
                push_layer(&mut of_head, "head", n_labels, width);
                let arrays = stored_arrays(container, "", &of_head, check)?;
                let mut dense = Dense::new(n_labels, width, Init::Zeros).with_products(params.products);
                set_stored(dense.parameters_mut(), arrays);
                Output::Dense(dense)
            }
        };
        let mut encoder = params.encoder(n_features, Init::Zeros);
        set_stored(encoder.parameters_mut(), below);
        Ok(Self { params, n_features, network: Network::new(encoder, output) })
    }
}

fn set_stored(parameters: Vec<crate::Named<&mut Parameter>>, arrays: Vec<MappedArray<f32>>) {
    parameters.into_iter().zip(arrays).for_each(|(named, array)| named.parameter.set_stored(array));
}
