//! Sparse output layers: each label is connected with a few inputs, in the uniform case with
//! exactly `s` of them (`[schultheis2023uniform]`).
//!
//! ```text
//!   label 0   inputs 5 17 240      weights  0.3 -0.1 0.02        row of s, label-major:
//!   label 1   inputs 0 17  99      weights -0.2  0.4 0.11        the connections of a label lie side by side
//!
//!   score of label l for an instance = bias_l + sum over its connections t of  input[index(l, t)] * weight(l, t)
//! ```
//!
//! ```
//! use xc_buffer::DType;
//! use xc_sparse::uniform::Connections;
//!
//! // Two labels, each connected with two of four inputs.
//! let draw = |label: usize, inputs: &mut Vec<usize>| inputs.extend([label, label + 2]);
//! let connections = Connections::uniform(2, 4, 2, DType::F32, draw)?;
//! assert_eq!((connections.len(), connections.range(1)), (4, 2..4));
//! assert_eq!(connections.indices().get(3), 3);
//! # Ok::<(), xc_sparse::uniform::ConnectionsError>(())
//! ```
//!
//! # Blocks of instances
//! The inner loops process [`LANES`] instances at once: their values of one input are adjacent (one
//! cache line, in half precision), so that a connection reads one line for all lanes. [`Lines`] holds
//! such a batch.
//!
//! ```
//! use xc_buffer::DType;
//! use xc_sparse::uniform::{Connections, Lines};
//!
//! // Three labels over four inputs, two connections each.
//! let draw = |label: usize, inputs: &mut Vec<usize>| inputs.extend([label, 3]);
//! let mut layer = Connections::uniform(3, 4, 2, DType::F32, draw)?;
//! layer.weights_mut().bytes_mut().copy_from_slice(bytemuck::cast_slice(&[1.0f32, 0.5, 2.0, 0.5, 3.0, 0.5]));
//! let mut batch = Lines::default();
//! batch.fill(&[1.0, 2.0, 4.0, 8.0], 1, 4);
//! let mut scores = [0.0; 3];
//! layer.forward(&batch, &[0.0, 0.0, -1.0], &mut scores);
//! assert_eq!(scores, [5.0, 8.0, 15.0]);
//! # Ok::<(), xc_sparse::uniform::ConnectionsError>(())
//! ```
//!
//! # When not to use it
//! With few labels, or with memory for `labels * inputs` weights, a dense layer is as fast and no worse.
//! Directly above a narrow encoder the layer underfits; it needs a wide intermediate layer below
//! (section 3.4 of the paper).

mod batch;
mod convert;
#[cfg(feature = "store")]
mod file;
mod lines;
mod matrix;
mod product;
mod rewire;
mod screen;

pub use convert::UniformConvertError;
#[cfg(feature = "store")]
pub use file::OpenConnectionsError;
pub use lines::{LANES, Lines, UniformLine};
pub use matrix::{Connections, ConnectionsError, FanIn, IndexWidth, InputIds, check_shape};
pub use product::{Sums, UniformKernels, weight_gradients};
pub use rewire::{Rewired, distinct};
pub use screen::{BYTE_LANES, ByteBlock, ByteLine, ByteLines, DEVIATIONS, LaneBounds, RowBound, ScreenRow, ScreenRows};
