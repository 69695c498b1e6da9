//! Progress of long work.

/// What a build, an insertion or a refresh has just done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildEvent {
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
