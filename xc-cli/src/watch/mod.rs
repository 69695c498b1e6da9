//! What is shown and logged of training under way.

mod log;
mod network;
mod trees;

pub(crate) use log::Log;
pub(crate) use network::NetworkWatch;
pub(crate) use trees::TreeWatch;
