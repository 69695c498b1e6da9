//! The neural core as a user meets it.

mod dense;
mod gradients;
mod reference;
mod threads;
mod training;
