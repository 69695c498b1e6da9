//! The neural core as a user meets it.

mod dense;
mod fused;
mod gradients;
mod grouped;
mod mach;
mod reference;
mod sparse;
mod threads;
mod training;
mod typed;
mod uniform;
