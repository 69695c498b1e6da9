//! Conversion to and from sparse columns.

use super::matrix::{Connections, ConnectionsError, FanIn, InputIds};
use crate::{CscMatrix, CscView, CsrMatrix};
use thiserror::Error;
use xc_buffer::FloatBuffer;
use xc_buffer::dtype::DType;

/// Why columns cannot be converted to connections.
#[derive(Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum UniformConvertError {
    /// Labels have different numbers of weights.
    #[error("label {label} has {got} weights, label 0 has {expected}: expected the same number everywhere")]
    NotUniform {
        /// The label.
        label: usize,
        /// Its number of weights.
        got: usize,
        /// That of label 0.
        expected: usize,
    },
    /// See [`ConnectionsError`].
    #[error(transparent)]
    Connections(#[from] ConnectionsError),
}

impl Connections {
    /// Takes one column per label and one row per input, all columns with the same number of stored
    /// weights if `uniform`. Weights are rounded to the nearest.
    ///
    /// # Errors
    /// See [`UniformConvertError`].
    pub fn from_csc(matrix: CscView<'_>, of: DType, uniform: bool) -> Result<Self, UniformConvertError> {
        let (n_inputs, n_labels) = (matrix.rows(), matrix.cols());
        let by_label = matrix.transpose();
        let (indptr, indices, weights) = (by_label.indptr(), by_label.indices(), by_label.data());
        // A slice of a matrix keeps the pointers of the whole.
        let first = indptr[0];
        let length = |label: usize| indptr[label + 1] - indptr[label];
        let fan_in = if uniform {
            let expected = if n_labels == 0 { 1 } else { length(0) };
            if let Some(label) = (0..n_labels).find(|&label| length(label) != expected) {
                return Err(UniformConvertError::NotUniform { label, got: length(label), expected });
            }
            FanIn::Uniform(expected)
        } else {
            FanIn::Varying(indptr.iter().map(|&at| (at - first) as u64).collect::<Vec<_>>().into())
        };
        let inputs = indices.iter().map(|&i| i as usize);
        if let Some((at, input)) = inputs.clone().enumerate().find(|&(_, input)| input >= n_inputs) {
            let label = indptr.partition_point(|&start| start - first <= at) - 1;
            return Err(ConnectionsError::OutOfRange { label, input, n_inputs }.into());
        }
        let indices = InputIds::new(n_inputs, inputs);
        let weights = FloatBuffer::nearest(of, weights.iter().copied());
        Ok(Self::from_parts(n_labels, n_inputs, fan_in, indices, weights)?)
    }

    /// Returns one column per label and one row per input, ascending.
    pub fn to_csc(&self) -> CscMatrix {
        let (mut indptr, mut indices, mut weights) = (vec![0], Vec::new(), Vec::new());
        let mut column = Vec::new();
        for label in 0..self.n_labels() {
            column.clear();
            column.extend(self.range(label).map(|at| (self.indices().get(at) as u32, self.weights().get(at))));
            column.sort_unstable_by_key(|&(input, _)| input);
            indices.extend(column.iter().map(|&(input, _)| input));
            weights.extend(column.iter().map(|&(_, weight)| weight));
            indptr.push(indices.len());
        }
        CsrMatrix::from_checked((self.n_labels(), self.n_inputs()), indptr, indices, weights).transpose()
    }
}
