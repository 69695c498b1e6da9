//! Kernels on the emulated driver, or on the machine's card with `XC_REQUIRE_GPU=1`.

mod best;
mod launch;
mod open;
mod pipeline;
mod product;
mod select;
mod texts;
mod vast;
