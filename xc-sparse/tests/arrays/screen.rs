//! Screening labels in 8 bits: against its definition in f64, and on every instruction set.

use proptest::prelude::*;
use rayon::prelude::*;
use xc_buffer::FloatBuffer;
use xc_buffer::Isa;
use xc_buffer::dtype::DType;
use xc_sparse::uniform::*;

/// Numbers in [-1, 1) that look random.
fn number(i: usize, seed: u64) -> f32 {
    let mut z = (i as u64).wrapping_add(seed << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    ((z ^ (z >> 27)) >> 40) as f32 / (1u32 << 23) as f32 - 1.0
}

#[derive(Debug)]
struct Case {
    connections: Connections,
    biases: Vec<f32>,
    values: Vec<f32>,
    len: usize,
}

impl Case {
    /// Inputs at or above 0 unless `is_signed`, of sizes that differ from instance to instance.
    fn new(n_labels: usize, n_inputs: usize, per_label: usize, len: usize, is_signed: bool, seed: u64) -> Self {
        let mut at = 0;
        let mut connections = Connections::uniform(n_labels, n_inputs, per_label, DType::F32, |_, row| {
            *row = distinct(per_label, n_inputs, Vec::new().into_iter(), &mut || {
                at += 1;
                u64::from(number(at, seed).to_bits()).wrapping_mul(0x9e37_79b9_7f4a_7c15)
            });
        })
        .unwrap();
        let weights = (0..connections.len()).map(|i| number(i, seed + 1));
        *connections.weights_mut() = FloatBuffer::nearest(DType::F32, weights);
        let size = |i: usize| 2f32.powi((number(i, seed + 2) * 6.0) as i32);
        let value = |i: usize| number(i, seed + 3) * size(i / n_inputs);
        let values = (0..len * n_inputs).map(value).map(|v| if is_signed { v } else { v.max(0.0) }).collect();
        Self { connections, biases: (0..n_labels).map(|i| 2.0 * number(i, seed + 4)).collect(), values, len }
    }

    fn screened(&self, bar: f32) -> (ByteLines, ScreenRows) {
        let (mut lines, mut rows) = (ByteLines::default(), ScreenRows::default());
        // What the buffers held before must not matter.
        lines.fill(&[-1.0; 70 * 99], 70, 99);
        rows.fill(&self.connections, &self.biases, f32::NAN, self.biases.len().min(2), |at| at);
        lines.fill(&self.values, self.len, self.connections.n_inputs());
        rows.fill(&self.connections, &self.biases, bar, self.biases.len(), |at| at);
        (lines, rows)
    }

    fn inputs(&self, label: usize) -> Vec<u16> {
        self.connections.range(label).map(|at| self.connections.indices().get(at) as u16).collect()
    }

    /// For each half of each block, by the definition in f64: how far the best lane is above what
    /// it is compared with, and what float rounding may add to that.
    fn wanted(&self, label: usize, bar: f32, rule: Rule) -> Vec<(f64, f64)> {
        let n_inputs = self.connections.n_inputs();
        let (c, range) = (&self.connections, self.connections.range(label));
        let weights: Vec<f32> = range.clone().map(|at| c.weights().get(at)).collect();
        let per_step = 127.0 / weights.iter().fold(0.0f32, |m, w| m.max(w.abs()));
        let bytes: Vec<f64> = weights.iter().map(|w| f64::from((w * per_step).round_ties_even())).collect();
        let root_sum = |values: &mut dyn Iterator<Item = f64>| values.map(|v| v * v).sum::<f64>().sqrt();
        let norm = root_sum(&mut weights.iter().map(|&w| f64::from(w) * f64::from(per_step)));
        let mut out = vec![(f64::NEG_INFINITY, 0.0f64); self.len.div_ceil(64) * 2];
        for i in 0..self.len {
            let block = i / 64 * 64..self.len.min(i / 64 * 64 + 64);
            let is_signed = self.values[block.start * n_inputs..block.end * n_inputs].iter().any(|&v| v < 0.0);
            let zero = if is_signed { 64.0f32 } else { 0.0 };
            let row = &self.values[i * n_inputs..][..n_inputs];
            let largest = row.iter().fold(0.0f32, |m, v| m.max(v.abs()));
            if largest == 0.0 {
                // Then the bias alone counts.
                let is_above = self.biases[label] > bar;
                out[i / 32].0 = out[i / 32].0.max(if is_above { 1e9 } else { f64::NEG_INFINITY });
                continue;
            }
            let factor = (127.0 - zero) / largest;
            let steps: Vec<f64> = row.iter().map(|v| f64::from(v * factor + zero)).collect();
            let errors: Vec<f64> = steps.iter().map(|v| v - v.round_ties_even()).collect();
            let mean = errors.iter().sum::<f64>() / n_inputs as f64;
            let variance = errors.iter().map(|e| e * e).sum::<f64>() / n_inputs as f64 - mean * mean;
            let sum: f64 =
                range.clone().zip(&bytes).map(|(at, w)| w * steps[c.indices().get(at)].round_ties_even()).sum();
            let total: f64 = bytes.iter().sum();
            let bar = f64::from(bar - self.biases[label]) * f64::from(per_step) * f64::from(factor);
            let of_inputs = norm * variance.max(0.0).sqrt();
            let root_mean_square =
                root_sum(&mut row.iter().map(|&v| f64::from(v) * f64::from(factor))) / (n_inputs as f64).sqrt();
            let of_weights = root_mean_square * (bytes.len() as f64).sqrt() / 12f64.sqrt();
            let wanted = bar - rule.deviations * (of_inputs + of_weights)
                + total * (rule.zero * f64::from(zero) - rule.mean * mean);
            // The variance is a difference: where inputs are bytes already, float rounding is all
            // of it.
            let little = 1e-4 * (1.0 + bar.abs() + total.abs() * 64.0 + of_weights) + norm * 1e-3;
            let half = &mut out[i / 32];
            if sum - wanted > half.0 {
                *half = (sum - wanted, half.1);
            }
            half.1 = half.1.max(little);
        }
        out
    }
}

/// What the definition takes into account.
#[derive(Clone, Copy)]
struct Rule {
    deviations: f64,
    zero: f64,
    mean: f64,
}

const RULE: Rule = Rule { deviations: DEVIATIONS as f64, zero: 1.0, mean: 1.0 };

/// Compares screening with the definition.
fn check(
    look: impl Fn(ByteBlock<'_>, &[u16], ScreenRow<'_>) -> u32,
    case: &Case,
    bar: f32,
    rule: Rule,
) -> Result<(), TestCaseError> {
    let (lines, rows) = case.screened(bar);
    for label in 0..case.biases.len() {
        let wanted = case.wanted(label, bar, rule);
        for block in 0..lines.n_blocks() {
            let met = look(lines.block(block), &case.inputs(label), rows.row(label));
            for half in 0..2 {
                let (above, little) = wanted[2 * block + half];
                let met = met >> half & 1 == 1;
                prop_assert!(
                    above.abs() <= little || met == (above > 0.0),
                    "label {label}, block {block}, half {half}: {met}, {above} above the bar"
                );
            }
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn blocks_are_seen_where_the_definition_says(
        n_labels in 0usize..6,
        n_inputs in 1usize..150,
        share in 0.0f64..=1.0,
        len in 0usize..140,
        is_signed: bool,
        bar in -3.0f32..3.0,
        seed in 0u64..1 << 31,
    ) {
        let per_label = ((n_inputs as f64 * share) as usize).clamp(1, n_inputs);
        let case = Case::new(n_labels, n_inputs, per_label, len, is_signed, seed);
        for kernels in Isa::available().map(UniformKernels::of) {
            check(|block, inputs, row| kernels.screen([block], inputs, row, inputs), &case, bar, RULE)?;
        }
        // The same bits on every instruction set, for one block and for two.
        let (lines, rows) = case.screened(bar);
        let plain = UniformKernels::of(Isa::Scalar);
        for label in 0..n_labels {
            let (inputs, row) = (case.inputs(label), rows.row(label));
            let wide: Vec<u32> = inputs.iter().map(|&i| u32::from(i)).collect();
            for block in 0..lines.n_blocks() {
                let [one, other] = [block, lines.n_blocks() - 1 - block].map(|b| lines.block(b));
                let wanted = [one, other].map(|block| plain.screen([block], &inputs, row, &[]));
                for kernels in Isa::available().map(UniformKernels::of) {
                    prop_assert_eq!(kernels.screen([one], &inputs, row, &inputs), wanted[0]);
                    prop_assert_eq!(kernels.screen([one], &wide, row, &[]), wanted[0]);
                    prop_assert_eq!(kernels.screen([one, other], &inputs, row, &inputs), wanted[0] | wanted[1] << 2);
                }
            }
        }
    }
}

#[test]
fn a_wrong_screening_and_a_wrong_margin_are_found() {
    let mut cases = [false, true, false].map(|is_signed| Case::new(12, 120, 10, 128, is_signed, 7));
    // Of the last one an input is far above the others, so that those are rounded one way.
    cases[2].values.chunks_exact_mut(120).for_each(|row| row[11] = 400.0 * row.iter().fold(0.0, |m: f32, v| m.max(*v)));
    let kernels = UniformKernels::current();
    let right = |block: ByteBlock<'_>, inputs: &[u16], row: ScreenRow<'_>| kernels.screen([block], inputs, row, &[]);
    // Bars close to each other: for some the best score lies within the margin.
    let verdict = |look: &(dyn Fn(ByteBlock<'_>, &[u16], ScreenRow<'_>) -> u32 + Sync), rule: Rule| {
        let is_right =
            |case: &Case| (-30..30).into_par_iter().all(|bar| check(look, case, bar as f32 / 7.5, rule).is_ok());
        cases.iter().all(is_right)
    };
    assert!(verdict(&right, RULE));
    assert!(!verdict(&|_, _, _| 0, RULE), "never seen");
    assert!(!verdict(&|_, _, _| 3, RULE), "always seen");
    assert!(!verdict(&|block, inputs, row| right(block, inputs, row).reverse_bits() >> 30, RULE), "halves exchanged");
    let shifted = |block: ByteBlock<'_>, inputs: &[u16], row: ScreenRow<'_>| {
        let inputs: Vec<u16> = inputs.iter().cycle().skip(1).take(inputs.len()).copied().collect();
        right(block, &inputs, row)
    };
    assert!(!verdict(&shifted, RULE), "weights of other connections");
    for (which, wrong) in [
        Rule { deviations: 0.0, ..RULE },
        Rule { deviations: -RULE.deviations, ..RULE },
        Rule { deviations: 2.0 * RULE.deviations, ..RULE },
        Rule { zero: 0.0, ..RULE },
        Rule { mean: 0.0, ..RULE },
        Rule { mean: -1.0, ..RULE },
    ]
    .into_iter()
    .enumerate()
    {
        assert!(!verdict(&right, wrong), "wrong rule {which}");
    }
}

#[test]
fn an_input_far_above_the_others_does_not_hide_them() {
    // All others are rounded to 0: their sum is only in the mean of the rounding errors.
    let mut case = Case::new(1, 400, 32, 1, false, 1);
    case.values.fill(0.039);
    let alone = (0..400).find(|&j| case.inputs(0).iter().all(|&i| usize::from(i) != j)).unwrap();
    case.values[alone] = 10.0;
    *case.connections.weights_mut() = FloatBuffer::nearest(DType::F32, (0..32).map(|_| 1.0));
    case.biases[0] = -1.2;
    let (lines, rows) = case.screened(-0.1);
    assert_eq!(UniformKernels::current().screen([lines.block(0)], &case.inputs(0), rows.row(0), &[]), 1);
}

#[test]
fn what_is_not_finite_is_always_seen_and_nothing_where_there_is_no_instance() {
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX] {
        for isa in Isa::available() {
            let look = |case: &Case| -> Vec<u32> {
                let (lines, rows) = case.screened(1e30);
                let one =
                    |block| UniformKernels::of(isa).screen([lines.block(block)], &case.inputs(1), rows.row(1), &[]);
                (0..lines.n_blocks()).map(one).collect()
            };
            let mut case = Case::new(3, 50, 9, 100, false, 3);
            assert_eq!(look(&case), [0, 0]);
            // Of any input, connected or not: the scale of the instance is gone.
            case.values[70 * 50 + 20] = bad;
            assert_eq!(look(&case), [0, 1], "{isa}: an input of {bad}");
            let mut case = Case::new(3, 50, 9, 100, true, 3);
            let weights = (0..27).map(|at| if at == 12 { bad } else { 0.5 });
            *case.connections.weights_mut() = FloatBuffer::nearest(DType::F32, weights);
            assert_eq!(look(&case)[0], 3, "{isa}: a weight of {bad}");
            let mut case = Case::new(3, 50, 9, 100, true, 3);
            case.biases[1] = f32::NAN;
            assert_eq!(look(&case)[0], 3, "{isa}: a bias of NaN");
        }
    }
}

#[test]
fn nothing_but_zeros_leaves_the_bias() {
    for (zero_inputs, zero_weights) in [(true, false), (false, true), (true, true)] {
        let mut case = Case::new(3, 50, 9, 40, false, 5);
        if zero_inputs {
            case.values.fill(0.0);
        }
        if zero_weights {
            *case.connections.weights_mut() = FloatBuffer::zeros(DType::F32, 27);
        }
        case.biases = vec![-1.5, -0.5, 3.0];
        let (lines, rows) = case.screened(-1.0);
        for isa in Isa::available() {
            let met: Vec<u32> = (0..3)
                .map(|label| {
                    UniformKernels::of(isa).screen([lines.block(0)], &case.inputs(label), rows.row(label), &[])
                })
                .collect();
            assert_eq!(met, [0, 3, 3], "{isa}");
        }
    }
}

#[test]
fn low_precision_weights_are_looked_at_as_they_are() {
    for of in [DType::Bf16, DType::F16, DType::E4m3, DType::E5m2] {
        let mut case = Case::new(30, 90, 12, 64, false, 11);
        let weights: Vec<f32> = (0..360).map(|i| number(i, 12)).collect();
        *case.connections.weights_mut() = FloatBuffer::nearest(of, weights.into_iter());
        check(|block, inputs, row| UniformKernels::current().screen([block], inputs, row, &[]), &case, 0.3, RULE)
            .unwrap();
    }
}

#[test]
#[should_panic(expected = "out of range")]
fn an_input_that_is_not_there_is_refused() {
    let case = Case::new(1, 50, 4, 64, false, 1);
    let (lines, rows) = case.screened(0.0);
    UniformKernels::current().screen([lines.block(0)], &[1u16, 2, 3, 50], rows.row(0), &[]);
}
