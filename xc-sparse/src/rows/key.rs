//! Rows in the key that ties a checkpoint to a training run.

use super::{CsrView, LabelRows};
use xc_store::CheckpointKey;

impl CsrView<'_> {
    /// Adds the rows with their width to the key of a training run.
    pub fn add_to(&self, key: &mut CheckpointKey) {
        key.numbers(&[self.rows() as u64, self.cols() as u64]);
        for i in 0..self.rows() {
            let row = self.row(i);
            key.bytes(bytemuck::cast_slice(row.indices()));
            key.further_bytes(bytemuck::cast_slice(row.values()));
        }
    }
}

impl LabelRows {
    /// Adds the lists with the number of labels to the key of a training run.
    pub fn add_to(&self, key: &mut CheckpointKey) {
        key.numbers(&[self.len() as u64, self.n_labels() as u64]);
        self.iter().for_each(|row| key.bytes(bytemuck::cast_slice(row)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CsrMatrix;

    /// Keys of runs that were stopped stay what they were.
    #[test]
    fn keys_of_rows_stay() {
        let rows = CsrMatrix::try_new((3, 9), vec![0, 2, 2, 3], vec![1, 7, 0], vec![0.5, -2.0, 1.0]).unwrap();
        let labels = LabelRows::from_lists([vec![4, 1], vec![], vec![2]], 5).unwrap();
        let mut key = CheckpointKey::new("rows", 1);
        rows.view().add_to(&mut key);
        labels.add_to(&mut key);
        assert_eq!(key.finish(), "65e7e2f958742203");
    }
}
