//! Chunked and uniform weights against their definitions.

mod chunked;
mod screen;
#[cfg(feature = "sprs")]
mod sprs;
#[cfg(feature = "store")]
mod uniform;
#[cfg(feature = "serde")]
mod values;
