//! Jobs shared by the threads of the pool, each with scratch that is kept.

use super::kept::lock;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use xc_buffer::Cancel;

/// What workers reuse, one of it a thread.
#[derive(Default)]
pub(super) struct Workers<S> {
    scratch: Mutex<Vec<S>>,
}

impl<S: Default + Send> Workers<S> {
    /// Runs `job` for `0..n` on all threads, in order of their numbers as threads become free; none begins once
    /// `cancel` asks to stop.
    pub(super) fn run<C: Cancel + ?Sized>(&self, n: usize, cancel: &C, job: impl Fn(usize, &mut S) + Sync) {
        let next = AtomicUsize::new(0);
        let work = || {
            let mut scratch = lock(&self.scratch).pop().unwrap_or_default();
            loop {
                let i = next.fetch_add(1, Ordering::Relaxed);
                if i >= n || cancel.cancelled() {
                    break;
                }
                job(i, &mut scratch);
            }
            lock(&self.scratch).push(scratch);
        };
        rayon::scope(|scope| {
            for _ in 0..rayon::current_num_threads().min(n) {
                scope.spawn(|_| work());
            }
        });
    }
}
