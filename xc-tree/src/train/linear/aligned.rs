//! Arrays of lanes that begin on a cache line, so that no lane array straddles two.

use bytemuck::{Pod, Zeroable};

#[repr(C, align(64))]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Line([f32; 16]);

/// Zeroed lane arrays, reused between problems.
#[derive(Default)]
pub(crate) struct Aligned {
    lines: Vec<Line>,
}

impl Aligned {
    /// `n` arrays of `N` zeros.
    ///
    /// # Panics
    /// If `N` does not divide 16.
    pub(crate) fn zeros<const N: usize>(&mut self, n: usize) -> &mut [[f32; N]] {
        assert!(16 % N == 0, "{N} lanes do not divide a line of 16");
        self.lines.clear();
        self.lines.resize(n.div_ceil(16 / N), Line([0.0; 16]));
        &mut bytemuck::cast_slice_mut::<Line, [f32; N]>(&mut self.lines)[..n]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_are_zero_and_aligned_however_often_they_are_reused() {
        let mut buffer = Aligned::default();
        for n in [0, 1, 5, 64, 3] {
            let rows = buffer.zeros::<4>(n);
            assert_eq!(rows.len(), n);
            assert!(rows.iter().flatten().all(|&v| v == 0.0));
            assert_eq!(rows.as_ptr() as usize % 64, 0);
            rows.iter_mut().flatten().for_each(|v| *v = 7.0);
        }
        assert_eq!(buffer.zeros::<16>(3).len(), 3);
    }
}
