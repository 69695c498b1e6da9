//! The rankers of one level: training instances of each parent; scheduling of the solvers.
//!
//! Parents whose work is large beside the whole level are done one at a time, their groups of
//! siblings in parallel; the others side by side, the largest first. Neither order nor threads
//! change the result.

use super::check::TrainError;
use super::input::TrainInput;
use super::kept::lock;
use super::matched::Matched;
use super::params::TreeParams;
use super::weights::Put;
use super::workers::Workers;
use crate::model::Topology;
use crate::train::linear::LinearParams;
use crate::train::linear::block::{Block, Numbering};
use crate::train::linear::group::{Buffers, GROUP, Group, Solved, join};
use crate::train::observe::TreeEvent;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use xc_buffer::Observer;
use xc_hash::stream::mix;
use xc_sparse::CsrView;
use xc_sparse::chunked::ChunkRows;

/// Trains levels of one tree.
pub(super) struct Trainer<'a> {
    pub(super) features: CsrView<'a>,
    input: &'a TrainInput<'a>,
    linear: &'a LinearParams,
    pub(super) topology: &'a Topology,
    /// Leaf of each label; `u32::MAX` for labels without one.
    leaf_of: Vec<u32>,
    seed: u64,
    pub(super) observer: &'a dyn Observer<TreeEvent>,
    inverse_weights: Option<Vec<f32>>,
    workers: Workers<Scratch>,
}

/// What one worker reuses.
#[derive(Default)]
struct Scratch {
    numbering: Numbering,
    buffers: Buffers,
}

/// The instances of every child of a level.
struct Members {
    indptr: Vec<usize>,
    instances: Vec<u32>,
}

/// One parent's instances (ascending) and, for each group of siblings, their positives among them.
struct Parent {
    instances: Vec<u32>,
    positive: Vec<Vec<u16>>,
}

impl<'a> Trainer<'a> {
    pub(super) fn new(
        input: &'a TrainInput<'a>,
        params: &'a TreeParams,
        topology: &'a Topology,
        seed: u64,
        observer: &'a dyn Observer<TreeEvent>,
    ) -> Self {
        let mut leaf_of = vec![u32::MAX; input.labels.n_labels()];
        for (leaf, &label) in topology.labels().iter().enumerate() {
            leaf_of[label as usize] = leaf as u32;
        }
        Self {
            features: input.features,
            input,
            linear: &params.linear,
            topology,
            leaf_of,
            seed,
            observer,
            inverse_weights: input.instance_weights.map(|w| w.iter().map(|&w| 1.0 / w).collect()),
            workers: Workers::default(),
        }
    }

    /// Trains all rankers of `level` and hands the chunk of each parent to `put`, in any order, from
    /// any thread.
    pub(super) fn level(&self, level: usize, matched: Option<&Matched>, put: Put<'_>) -> Result<(), TrainError> {
        let all: Vec<usize> = (0..self.topology.boundaries(level).len() - 1).collect();
        self.chunks(level, &all, matched, put)
    }

    /// The same of some parents.
    pub(super) fn some(&self, level: usize, parents: &[usize], put: Put<'_>) -> Result<(), TrainError> {
        if parents.is_empty() {
            return Ok(());
        }
        self.chunks(level, parents, None, put)
    }

    /// About what each chunk of a level costs to train, in no unit: a whole number that follows from the data and the
    /// shape. The entries of its instances' rows are gone through for each group of siblings, and an entry of a large
    /// chunk takes longer, for its weights are in a slower cache: measured on two sets, as the power 0.375.
    pub(super) fn cost(&self, level: usize) -> Vec<u64> {
        let (boundaries, members) = (self.topology.boundaries(level), self.members(level));
        let entries = |list: &[u32]| list.iter().map(|&i| self.features.row(i as usize).nnz() as u64 + 1).sum();
        (0..boundaries.len() - 1)
            .map(|p| {
                let (a, b) = (boundaries[p] as usize, boundaries[p + 1] as usize);
                let own: u64 = match level {
                    0 => (self.features.nnz() + self.features.rows()) as u64,
                    _ => entries(&members.instances[members.indptr[a]..members.indptr[b]]),
                };
                let root = own.isqrt();
                let slower = (root * root.isqrt()).isqrt();
                own.saturating_mul(self.group_sizes(level, p).len() as u64).saturating_mul(slower)
            })
            .collect()
    }

    fn chunks(
        &self,
        level: usize,
        parents: &[usize],
        matched: Option<&Matched>,
        put: Put<'_>,
    ) -> Result<(), TrainError> {
        let boundaries = self.topology.boundaries(level);
        let members = self.members(level);
        let work: Vec<u64> = parents
            .iter()
            .map(|&p| {
                let (a, b) = (boundaries[p] as usize, boundaries[p + 1] as usize);
                let own = members.indptr[b] - members.indptr[a];
                let instances = if level == 0 { self.features.rows() } else { own };
                let instances = instances + matched.map_or(0, |m| m.of(p).len());
                (instances * (b - a).div_ceil(GROUP)) as u64
            })
            .collect();
        let total: u64 = work.iter().sum();
        let mut order: Vec<usize> = (0..parents.len()).collect();
        order.sort_by_key(|&at| (std::cmp::Reverse(work[at]), at));
        let share = total / (4 * rayon::current_num_threads() as u64);
        let n_large = order.iter().take_while(|&&at| work[at] > share).count();
        let order: Vec<usize> = order.into_iter().map(|at| parents[at]).collect();
        let (n_done, failure) = (AtomicUsize::new(0), Mutex::new(None));
        let finish = |p: usize, chunk: ChunkRows| {
            self.observer.event(TreeEvent::Rankers { done: chunk.n_columns });
            match put(p, chunk) {
                Ok(()) => n_done.fetch_add(1, Ordering::Relaxed),
                Err(error) => return *lock(&failure) = Some(error),
            };
        };
        let failed = || lock(&failure).is_some();
        for &p in &order[..n_large] {
            if failed() {
                break;
            }
            let chunk = self.large_parent(level, p, &members, matched).ok_or(TrainError::Cancelled)?;
            finish(p, chunk);
        }
        let small = &order[n_large..];
        self.workers.run(small.len(), self.observer, |s, scratch| {
            if !failed()
                && let Some(chunk) = self.parent(level, small[s], &members, matched, scratch)
            {
                finish(small[s], chunk);
            }
        });
        match failure.into_inner().unwrap_or_else(|e| e.into_inner()) {
            Some(error) => Err(error),
            None if n_done.into_inner() < parents.len() => Err(TrainError::Cancelled),
            None => Ok(()),
        }
    }

    fn parent(
        &self,
        level: usize,
        p: usize,
        members: &Members,
        matched: Option<&Matched>,
        scratch: &mut Scratch,
    ) -> Option<ChunkRows> {
        let parent = self.gather(level, p, members, matched);
        let block = Block::gather(self.features, &parent.instances, self.linear.bias, &mut scratch.numbering);
        let weights = self.weights(&parent);
        let sizes = self.group_sizes(level, p);
        let groups: Option<Vec<Solved>> = (0..sizes.len())
            .map(|g| self.solve(level, p, g, &sizes, &block, &parent, weights.as_deref(), &mut scratch.buffers))
            .collect();
        Some(join(&block, &sizes, groups?))
    }

    fn large_parent(&self, level: usize, p: usize, members: &Members, matched: Option<&Matched>) -> Option<ChunkRows> {
        let parent = self.gather(level, p, members, matched);
        let mut numbering = Numbering::default();
        let block = Block::gather(self.features, &parent.instances, self.linear.bias, &mut numbering);
        drop(numbering);
        let weights = self.weights(&parent);
        let sizes = self.group_sizes(level, p);
        let slots: Vec<Mutex<Option<Solved>>> = sizes.iter().map(|_| Mutex::new(None)).collect();
        self.workers.run(sizes.len(), self.observer, |g, scratch| {
            let solved = self.solve(level, p, g, &sizes, &block, &parent, weights.as_deref(), &mut scratch.buffers);
            *lock(&slots[g]) = solved;
        });
        let groups: Option<Vec<Solved>> =
            slots.into_iter().map(|slot| slot.into_inner().unwrap_or_else(|e| e.into_inner())).collect();
        Some(join(&block, &sizes, groups?))
    }

    #[allow(clippy::too_many_arguments)]
    fn solve(
        &self,
        level: usize,
        p: usize,
        g: usize,
        sizes: &[usize],
        block: &Block<'_>,
        parent: &Parent,
        inverse_weights: Option<&[f32]>,
        buffers: &mut Buffers,
    ) -> Option<Solved> {
        let first = self.topology.boundaries(level)[p] as usize + sizes[..g].iter().sum::<usize>();
        let mut costs = [1.0f32; GROUP];
        if let (true, Some(given)) = (level + 1 == self.topology.depth(), self.input.label_costs) {
            for (cost, &label) in costs.iter_mut().zip(&self.topology.labels()[first..first + sizes[g]]) {
                *cost = given[label as usize];
            }
        }
        let group = Group {
            block,
            positive: &parent.positive[g],
            costs: &costs[..sizes[g]],
            inverse_weights,
            name: mix(mix(mix(self.seed, level as u64), p as u64), g as u64),
        };
        group.solve(self.linear, buffers, self.observer)
    }

    /// How a parent's children are cut into groups.
    fn group_sizes(&self, level: usize, p: usize) -> Vec<usize> {
        let boundaries = self.topology.boundaries(level);
        let n = (boundaries[p + 1] - boundaries[p]) as usize;
        // The root alone would keep other threads waiting: its children are cut at least in two.
        let n_groups = n.div_ceil(GROUP).max(if level == 0 { 2 } else { 1 }).min(n.max(1));
        (0..n_groups).map(|g| n * (g + 1) / n_groups - n * g / n_groups).collect()
    }

    /// `1 / weight` of a parent's instances.
    fn weights(&self, parent: &Parent) -> Option<Vec<f32>> {
        self.inverse_weights.as_ref().map(|w| parent.instances.iter().map(|&i| w[i as usize]).collect())
    }

    /// Which instances have a label below which node of `level`.
    fn members(&self, level: usize) -> Members {
        let node_of = self.node_of_leaf(level);
        let labels = self.input.labels;
        let n_nodes = self.topology.n_nodes(level);
        let nodes = |list: &[u32], out: &mut Vec<u32>| {
            out.clear();
            out.extend(list.iter().filter_map(|&l| node_of.get(self.leaf_of[l as usize] as usize)));
            out.sort_unstable();
            out.dedup();
        };
        let mut list = Vec::new();
        let mut indptr = vec![0usize; n_nodes + 1];
        for row in labels.iter() {
            nodes(row, &mut list);
            list.iter().for_each(|&node| indptr[node as usize + 1] += 1);
        }
        for node in 0..n_nodes {
            indptr[node + 1] += indptr[node];
        }
        let mut next = indptr.clone();
        let mut instances = vec![0u32; indptr[n_nodes]];
        for (i, row) in labels.iter().enumerate() {
            nodes(row, &mut list);
            for &node in &list {
                instances[next[node as usize]] = i as u32;
                next[node as usize] += 1;
            }
        }
        Members { indptr, instances }
    }

    /// The node of `level` above each leaf.
    fn node_of_leaf(&self, level: usize) -> Vec<u32> {
        let depth = self.topology.depth();
        let mut node_of: Vec<u32> = (0..self.topology.n_nodes(depth - 1) as u32).collect();
        for below in (level + 1..depth).rev() {
            let boundaries = self.topology.boundaries(below);
            let mut parent_of = vec![0u32; self.topology.n_nodes(below)];
            for (p, w) in boundaries.windows(2).enumerate() {
                parent_of[w[0] as usize..w[1] as usize].fill(p as u32);
            }
            node_of.iter_mut().for_each(|node| *node = parent_of[*node as usize]);
        }
        node_of
    }

    /// Collects what teaches the children of parent `p` of `level`.
    fn gather(&self, level: usize, p: usize, members: &Members, matched: Option<&Matched>) -> Parent {
        let boundaries = self.topology.boundaries(level);
        let (a, b) = (boundaries[p] as usize, boundaries[p + 1] as usize);
        let sizes = self.group_sizes(level, p);
        let mut pairs: Vec<u64> = Vec::with_capacity(members.indptr[b] - members.indptr[a]);
        for child in a..b {
            let list = &members.instances[members.indptr[child]..members.indptr[child + 1]];
            pairs.extend(list.iter().map(|&i| u64::from(i) << 32 | (child - a) as u64));
        }
        pairs.sort_unstable();
        let mut instances: Vec<u32> = if level == 0 {
            // Every instance passes the root, those without labels too.
            (0..self.features.rows() as u32).collect()
        } else {
            pairs.iter().map(|&pair| (pair >> 32) as u32).collect()
        };
        if let Some(matched) = matched {
            instances.extend_from_slice(matched.of(p));
            instances.sort_unstable();
        }
        instances.dedup();
        let mut place = Vec::with_capacity(b - a);
        for (g, &size) in sizes.iter().enumerate() {
            place.extend((0..size).map(|lane| (g, 1u16 << lane)));
        }
        let mut positive = vec![vec![0u16; instances.len()]; sizes.len()];
        let mut row = 0;
        for &pair in &pairs {
            while u64::from(instances[row]) < pair >> 32 {
                row += 1;
            }
            let (group, bit) = place[(pair & 0xffff_ffff) as usize];
            positive[group][row] |= bit;
        }
        Parent { instances, positive }
    }
}
