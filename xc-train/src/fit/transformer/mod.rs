//! A transformer from its folder: below a network, before it, or alone.

#[cfg(feature = "transformer")]
mod built;
#[cfg(not(feature = "transformer"))]
#[path = "absent.rs"]
mod built;
mod embed;

pub(super) use built::{begin, featurizer, hash, put};
pub use embed::{Embed, Embedded};
