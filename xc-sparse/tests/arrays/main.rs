//! Chunked and uniform weights against their definitions.

mod chunked;
mod screen;
#[cfg(feature = "store")]
mod uniform;
