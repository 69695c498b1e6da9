//! Instruction sets: which one runs, loops compiled once for each, and prefetching.
//!
//! The choice is made once per process; `XC_SIMD=scalar|avx2|avx512` forces one. Hand-written kernels
//! are in the `product` and `screen` folders of the module they serve, and match on [`Isa`]; loops in
//! plain code run through [`vectorised_loop`].
//!
//! ```
//! use xc_buffer::simd::{Isa, vectorised};
//!
//! let values = vec![0.5f32; 1000];
//! // Compiled for every instruction set, run with the widest of this machine.
//! let n = vectorised(|| values.iter().map(|&v| u32::from(v > 0.0)).sum::<u32>());
//! assert_eq!(n, 1000);
//! assert!(Isa::available().any(|isa| isa == Isa::current()));
//! ```

#![allow(unsafe_code, reason = "code compiled for an instruction set that was found on the machine")]

mod dispatch;
mod exponential;
mod isa;
mod prefetch;

pub use dispatch::{Loop, vectorised, vectorised_loop, vectorised_loop_on};
pub use exponential::exp;
pub use isa::{Isa, IsaError};
pub use prefetch::{prefetch, prefetch_all, prefetch_start, values_of_a_line};
