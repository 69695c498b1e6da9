//! The solvers against the scalar reference, against the optimum, and against each other.

use super::aligned::Aligned;
use super::block::{Block, Numbering};
use super::group::{Buffers, Group, Solved, join};
use super::lanes::{Problem, Solve, State};
use super::{LinearParams, Loss, reference};
use proptest::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};
use xc_buffer::Silent;
use xc_buffer::{Cancel, Isa, vectorised_loop_on};
use xc_hash::stream::Stream;
use xc_sparse::CsrMatrix;

/// Instances with features drawn from `draws`: (features, positive bits) each.
fn matrix(draws: &[(Vec<(u8, i8)>, u16)], n_features: usize) -> CsrMatrix {
    let (mut indptr, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for (features, _) in draws {
        let mut row: Vec<(u32, f32)> =
            features.iter().map(|&(f, v)| (u32::from(f) % n_features as u32, f32::from(v) / 32.0)).collect();
        row.sort_by_key(|e| e.0);
        row.dedup_by_key(|e| e.0);
        indices.extend(row.iter().map(|e| e.0));
        values.extend(row.iter().map(|e| e.1));
        indptr.push(indices.len());
    }
    CsrMatrix::from_checked((draws.len(), n_features), indptr, indices, values)
}

/// Bits of the weights, dual variables and biases that a solver leaves.
fn run<const N: usize>(
    problem: &Problem<'_, N>,
    solver: impl Fn(&Problem<'_, N>, &mut State<'_, N>, &mut Stream),
) -> (Vec<u32>, Vec<u32>, Vec<u32>) {
    let (mut w, mut alpha) = (Aligned::default(), Aligned::default());
    let mut state = State::<N> {
        w: w.zeros(problem.block.n_features()),
        alpha: alpha.zeros(problem.block.len()),
        active: &mut vec![0; problem.block.len()],
        order: &mut Vec::new(),
        bias: [0.0; N],
    };
    solver(problem, &mut state, &mut Stream::new(5));
    let bits = |rows: &[[f32; N]]| {
        rows.iter().flat_map(|r| r[..problem.n_lanes].iter().map(|v| v.to_bits())).collect::<Vec<_>>()
    };
    (bits(state.w), bits(state.alpha), bits(&[state.bias]))
}

fn lanes_equal_reference<const N: usize>(draws: &[(Vec<(u8, i8)>, u16)], n_lanes: usize, weighted: bool) {
    let x = matrix(draws, 23);
    let instances: Vec<u32> = (0..draws.len() as u32).collect();
    let block = Block::gather(x.view(), &instances, 1.0, &mut Numbering::default());
    let positive: Vec<u16> = draws.iter().map(|d| d.1 & ((1u32 << n_lanes) - 1) as u16).collect();
    let weights: Vec<f32> =
        (0..draws.len()).map(|i| if i % 5 == 4 { f32::INFINITY } else { 0.5 + i as f32 * 0.25 }).collect();
    let problem = Problem::<N> {
        block: &block,
        positive: &positive,
        n_lanes,
        diagonal_positive: std::array::from_fn(|lane| 0.5 + lane as f32 * 0.1),
        diagonal_negative: std::array::from_fn(|lane| 0.7 - lane as f32 * 0.02),
        inverse_weights: weighted.then_some(&weights[..]),
        bias: 1.0,
        tolerance: 0.01,
        max_passes: 40,
        cancel: &Silent,
    };
    let expected = run(&problem, reference::solve::<N>);
    for isa in Isa::available() {
        let got = run(&problem, |problem, state, rng| {
            assert!(vectorised_loop_on(isa, Solve { problem, state, rng }));
        });
        assert_eq!(got, expected, "{isa}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn every_instruction_set_gives_the_bits_of_the_reference(
        draws in prop::collection::vec((prop::collection::vec((any::<u8>(), any::<i8>()), 0..14), any::<u16>()), 0..40),
        n_lanes in 1usize..=16,
        weighted: bool,
    ) {
        lanes_equal_reference::<16>(&draws, n_lanes, weighted);
        lanes_equal_reference::<8>(&draws, n_lanes.min(8), weighted);
        lanes_equal_reference::<4>(&draws, n_lanes.min(4), weighted);
        lanes_equal_reference::<1>(&draws, 1, weighted);
    }
}

fn fixed_draws() -> Vec<(Vec<(u8, i8)>, u16)> {
    let mut rng = Stream::new(11);
    (0..60u16)
        .map(|i| {
            let own = (i % 3) as u8 * 7;
            let mut row: Vec<(u8, i8)> = (0..6).map(|_| (rng.below(23) as u8, 9)).collect();
            row.push((own, 40));
            (row, 1 << (i % 3) | if i % 7 == 0 { 8 } else { 0 })
        })
        .collect()
}

fn solve(loss: Loss, tolerance: f32, costs: &[f32], weights: Option<&[f32]>) -> (CsrMatrix, Vec<u16>, Solved) {
    let draws = fixed_draws();
    let x = matrix(&draws, 23);
    let positive: Vec<u16> = draws.iter().map(|d| d.1).collect();
    let instances: Vec<u32> = (0..60).collect();
    let block = Block::gather(x.view(), &instances, 1.0, &mut Numbering::default());
    let params = LinearParams { loss, tolerance, prune_below: 0.0, max_passes: 5000, ..LinearParams::default() };
    let group = Group { block: &block, positive: &positive, costs, inverse_weights: weights, name: 3 };
    let solved = group.solve(&params, &mut Buffers::default(), &Silent).unwrap();
    (x, positive, solved)
}

/// One ranker's weights, bias last.
fn column(solved: &Solved, lane: usize) -> Vec<f64> {
    let mut w = vec![0.0; 24];
    let mut at = 0;
    for (&f, &mask) in solved.features.iter().zip(&solved.masks) {
        for other in 0..16 {
            if mask & (1 << other) != 0 {
                if other == lane {
                    w[f as usize] = f64::from(solved.values[at]);
                }
                at += 1;
            }
        }
    }
    w[23] = f64::from(solved.bias[lane]);
    w
}

/// Gradient of the primal objective, by its definition.
fn gradient(x: &CsrMatrix, positive: &[u16], lane: usize, w: &[f64], loss: Loss, cost: &dyn Fn(usize) -> f64) -> f64 {
    let mut g = w.to_vec();
    for (i, row) in x.view().iter().enumerate() {
        let y = if positive[i] & (1 << lane) != 0 { 1.0 } else { -1.0 };
        let z: f64 = row.iter().map(|(f, v)| w[f as usize] * f64::from(v)).sum::<f64>() + w[23];
        let slope = match loss {
            Loss::SquaredHinge => -2.0 * (1.0 - y * z).max(0.0) * y,
            Loss::Logistic => -y / (1.0 + (y * z).exp()),
        };
        row.iter().for_each(|(f, v)| g[f as usize] += cost(i) * slope * f64::from(v));
        g[23] += cost(i) * slope;
    }
    g.iter().fold(0.0, |m: f64, v| m.max(v.abs()))
}

#[test]
fn solutions_are_stationary_points_of_the_primal() {
    let weights: Vec<f32> =
        (0..60).map(|i| if i % 4 == 0 { f32::INFINITY } else { 1.0 / (1.0 + (i % 3) as f32) }).collect();
    for loss in [Loss::SquaredHinge, Loss::Logistic] {
        for given in [None, Some(&weights[..])] {
            let costs = [1.0, 3.0, 0.5, 1.0];
            let (x, positive, solved) = solve(loss, 1e-5, &costs, given);
            for lane in 0..4 {
                let cost = |i: usize| f64::from(costs[lane]) * given.map_or(1.0, |w| 1.0 / f64::from(w[i]));
                let slope = gradient(&x, &positive, lane, &column(&solved, lane), loss, &cost);
                assert!(slope < 5e-3, "{loss:?} lane {lane}: {slope}");
                let start = gradient(&x, &positive, lane, &[0.0; 24], loss, &cost);
                assert!(start > 1.0, "the test must start away from the solution: {start}");
            }
        }
    }
}

#[test]
fn pruning_keeps_exactly_the_large_weights() {
    let draws = fixed_draws();
    let x = matrix(&draws, 23);
    let positive: Vec<u16> = draws.iter().map(|d| d.1).collect();
    let instances: Vec<u32> = (0..60).collect();
    let block = Block::gather(x.view(), &instances, 1.0, &mut Numbering::default());
    for loss in [Loss::SquaredHinge, Loss::Logistic] {
        let solve = |prune_below, max_weights| {
            let params = LinearParams { loss, prune_below, max_weights, ..LinearParams::default() };
            let group = Group { block: &block, positive: &positive, costs: &[1.0; 4], inverse_weights: None, name: 3 };
            group.solve(&params, &mut Buffers::default(), &Silent).unwrap()
        };
        let all = solve(0.0, None);
        let large = solve(0.2, None);
        let few = solve(0.0, Some(3));
        for lane in 0..4 {
            let (a, b, c) = (column(&all, lane), column(&large, lane), column(&few, lane));
            let mut magnitudes: Vec<f64> = a[..23].iter().map(|v| v.abs()).collect();
            magnitudes.sort_by(|x, y| y.total_cmp(x));
            for f in 0..23 {
                assert_eq!(b[f], if a[f].abs() >= f64::from(0.2f32) { a[f] } else { 0.0 });
                assert_eq!(c[f], if a[f].abs() >= magnitudes[2] { a[f] } else { 0.0 });
            }
            assert_eq!((a[23], a[23]), (b[23], c[23]));
        }
    }
}

#[test]
fn joined_groups_are_one_valid_chunk() {
    let (x, _, a) = solve(Loss::SquaredHinge, 0.1, &[1.0, 1.0], None);
    let (_, _, b) = solve(Loss::SquaredHinge, 0.1, &[1.0, 1.0, 2.0], None);
    let instances: Vec<u32> = (0..60).collect();
    let block = Block::gather(x.view(), &instances, 1.0, &mut Numbering::default());
    let (a_columns, b_columns): (Vec<_>, Vec<_>) =
        ((0..2).map(|l| column(&a, l)).collect(), (0..3).map(|l| column(&b, l)).collect());
    let chunk = join(&block, &[2, 3], vec![a, b]);
    chunk.check().unwrap();
    assert_eq!(chunk.n_columns, 5);
    let mut dense = vec![vec![0.0f64; 24]; 5];
    for row in 0..chunk.features.len() {
        for e in chunk.row_ptr[row] as usize..chunk.row_ptr[row + 1] as usize {
            dense[chunk.columns[e] as usize][chunk.features[row] as usize] = f64::from(chunk.values[e]);
        }
    }
    dense.iter_mut().zip(&chunk.bias).for_each(|(w, &b)| w[23] = f64::from(b));
    let expected: Vec<Vec<f64>> = a_columns.into_iter().chain(b_columns).collect();
    assert_eq!(dense, expected);
}

/// Asks to stop from a question on.
struct From(usize, AtomicUsize);

impl Cancel for From {
    fn cancelled(&self) -> bool {
        self.1.fetch_add(1, Ordering::Relaxed) >= self.0
    }
}

#[test]
fn a_solver_that_is_asked_to_stop_gives_nothing() {
    let draws = fixed_draws();
    let x = matrix(&draws, 23);
    let positive: Vec<u16> = draws.iter().map(|d| d.1).collect();
    let instances: Vec<u32> = (0..60).collect();
    let block = Block::gather(x.view(), &instances, 1.0, &mut Numbering::default());
    for loss in [Loss::SquaredHinge, Loss::Logistic] {
        for costs in [&[1.0; 1][..], &[1.0; 4], &[1.0; 16]] {
            let params = LinearParams { loss, ..LinearParams::default() };
            let group = Group { block: &block, positive: &positive, costs, inverse_weights: None, name: 3 };
            let solve = |cancel: &From| group.solve(&params, &mut Buffers::default(), cancel);
            let never = From(usize::MAX, AtomicUsize::new(0));
            let whole = solve(&never);
            assert!(whole.is_some());
            // It is asked in every pass.
            let asked = never.1.into_inner();
            assert!(asked > 1, "{loss:?} {costs:?}");
            for first in [0, 1, asked - 1] {
                assert_eq!(solve(&From(first, AtomicUsize::new(0))), None, "{loss:?} {costs:?} question {first}");
            }
            assert_eq!(solve(&From(asked, AtomicUsize::new(0))), whole);
        }
    }
}
