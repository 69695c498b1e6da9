//! Samplers: their distributions, their lists, the sums that their weights estimate.

mod ann;
mod distributions;
mod given;
mod lists;
mod lsh;
mod mixture;
mod state;
