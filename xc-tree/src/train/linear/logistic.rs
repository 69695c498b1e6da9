//! Logistic rankers by dual coordinate descent, one at a time.
//!
//! Implements (yu2011dual, Alg. 5): each instance has two dual variables that sum to its cost; a
//! visit improves the smaller of the two by Newton steps on its one-variable problem. All in f64.

use super::block::Block;
use super::lanes::ASK;
use xc_buffer::Cancel;
use xc_hash::stream::Stream;

/// Newton steps of one visit, at most.
const NEWTON_STEPS: usize = 100;

/// One ranker to be solved.
pub(super) struct Problem<'a> {
    pub(super) block: &'a Block<'a>,
    /// Is the instance a positive?
    pub(super) positive: &'a dyn Fn(usize) -> bool,
    /// Cost of the instance; 0 leaves it out.
    pub(super) cost: &'a dyn Fn(usize) -> f64,
    pub(super) bias: f32,
    pub(super) tolerance: f64,
    pub(super) max_passes: usize,
    /// Asked between visits of instances.
    pub(super) cancel: &'a dyn Cancel,
}

/// Fills `w` (zeros at the start) and returns the weight of the bias input; nothing where it was asked to stop.
pub(super) fn solve(problem: &Problem<'_>, w: &mut [f64], rng: &mut Stream) -> Option<f64> {
    let n = problem.block.len();
    let bias = f64::from(problem.bias);
    let mut bias_weight = 0.0;
    let mut order: Vec<u32> = (0..n as u32).filter(|&i| (problem.cost)(i as usize) > 0.0).collect();
    let sign = |i: usize| if (problem.positive)(i) { 1.0 } else { -1.0 };
    let mut alpha: Vec<f64> = (0..n).map(|i| (0.001 * (problem.cost)(i)).min(1e-8)).collect();
    let add = |w: &mut [f64], bias_weight: &mut f64, i: usize, step: f64| {
        let (indices, values) = problem.block.row(i);
        indices.iter().zip(values).for_each(|(&f, &x)| w[f as usize] += step * f64::from(x));
        *bias_weight += step * bias;
    };
    for &i in &order {
        add(w, &mut bias_weight, i as usize, alpha[i as usize] * sign(i as usize));
    }
    let smallest_inner = 1e-8f64.min(problem.tolerance);
    let mut inner_tolerance = 1e-2;
    for _ in 0..problem.max_passes {
        rng.shuffle(&mut order);
        let mut largest = 0.0f64;
        let mut newton = 0;
        for (visit, &i) in order.iter().enumerate() {
            if visit % ASK == 0 && problem.cancel.cancelled() {
                return None;
            }
            let i = i as usize;
            let cost = (problem.cost)(i);
            let (indices, values) = problem.block.row(i);
            let dot: f64 = indices.iter().zip(values).map(|(&f, &x)| w[f as usize] * f64::from(x)).sum();
            let margin = sign(i) * (dot + bias * bias_weight);
            let square = f64::from(problem.block.squares[i]);
            let other = cost - alpha[i];
            // Work on the variable that ends up below half of the cost.
            let (direction, old) =
                if 0.5 * square * (other - alpha[i]) + margin < 0.0 { (-1.0, other) } else { (1.0, alpha[i]) };
            let mut z = if cost - old < 0.5 * cost { 0.1 * old } else { old };
            let gradient = |z: f64| square * (z - old) + direction * margin + (z / (cost - z)).ln();
            let mut g = gradient(z);
            largest = largest.max(g.abs());
            let mut steps = 0;
            while g.abs() >= inner_tolerance && steps <= NEWTON_STEPS {
                let next = z - g / (square + cost / (cost - z) / z);
                z = if next <= 0.0 { 0.1 * z } else { next };
                g = gradient(z);
                steps += 1;
            }
            if steps > 0 {
                newton += steps;
                alpha[i] = if direction > 0.0 { z } else { cost - z };
                add(w, &mut bias_weight, i, direction * (z - old) * sign(i));
            }
        }
        if largest < problem.tolerance {
            break;
        }
        if newton <= order.len() / 10 {
            inner_tolerance = smallest_inner.max(0.1 * inner_tolerance);
        }
    }
    Some(bias_weight)
}
