//! The front door: every kind of model, every kind of input.

mod answers;
mod example;
mod folders;
mod refused;
