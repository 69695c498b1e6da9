//! The neural core as a user meets it.

mod candidates;
mod classifier;
mod differentiated;
mod examples;
mod fused;
mod gradients;
mod mach;
mod reference;
mod sampled;
mod sparse;
mod threads;
mod training;
mod typed;
