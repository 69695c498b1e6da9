//! How much better one is than another, row by row.

/// A difference of two means over the same rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Paired {
    /// Mean of the first less mean of the second.
    pub difference: f64,
    /// Standard error of the difference; infinite for fewer than two rows.
    pub standard_error: f64,
    /// Rows.
    pub rows: usize,
}

impl Paired {
    /// Compares what two got for each of the same rows.
    ///
    /// # Panics
    /// If they have different numbers of rows.
    pub fn new(first: &[f64], second: &[f64]) -> Self {
        assert!(first.len() == second.len(), "{} rows and {} rows are no pairs", first.len(), second.len());
        let rows = first.len();
        let gaps = || first.iter().zip(second).map(|(a, b)| a - b);
        let difference = if rows == 0 { 0.0 } else { gaps().sum::<f64>() / rows as f64 };
        let squares: f64 = gaps().map(|gap| (gap - difference).powi(2)).sum();
        let standard_error = if rows < 2 { f64::INFINITY } else { (squares / (rows - 1) as f64 / rows as f64).sqrt() };
        Self { difference, standard_error, rows }
    }

    /// Whether the first is better by more than the standard error.
    pub fn is_better(&self) -> bool {
        self.difference > 0.0 && self.difference > self.standard_error
    }

    /// Whether the first is worse by more than twice the standard error.
    pub fn is_clearly_worse(&self) -> bool {
        self.difference < -2.0 * self.standard_error
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_counts_when_it_is_above_its_standard_error() {
        let (a, b) = ([1.0, 1.0, 1.0, 0.0], [0.0, 1.0, 0.0, 0.0]);
        let paired = Paired::new(&a, &b);
        // Gaps 1 0 1 0: mean 0.5, variance 1/3.
        assert_eq!((paired.difference, paired.rows), (0.5, 4));
        assert!((paired.standard_error - (1.0f64 / 12.0).sqrt()).abs() < 1e-12);
        assert!(paired.is_better() && !Paired::new(&b, &a).is_better());
        assert!(!Paired::new(&a, &a).is_better() && !Paired::new(&a, &a).is_clearly_worse());
        // One row says nothing, however large its difference is.
        assert!(!Paired::new(&[1.0], &[0.0]).is_better() && !Paired::new(&[0.0], &[1.0]).is_clearly_worse());
        assert!(!Paired::new(&[], &[]).is_better());
    }
}
