//! Read access to the weights of labels, for samplers.

use xc_buffer::FloatSlice;

/// Rows of weights, one per label, and the labels' biases: the logit of a label is the inner
/// product of its row with a vector, plus its bias.
///
/// *Shapes*: label `l` has row `l` of `n()` rows of `width()` values.
#[derive(Clone, Copy, Debug)]
pub struct LabelWeights<'a> {
    rows: FloatSlice<'a>,
    width: usize,
    biases: &'a [f32],
}

impl<'a> LabelWeights<'a> {
    /// Rows of `width` values, row after row.
    ///
    /// # Panics
    /// If the number of rows is not that of the biases.
    pub fn new(rows: FloatSlice<'a>, width: usize, biases: &'a [f32]) -> Self {
        let n = biases.len();
        assert!(Some(rows.len()) == n.checked_mul(width), "{} values for {n} rows of {width}", rows.len());
        Self { rows, width, biases }
    }

    /// Number of labels.
    pub fn n(&self) -> usize {
        self.biases.len()
    }

    /// Values of a row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Bias of a label.
    ///
    /// # Panics
    /// If `label >= n()`.
    pub fn bias(&self, label: u32) -> f32 {
        self.biases[label as usize]
    }

    /// Biases of all labels.
    pub fn biases(&self) -> &'a [f32] {
        self.biases
    }

    /// All rows, row after row, as they are stored.
    pub fn rows(&self) -> FloatSlice<'a> {
        self.rows
    }

    /// Row of a label: the stored values, or a copy widened into `buffer`.
    ///
    /// # Panics
    /// If `label >= n()`.
    #[inline]
    pub fn row<'b>(&self, label: u32, buffer: &'b mut Vec<f32>) -> &'b [f32]
    where
        'a: 'b,
    {
        let range = label as usize * self.width..(label as usize + 1) * self.width;
        if let FloatSlice::F32(values) = self.rows {
            return &values[range];
        }
        buffer.resize(self.width, 0.0);
        self.rows.widen(range, buffer);
        buffer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xc_buffer::FloatBuffer;
    use xc_buffer::dtype::DType;

    #[test]
    fn a_row_is_the_same_in_each_type_that_holds_it() {
        let values = [1.0, -2.0, 0.5, 4.0, 0.0, -0.25];
        for dtype in [DType::F32, DType::Bf16] {
            let rows = FloatBuffer::nearest(dtype, values.into_iter());
            let weights = LabelWeights::new(rows.as_slice(), 2, &[0.1, 0.2, 0.3]);
            let mut buffer = vec![9.0; 7];
            assert_eq!((weights.n(), weights.width(), weights.bias(2)), (3, 2, 0.3));
            assert_eq!(weights.row(1, &mut buffer), [0.5, 4.0], "{dtype}");
            assert_eq!(weights.row(2, &mut buffer), [0.0, -0.25], "{dtype}");
        }
    }

    #[test]
    #[should_panic(expected = "3 values for 2 rows of 2")]
    fn a_row_for_each_bias_is_expected() {
        let _ = LabelWeights::new(FloatSlice::F32(&[0.0; 3]), 2, &[0.0; 2]);
    }
}
