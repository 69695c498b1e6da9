#![cfg_attr(feature = "cuda", doc = include_str!("../README.md"))]
#![cfg_attr(not(feature = "cuda"), doc = "Empty without feature `cuda`.")]
//!
//! # A kernel
//! - Its text is `cu/NAME.cu`; `kernels/compile` makes `ptx/NAME.ptx` of it, which is committed, and `texts.rs` has a
//!   line for it. Kernels are named `xc_CRATE_WHAT`. f32 operations are neither fused nor approximated, so a kernel
//!   that keeps the CPU's order of operations gives the CPU's bytes.
//! - Structs that it takes by value are declared by `arguments!`, and a kernel `xc_layout_NAME` in the text says how
//!   the compiler laid them out: `layout::check` compares.
//! - `Call::launch` refuses what the kernel or the card cannot do, and does nothing for an empty grid.
//! - Commands go to a stream and are ordered there; two streams are ordered by events alone. `Pipeline` overlaps the
//!   copies of batches with their kernels, over memory that is `Staged`.
//! - Ranked labels are keys of 64 bits on a card: `xc_sparse::rank::rank_key`.
//! - Before a model goes to the card its `Plan` is compared with the free memory.
//!
//! # Tests
//! Feature `emulated` has a driver that runs the same PTX on the CPU, with checks of races, bounds and unwritten
//! memory. `Emulated::hold()` loads it, gives one test the driver for itself, and fails the test if a check failed:
//! ```ignore
//! let emulated = Emulated::hold();
//! let device = Device::open(0)?;
//! emulated.set_seed(3); // another order of threads
//! ```
//! With `XC_REQUIRE_GPU=1` the same tests use the machine's card instead.

#[cfg(feature = "cuda")]
pub mod best;
#[cfg(feature = "cuda")]
mod device;
#[cfg(feature = "emulated")]
mod emulated;
#[cfg(feature = "cuda")]
mod error;
#[cfg(feature = "cuda")]
mod launch;
#[cfg(feature = "cuda")]
pub mod layout;
#[cfg(feature = "cuda")]
mod pipeline;
#[cfg(feature = "cuda")]
mod plan;
#[cfg(feature = "cuda")]
pub mod product;
#[cfg(feature = "cuda")]
pub mod texts;
#[cfg(feature = "emulated")]
pub mod watch;

#[cfg(feature = "cuda")]
pub use cudarc;
#[cfg(feature = "cuda")]
pub use device::{Device, Kernel, Limits, address};
#[cfg(feature = "emulated")]
pub use emulated::Emulated;
#[cfg(feature = "cuda")]
pub use error::Error;
#[cfg(feature = "cuda")]
pub use launch::{Call, Shape};
#[cfg(feature = "cuda")]
pub use pipeline::{Done, Pipeline, Staged};
#[cfg(feature = "cuda")]
pub use plan::Plan;
