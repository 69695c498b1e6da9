//! The false labels that training scored highest, of each instance in each epoch.

use rayon::prelude::*;
use std::io;
use std::path::Path;
use xc_sparse::LabelRows;
use xc_sparse::rows::sort_unique;
use xc_store::MmapVec;

/// Instances whose labels are sorted at a time.
const BLOCK: usize = 1 << 14;

/// A table of `instances x epochs x n` labels, in memory or in a file: what the training steps of a
/// [`Trainer`](crate::Trainer) found hardest.
///
/// ```
/// use xc_nn::HardLabels;
///
/// // Three instances, two epochs, two labels each time.
/// let mut hard = HardLabels::new(3, 2, 2, None)?;
/// hard.put(0, &[2, 0], &[7, 4, 5, u32::MAX])?;
/// hard.put(1, &[0], &[5, 1])?;
/// let rows = hard.into_rows(8)?;
/// assert_eq!(rows.iter().collect::<Vec<_>>(), [&[1, 5][..], &[], &[4, 7]]);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct HardLabels {
    n_instances: usize,
    n_epochs: u32,
    n: usize,
    /// The complement of each label, so that no label is 0: what was never written.
    stored: MmapVec<u32>,
}

impl HardLabels {
    /// An empty table of `n` labels an instance and epoch; in a file without a name in `folder`, if it is
    /// given. Instances are all rows of the examples, also those that nothing is learned from.
    ///
    /// *Memory*: [`HardLabels::bytes`], unless it is in a file.
    ///
    /// # Errors
    /// The folder cannot hold a file of this size.
    pub fn new(n_instances: usize, n_epochs: u32, n: usize, folder: Option<&Path>) -> io::Result<Self> {
        let len = (n_epochs as usize).checked_mul(n).and_then(|each| each.checked_mul(n_instances));
        let stored = MmapVec::zeros(len.ok_or(io::ErrorKind::FileTooLarge)?, folder)?;
        Ok(Self { n_instances, n_epochs, n, stored })
    }

    /// Bytes of such a table.
    pub fn bytes(n_instances: usize, n_epochs: u32, n: usize) -> u64 {
        let each = 4 * u128::from(n_epochs) * n as u128;
        u64::try_from(each.saturating_mul(n_instances as u128)).unwrap_or(u64::MAX)
    }

    /// Number of instances.
    pub fn n_instances(&self) -> usize {
        self.n_instances
    }

    /// Number of epochs.
    pub fn n_epochs(&self) -> u32 {
        self.n_epochs
    }

    /// Labels of an instance in an epoch.
    pub fn n(&self) -> usize {
        self.n
    }

    /// Takes what a head [collected](crate::Head::collected) for some instances, by their numbers: `n`
    /// labels each, [`u32::MAX`] where there are fewer. What an earlier call said of an instance and epoch
    /// is replaced.
    ///
    /// # Errors
    /// A write fails, for example because the disk is full.
    ///
    /// # Panics
    /// If there is no such epoch or instance, or there are not `n` labels for each.
    pub fn put(&mut self, epoch: u32, instances: &[u32], collected: &[u32]) -> io::Result<()> {
        let Self { n_instances, n_epochs, n, .. } = *self;
        assert!(epoch < n_epochs, "epoch {epoch} of {n_epochs}");
        assert!(
            Some(collected.len()) == instances.len().checked_mul(n),
            "{} labels for {} instances, expected {n} for each",
            collected.len(),
            instances.len()
        );
        let mut row = vec![0; n];
        for (&instance, labels) in instances.iter().zip(collected.chunks_exact(n.max(1))) {
            assert!((instance as usize) < n_instances, "instance {instance} of {n_instances}");
            row.iter_mut().zip(labels).for_each(|(to, label)| *to = !label);
            self.stored.write((instance as usize * n_epochs as usize + epoch as usize) * n, &row)?;
        }
        Ok(())
    }

    /// The labels of each instance over all epochs: ascending and unique.
    ///
    /// *Memory*: that of the rows, in addition to a table that is in memory.
    ///
    /// # Errors
    /// The file cannot be mapped.
    ///
    /// # Panics
    /// If a label is not below `n_labels`.
    pub fn into_rows(self, n_labels: usize) -> io::Result<LabelRows> {
        let (n_instances, each) = (self.n_instances, self.n_epochs as usize * self.n);
        let stored = self.stored.finish()?;
        let row = |i: usize| {
            let labels = stored[i * each..(i + 1) * each].iter().filter(|&&stored| stored != 0);
            let mut labels: Vec<u32> = labels.map(|stored| !stored).collect();
            sort_unique(&mut labels, 0);
            labels
        };
        let (mut indptr, mut labels) = (vec![0], Vec::new());
        for first in (0..n_instances).step_by(BLOCK) {
            let rows: Vec<Vec<u32>> = (first..n_instances.min(first + BLOCK)).into_par_iter().map(row).collect();
            for row in rows {
                labels.extend_from_slice(&row);
                indptr.push(labels.len());
            }
        }
        let rows = LabelRows::try_new(indptr, labels, n_labels);
        Ok(rows.unwrap_or_else(|e| panic!("collected labels of another head: {e}")))
    }

    /// Rows and columns of the table as a matrix: one row an instance.
    pub(crate) fn shape(&self) -> [usize; 2] {
        [self.n_instances, self.n_epochs as usize * self.n]
    }

    /// Calls `work` with the table as it is stored.
    pub(crate) fn read<R>(&self, work: impl FnOnce(&[u32]) -> R) -> io::Result<R> {
        self.stored.read(work)
    }

    /// Overwrites the table by one that was [read](HardLabels::read). Gives a label that is not below
    /// `n_labels`, if there is one; nothing changes then.
    ///
    /// # Panics
    /// If it is of another length.
    pub(crate) fn restore(&mut self, stored: &[u32], n_labels: u32) -> io::Result<Option<u32>> {
        assert!(stored.len() == self.stored.len(), "{} labels, expected {}", stored.len(), self.stored.len());
        let wrong = stored.iter().copied().find(|&stored| stored != 0 && !stored >= n_labels);
        match wrong {
            Some(stored) => Ok(Some(!stored)),
            None => self.stored.write(0, stored).map(|()| None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_in_a_file_is_that_in_memory_and_rows_have_each_label_once() {
        const NONE: u32 = u32::MAX;
        let folder = tempfile::tempdir().unwrap();
        let rows = [None, Some(folder.path())].map(|place| {
            let mut hard = HardLabels::new(5, 3, 3, place).unwrap();
            hard.put(0, &[4, 1], &[9, 0, 3, 2, NONE, NONE]).unwrap();
            hard.put(2, &[1, 2, 4], &[5, 2, NONE, NONE, NONE, NONE, 3, 9, 1]).unwrap();
            hard.put(1, &[], &[]).unwrap();
            // Replaced.
            hard.put(2, &[1], &[7, 8, NONE]).unwrap();
            let stored = hard.read(<[u32]>::to_vec).unwrap();
            assert_eq!(4 * stored.len() as u64, HardLabels::bytes(5, 3, 3));
            let mut copy = HardLabels::new(5, 3, 3, place).unwrap();
            assert_eq!(copy.restore(&stored, 9).unwrap(), Some(9));
            assert!(copy.read(|all| all.iter().all(|&stored| stored == 0)).unwrap());
            assert_eq!(copy.restore(&stored, 10).unwrap(), None);
            let rows = hard.into_rows(10).unwrap();
            assert_eq!(copy.into_rows(10).unwrap(), rows);
            rows
        });
        let expected = LabelRows::from_lists([&[][..], &[2, 7, 8], &[], &[], &[0, 1, 3, 9]], 10).unwrap();
        assert_eq!(rows, [expected.clone(), expected]);
    }

    #[test]
    fn a_table_may_be_empty() {
        for (n_instances, n_epochs, n) in [(0, 2, 3), (2, 0, 3), (2, 2, 0)] {
            let mut hard = HardLabels::new(n_instances, n_epochs, n, None).unwrap();
            if n == 0 {
                hard.put(1, &[1], &[]).unwrap();
            }
            assert_eq!(hard.into_rows(1).unwrap(), LabelRows::from_lists(vec![[]; n_instances], 1).unwrap());
        }
        assert_eq!(HardLabels::bytes(usize::MAX, u32::MAX, usize::MAX), u64::MAX);
        assert!(HardLabels::new(usize::MAX, 2, 2, None).is_err());
    }

    #[test]
    #[should_panic(expected = "3 labels for 2 instances, expected 2 for each")]
    fn other_numbers_of_labels_are_refused() {
        let _ = HardLabels::new(3, 1, 2, None).unwrap().put(0, &[0, 1], &[1, 2, 3]);
    }
}
