//! Connections in a model folder.

use super::matrix::{Connections, ConnectionsError, FanIn, InputIds};
use std::path::PathBuf;
use thiserror::Error;
use xc_buffer::dtype::DType;
use xc_store::{ArrayRef, Container, ContainerWriter, OpenError, WriteError};

/// Why connections cannot be opened.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenConnectionsError {
    /// An array is missing or has another shape.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The content of the arrays is invalid.
    #[error("{}: {prefix}", path.display())]
    Content {
        /// The folder.
        path: PathBuf,
        /// The prefix of the arrays' names.
        prefix: String,
        /// What is wrong.
        source: ConnectionsError,
    },
}

impl Connections {
    /// Adds `PREFIXindices` and `PREFIXweights`, and `PREFIXstarts` if labels differ in fan-in.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub fn write(&self, prefix: &str, writer: &mut ContainerWriter) -> Result<(), WriteError> {
        let uniform;
        let shape: &[usize] = match self.fan_in() {
            FanIn::Uniform(fan_in) => {
                uniform = [self.n_labels(), *fan_in];
                &uniform
            }
            FanIn::Varying(starts) => {
                writer.add_slice(&format!("{prefix}starts"), starts)?;
                uniform = [self.len(), 1];
                &uniform[..1]
            }
        };
        match self.indices() {
            InputIds::U16(values) => writer.add(&format!("{prefix}indices"), ArrayRef::new(&values[..], shape))?,
            InputIds::U32(values) => writer.add(&format!("{prefix}indices"), ArrayRef::new(&values[..], shape))?,
        }
        let dtype = self.weights().dtype();
        writer.add(&format!("{prefix}weights"), ArrayRef { dtype, shape, bytes: self.weights().bytes() })
    }

    /// Opens what [`Connections::write`] wrote; `fan_in` is `None` if labels differ. The arrays stay in
    /// their files.
    ///
    /// *Cost*: with `check`, a pass over all arrays, which detects inputs that are out of range or
    /// repeated and weights that are not finite. Without it the content is trusted; an invalid input
    /// then causes a panic later.
    ///
    /// # Errors
    /// See [`OpenConnectionsError`].
    pub fn open(
        container: &Container,
        prefix: &str,
        n_labels: usize,
        n_inputs: usize,
        fan_in: Option<usize>,
        of: DType,
        check: bool,
    ) -> Result<Self, OpenConnectionsError> {
        let name = |what: &str| format!("{prefix}{what}");
        let (shape, fan_in) = match fan_in {
            Some(fan_in) => (vec![n_labels, fan_in], FanIn::Uniform(fan_in)),
            None => {
                let starts = container.array_shaped::<u64>(&name("starts"), &[n_labels.saturating_add(1)])?;
                (vec![starts.last().copied().unwrap_or(0) as usize], FanIn::Varying(starts))
            }
        };
        let indices = if n_inputs <= InputIds::MOST_U16 {
            InputIds::U16(container.array_shaped(&name("indices"), &shape)?)
        } else {
            InputIds::U32(container.array_shaped(&name("indices"), &shape)?)
        };
        let weights = container.floats(&name("weights"), of, &shape)?;
        let content = |source| OpenConnectionsError::Content {
            path: container.folder().to_owned(),
            prefix: prefix.to_owned(),
            source,
        };
        Self::opened(n_labels, n_inputs, fan_in, indices, weights, check).map_err(content)
    }
}
