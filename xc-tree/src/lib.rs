//! Label trees.

mod parts;
mod post;
mod topology;

pub use parts::TreeParts;
pub use post::{PostProcessor, UnknownPostProcessor};
pub use topology::{Topology, TopologyError};
