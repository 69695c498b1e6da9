//! Progress of long work.

use crate::Cancel;

/// Is told what long work has just done, by events of type `E`, and may ask it to stop ([`Cancel`]).
///
/// ```
/// use xc_buffer::{Cancel, Observer};
///
/// struct Lines;
/// impl Cancel for Lines {}
/// impl Observer<&str> for Lines {
///     fn event(&self, done: &str) {
///         println!("{done}");
///     }
/// }
///
/// fn work(observer: &dyn for<'e> Observer<&'e str>) -> Option<u32> {
///     for part in ["half", "all"] {
///         if observer.cancelled() {
///             return None;
///         }
///         observer.event(part);
///     }
///     Some(1)
/// }
/// assert_eq!(work(&Lines), Some(1));
/// ```
pub trait Observer<E>: Cancel {
    /// Something was done. Called often, and from any thread: it should return quickly.
    fn event(&self, event: E);
}

impl<E, O: Observer<E> + ?Sized> Observer<E> for &O {
    fn event(&self, event: E) {
        (**self).event(event);
    }
}

/// Tells both.
impl<E: Copy, A: Observer<E>, B: Observer<E>> Observer<E> for (A, B) {
    fn event(&self, event: E) {
        self.0.event(event);
        self.1.event(event);
    }
}

/// Ignores every event, and never asks to stop.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Cancel for Silent {}

impl<E> Observer<E> for Silent {
    fn event(&self, _: E) {}
}

/// Ignores every event, and passes on whether the work is to stop.
#[derive(Clone, Copy, Debug)]
pub struct Unwatched<C>(pub C);

impl<C: Cancel> Cancel for Unwatched<C> {
    fn cancelled(&self) -> bool {
        self.0.cancelled()
    }
}

impl<E, C: Cancel> Observer<E> for Unwatched<C> {
    fn event(&self, _: E) {}
}
