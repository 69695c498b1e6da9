//! Weights as the products read them.

use xc_buffer::FloatBuffer;
use xc_sparse::uniform::UniformKernels;

/// Weights of an output in f32: as they lie there, or widened.
pub(super) struct Weights<'a> {
    all: &'a FloatBuffer,
    row: Vec<f32>,
}

impl<'a> Weights<'a> {
    pub(super) fn new(all: &'a FloatBuffer) -> Self {
        Self { all, row: Vec::new() }
    }

    #[inline(always)]
    pub(super) fn row(&mut self, range: std::ops::Range<usize>) -> &[f32] {
        if let FloatBuffer::F32(values) = self.all {
            return &values[range];
        }
        self.row.resize(range.len(), 0.0);
        self.all.widen(range, &mut self.row);
        &self.row
    }

    /// Asks for weights that will be read soon.
    #[inline(always)]
    pub(super) fn prefetch(&self, range: std::ops::Range<usize>) {
        if let FloatBuffer::F32(values) = self.all {
            UniformKernels::current().prefetch(&values[range]);
        }
    }
}
