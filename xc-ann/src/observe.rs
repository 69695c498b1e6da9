//! Progress and cancellation of long work.

use xc_buffer::Cancel;

/// What a build, an insertion or a refresh has just done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// `n` vertices are about to be linked; a refresh may do so several times.
    Linking {
        /// Vertices, over all passes.
        n: usize,
    },
    /// Some of them were linked.
    Linked {
        /// Vertices linked since the last event.
        done: usize,
    },
}

/// Receives the progress of work, and may ask it to stop.
pub trait Observer: Cancel {
    /// Something was done.
    fn event(&self, event: Event);
}

/// An observer that ignores everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoObserver;

impl Cancel for NoObserver {}

impl Observer for NoObserver {
    fn event(&self, _event: Event) {}
}
