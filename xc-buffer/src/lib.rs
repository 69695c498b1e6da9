//! What the crates of xc compute on: number types, arrays in memory or in mapped files, instruction sets, the order of sums,
//! work divided among threads. It takes whoever writes a kernel, a store or a model of his own.
//!
//! ```
//! use xc_buffer::{Buffer, vectorised};
//!
//! // An array that several parts share; who writes into it copies it first.
//! let values = Buffer::from(vec![0.5f32; 1000]);
//! let same = values.clone();
//! assert_eq!(values.as_ptr(), same.as_ptr());
//! // Compiled for every instruction set, run with the widest of this machine.
//! let n = vectorised(|| values.iter().map(|&v| u32::from(v > 0.0)).sum::<u32>());
//! assert_eq!(n, 1000);
//! ```
//!
//! | module | what it is for |
//! |---|---|
//! | [`Buffer`], [`FloatBuffer`], [`Pages`] | arrays in memory, in large pages, or in the memory of somebody else; of one number type or of several |
//! | [`dtype`] | one enum of stored number types, and floats of 8, 16 and 32 bits |
//! | [`simd`] | which instruction set runs, loops compiled for each, prefetching |
//! | [`sums`] | the order of sums over labels or instances, however the work is divided |
//! | [`parallel`], [`Part`] | work divided among the threads of a pool, and among processes |
//! | [`Cancel`] | whether work is to stop |
//!
//! # When not to use it
//! For arrays that one owner has, `Vec` is enough; for shapes and arithmetic, `ndarray`.

#![deny(unsafe_code)] // kernels, buffers and constructors without checks alone may have it

mod buffer;
mod cancel;
pub mod dtype;
pub mod parallel;
mod part;
pub mod simd;
pub mod sums;

pub use buffer::{Buffer, BufferError, FloatBuffer, FloatSlice, FloatSliceMut, Pages};
pub use cancel::Cancel;
pub use dtype::DType;
pub use part::{Part, PartError};
pub use simd::{Isa, Loop, vectorised, vectorised_loop, vectorised_loop_on};
