//! What is shown and logged of training under way.

mod log;
mod network;
mod trees;

pub(crate) use log::Log;
pub(crate) use network::NetworkWatch;
pub(crate) use trees::TreeWatch;

use xc_buffer::Cancel;
use xc_nn::trainer::{Event, Observer};

/// Tells both.
pub(crate) struct Both<A, B>(pub(crate) A, pub(crate) B);

impl<A: Cancel, B: Cancel> Cancel for Both<A, B> {
    fn cancelled(&self) -> bool {
        self.0.cancelled() || self.1.cancelled()
    }
}

impl<A: Observer, B: Observer> Observer for Both<A, B> {
    fn event(&self, event: Event<'_>) {
        self.0.event(event);
        self.1.event(event);
    }
}
