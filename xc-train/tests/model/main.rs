//! The front door: every kind of model, every kind of input.

mod answers;
mod copies;
mod example;
mod explain;
mod folders;
mod kinds;
mod refused;
mod requests;
