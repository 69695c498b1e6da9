//! The pipeline that makes a model's features, stored in the model's folder.

use super::OpenModelError;
use xc_hash::text::{Featurizer, PartArray, PipelineParts};
use xc_sparse::dtype::DType;
use xc_sparse::store::{Container, ContainerWriter, WriteError};

/// Arrays of the pipeline are stored under this prefix.
pub const PIPELINE_PREFIX: &str = "pipeline.";

/// Stores what makes features: its description as the container's pipeline, its arrays among the model's.
///
/// # Errors
/// The container refuses.
pub fn write_pipeline(writer: &mut ContainerWriter, maker: &Featurizer) -> Result<(), WriteError> {
    let PipelineParts { config, arrays } = maker.to_parts();
    writer.set_pipeline(config);
    for (name, array) in &arrays {
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
pub fn read_pipeline(container: &Container) -> Result<Option<Featurizer>, OpenModelError> {
    let Some(config) = container.pipeline() else { return Ok(None) };
    let mut arrays = Vec::new();
    for (name, entry) in container.arrays() {
        let Some(short) = name.strip_prefix(PIPELINE_PREFIX) else { continue };
        let array = match entry.dtype {
            DType::F32 => PartArray::F32(container.array::<f32>(name)?.to_vec()),
            DType::U32 => PartArray::U32(container.array::<u32>(name)?.to_vec()),
            DType::U8 => PartArray::U8(container.array::<u8>(name)?.to_vec()),
            got => {
                let (path, name) = (container.folder().to_owned(), name.to_owned());
                return Err(OpenModelError::PipelineArray { path, name, got });
            }
        };
        arrays.push((short.to_owned(), array));
    }
    let maker = Featurizer::from_parts(PipelineParts { config: config.clone(), arrays });
    maker.map(Some).map_err(|source| OpenModelError::Pipeline { path: container.folder().to_owned(), source })
}
