//! The neural core as a user meets it.

mod gradients;
mod reference;
mod threads;
