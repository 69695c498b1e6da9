//! Rows of length 1: the same code, so the same bits, in training and in serving.

/// Divides values by their length (2-norm, summed in `f64`); values of length 0 stay.
pub(crate) fn normalise(values: &mut [f32]) {
    let length = values.iter().map(|&v| f64::from(v) * f64::from(v)).sum::<f64>().sqrt() as f32;
    if length > 0.0 {
        values.iter_mut().for_each(|v| *v /= length);
    }
}
