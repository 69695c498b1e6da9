//! Dual coordinate descent for up to `N` rankers at once, one in each SIMD lane.
//!
//! ```text
//!   w          lane 0 .. N-1 of feature 0 | lane 0 .. N-1 of feature 1 | ...     one cache line a feature at N = 16
//!   alpha      lane 0 .. N-1 of instance 0 | ...
//!   active     one bit a lane for each instance: has shrinking removed it?
//! ```
//!
//! A visit of an instance reads its features' lines once for the margins of all lanes and, when a
//! lane moves, once more to change them. Implements (hsieh2008dual, Alg. 3) per lane. Differs in:
//! all lanes see the instances in one random order; lanes that converge on their shrunken sets
//! wait, and when all have, the whole sets are restored for all of them together. Measured against:
//! `reference::solve`, which must give the same bits.
//!
//! Products and sums are rounded one by one (no fused multiply-add), so that every instruction set
//! gives the same bits.

use super::block::Block;
use xc_buffer::simd::prefetch;
use xc_buffer::{Cancel, Loop};
use xc_hash::stream::Stream;

/// A gradient at most this far from 0 moves nothing.
pub(super) const TINY: f32 = 1e-12;

/// Rankers to be solved together.
pub(super) struct Problem<'a, const N: usize> {
    /// Their instances.
    pub(super) block: &'a Block<'a>,
    /// One bit a lane for each instance: is it a positive?
    pub(super) positive: &'a [u16],
    /// Rankers in use, the first lanes.
    pub(super) n_lanes: usize,
    /// `1 / (2 cost)` of positives, per lane.
    pub(super) diagonal_positive: [f32; N],
    /// `1 / (2 cost)` of negatives, per lane.
    pub(super) diagonal_negative: [f32; N],
    /// `1 / weight` of each instance; infinite leaves the instance out.
    pub(super) inverse_weights: Option<&'a [f32]>,
    /// Value of the bias input.
    pub(super) bias: f32,
    /// See `LinearParams::tolerance`.
    pub(super) tolerance: f32,
    /// See `LinearParams::max_passes`.
    pub(super) max_passes: usize,
    /// Asked between visits of instances.
    pub(super) cancel: &'a dyn Cancel,
}

/// What a solver works on and leaves behind: `w` and `bias` hold the rankers.
pub(super) struct State<'a, const N: usize> {
    /// Weights of each local feature; zeros at the start.
    pub(super) w: &'a mut [[f32; N]],
    /// Dual variables of each instance; zeros at the start.
    pub(super) alpha: &'a mut [[f32; N]],
    /// Bits of the lanes that still look at the instance.
    pub(super) active: &'a mut [u16],
    /// Order of the visits.
    pub(super) order: &'a mut Vec<u32>,
    /// Weight of the bias input.
    pub(super) bias: [f32; N],
}

/// The bits of the lanes in use.
pub(super) fn all_lanes(n_lanes: usize) -> u16 {
    ((1u32 << n_lanes) - 1) as u16
}

/// Which lanes still work, and what the next pass compares with.
pub(super) struct Lanes<const N: usize> {
    pub(super) running: u16,
    waiting: u16,
    /// Lanes from which an instance was removed since all were restored.
    pub(super) shrunk: u16,
    pub(super) highest_before: [f32; N],
}

impl<const N: usize> Lanes<N> {
    pub(super) fn new(n_lanes: usize) -> Self {
        Self { running: all_lanes(n_lanes), waiting: 0, shrunk: 0, highest_before: [f32::INFINITY; N] }
    }

    /// Ends a pass with the extreme projected gradients of each lane. True when instances must be
    /// restored.
    #[inline(always)]
    pub(super) fn end_pass(&mut self, highest: &[f32; N], lowest: &[f32; N], tolerance: f32) -> bool {
        for lane in 0..N {
            let bit = 1u16 << lane;
            if self.running & bit == 0 {
                continue;
            }
            if highest[lane] - lowest[lane] <= tolerance {
                self.running &= !bit;
                self.waiting |= self.shrunk & bit;
            } else {
                self.highest_before[lane] = if highest[lane] <= 0.0 { f32::INFINITY } else { highest[lane] };
            }
        }
        if self.running == 0 && self.waiting != 0 {
            self.running = self.waiting;
            self.waiting = 0;
            self.shrunk = 0;
            self.highest_before = [f32::INFINITY; N];
            return true;
        }
        false
    }
}

/// Puts every instance of positive weight back for the lanes in `running`.
pub(super) fn restore<const N: usize>(problem: &Problem<'_, N>, state: &mut State<'_, N>, running: u16) {
    state.order.clear();
    for i in 0..problem.block.len() {
        let counts = problem.inverse_weights.is_none_or(|w| w[i].is_finite());
        state.active[i] = if counts { running } else { 0 };
        if counts {
            state.order.push(i as u32);
        }
    }
}

/// Visits of instances between two questions whether to stop: some milliseconds.
pub(super) const ASK: usize = 1024;

/// Solves all lanes; false where it was asked to stop.
#[inline(always)]
fn solve<const N: usize>(problem: &Problem<'_, N>, state: &mut State<'_, N>, rng: &mut Stream) -> bool {
    let mut lanes = Lanes::<N>::new(problem.n_lanes);
    restore(problem, state, lanes.running);
    for _ in 0..problem.max_passes {
        rng.shuffle(state.order);
        let (mut highest, mut lowest) = ([f32::NEG_INFINITY; N], [f32::INFINITY; N]);
        let mut kept = 0;
        for s in 0..state.order.len() {
            if s % ASK == 0 && problem.cancel.cancelled() {
                return false;
            }
            let i = state.order[s];
            let mask = state.active[i as usize] & lanes.running;
            if mask == 0 {
                continue;
            }
            // The order is random: ask for the instance after next now.
            if let Some(&ahead) = state.order.get(s + 2) {
                ask_for(problem.block.row(ahead as usize), &state.alpha[ahead as usize]);
            }
            let removed = visit(problem, state, i as usize, mask, &lanes.highest_before, &mut highest, &mut lowest);
            lanes.shrunk |= removed;
            state.active[i as usize] &= !removed;
            if mask & !removed != 0 {
                state.order[kept] = i;
                kept += 1;
            }
        }
        state.order.truncate(kept);
        if lanes.end_pass(&highest, &lowest, problem.tolerance) {
            restore(problem, state, lanes.running);
        } else if lanes.running == 0 {
            break;
        }
    }
    true
}

/// The solver as a loop that is compiled for each instruction set. The copies share one body and
/// give the same bits.
pub(super) struct Solve<'s, 'p, 'a, const N: usize> {
    pub(super) problem: &'s Problem<'p, N>,
    pub(super) state: &'s mut State<'a, N>,
    pub(super) rng: &'s mut Stream,
}

impl<const N: usize> Loop for Solve<'_, '_, '_, N> {
    type Output = bool;

    #[inline(always)]
    fn run(self) -> bool {
        solve(self.problem, self.state, self.rng)
    }
}

/// Asks for the first cache lines of an instance and for its dual variables; changes nothing.
#[inline(always)]
fn ask_for<const N: usize>(row: (&[u32], &[f32]), alpha: &[f32; N]) {
    /// 16 numbers of 4 bytes are a cache line; the hardware fetches on by itself.
    const LINES: usize = 4;
    for line in 0..LINES {
        prefetch(row.0, 16 * line);
        prefetch(row.1, 16 * line);
    }
    prefetch(alpha, 0);
}

/// One coordinate step of the lanes in `mask` on instance `i`; returns the lanes that lose the
/// instance.
#[inline(always)]
fn visit<const N: usize>(
    problem: &Problem<'_, N>,
    state: &mut State<'_, N>,
    i: usize,
    mask: u16,
    highest_before: &[f32; N],
    highest: &mut [f32; N],
    lowest: &mut [f32; N],
) -> u16 {
    let (indices, values) = problem.block.row(i);
    let margin = margins(indices, values, state.w, &state.bias, problem.bias);
    let positive = problem.positive[i];
    let inverse_weight = problem.inverse_weights.map_or(1.0, |w| w[i]);
    let square = problem.block.squares[i];
    let alpha = &mut state.alpha[i];
    let mut step = [0.0f32; N];
    let mut removed = [0u16; N];
    for lane in 0..N {
        let is_positive = (positive >> lane) & 1 != 0;
        let here = (mask >> lane) & 1 != 0;
        let sign = if is_positive { 1.0f32 } else { -1.0 };
        let base = if is_positive { problem.diagonal_positive[lane] } else { problem.diagonal_negative[lane] };
        let diagonal = base * inverse_weight;
        let gradient = sign * margin[lane] - 1.0 + alpha[lane] * diagonal;
        let at_zero = alpha[lane] == 0.0;
        let removes = at_zero & (gradient > highest_before[lane]) & here;
        let projected = if at_zero { gradient.min(0.0) } else { gradient };
        let counts = here & !removes;
        highest[lane] = highest[lane].max(if counts { projected } else { f32::NEG_INFINITY });
        lowest[lane] = lowest[lane].min(if counts { projected } else { f32::INFINITY });
        let moved = (alpha[lane] - gradient / (square + diagonal)).max(0.0);
        let moves = counts & (projected.abs() > TINY);
        let next = if moves { moved } else { alpha[lane] };
        step[lane] = (next - alpha[lane]) * sign;
        alpha[lane] = next;
        removed[lane] = if removes { 1 << lane } else { 0 };
    }
    // Shifted left: a step of -0 is none.
    let any = step.iter().fold(0u32, |any, s| any | s.to_bits() << 1);
    if any != 0 {
        // Of its own, so that a store into the weights is known not to change where they are.
        let w = &mut *state.w;
        for (&f, &x) in indices.iter().zip(values) {
            let row = &mut w[f as usize];
            for lane in 0..N {
                row[lane] += x * step[lane];
            }
        }
        for lane in 0..N {
            state.bias[lane] += problem.bias * step[lane];
        }
    }
    removed.iter().fold(0, |all, r| all | r)
}

/// `w . x` of every lane: four sums over the features taken in turn, joined at the end.
#[inline(always)]
fn margins<const N: usize>(
    indices: &[u32],
    values: &[f32],
    w: &[[f32; N]],
    bias_weight: &[f32; N],
    bias: f32,
) -> [f32; N] {
    let mut sums = [[0.0f32; N]; 4];
    let (i4, v4) = (indices.chunks_exact(4), values.chunks_exact(4));
    let (i_rest, v_rest) = (i4.remainder(), v4.remainder());
    for (f, x) in i4.zip(v4) {
        for u in 0..4 {
            let row = &w[f[u] as usize];
            for lane in 0..N {
                sums[u][lane] += x[u] * row[lane];
            }
        }
    }
    for (&f, &x) in i_rest.iter().zip(v_rest) {
        let row = &w[f as usize];
        for lane in 0..N {
            sums[0][lane] += x * row[lane];
        }
    }
    let mut out = [0.0f32; N];
    for lane in 0..N {
        let features = (sums[0][lane] + sums[1][lane]) + (sums[2][lane] + sums[3][lane]);
        out[lane] = features + bias * bias_weight[lane];
    }
    out
}
