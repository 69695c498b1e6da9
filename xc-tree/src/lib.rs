//! Label trees.

mod topology;

pub use topology::{Topology, TopologyError};
