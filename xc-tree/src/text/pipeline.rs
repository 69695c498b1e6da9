//! What makes a model's features, stored in the model's folder.

use std::path::PathBuf;
use thiserror::Error;
use xc_buffer::dtype::DType;
use xc_hash::text::{Featurizer, OpenPipelineError, PartArray, PipelineParts};
use xc_store::{Container, ContainerWriter, OpenError, WriteError};

/// Arrays of the pipeline are stored under this prefix.
pub const PIPELINE_PREFIX: &str = "pipeline.";

/// Why a folder's pipeline cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StoredPipelineError {
    /// An array does not open.
    #[error(transparent)]
    Container(#[from] OpenError),
    /// An array of a type that no pipeline has.
    #[error("{}: array {name:?} is of type {got}, expected F32, U32 or U8", path.display())]
    Array {
        /// The folder.
        path: PathBuf,
        /// The array.
        name: String,
        /// Its type.
        got: DType,
    },
    /// Arrays and description make no tokenizer, or no transformer of texts.
    #[error(transparent)]
    Tokens(Box<dyn std::error::Error + Send + Sync>),
    /// Arrays and description make no pipeline.
    #[error("{}: the feature pipeline cannot be used", path.display())]
    Parts {
        /// The folder.
        path: PathBuf,
        /// What is wrong.
        source: OpenPipelineError,
    },
}

/// Stores what makes features: its description as the container's pipeline, its arrays among the
/// model's.
///
/// # Errors
/// The container refuses.
pub fn write_pipeline(writer: &mut ContainerWriter, parts: PipelineParts) -> Result<(), WriteError> {
    writer.set_pipeline(parts.config);
    for (name, array) in &parts.arrays {
        let name = format!("{PIPELINE_PREFIX}{name}");
        match array {
            PartArray::F32(values) => writer.add_slice(&name, values)?,
            PartArray::U32(values) => writer.add_slice(&name, values)?,
            PartArray::U8(values) => writer.add_slice(&name, values)?,
        }
    }
    Ok(())
}

/// Reads what [`write_pipeline`] stored; `None` where features are used as they come.
///
/// # Errors
/// Arrays or a description that make no pipeline.
pub fn read_pipeline(container: &Container) -> Result<Option<Featurizer>, StoredPipelineError> {
    let Some(parts) = read_parts(container)? else { return Ok(None) };
    let refused = |source| StoredPipelineError::Parts { path: container.folder().to_owned(), source };
    Featurizer::from_parts(parts).map(Some).map_err(refused)
}

/// The same, not put together yet.
///
/// # Errors
/// An array that does not open, or is of a type that no pipeline has.
pub fn read_parts(container: &Container) -> Result<Option<PipelineParts>, StoredPipelineError> {
    let Some(config) = container.pipeline().cloned() else { return Ok(None) };
    let path = || container.folder().to_owned();
    let mut arrays = Vec::new();
    for (name, entry) in container.arrays() {
        let Some(short) = name.strip_prefix(PIPELINE_PREFIX) else { continue };
        let array = match entry.dtype {
            DType::F32 => PartArray::F32(container.array(name)?.to_vec()),
            DType::U32 => PartArray::U32(container.array(name)?.to_vec()),
            DType::U8 => PartArray::U8(container.array(name)?.to_vec()),
            got => return Err(StoredPipelineError::Array { path: path(), name: name.to_owned(), got }),
        };
        arrays.push((short.to_owned(), array));
    }
    Ok(Some(PipelineParts { config, arrays }))
}
