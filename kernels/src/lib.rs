//! CUDA kernels of the crates of this workspace: their text, and what opens a card, loads and launches them.
//!
//! Without feature `cuda` the crate is empty. With it a program still starts on a machine without CUDA: the driver is
//! looked for when a device is opened, and nothing else of CUDA is needed at run time.
//!
#![cfg_attr(feature = "cuda", doc = "```no_run")]
#![cfg_attr(not(feature = "cuda"), doc = "```ignore")]
//! use xc_kernels::{Device, Shape};
//!
//! # fn main() -> Result<(), xc_kernels::Error> {
//! let device = Device::open(0)?; // one line of text where there is no card, no driver, an old one ...
//! let select = device.kernel("xc_select_k")?; // loads the module of that text, once
//! let keys = device.upload(&[30u64, 10, 20])?;
//! let lengths = device.upload(&[3u32])?;
//! let (mut best, mut n_best) = (device.zeros::<u64>(2)?, device.zeros::<u32>(1)?);
//! let shape = Shape { grid: [1, 1, 1], threads: 256, shared: 2 * 8 };
//! let call = select.call(device.stream()).arg(&keys).arg(&lengths).arg(&3u64).arg(&2u32).arg(&2u32);
//! // SAFETY: lengths and types are those that the kernel's text asks for.
//! unsafe { call.arg(&mut best).arg(&mut n_best).launch(shape) }?;
//! assert_eq!(device.download(&best)?, [10, 20]);
//! # Ok(())
//! # }
//! ```
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
