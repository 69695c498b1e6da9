//! The neural core as a user meets it.

mod candidates;
mod examples;
mod fixed;
mod fused;
mod gradients;
mod hardest;
mod reference;
mod sampled;
mod sparse;
mod threads;
mod training;
mod typed;
