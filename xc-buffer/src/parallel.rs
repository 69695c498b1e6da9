//! Loops over parts of a slice, shared by threads where that can pay.
//!
//! Rayon makes a pool of the whole process as soon as it is asked for anything outside of a pool. A
//! library that answers single queries must not do that, so a loop of one part stays on the calling
//! thread, and work on one query that could be shared asks [`in_pool`] first.
//!
//! ```
//! use xc_buffer::parallel::for_each_part;
//!
//! let mut squares = vec![0u64; 1000];
//! for_each_part(&mut squares, 100, |part, values| {
//!     (part as u64 * 100..).zip(values).for_each(|(i, value)| *value = i * i);
//! });
//! assert_eq!(squares[999], 999 * 999);
//! ```

use rayon::prelude::*;

/// Whether the caller is in a rayon pool, whose threads then share its work.
pub fn in_pool() -> bool {
    rayon::current_thread_index().is_some()
}

/// Calls `work` with the number of each part of `size` values, and the part; the last one may be
/// shorter. A single part is worked on at once, several by the ambient pool.
///
/// # Panics
/// If `size` is 0.
pub fn for_each_part<T: Send>(values: &mut [T], size: usize, work: impl Fn(usize, &mut [T]) + Send + Sync) {
    if values.len() > size {
        values.par_chunks_mut(size).enumerate().for_each(|(part, values)| work(part, values));
    } else if !values.is_empty() {
        work(0, values);
    }
}

/// As [`for_each_part`] for the work of one query: outside of a pool the calling thread does all of
/// it.
///
/// # Panics
/// If `size` is 0.
pub fn for_each_part_in_pool<T: Send>(values: &mut [T], size: usize, work: impl Fn(usize, &mut [T]) + Send + Sync) {
    if in_pool() {
        for_each_part(values, size, work);
    } else {
        values.chunks_mut(size).enumerate().for_each(|(part, values)| work(part, values));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_is_visited_once_with_its_number() {
        for (len, size) in [(0, 3), (1, 3), (3, 3), (10, 3)] {
            let mut values = vec![usize::MAX; len];
            for_each_part(&mut values, size, |part, values| values.fill(part));
            let expected: Vec<usize> = (0..len).map(|i| i / size).collect();
            assert_eq!(values, expected, "{len} values in parts of {size}");
            values.fill(usize::MAX);
            for_each_part_in_pool(&mut values, size, |part, values| values.fill(part));
            assert_eq!(values, expected, "{len} values in parts of {size}");
        }
    }
}
