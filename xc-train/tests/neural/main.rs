//! The neural core as a user meets it.

mod classifier;
mod fused;
mod gradients;
mod mach;
mod reference;
mod sparse;
mod threads;
mod training;
mod typed;
