//! The first look at labels in 8 bits: against scores in f64 with the most that rounding can do, and on every instruction set.

use proptest::prelude::*;
use xc_sparse::Isa;
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
        let mut connections = Connections::uniform(n_labels, n_inputs, per_label, NumberType::F32, |_, row| {
            *row = distinct(per_label, n_inputs, Vec::new().into_iter(), &mut || {
                at += 1;
                u64::from(number(at, seed).to_bits()).wrapping_mul(0x9e37_79b9_7f4a_7c15)
            });
        })
        .unwrap();
        let weights = (0..connections.len()).map(|i| number(i, seed + 1));
        *connections.weights_mut() = Numbers::nearest(NumberType::F32, weights);
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

    /// For each half of each block: whether a score is surely above the bar, and whether one may be, by the most that rounding can do.
    fn wanted(&self, label: usize, bar: f32) -> Vec<(bool, bool)> {
        let n_inputs = self.connections.n_inputs();
        let (c, range) = (&self.connections, self.connections.range(label));
        let weights: Vec<f64> = range.clone().map(|at| f64::from(c.weights().get(at))).collect();
        let norm = weights.iter().map(|w| w * w).sum::<f64>().sqrt();
        let weight_step = weights.iter().fold(0.0, |m: f64, w| m.max(w.abs())) / 127.0;
        let mut out = vec![(false, false); self.len.div_ceil(32).next_multiple_of(2)];
        for block in 0..self.len.div_ceil(64) {
            let rows = block * 64..self.len.min((block + 1) * 64);
            let is_signed = self.values[rows.start * n_inputs..rows.end * n_inputs].iter().any(|&v| v < 0.0);
            for i in rows {
                let row = &self.values[i * n_inputs..][..n_inputs];
                let steps = if is_signed { 63.0 } else { 127.0 };
                let step = row.iter().fold(0.0, |m: f64, &v| m.max(f64::from(v).abs())) / steps;
                let x: Vec<f64> = range.clone().map(|at| f64::from(row[c.indices().get(at)])).collect();
                let score = x.iter().zip(&weights).map(|(x, w)| x * w).sum::<f64>() + f64::from(self.biases[label]);
                let most: f64 = x
                    .iter()
                    .zip(&weights)
                    .map(|(x, w)| (x.abs() * weight_step + w.abs() * step) / 2.0 + step * weight_step / 4.0)
                    .sum();
                let mean_square = row.iter().map(|&v| f64::from(v).powi(2)).sum::<f64>() / n_inputs as f64;
                let margin = f64::from(DEVIATIONS) / 12f64.sqrt()
                    * (norm * step + (x.len() as f64 * mean_square).sqrt() * weight_step);
                let half = &mut out[i / 32];
                let little = 1e-5 * (1.0 + score.abs() + most);
                half.0 |= score + margin - most - little > f64::from(bar);
                half.1 |= score + margin + most + little > f64::from(bar);
            }
        }
        out
    }
}

/// Compares a first look with what is surely and what is possibly above the bar.
fn check(
    look: impl Fn(ByteBlock<'_>, &[u16], ScreenRow<'_>) -> u32,
    case: &Case,
    bar: f32,
) -> Result<(), TestCaseError> {
    let (lines, rows) = case.screened(bar);
    for label in 0..case.biases.len() {
        let wanted = case.wanted(label, bar);
        for block in 0..lines.n_blocks() {
            let met = look(lines.block(block), &case.inputs(label), rows.row(label));
            for half in 0..2 {
                let (surely, maybe) = wanted[2 * block + half];
                let met = met >> half & 1 == 1;
                prop_assert!(met || !surely, "label {label}, block {block}, half {half}: overlooked");
                prop_assert!(!met || maybe, "label {label}, block {block}, half {half}: seen");
            }
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn blocks_are_seen_where_a_score_may_be_above_the_bar(
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
        for kernels in Isa::available().map(Kernels::of) {
            check(|block, inputs, row| kernels.screen([block], inputs, row, inputs), &case, bar)?;
        }
        // The same bits on every instruction set, for one block and for two.
        let (lines, rows) = case.screened(bar);
        let plain = Kernels::of(Isa::Scalar);
        for label in 0..n_labels {
            let (inputs, row) = (case.inputs(label), rows.row(label));
            let wide: Vec<u32> = inputs.iter().map(|&i| u32::from(i)).collect();
            for block in 0..lines.n_blocks() {
                let [one, other] = [block, lines.n_blocks() - 1 - block].map(|b| lines.block(b));
                let wanted = [one, other].map(|block| plain.screen([block], &inputs, row, &[]));
                for kernels in Isa::available().map(Kernels::of) {
                    prop_assert_eq!(kernels.screen([one], &inputs, row, &inputs), wanted[0]);
                    prop_assert_eq!(kernels.screen([one], &wide, row, &[]), wanted[0]);
                    prop_assert_eq!(kernels.screen([one, other], &inputs, row, &inputs), wanted[0] | wanted[1] << 2);
                }
            }
        }
    }
}

#[test]
fn a_wrong_first_look_is_found() {
    let case = Case::new(40, 120, 10, 128, false, 7);
    let kernels = Kernels::current();
    let right = |block: ByteBlock<'_>, inputs: &[u16], row: ScreenRow<'_>| kernels.screen([block], inputs, row, &[]);
    let verdict = |look: &dyn Fn(ByteBlock<'_>, &[u16], ScreenRow<'_>) -> u32| check(look, &case, 0.5).is_ok();
    assert!(verdict(&right));
    assert!(!verdict(&|_, _, _| 0), "never seen");
    assert!(!verdict(&|_, _, _| 3), "always seen");
    assert!(!verdict(&|block, inputs, row| right(block, inputs, row).reverse_bits() >> 30), "halves exchanged");
    let shifted = |block: ByteBlock<'_>, inputs: &[u16], row: ScreenRow<'_>| {
        let inputs: Vec<u16> = inputs.iter().cycle().skip(1).take(inputs.len()).copied().collect();
        right(block, &inputs, row)
    };
    assert!(!verdict(&shifted), "weights of other connections");
}

#[test]
fn what_is_not_finite_is_always_seen_and_nothing_where_there_is_no_instance() {
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX] {
        for isa in Isa::available() {
            let look = |case: &Case| -> Vec<u32> {
                let (lines, rows) = case.screened(1e30);
                let one = |block| Kernels::of(isa).screen([lines.block(block)], &case.inputs(1), rows.row(1), &[]);
                (0..lines.n_blocks()).map(one).collect()
            };
            let mut case = Case::new(3, 50, 9, 100, false, 3);
            assert_eq!(look(&case), [0, 0]);
            // Of any input, connected or not: the scale of the instance is gone.
            case.values[70 * 50 + 20] = bad;
            assert_eq!(look(&case), [0, 1], "{isa}: an input of {bad}");
            let mut case = Case::new(3, 50, 9, 100, true, 3);
            let weights = (0..27).map(|at| if at == 12 { bad } else { 0.5 });
            *case.connections.weights_mut() = Numbers::nearest(NumberType::F32, weights);
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
            *case.connections.weights_mut() = Numbers::zeros(NumberType::F32, 27);
        }
        case.biases = vec![-1.5, -0.5, 3.0];
        let (lines, rows) = case.screened(-1.0);
        for isa in Isa::available() {
            let met: Vec<u32> = (0..3)
                .map(|label| Kernels::of(isa).screen([lines.block(0)], &case.inputs(label), rows.row(label), &[]))
                .collect();
            assert_eq!(met, [0, 3, 3], "{isa}");
        }
    }
}

#[test]
fn low_precision_weights_are_looked_at_as_they_are() {
    for of in [NumberType::Bf16, NumberType::F16, NumberType::E4m3, NumberType::E5m2] {
        let mut case = Case::new(30, 90, 12, 64, false, 11);
        let weights: Vec<f32> = (0..360).map(|i| number(i, 12)).collect();
        *case.connections.weights_mut() = Numbers::nearest(of, weights.into_iter());
        check(|block, inputs, row| Kernels::current().screen([block], inputs, row, &[]), &case, 0.3).unwrap();
    }
}

#[test]
#[should_panic(expected = "out of range")]
fn an_input_that_is_not_there_is_refused() {
    let case = Case::new(1, 50, 4, 64, false, 1);
    let (lines, rows) = case.screened(0.0);
    Kernels::current().screen([lines.block(0)], &[1u16, 2, 3, 50], rows.row(0), &[]);
}
