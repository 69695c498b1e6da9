#![doc = include_str!("../README.md")]
//!
//! | module | what it is for |
//! |---|---|
//! | [`Buffer`], [`FloatBuffer`], [`HugePageVec`] | arrays in memory, in large pages, or in the memory of somebody else; of one number type or of several |
//! | [`FileBytes`], [`map_elements`] | files as arrays, mapped or read |
//! | [`dtype`] | one enum of stored number types, and floats of 8, 16 and 32 bits |
//! | [`simd`] | which instruction set runs, loops compiled for each, prefetching |
//! | [`sums`] | the order of sums over labels or instances, however the work is divided |
//! | [`parallel`], [`Part`] | work divided among the threads of a pool, and among processes |
//! | [`Cancel`], [`Observer`] | whether long work is to stop, and what it has done |
//! | [`is_control`] | characters that no name of a label or a feature has |

#![deny(unsafe_code)] // kernels, buffers and constructors without checks alone may have it

mod buffer;
mod cancel;
pub mod dtype;
mod file;
mod names;
mod observe;
pub mod parallel;
mod part;
pub mod simd;
pub mod sums;

pub use buffer::{Buffer, BufferError, FloatBuffer, FloatSlice, FloatSliceMut, HugePageVec};
pub use cancel::Cancel;
pub use dtype::DType;
pub use file::{Advice, FileBytes, map_elements};
pub use names::is_control;
pub use observe::{Observer, Silent, Unwatched};
pub use part::{Part, PartError};
pub use simd::{Isa, Loop, vectorised, vectorised_loop, vectorised_loop_on};
