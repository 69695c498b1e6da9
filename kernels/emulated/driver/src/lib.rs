//! A `libcuda` for tests: the calls of the CUDA driver that cudarc makes, over the interpreter of PTX.
//!
//! A test loads this library by its path; whoever asks for `libcuda.so` afterwards gets it. Host code then runs
//! unchanged, and answers have the codes of a card (an H100 with driver 580).
//!
//! **Streams.** Calls put operations into the queues of streams. They run when somebody waits, in an order that a seed
//! shuffles. Whether two operations are ordered does not depend on that: streams, events and waits of the host give
//! every operation a clock, by which the interpreter tells a race between operations as it does one between threads.
//!
//! **Host memory.** A copy from pinned memory compares it with what it was when the copy was asked for, until the host
//! has waited for it. A copy to pinned memory fills it with a pattern at once and with its bytes when the host has
//! waited for it. So a slot that is used again too early, or read too early, shows with every seed.
//!
//! **Faults** stay, as on a card: every later call answers with the code of the first one. Its text is read by
//! [`knobs::xc_emulated_fault`].
#![allow(non_snake_case, reason = "names of the driver's interface")]
#![allow(clippy::missing_safety_doc, reason = "the contract is that of the CUDA driver's interface")]

pub mod calls;
mod clock;
mod codes;
mod host;
pub mod knobs;
mod operation;
mod queue;
mod state;

pub use calls::*;
pub use codes::Code;
