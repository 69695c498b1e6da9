//! The lane solver without lanes: scalar, one ranker after the other at each visit. It defines the
//! answer.

use super::LinearParams;
use super::aligned::Aligned;
use super::block::{Block, Numbering};
use super::lanes::{Lanes, Problem, State, TINY, restore};
use xc_buffer::Silent;
use xc_hash::stream::Stream;
use xc_sparse::CsrView;

/// Solves all rankers of `problem`, bit for bit as `lanes::solve` must.
pub(super) fn solve<const N: usize>(problem: &Problem<'_, N>, state: &mut State<'_, N>, rng: &mut Stream) {
    let mut lanes = Lanes::<N>::new(problem.n_lanes);
    restore(problem, state, lanes.running);
    for _ in 0..problem.max_passes {
        rng.shuffle(state.order);
        let (mut highest, mut lowest) = ([f32::NEG_INFINITY; N], [f32::INFINITY; N]);
        for &i in state.order.iter() {
            let i = i as usize;
            let (indices, values) = problem.block.row(i);
            for lane in 0..problem.n_lanes {
                if state.active[i] & lanes.running & (1 << lane) == 0 {
                    continue;
                }
                let mut sums = [0.0f32; 4];
                let whole = indices.len() / 4 * 4;
                for (k, (&f, &x)) in indices.iter().zip(values).enumerate() {
                    sums[if k < whole { k % 4 } else { 0 }] += x * state.w[f as usize][lane];
                }
                let margin = (sums[0] + sums[1]) + (sums[2] + sums[3]) + problem.bias * state.bias[lane];
                let positive = problem.positive[i] & (1 << lane) != 0;
                let (sign, base) = match positive {
                    true => (1.0, problem.diagonal_positive[lane]),
                    false => (-1.0, problem.diagonal_negative[lane]),
                };
                let diagonal = base * problem.inverse_weights.map_or(1.0, |w| w[i]);
                let alpha = state.alpha[i][lane];
                let gradient = sign * margin - 1.0 + alpha * diagonal;
                let mut projected = gradient;
                if alpha == 0.0 {
                    if gradient > lanes.highest_before[lane] {
                        state.active[i] &= !(1 << lane);
                        lanes.shrunk |= 1 << lane;
                        continue;
                    }
                    projected = gradient.min(0.0);
                }
                highest[lane] = highest[lane].max(projected);
                lowest[lane] = lowest[lane].min(projected);
                if projected.abs() > TINY {
                    let next = (alpha - gradient / (problem.block.squares[i] + diagonal)).max(0.0);
                    let step = (next - alpha) * sign;
                    state.alpha[i][lane] = next;
                    for (&f, &x) in indices.iter().zip(values) {
                        state.w[f as usize][lane] += x * step;
                    }
                    state.bias[lane] += problem.bias * step;
                }
            }
        }
        let running = lanes.running;
        state.order.retain(|&i| state.active[i as usize] & running != 0);
        if lanes.end_pass(&highest, &lowest, problem.tolerance) {
            restore(problem, state, lanes.running);
        } else if lanes.running == 0 {
            break;
        }
    }
}

/// One ranker by itself: the weight of each feature, none dropped, and the bias times the value of its input.
pub(crate) fn ranker(
    all: CsrView<'_>,
    instances: &[u32],
    positive: &[u16],
    inverse_weights: Option<&[f32]>,
    params: &LinearParams,
    name: u64,
) -> (Vec<f32>, f32) {
    let block = Block::gather(all, instances, params.bias, &mut Numbering::default());
    let problem = Problem::<1> {
        block: &block,
        positive,
        n_lanes: 1,
        diagonal_positive: [0.5 / (params.cost * params.positive_cost)],
        diagonal_negative: [0.5 / (params.cost * params.negative_cost)],
        inverse_weights,
        bias: params.bias,
        tolerance: params.tolerance,
        max_passes: params.max_passes,
        cancel: &Silent,
    };
    let (mut w, mut alpha) = (Aligned::default(), Aligned::default());
    let mut state = State::<1> {
        w: w.zeros(block.n_features()),
        alpha: alpha.zeros(block.len()),
        active: &mut vec![0; block.len()],
        order: &mut Vec::new(),
        bias: [0.0],
    };
    solve(&problem, &mut state, &mut Stream::new(name));
    let mut weights = vec![0.0; all.cols()];
    for (local, &[weight]) in (0u32..).zip(state.w.iter()) {
        weights[block.feature(local) as usize] = weight;
    }
    (weights, state.bias[0] * params.bias)
}
