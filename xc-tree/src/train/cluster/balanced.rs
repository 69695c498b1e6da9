//! Balanced splits: repeated spherical 2-means with a bounded cut.
//!
//! One split of labels into a left part of about `h` and a right part, with `s_left`, `s_right` the
//! sums of their vectors: every label is scored by `z . (s_left / |s_left| - s_right / |s_right|)`
//! and the best go left (ties: the smaller row). The objective, the sum of each label's product
//! with its own centroid, is `|s_left| + |s_right|`.
//!
//! ```text
//!   scores, best first    +  +  +  +  +  +  +  +  -  -  -  -        + is nearer to the left centroid
//!   middle                                  |
//!   cut (slack allows up to two off)              |
//! ```
//!
//! The cut falls where scores change their sign, as near to it as [`ClusterParams::slack`] allows,
//! so that a group is not torn where its half ends; a leaf cluster never gets more than one and a
//! half times `max_leaf` labels.
//!
//! A node with k children is cut k - 1 times, into ceil(k/2) and floor(k/2) children first, so that
//! any branching works; `[prabhu2018parabel]` is k = 2 and no slack. Differs in: sums are updated by
//! the labels that changed sides; splits below [`LOCAL_NNZ`] work on a copy with renumbered
//! coordinates, which keeps centroids in the first caches.

use super::{ClusterParams, Clustering, Space, add, boundary, dot};
use crate::train::label_vectors::LabelVectors;
use crate::train::observe::TreeEvent;
use rayon::prelude::*;
use std::cmp::Ordering;
use xc_buffer::Observer;
use xc_hash::stream::{Stream, mix};

/// Below this many stored values a split works on its own copy of the vectors.
const LOCAL_NNZ: usize = 1 << 17;
/// From this many labels on, scores are computed in parallel.
const PARALLEL_LABELS: usize = 1 << 12;

pub(super) fn cluster(
    vectors: &LabelVectors,
    params: &ClusterParams,
    seed: u64,
    observer: &dyn Observer<TreeEvent>,
) -> Option<Clustering> {
    let plan = plan(vectors.len(), params);
    let mut order: Vec<u32> = (0..vectors.len() as u32).collect();
    let ctx = Context { params, plan: &plan, observer };
    let counts = ctx.node(&Space::Shared(vectors), &mut order, 0, seed)?;
    let levels = counts.into_iter().map(ends).collect();
    Some(Clustering { levels, order })
}

/// Running sums, from 0.
fn ends(counts: Vec<u32>) -> Vec<u32> {
    let mut ends = vec![0u32];
    for n in counts {
        ends.push(ends[ends.len() - 1] + n);
    }
    ends
}

/// Branching from which an almost empty level is avoided.
const WIDE: usize = 8;

/// Children of a cluster on each level above the labels.
///
/// Where leaf clusters of up to one and a half times `max_leaf` labels save a level, they grow.
/// Of the levels that are left, one is narrow: the last, or with slack the first. Measured on
/// 69,008 labels: with parts of equal size, the narrow level does better at the end (PSP@5 30.06
/// rather than 29.59). With slack, and a branching of a power of two, the number of leaf clusters
/// is rounded up to one, so that all cuts are halves and clusters have room to differ.
pub(super) fn plan(n_labels: usize, params: &ClusterParams) -> Vec<usize> {
    let (branching, slack) = (params.branching, params.slack > 0.0);
    let mut wanted = n_labels.div_ceil(params.max_leaf);
    if slack && branching.is_power_of_two() {
        let grown = wanted.next_power_of_two();
        // A power of the branching that is nearly enough saves a level and is a power of two as
        // well.
        wanted = if grown > wanted && is_power(grown / 2, branching) && fits(wanted, grown / 2, branching) {
            grown / 2
        } else {
            grown
        };
    }
    let mut plan = Vec::new();
    while !fits(wanted, branching, branching) {
        plan.push(branching);
        wanted = wanted.div_ceil(branching);
    }
    if wanted > 1 {
        plan.push(wanted.min(branching));
    }
    if slack {
        plan.reverse();
    }
    plan
}

/// True when `clusters` hold the labels of `wanted` ones, grown by up to a half where branching is
/// wide.
fn fits(wanted: usize, clusters: usize, branching: usize) -> bool {
    if branching < WIDE { wanted <= clusters } else { 2 * wanted as u128 <= 3 * clusters as u128 }
}

/// True for 1, `branching`, its square, and so on.
fn is_power(n: usize, branching: usize) -> bool {
    let mut power = 1usize;
    while power < n {
        power = power.saturating_mul(branching);
    }
    power == n
}

struct Context<'a> {
    params: &'a ClusterParams,
    plan: &'a [usize],
    observer: &'a dyn Observer<TreeEvent>,
}

impl Context<'_> {
    /// Orders the labels of one node so that those of each child are neighbours, and so on below.
    ///
    /// Gives, level by level from this one on, how many children each cluster got (at the end: how
    /// many labels).
    fn node(&self, space: &Space<'_>, order: &mut [u32], level: usize, path: u64) -> Option<Vec<Vec<u32>>> {
        if level == self.plan.len() {
            return Some(vec![vec![order.len() as u32]]);
        }
        let parts = self.plan[level].min(order.len());
        let mut counts = vec![vec![parts as u32]];
        counts.extend(self.parts(space, order, level, parts, path)?);
        Some(counts)
    }

    /// Orders the labels of `parts` children of a node on `level`; the counts of the levels below,
    /// as in [`Self::node`].
    fn parts(
        &self,
        space: &Space<'_>,
        order: &mut [u32],
        level: usize,
        parts: usize,
        path: u64,
    ) -> Option<Vec<Vec<u32>>> {
        if self.observer.cancelled() {
            return None;
        }
        if parts == 1 {
            return self.node(space, order, level + 1, path);
        }
        if let Space::Shared(_) = space
            && space.nnz_of(order) <= LOCAL_NNZ
        {
            let local = Space::Local(space.gather(order));
            let mut within: Vec<u32> = (0..order.len() as u32).collect();
            let counts = self.parts(&local, &mut within, level, parts, path)?;
            within.iter_mut().for_each(|w| *w = order[*w as usize]);
            order.copy_from_slice(&within);
            return Some(counts);
        }
        let left_parts = parts.div_ceil(2);
        let cut = self.cut(order.len(), level, parts);
        let h = bisect(space, order, cut, self.params, &mut Stream::new(path), self.observer)?;
        let (left, right) = order.split_at_mut(h);
        let (left, right) = rayon::join(
            || self.parts(space, left, level, left_parts, mix(path, 1)),
            || self.parts(space, right, level, parts - left_parts, mix(path, 2)),
        );
        let mut counts = left?;
        counts.iter_mut().zip(right?).for_each(|(counts, more)| counts.extend(more));
        Some(counts)
    }

    /// Where `n` labels of `parts` children may be cut: no child stays empty, and all labels find
    /// room below.
    fn cut(&self, n: usize, level: usize, parts: usize) -> Cut {
        let left = parts.div_ceil(2);
        let right = parts - left;
        let middle = boundary(n, parts, left);
        let slack = (f64::from(self.params.slack) * middle.min(n - middle) as f64) as usize;
        let leaves: usize = self.plan[level + 1..].iter().product();
        let room = leaves.saturating_mul(self.params.max_leaf.saturating_mul(3) / 2);
        let least = left.max(n.saturating_sub(right.saturating_mul(room))).max(middle - slack);
        let most = (n - right).min(left.saturating_mul(room)).min(middle + slack);
        Cut { middle, least: least.min(middle), most: most.max(middle) }
    }
}

/// A number of labels on the left: wanted, and the bounds it may move in.
#[derive(Clone, Copy, Debug)]
struct Cut {
    middle: usize,
    least: usize,
    most: usize,
}

impl Cut {
    /// The cut among labels of which `above` score above 0 and `at` score 0: those may go either
    /// way.
    fn place(self, scores: &[(f32, u32)]) -> usize {
        if self.least == self.most {
            return self.middle;
        }
        let above = scores.iter().filter(|s| s.0 > 0.0).count();
        let at = scores.iter().filter(|s| s.0 == 0.0).count();
        self.middle.clamp(above, above + at).clamp(self.least, self.most)
    }

    /// The same for `m` of the `n` labels.
    fn of_sample(self, m: usize, n: usize) -> Self {
        let scaled = |h: usize| (m * h / n).clamp(1, m - 1);
        Self { middle: scaled(self.middle), least: scaled(self.least), most: scaled(self.most) }
    }
}

/// Moves the labels of the left part to the first places; how many they are, or nothing where the observer asked to stop.
fn bisect(
    space: &Space<'_>,
    order: &mut [u32],
    cut: Cut,
    params: &ClusterParams,
    rng: &mut Stream,
    observer: &dyn Observer<TreeEvent>,
) -> Option<usize> {
    let n = order.len();
    let size = params.max_sample.max(2);
    if n <= size {
        return two_means(space, order, cut, params, rng, observer).map(|(_, h)| h);
    }
    let mut sample: Vec<u32> = order.to_vec();
    for i in 0..size {
        let j = i + rng.below((n - i) as u32) as usize;
        sample.swap(i, j);
    }
    sample.truncate(size);
    let (direction, _) = two_means(space, &mut sample, cut.of_sample(size, n), params, rng, observer)?;
    let mut scored = scores(space, order, &direction);
    let h = cut.place(&scored);
    split(&mut scored, h);
    order.iter_mut().zip(&scored).for_each(|(o, s)| *o = s.1);
    Some(h)
}

/// Runs the iterations on `rows`, two or more; leaves the left part in the first places and gives
/// the last direction and how many they are, or nothing where the observer asked to stop.
fn two_means(
    space: &Space<'_>,
    rows: &mut [u32],
    cut: Cut,
    params: &ClusterParams,
    rng: &mut Stream,
    observer: &dyn Observer<TreeEvent>,
) -> Option<(Vec<f32>, usize)> {
    let width = space.n_features();
    let n = rows.len();
    let first = rng.below(n as u32) as usize;
    let second = (first + 1 + rng.below(n as u32 - 1) as usize) % n;
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
    let mut h = cut.middle;
    let mut place: Vec<(f32, u32)> = Vec::with_capacity(n);
    let mut position: Vec<u32> = (0..n as u32).collect();
    for _ in 0..params.max_iterations {
        if observer.cancelled() {
            return None;
        }
        let scored = scores(space, rows, &direction);
        h = cut.place(&scored);
        place.clear();
        place.extend(scored.iter().zip(&position).map(|(s, &p)| (s.0, p)));
        // `position` is the identity: rows keep their places until the end, and ties fall to the
        // smaller row below.
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
    Some((direction, h))
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
fn split(scored: &mut [(f32, u32)], h: usize) {
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
    use crate::train::label_vectors::LabelRepresentation;
    use xc_buffer::Silent;
    use xc_sparse::{CsrMatrix, LabelRows};

    /// `n` labels in `groups` groups that share no feature; label i belongs to group i % groups.
    fn grouped(n: usize, groups: usize) -> LabelVectors {
        let x: CsrMatrix = CsrMatrix::try_new(
            (n, groups * 4),
            (0..=n).map(|i| 2 * i).collect(),
            (0..n).flat_map(|i| [((i % groups) * 4) as u32, ((i % groups) * 4 + 1 + i % 3) as u32]).collect(),
            (0..n).flat_map(|_| [1.0, 0.5]).collect(),
        )
        .unwrap();
        let t = LabelRows::from_lists((0..n as u32).map(|i| [i]), n).unwrap();
        let labels: Vec<u32> = (0..n as u32).collect();
        LabelVectors::build(LabelRepresentation::Pifa, x.view(), &t, None, &labels, None, None, &Silent).unwrap()
    }

    fn params(branching: usize, max_leaf: usize) -> ClusterParams {
        ClusterParams { branching, max_leaf, slack: 0.0, ..ClusterParams::default() }
    }

    #[test]
    fn plans_hold_enough_leaves() {
        for n in [1, 2, 99, 100, 101, 3460, 69_925, 500_000] {
            for branching in [2, 3, 16, 32, 100] {
                for max_leaf in [1, 10, 100] {
                    for slack in [0.0, 0.3] {
                        let plan = plan(n, &ClusterParams { slack, ..params(branching, max_leaf) });
                        assert!(plan.iter().all(|&k| (2..=branching).contains(&k)), "{plan:?}");
                        let clusters: usize = plan.iter().product();
                        let grown = if branching < WIDE { 2 } else { 3 };
                        assert!(clusters * max_leaf * grown >= 2 * n, "{n} {branching} {max_leaf}: {plan:?}");
                    }
                }
            }
        }
        let equal = |n, branching| plan(n, &params(branching, 100));
        assert_eq!(equal(500_000, 32), [32, 32, 5]);
        assert_eq!(equal(4_108, 32), [32]);
        assert_eq!(equal(4_801, 32), [32, 2]);
        assert_eq!(equal(201, 2), [2, 2]);
        let slack = |n, branching| plan(n, &ClusterParams { slack: 0.3, ..params(branching, 100) });
        assert_eq!(slack(500_000, 32), [8, 32, 32]);
        assert_eq!(slack(409_684, 16), [16, 16, 16]);
        assert_eq!(slack(69_008, 16), [4, 16, 16]);
        assert_eq!(slack(4_108, 32), [32]);
        assert_eq!(slack(4_801, 32), [2, 32]);
        assert_eq!(slack(4_801, 10), [5, 10]);
        assert_eq!(slack(1_700, 16), [16]);
        assert_eq!(slack(201, 2), [2, 2]);
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
            crate::model::Topology::try_new(c.levels, c.order, n).unwrap();
        }
    }

    #[test]
    fn a_cut_moves_to_where_groups_end_and_no_cluster_is_too_large() {
        // 60 labels of one group and 40 of another: the middle would tear the first.
        let groups = |n: usize, of: fn(usize) -> usize| {
            let x: CsrMatrix = CsrMatrix::from_checked(
                (n, 64),
                (0..=n).collect(),
                (0..n).map(|i| of(i) as u32).collect(),
                vec![1.0; n],
            );
            let t = LabelRows::from_lists((0..n as u32).map(|i| [i]), n).unwrap();
            let labels: Vec<u32> = (0..n as u32).collect();
            LabelVectors::build(LabelRepresentation::Pifa, x.view(), &t, None, &labels, None, None, &Silent).unwrap()
        };
        let vectors = groups(100, |i| usize::from(i >= 60));
        let mut with_slack = ClusterParams { slack: 0.3, ..params(2, 60) };
        let c = cluster(&vectors, &with_slack, 1, &Silent).unwrap();
        let mut sizes: Vec<u32> = c.levels[1].windows(2).map(|w| w[1] - w[0]).collect();
        sizes.sort_unstable();
        assert_eq!(sizes, [40, 60]);
        let first = c.order[0] >= 60;
        let end = c.levels[1][1] as usize;
        assert!(c.order[..end].iter().all(|&l| (l >= 60) == first));
        with_slack.slack = 0.1;
        let c = cluster(&vectors, &with_slack, 1, &Silent).unwrap();
        let mut sizes: Vec<u32> = c.levels[1].windows(2).map(|w| w[1] - w[0]).collect();
        sizes.sort_unstable();
        assert_eq!(sizes, [45, 55], "the slack bounds the move");
        // Groups of very different size.
        let vectors = groups(1000, |i| (i as f64).sqrt() as usize);
        for (branching, max_leaf, slack) in [(2, 20, 0.9), (4, 30, 0.3), (16, 9, 0.5), (7, 10, 0.9), (16, 1, 0.9)] {
            let p = ClusterParams { slack, ..params(branching, max_leaf) };
            let c = cluster(&vectors, &p, 3, &Silent).unwrap();
            let most = c.levels.last().unwrap().windows(2).map(|w| w[1] - w[0]).max().unwrap();
            assert!(most as usize <= max_leaf * 3 / 2, "{most} labels, {p:?}");
            let mut seen = c.order.clone();
            seen.sort_unstable();
            assert_eq!(seen, (0..1000).collect::<Vec<_>>());
            crate::model::Topology::try_new(c.levels, c.order, 1000).unwrap();
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
        let run = |threads, slack| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let params = ClusterParams { slack, ..params(8, 10) };
            pool.install(|| cluster(&vectors, &params, 9, &Silent).unwrap().order)
        };
        for slack in [0.0, 0.4] {
            assert_eq!(run(1, slack), run(3, slack));
        }
    }

    #[test]
    fn empty_vectors_are_placed_too() {
        let x = CsrMatrix::from_checked((0, 3), vec![0], vec![], vec![]);
        let t = LabelRows::from_lists(vec![Vec::<u32>::new(); 9], 0).unwrap();
        let labels: Vec<u32> = (0..9).collect();
        let z =
            LabelVectors::build(LabelRepresentation::Pifa, x.view(), &t, None, &labels, None, None, &Silent).unwrap();
        let c = cluster(&z, &params(2, 2), 5, &Silent).unwrap();
        assert_eq!(c.order.len(), 9);
    }
}
