//! The front door: every kind of model, every kind of input.

mod answers;
mod copies;
mod example;
mod explain;
mod folders;
mod refused;
#[cfg(feature = "requests")]
mod requests;
