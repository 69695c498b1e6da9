//! What stops a kernel.

use std::fmt;

/// What is wrong, as a driver tells it apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An address in no allocation, or past the end of shared memory.
    Bounds,
    /// An address that is not a multiple of the size of its access.
    Misaligned,
    /// `trap`.
    Trap,
    /// A byte is read that nobody wrote.
    Unwritten,
    /// Two accesses of a byte without order, one of them a write.
    Race,
    /// A barrier or a warp operation that not all threads reach together.
    Convergence,
    /// An asynchronous copy that nobody waits for, or a host buffer that changes under a queued copy.
    Copy,
    /// The launch itself: threads, grid, shared memory, parameters.
    Launch,
}

/// A fault with its place: kernel, block, thread and line, as far as they are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What is wrong.
    pub kind: Kind,
    text: String,
}

impl Fault {
    /// A fault that `text` describes.
    pub fn new(kind: Kind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into() }
    }

    /// Puts a place before the text.
    #[must_use]
    pub fn at(mut self, place: &str) -> Self {
        self.text = format!("{place}: {}", self.text);
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Fault {}
