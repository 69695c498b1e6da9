//! Balanced splits: repeated spherical 2-means with the cut at a fixed position.
//!
//! One split of labels into a left part of `h` and a right part, with `s_left`, `s_right` the sums of their vectors:
//! every label is scored by `z . (s_left / |s_left| - s_right / |s_right|)` and the `h` best go left (ties: the smaller
//! row). The objective, the sum of each label's product with its own centroid, is `|s_left| + |s_right|`.
//!
//! A node with k children is cut k - 1 times, into ceil(k/2) and floor(k/2) children first, so that any branching
//! works; (prabhu2018parabel) is k = 2. Differs in: sums are updated by the labels that changed sides; splits
//! below [`LOCAL_NNZ`] work on a copy with renumbered coordinates, which keeps centroids in the first caches.

use super::{ClusterParams, Clustering, Space, add, boundary, dot};
use crate::labels::LabelVectors;
use crate::observe::Observer;
use crate::stream::{below, mix, stream};
use rand_xoshiro::Xoshiro256PlusPlus;
use rayon::prelude::*;
use std::cmp::Ordering;

/// Below this many stored values a split works on its own copy of the vectors.
const LOCAL_NNZ: usize = 1 << 17;
/// From this many labels on, scores are computed in parallel.
const PARALLEL_LABELS: usize = 1 << 12;

pub(super) fn cluster(
    vectors: &LabelVectors,
    params: &ClusterParams,
    seed: u64,
    observer: &dyn Observer,
) -> Option<Clustering> {
    let plan = plan(vectors.len(), params.branching, params.max_leaf);
    let mut order: Vec<u32> = (0..vectors.len() as u32).collect();
    let ctx = Context { params, plan: &plan, observer };
    if !plan.is_empty() {
        ctx.node(&Space::Shared(vectors), &mut order, 0, seed);
    }
    if observer.cancelled() {
        return None;
    }
    let mut levels = Vec::new();
    let mut sizes = vec![vectors.len()];
    for &branching in &plan {
        let mut ends = vec![0u32];
        let mut below = Vec::new();
        for &n in &sizes {
            let parts = branching.min(n);
            below.extend((0..parts).map(|p| boundary(n, parts, p + 1) - boundary(n, parts, p)));
            ends.push(below.len() as u32);
        }
        levels.push(ends);
        sizes = below;
    }
    let mut ends = vec![0u32];
    for n in sizes {
        ends.push(ends[ends.len() - 1] + n as u32);
    }
    levels.push(ends);
    Some(Clustering { levels, order })
}

/// Branching from which an almost empty level is avoided.
const WIDE: usize = 8;

/// Children of a cluster on each level above the labels: full branching first, what is left on the last.
///
/// A last level of one and a half children a cluster would cost every query a step for little: lowest clusters then grow
/// by up to half instead.
pub(super) fn plan(n_labels: usize, branching: usize, max_leaf: usize) -> Vec<usize> {
    let mut plan = Vec::new();
    let mut wanted = n_labels.div_ceil(max_leaf);
    let fits = |wanted: usize| if branching < WIDE { wanted <= branching } else { 2 * wanted <= 3 * branching };
    while !fits(wanted) {
        plan.push(branching);
        wanted = wanted.div_ceil(branching);
    }
    if wanted > 1 {
        plan.push(wanted.min(branching));
    }
    plan
}

struct Context<'a> {
    params: &'a ClusterParams,
    plan: &'a [usize],
    observer: &'a dyn Observer,
}

impl Context<'_> {
    /// Orders the labels of one node so that those of each child are neighbours, and so on below.
    fn node(&self, space: &Space<'_>, order: &mut [u32], level: usize, path: u64) {
        if level == self.plan.len() || order.len() < 2 {
            return;
        }
        let parts = self.plan[level].min(order.len());
        self.parts(space, order, level, (order.len(), parts), (0, parts), path);
    }

    /// Orders children `from..to` of a node of `n` labels in `parts` parts.
    fn parts(
        &self,
        space: &Space<'_>,
        order: &mut [u32],
        level: usize,
        (n, parts): (usize, usize),
        (from, to): (usize, usize),
        path: u64,
    ) {
        if self.observer.cancelled() {
            return;
        }
        if to - from == 1 {
            return self.node(space, order, level + 1, path);
        }
        if let Space::Shared(_) = space
            && space.nnz_of(order) <= LOCAL_NNZ
        {
            let local = Space::Local(space.gather(order));
            let mut within: Vec<u32> = (0..order.len() as u32).collect();
            self.parts(&local, &mut within, level, (n, parts), (from, to), path);
            within.iter_mut().for_each(|w| *w = order[*w as usize]);
            order.copy_from_slice(&within);
            return;
        }
        let middle = from + (to - from).div_ceil(2);
        let h = boundary(n, parts, middle) - boundary(n, parts, from);
        bisect(space, order, h, self.params, &mut stream(path));
        let (left, right) = order.split_at_mut(h);
        rayon::join(
            || self.parts(space, left, level, (n, parts), (from, middle), mix(path, 1)),
            || self.parts(space, right, level, (n, parts), (middle, to), mix(path, 2)),
        );
    }
}

/// Moves the labels of the left part to the first `h` places.
fn bisect(space: &Space<'_>, order: &mut [u32], h: usize, params: &ClusterParams, rng: &mut Xoshiro256PlusPlus) {
    let n = order.len();
    if h == 0 || h == n {
        return;
    }
    let sampled = n > params.max_sample.max(2);
    let mut sample: Vec<u32> = order.to_vec();
    if sampled {
        for i in 0..params.max_sample.max(2) {
            let j = i + below(rng, (n - i) as u32) as usize;
            sample.swap(i, j);
        }
        sample.truncate(params.max_sample.max(2));
    }
    let left_of_sample = if sampled { (sample.len() * h / n).clamp(1, sample.len() - 1) } else { h };
    let direction = two_means(space, &mut sample, left_of_sample, params, rng);
    if sampled {
        let mut scored = scores(space, order, &direction);
        cut(&mut scored, h);
        order.iter_mut().zip(&scored).for_each(|(o, s)| *o = s.1);
    } else {
        order.copy_from_slice(&sample);
    }
}

/// Runs the iterations on `rows`; leaves the left part in the first `h` places and returns the last direction.
fn two_means(
    space: &Space<'_>,
    rows: &mut [u32],
    h: usize,
    params: &ClusterParams,
    rng: &mut Xoshiro256PlusPlus,
) -> Vec<f32> {
    let width = space.n_features();
    let n = rows.len();
    let first = below(rng, n as u32) as usize;
    let second = (first + 1 + below(rng, n as u32 - 1) as usize) % n;
    let mut direction = vec![0.0f32; width];
    add(&mut direction, space.vector(rows[first]), 1.0);
    add(&mut direction, space.vector(rows[second]), -1.0);
    // Sums of all labels and of the left part; labels that change sides are added or taken away.
    let (mut all, mut left) = (vec![0.0f32; width], vec![0.0f32; width]);
    for &row in rows.iter() {
        add(&mut all, space.vector(row), 1.0);
    }
    let mut was_left = vec![false; n];
    let mut best = f64::NEG_INFINITY;
    let mut place: Vec<(f32, u32)> = Vec::with_capacity(n);
    let mut position: Vec<u32> = (0..n as u32).collect();
    for _ in 0..params.max_iterations {
        let scored = scores(space, rows, &direction);
        place.clear();
        place.extend(scored.iter().zip(&position).map(|(s, &p)| (s.0, p)));
        // `position` is the identity: rows keep their places until the end, and ties fall to the smaller row below.
        place.select_nth_unstable_by(h - 1, |a, b| by_score(&(a.0, rows[a.1 as usize]), &(b.0, rows[b.1 as usize])));
        for (rank, &(_, p)) in place.iter().enumerate() {
            let (p, goes_left) = (p as usize, rank < h);
            if goes_left != was_left[p] {
                let sign = if goes_left { 1.0 } else { -1.0 };
                add(&mut left, space.vector(rows[p]), sign);
                was_left[p] = goes_left;
            }
        }
        let (a, b) = norms(&all, &left);
        let objective = a + b;
        if objective - best <= f64::from(params.tolerance) * objective {
            break;
        }
        best = objective;
        let scale = |norm: f64| if norm > 0.0 { (1.0 / norm) as f32 } else { 0.0 };
        let (a, b) = (scale(a), scale(b));
        for ((d, &l), &all) in direction.iter_mut().zip(&left).zip(&all) {
            *d = l * a - (all - l) * b;
        }
    }
    position.sort_unstable_by_key(|&p| (!was_left[p as usize], rows[p as usize]));
    let sorted: Vec<u32> = position.iter().map(|&p| rows[p as usize]).collect();
    rows.copy_from_slice(&sorted);
    direction
}

/// (score, row) of each row.
fn scores(space: &Space<'_>, rows: &[u32], direction: &[f32]) -> Vec<(f32, u32)> {
    let one = |&row: &u32| (dot(space.vector(row), direction), row);
    if rows.len() >= PARALLEL_LABELS {
        rows.par_iter().with_min_len(256).map(one).collect()
    } else {
        rows.iter().map(one).collect()
    }
}

/// Best scores first, then the smaller row.
fn by_score(a: &(f32, u32), b: &(f32, u32)) -> Ordering {
    b.0.total_cmp(&a.0).then(a.1.cmp(&b.1))
}

/// Puts the `h` best first, each side in ascending order of the row.
fn cut(scored: &mut [(f32, u32)], h: usize) {
    scored.select_nth_unstable_by(h - 1, by_score);
    scored[..h].sort_unstable_by_key(|s| s.1);
    scored[h..].sort_unstable_by_key(|s| s.1);
}

/// Lengths of `left` and of `all - left`.
fn norms(all: &[f32], left: &[f32]) -> (f64, f64) {
    // Eight sums in f64 each: fast enough, and exact enough for the stopping rule.
    let (mut of_left, mut of_right) = ([0.0f64; 8], [0.0f64; 8]);
    for (all, left) in all.chunks(8).zip(left.chunks(8)) {
        for (u, (&all, &l)) in all.iter().zip(left).enumerate() {
            let r = all - l;
            of_left[u] += f64::from(l) * f64::from(l);
            of_right[u] += f64::from(r) * f64::from(r);
        }
    }
    (of_left.iter().sum::<f64>().sqrt(), of_right.iter().sum::<f64>().sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::labels::LabelRepresentation;
    use crate::observe::Silent;
    use xc_sparse::{CsrMatrix, LabelRows, Rows};

    /// `n` labels in `groups` groups that share no feature; label i belongs to group i % groups.
    fn grouped(n: usize, groups: usize) -> LabelVectors {
        let x: CsrMatrix = CsrMatrix::new_from_unsorted(
            (n, groups * 4),
            (0..=n).map(|i| 2 * i).collect(),
            (0..n).flat_map(|i| [((i % groups) * 4) as u32, ((i % groups) * 4 + 1 + i % 3) as u32]).collect(),
            (0..n).flat_map(|_| [1.0, 0.5]).collect(),
        )
        .unwrap();
        let t = LabelRows::from_lists((0..n as u32).map(|i| [i]), n).unwrap();
        let labels: Vec<u32> = (0..n as u32).collect();
        LabelVectors::build(LabelRepresentation::Pifa, Rows::new(x.view()), &t, None, &labels, None)
    }

    fn params(branching: usize, max_leaf: usize) -> ClusterParams {
        ClusterParams { branching, max_leaf, ..ClusterParams::default() }
    }

    #[test]
    fn plans_hold_enough_leaves() {
        for n in [1, 2, 99, 100, 101, 3460, 69_925, 500_000] {
            for branching in [2, 3, 16, 32, 100] {
                for max_leaf in [1, 10, 100] {
                    let plan = plan(n, branching, max_leaf);
                    assert!(plan.iter().all(|&k| (2..=branching).contains(&k)), "{plan:?}");
                    let clusters: usize = plan.iter().product();
                    let slack = if branching < WIDE { 2 } else { 3 };
                    assert!(clusters * max_leaf * slack >= 2 * n, "{n} {branching} {max_leaf}: {plan:?}");
                }
            }
        }
        assert_eq!(plan(500_000, 32, 100), [32, 32, 5]);
        assert_eq!(plan(4_108, 32, 100), [32]);
        assert_eq!(plan(4_801, 32, 100), [32, 2]);
        assert_eq!(plan(201, 2, 100), [2, 2]);
    }

    #[test]
    fn parts_are_equal_and_cover_all_labels() {
        for (n, branching, max_leaf) in [(1, 2, 1), (2, 2, 1), (7, 3, 2), (64, 4, 4), (101, 5, 7), (300, 16, 3)] {
            let c = cluster(&grouped(n, 5), &params(branching, max_leaf), 3, &Silent).unwrap();
            let mut seen = c.order.clone();
            seen.sort_unstable();
            assert_eq!(seen, (0..n as u32).collect::<Vec<_>>());
            let leaves = c.levels.last().unwrap();
            let sizes: Vec<u32> = leaves.windows(2).map(|w| w[1] - w[0]).collect();
            assert!(sizes.iter().all(|&s| s as usize <= max_leaf && s > 0), "{sizes:?}");
            assert_eq!(*leaves.last().unwrap() as usize, n);
            crate::Topology::try_new(c.levels, c.order, n).unwrap();
        }
    }

    #[test]
    fn separate_groups_are_found() {
        let c = cluster(&grouped(64, 2), &params(2, 32), 1, &Silent).unwrap();
        let first = c.order[0] % 2;
        assert!(c.order[..32].iter().all(|l| l % 2 == first), "{:?}", c.order);
    }

    #[test]
    fn sampling_still_assigns_every_label() {
        let p = ClusterParams { max_sample: 40, ..params(4, 50) };
        let c = cluster(&grouped(400, 8), &p, 1, &Silent).unwrap();
        let mut seen = c.order.clone();
        seen.sort_unstable();
        assert_eq!(seen, (0..400).collect::<Vec<_>>());
        // Two of eight groups of 50 to each of four children; a sample of 40 finds most of it.
        let mut mixed = 0;
        for part in c.order.chunks(50) {
            let mut groups: Vec<u32> = part.iter().map(|l| l % 8).collect();
            groups.sort_unstable();
            groups.dedup();
            mixed += groups.len();
        }
        assert!(mixed <= 24, "{mixed} groups in eight clusters");
    }

    #[test]
    fn threads_do_not_matter() {
        let vectors = grouped(500, 7);
        let run = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| cluster(&vectors, &params(8, 10), 9, &Silent).unwrap().order)
        };
        assert_eq!(run(1), run(3));
    }

    #[test]
    fn empty_vectors_are_placed_too() {
        let x = CsrMatrix::new((0, 3), vec![0], vec![], vec![]);
        let t = LabelRows::from_lists(vec![Vec::<u32>::new(); 9], 0).unwrap();
        let labels: Vec<u32> = (0..9).collect();
        let z = LabelVectors::build(LabelRepresentation::Pifa, Rows::new(x.view()), &t, None, &labels, None);
        let c = cluster(&z, &params(2, 2), 5, &Silent).unwrap();
        assert_eq!(c.order.len(), 9);
    }
}
