//! Stopping long work.

/// Polled by long work to learn whether it should stop.
pub trait Cancel: Sync {
    /// True asks the work to stop at its next safe point, with an error that says so. Asked often:
    /// it should return at once.
    fn cancelled(&self) -> bool {
        false
    }
}

impl<C: Cancel + ?Sized> Cancel for &C {
    fn cancelled(&self) -> bool {
        (**self).cancelled()
    }
}

/// Stops when one of the two asks for it.
impl<A: Cancel, B: Cancel> Cancel for (A, B) {
    fn cancelled(&self) -> bool {
        self.0.cancelled() || self.1.cancelled()
    }
}
