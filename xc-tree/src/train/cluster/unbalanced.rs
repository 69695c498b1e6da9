//! Unbalanced splits: spherical k-means per node, as wide as the data wants.
//!
//! Implements `[khandagale2020bonsai]`: every node with more than `max_leaf` labels is cut into at
//! most `branching` clusters, down to `max_depth` levels of clusters. Empty clusters vanish. All
//! branches end on the same level: a cluster that needs no further cut gets single children until
//! then.

use super::{ClusterParams, Clustering, Space};
use crate::train::label_vectors::LabelVectors;
use crate::train::observe::TreeEvent;
use rayon::prelude::*;
use xc_buffer::Observer;
use xc_hash::stream::{Stream, mix};

pub(super) fn cluster(
    vectors: &LabelVectors,
    params: &ClusterParams,
    seed: u64,
    observer: &dyn Observer<TreeEvent>,
) -> Option<Clustering> {
    let space = Space::Shared(vectors);
    let mut levels: Vec<Vec<u32>> = Vec::new();
    let mut nodes: Vec<(Vec<u32>, u64)> = vec![((0..vectors.len() as u32).collect(), seed)];
    for _ in 0..params.max_depth {
        if nodes.iter().all(|(rows, _)| rows.len() <= params.max_leaf) {
            break;
        }
        let split: Option<Vec<Vec<Vec<u32>>>> = nodes
            .par_iter()
            .with_max_len(1)
            .map(|(rows, path)| {
                if rows.len() <= params.max_leaf {
                    Some(vec![rows.clone()])
                } else {
                    k_means(&space, rows, params, *path, observer)
                }
            })
            .collect();
        let mut ends = vec![0u32];
        let mut below = Vec::new();
        for (parts, (_, path)) in split?.into_iter().zip(&nodes) {
            for (p, rows) in parts.into_iter().enumerate() {
                below.push((rows, mix(*path, p as u64 + 1)));
            }
            ends.push(below.len() as u32);
        }
        levels.push(ends);
        nodes = below;
    }
    let mut ends = vec![0u32];
    let mut order = Vec::with_capacity(vectors.len());
    for (rows, _) in &nodes {
        order.extend_from_slice(rows);
        ends.push(order.len() as u32);
    }
    levels.push(ends);
    Some(Clustering { levels, order })
}

/// Cuts `rows` into at most `branching` clusters, none empty, rows ascending in each; nothing where the observer asked to
/// stop.
fn k_means(
    space: &Space<'_>,
    rows: &[u32],
    params: &ClusterParams,
    path: u64,
    observer: &dyn Observer<TreeEvent>,
) -> Option<Vec<Vec<u32>>> {
    let k = params.branching.min(rows.len());
    let local = Space::Local(space.gather(rows));
    let width = local.n_features();
    let n = rows.len();
    let mut rng = Stream::new(path);
    let mut seeds: Vec<u32> = (0..n as u32).collect();
    for i in 0..k {
        let j = i + rng.below((n - i) as u32) as usize;
        seeds.swap(i, j);
    }
    // Centroids by feature: the k values of a feature are neighbours, so one label is scored
    // against all at once.
    let mut centroids = vec![0.0f32; width * k];
    for (c, &row) in seeds[..k].iter().enumerate() {
        let (indices, values) = local.vector(row);
        indices.iter().zip(values).for_each(|(&f, &v)| centroids[f as usize * k + c] = v);
    }
    let mut assigned = vec![0u32; n];
    let mut best = f64::NEG_INFINITY;
    for _ in 0..params.max_iterations {
        let nearest: Option<Vec<(u32, f32)>> = (0..n as u32)
            .into_par_iter()
            .with_min_len(64)
            .map_init(
                || vec![0.0f32; k],
                |scores, row| {
                    if observer.cancelled() {
                        return None;
                    }
                    scores.fill(0.0);
                    let (indices, values) = local.vector(row);
                    for (&f, &v) in indices.iter().zip(values) {
                        let centroid = &centroids[f as usize * k..][..k];
                        scores.iter_mut().zip(centroid).for_each(|(s, &c)| *s += v * c);
                    }
                    let mut top = (0u32, scores[0]);
                    for (c, &s) in scores.iter().enumerate().skip(1) {
                        if s > top.1 {
                            top = (c as u32, s);
                        }
                    }
                    Some(top)
                },
            )
            .collect();
        let nearest = nearest?;
        let objective: f64 = nearest.iter().map(|&(_, s)| f64::from(s)).sum();
        nearest.iter().zip(&mut assigned).for_each(|(&(c, _), a)| *a = c);
        if objective - best <= f64::from(params.tolerance) * objective {
            break;
        }
        best = objective;
        centroids.fill(0.0);
        for (row, &c) in assigned.iter().enumerate() {
            let (indices, values) = local.vector(row as u32);
            indices.iter().zip(values).for_each(|(&f, &v)| centroids[f as usize * k + c as usize] += v);
        }
        let mut squares = vec![0.0f64; k];
        for feature in centroids.chunks_exact(k) {
            squares.iter_mut().zip(feature).for_each(|(s, &v)| *s += f64::from(v) * f64::from(v));
        }
        let scale: Vec<f32> = squares.iter().map(|&s| if s > 0.0 { (1.0 / s.sqrt()) as f32 } else { 0.0 }).collect();
        for feature in centroids.chunks_exact_mut(k) {
            feature.iter_mut().zip(&scale).for_each(|(v, &s)| *v *= s);
        }
    }
    let mut parts = vec![Vec::new(); k];
    for (&row, &c) in rows.iter().zip(&assigned) {
        parts[c as usize].push(row);
    }
    parts.retain(|p| !p.is_empty());
    Some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::train::label_vectors::LabelRepresentation;
    use xc_buffer::Silent;
    use xc_sparse::{CsrMatrix, LabelRows};

    fn unit_vectors(n: usize, groups: usize) -> LabelVectors {
        let x = CsrMatrix::from_checked(
            (n, groups),
            (0..=n).collect(),
            (0..n).map(|i| (i % groups) as u32).collect(),
            vec![1.0; n],
        );
        let t = LabelRows::from_lists((0..n as u32).map(|i| [i]), n).unwrap();
        let labels: Vec<u32> = (0..n as u32).collect();
        LabelVectors::build(LabelRepresentation::Pifa, x.view(), &t, None, &labels, None, None, &Silent).unwrap()
    }

    #[test]
    fn equal_labels_stay_together() {
        let vectors = unit_vectors(90, 6);
        let params = ClusterParams { branching: 20, max_leaf: 15, ..ClusterParams::default() };
        let c = cluster(&vectors, &params, 4, &Silent).unwrap();
        let leaves = c.levels.last().unwrap();
        for w in leaves.windows(2) {
            let part = &c.order[w[0] as usize..w[1] as usize];
            assert!(!part.is_empty());
        }
        let home = |label: u32| {
            let at = c.order.iter().position(|&l| l == label).unwrap() as u32;
            leaves.windows(2).position(|w| (w[0]..w[1]).contains(&at)).unwrap()
        };
        for label in 6..90 {
            assert_eq!(home(label), home(label % 6));
        }
        crate::model::Topology::try_new(c.levels.clone(), c.order.clone(), 90).unwrap();
    }

    #[test]
    fn depth_is_bounded_and_few_labels_need_no_cluster() {
        let params = ClusterParams { branching: 2, max_leaf: 1, max_depth: 3, ..ClusterParams::default() };
        assert!(cluster(&unit_vectors(64, 64), &params, 4, &Silent).unwrap().levels.len() <= 4);
        let params = ClusterParams { max_leaf: 100, ..params };
        assert_eq!(cluster(&unit_vectors(64, 64), &params, 4, &Silent).unwrap().levels, [vec![0, 64]]);
    }
}
