//! Pairs (instance, label) that are not to be judged.

use thiserror::Error;

/// Pairs (instance, label) to ignore, as in the filter files of data sets whose labels are
/// instances too: an instance must not be rewarded, nor punished, for finding itself.
///
/// A pair is taken out of the ranked list (later labels move up) and out of the truth.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PairFilter {
    indptr: Vec<usize>,
    labels: Vec<u32>,
}

/// Why pairs are no filter.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum PairFilterError {
    /// A pair names an instance that does not exist.
    #[error("pair {pair} names instance {instance}; there are only {n_instances}")]
    InstanceOutOfRange {
        /// Position of the pair, from 0.
        pair: usize,
        /// The instance.
        instance: usize,
        /// The number of instances.
        n_instances: usize,
    },
}

impl PairFilter {
    /// Pairs in any order; repeated pairs count once.
    ///
    /// *Cost*: O(pairs * log pairs); 8 bytes an instance and 4 a pair.
    pub fn try_new(mut pairs: Vec<(usize, u32)>, n_instances: usize) -> Result<Self, PairFilterError> {
        if let Some(pair) = pairs.iter().position(|&(instance, _)| instance >= n_instances) {
            return Err(PairFilterError::InstanceOutOfRange { pair, instance: pairs[pair].0, n_instances });
        }
        pairs.sort_unstable();
        pairs.dedup();
        let mut indptr = vec![0; n_instances + 1];
        for &(instance, _) in &pairs {
            indptr[instance + 1] += 1;
        }
        for i in 0..n_instances {
            indptr[i + 1] += indptr[i];
        }
        Ok(Self { indptr, labels: pairs.into_iter().map(|(_, label)| label).collect() })
    }

    /// Number of pairs.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// True when there is no pair.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// Labels to ignore for `instance`, ascending; none past the last instance.
    pub fn row(&self, instance: usize) -> &[u32] {
        match self.indptr.get(instance..instance.saturating_add(2)) {
            Some(&[start, end]) => &self.labels[start..end],
            _ => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_become_ascending_rows() {
        let filter = PairFilter::try_new(vec![(2, 9), (0, 5), (2, 1), (2, 9)], 4).unwrap();
        assert_eq!(filter.len(), 3);
        assert_eq!((0..5).map(|i| filter.row(i)).collect::<Vec<_>>(), [&[5][..], &[], &[1, 9], &[], &[]]);
        assert!(PairFilter::default().row(0).is_empty());
        assert!(PairFilter::default().row(usize::MAX).is_empty());
    }

    #[test]
    fn an_instance_out_of_range_is_named() {
        assert_eq!(
            PairFilter::try_new(vec![(0, 1), (3, 1)], 3),
            Err(PairFilterError::InstanceOutOfRange { pair: 1, instance: 3, n_instances: 3 })
        );
    }
}
