//! Groups of labels whose instances are alike, for whoever wants coarser labels: one level of a balanced clustering.

use crate::train::cluster::{ClusterParams, Clustering, cluster};
use crate::train::label_vectors::{LabelRepresentation, LabelVectors};
use crate::train::observe::Observer;
use xc_sparse::{LabelRows, Rows};

/// The group of each label: nearly equal groups of about ceil(labels / `n_groups`) labels, so at most `n_groups` and, where that does not divide well,
/// down to half as many; none is empty but where no label has an instance. A label is represented by the sum of its instances (PIFA); labels without one are dealt out in turn. `None` when the observer
/// asked to stop.
///
/// *Determinism*: depends on the rows and `seed` alone. *Cost*: as clustering for one tree.
///
/// # Panics
/// If `n_groups` is 0, or there are not as many rows of labels as of features.
pub fn group_labels(
    features: Rows<'_>,
    labels: &LabelRows,
    n_groups: usize,
    seed: u64,
    observer: &dyn Observer,
) -> Option<Vec<u32>> {
    assert!(n_groups > 0, "no groups");
    assert!(features.len() == labels.len(), "{} rows of features, {} of labels", features.len(), labels.len());
    let instances_of = labels.transpose();
    let (seen, unseen): (Vec<u32>, Vec<u32>) =
        (0..labels.n_labels() as u32).partition(|&label| !instances_of.row(label as usize).is_empty());
    let mut of = vec![0u32; labels.n_labels()];
    let mut n = 1;
    if n_groups > 1 && !seen.is_empty() {
        let vectors = LabelVectors::build(LabelRepresentation::Pifa, features, &instances_of, None, &seen, None, None);
        let params =
            ClusterParams { branching: n_groups, max_leaf: seen.len().div_ceil(n_groups), ..ClusterParams::default() };
        let Clustering { levels, order } = cluster(&vectors, &params, seed, observer)?;
        let ends = levels.last().map_or(&[][..], Vec::as_slice);
        for (group, range) in ends.windows(2).enumerate() {
            for &row in &order[range[0] as usize..range[1] as usize] {
                of[seen[row as usize] as usize] = group as u32;
            }
        }
        n = ends.len().saturating_sub(1).max(1);
    }
    unseen.iter().zip((0..n as u32).cycle()).for_each(|(&label, group)| of[label as usize] = group);
    Some(of)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::train::observe::NoObserver;
    use xc_sparse::CsrMatrix;

    /// Labels 0 to 19 share a feature, 20 to 39 another one; labels 40 to 44 have no instance.
    fn data() -> (CsrMatrix, LabelRows) {
        let rows: Vec<[f32; 6]> = (0..40)
            .map(|i| {
                let mut row = [0.0; 6];
                row[if i < 20 { 0 } else { 3 }] = 1.0;
                row[if i < 20 { 1 } else { 4 } + i % 2] = 0.1;
                row
            })
            .collect();
        let mut indptr = vec![0usize];
        let (mut indices, mut values) = (Vec::new(), Vec::new());
        for row in rows {
            row.iter().enumerate().filter(|(_, v)| **v != 0.0).for_each(|(at, &v)| {
                indices.push(at as u32);
                values.push(v);
            });
            indptr.push(indices.len());
        }
        (CsrMatrix::new((40, 6), indptr, indices, values), LabelRows::from_lists((0..40).map(|i| vec![i]), 45).unwrap())
    }

    #[test]
    fn labels_of_like_instances_are_together() {
        let (x, y) = data();
        let of = group_labels(Rows::new(x.view()), &y, 2, 1, &NoObserver).unwrap();
        assert!(of[..20].iter().all(|&g| g == of[0]) && of[20..40].iter().all(|&g| g == of[20]));
        assert_ne!(of[0], of[20]);
        assert_eq!(of, group_labels(Rows::new(x.view()), &y, 2, 1, &NoObserver).unwrap());
    }

    #[test]
    fn groups_are_about_as_many_as_wanted_and_none_is_empty() {
        let (x, y) = data();
        for wanted in [1, 2, 3, 7, 10, 40, 1000] {
            let of = group_labels(Rows::new(x.view()), &y, wanted, 1, &NoObserver).unwrap();
            let n = *of.iter().max().unwrap() as usize + 1;
            assert!(n <= wanted.min(40) && 2 * n >= wanted.min(40), "{wanted}: {n}");
            assert!((0..n as u32).all(|group| of[..40].contains(&group)), "{wanted}");
        }
        let nothing = LabelRows::from_lists((0..40).map(|_| Vec::new()), 3).unwrap();
        assert_eq!(group_labels(Rows::new(x.view()), &nothing, 2, 1, &NoObserver), Some(vec![0, 0, 0]));
    }
}
