//! A few siblings solved together, pruned at once: what remains of them is small.

use super::aligned::Aligned;
use super::block::Block;
use super::lanes::{Problem, Solve, State};
use super::{LinearParams, Loss, logistic};
use xc_buffer::{Cancel, vectorised_loop};
use xc_hash::stream::{Stream, mix};
use xc_sparse::chunked::ChunkRows;

/// Siblings of one group, at most.
pub(crate) const GROUP: usize = 16;

/// One group of siblings, ready to be solved.
pub(crate) struct Group<'a> {
    pub(crate) block: &'a Block<'a>,
    /// One bit a sibling for each instance.
    pub(crate) positive: &'a [u16],
    /// Cost factor of each sibling; as many as siblings.
    pub(crate) costs: &'a [f32],
    /// `1 / weight` of each instance of the block.
    pub(crate) inverse_weights: Option<&'a [f32]>,
    /// Name of the random stream.
    pub(crate) name: u64,
}

/// Buffers of a solver, reused.
#[derive(Default)]
pub(crate) struct Buffers {
    w: Aligned,
    alpha: Aligned,
    active: Vec<u16>,
    order: Vec<u32>,
    dense: Vec<f64>,
}

/// Weights of a group that survived, by local feature.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Solved {
    /// Local features, ascending.
    pub(crate) features: Vec<u32>,
    /// One bit a sibling.
    pub(crate) masks: Vec<u16>,
    /// As many values as bits.
    pub(crate) values: Vec<f32>,
    /// Bias of each sibling, multiplied by the value of the bias input.
    pub(crate) bias: Vec<f32>,
}

impl Group<'_> {
    /// Solves and prunes; nothing where `cancel` asked to stop.
    ///
    /// *Determinism*: depends on the group alone.
    pub(crate) fn solve(&self, params: &LinearParams, buffers: &mut Buffers, cancel: &dyn Cancel) -> Option<Solved> {
        match (params.loss, self.costs.len()) {
            (_, 0) => Some(Solved::default()),
            (Loss::Logistic, _) => self.solve_logistic(params, buffers, cancel),
            (Loss::SquaredHinge, 1) => self.solve_lanes::<1>(params, buffers, cancel),
            (Loss::SquaredHinge, 2..=4) => self.solve_lanes::<4>(params, buffers, cancel),
            (Loss::SquaredHinge, 5..=8) => self.solve_lanes::<8>(params, buffers, cancel),
            (Loss::SquaredHinge, _) => self.solve_lanes::<GROUP>(params, buffers, cancel),
        }
    }

    fn solve_lanes<const N: usize>(
        &self,
        params: &LinearParams,
        buffers: &mut Buffers,
        cancel: &dyn Cancel,
    ) -> Option<Solved> {
        let n = self.block.len();
        // A lane without a sibling never runs; its costs only have to be finite.
        let diagonal = |factor: f32| {
            std::array::from_fn(|lane| self.costs.get(lane).map_or(1.0, |c| 0.5 / (params.cost * factor * c)))
        };
        let problem = Problem::<N> {
            block: self.block,
            positive: self.positive,
            n_lanes: self.costs.len(),
            diagonal_positive: diagonal(params.positive_cost),
            diagonal_negative: diagonal(params.negative_cost),
            inverse_weights: self.inverse_weights,
            bias: params.bias,
            tolerance: params.tolerance,
            max_passes: params.max_passes,
            cancel,
        };
        buffers.active.clear();
        buffers.active.resize(n, 0);
        let mut state = State::<N> {
            w: buffers.w.zeros::<N>(self.block.n_features()),
            alpha: buffers.alpha.zeros::<N>(n),
            active: &mut buffers.active,
            order: &mut buffers.order,
            bias: [0.0; N],
        };
        let mut rng = Stream::new(self.name);
        if !vectorised_loop(Solve { problem: &problem, state: &mut state, rng: &mut rng }) {
            return None;
        }
        let limits: [f32; N] = std::array::from_fn(|lane| match params.max_weights {
            Some(keep) if lane < problem.n_lanes => params.prune_below.max(nth_largest(state.w, lane, keep)),
            _ => params.prune_below,
        });
        let mut solved = Solved {
            bias: state.bias[..problem.n_lanes].iter().map(|b| b * params.bias).collect(),
            ..Solved::default()
        };
        for (feature, row) in state.w.iter().enumerate() {
            let mut mask = 0u16;
            for lane in 0..N {
                let keeps = (row[lane] != 0.0) & (row[lane].abs() >= limits[lane]);
                mask |= u16::from(keeps) << lane;
            }
            if mask != 0 {
                solved.push(feature as u32, mask, row);
            }
        }
        Some(solved)
    }

    fn solve_logistic(&self, params: &LinearParams, buffers: &mut Buffers, cancel: &dyn Cancel) -> Option<Solved> {
        let n_features = self.block.n_features();
        let w: &mut [[f32; GROUP]] = buffers.w.zeros(n_features);
        let mut solved = Solved::default();
        for (lane, &factor) in self.costs.iter().enumerate() {
            buffers.dense.clear();
            buffers.dense.resize(n_features, 0.0);
            let positive = |i: usize| self.positive[i] & (1 << lane) != 0;
            let cost = |i: usize| {
                let side = if positive(i) { params.positive_cost } else { params.negative_cost };
                f64::from(params.cost * factor * side) / self.inverse_weights.map_or(1.0, |w| f64::from(w[i]))
            };
            let problem = logistic::Problem {
                block: self.block,
                positive: &positive,
                cost: &cost,
                bias: params.bias,
                tolerance: f64::from(params.tolerance),
                max_passes: params.max_passes,
                cancel,
            };
            let mut rng = Stream::new(mix(self.name, lane as u64 + 1));
            let bias = logistic::solve(&problem, &mut buffers.dense, &mut rng)?;
            solved.bias.push((bias * f64::from(params.bias)) as f32);
            w.iter_mut().zip(&buffers.dense).for_each(|(row, &v)| row[lane] = v as f32);
        }
        let limits: [f32; GROUP] = std::array::from_fn(|lane| match params.max_weights {
            Some(keep) if lane < self.costs.len() => params.prune_below.max(nth_largest(w, lane, keep)),
            _ => params.prune_below,
        });
        for (feature, row) in w.iter().enumerate() {
            let mask = (0..GROUP)
                .fold(0u16, |mask, lane| mask | u16::from(row[lane] != 0.0 && row[lane].abs() >= limits[lane]) << lane);
            if mask != 0 {
                solved.push(feature as u32, mask, row);
            }
        }
        Some(solved)
    }
}

impl Solved {
    fn push(&mut self, feature: u32, mask: u16, row: &[f32]) {
        self.features.push(feature);
        self.masks.push(mask);
        let mut rest = mask;
        while rest != 0 {
            self.values.push(row[rest.trailing_zeros() as usize]);
            rest &= rest - 1;
        }
    }
}

/// Magnitude of the `keep`-th largest weight of a lane; infinite for 0. Equal magnitudes at the
/// limit all stay.
fn nth_largest<const N: usize>(w: &[[f32; N]], lane: usize, keep: usize) -> f32 {
    let mut magnitudes: Vec<f32> = w.iter().map(|row| row[lane].abs()).filter(|&v| v > 0.0).collect();
    match keep {
        0 => f32::INFINITY,
        _ if magnitudes.len() <= keep => 0.0,
        _ => *magnitudes.select_nth_unstable_by(keep - 1, |a, b| b.total_cmp(a)).1,
    }
}

/// Joins the groups of one parent, `GROUP` siblings in each but perhaps the last, into one chunk.
pub(crate) fn join(block: &Block<'_>, sizes: &[usize], groups: Vec<Solved>) -> ChunkRows {
    let nnz = groups.iter().map(|g| g.values.len()).sum();
    let mut chunk = ChunkRows {
        n_columns: sizes.iter().sum(),
        features: Vec::new(),
        row_ptr: vec![0],
        columns: Vec::with_capacity(nnz),
        values: Vec::with_capacity(nnz),
        bias: groups.iter().flat_map(|g| g.bias.iter().copied()).collect(),
    };
    let mut at = vec![(0usize, 0usize); groups.len()];
    loop {
        let next = groups.iter().zip(&at).filter_map(|(g, a)| g.features.get(a.0).copied()).min();
        let Some(feature) = next else { break };
        let mut first_column = 0u32;
        for ((group, at), size) in groups.iter().zip(&mut at).zip(sizes) {
            if group.features.get(at.0) == Some(&feature) {
                let mut mask = group.masks[at.0];
                while mask != 0 {
                    chunk.columns.push(first_column + mask.trailing_zeros());
                    chunk.values.push(group.values[at.1]);
                    at.1 += 1;
                    mask &= mask - 1;
                }
                at.0 += 1;
            }
            first_column += *size as u32;
        }
        chunk.features.push(block.feature(feature));
        chunk.row_ptr.push(chunk.values.len() as u32);
    }
    chunk.features.shrink_to_fit();
    chunk.row_ptr.shrink_to_fit();
    chunk
}
