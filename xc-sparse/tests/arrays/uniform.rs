//! The products of a sparse layer against plain sums, rewiring, conversions and files.

use proptest::prelude::*;
use std::collections::HashSet;
use xc_buffer::FloatBuffer;
use xc_buffer::Isa;
use xc_buffer::dtype::DType;
use xc_sparse::uniform::*;
use xc_store::{Container, ContainerWriter, OpenMode};

/// Random numbers from a seed; good enough for tests.
fn random(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed;
    move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

fn number(random: &mut impl FnMut() -> u64) -> f32 {
    (random() >> 40) as f32 / (1u32 << 23) as f32 - 1.0
}

fn connections(n_labels: usize, n_inputs: usize, per_label: usize, of: DType, seed: u64) -> Connections {
    let mut next = random(seed);
    let mut out = Connections::uniform(n_labels, n_inputs, per_label, of, |_, row| {
        *row = distinct(per_label, n_inputs, std::iter::empty::<usize>().collect::<Vec<_>>().into_iter(), &mut next);
    })
    .unwrap();
    let values: Vec<f32> = (0..out.len()).map(|_| number(&mut next)).collect();
    *out.weights_mut() = FloatBuffer::nearest(of, values.into_iter());
    out
}

/// Everything about one label as plain sums in f64, from the rounded inputs.
struct Plain {
    scores: [f64; LANES],
    input_gradient: Vec<[f64; LANES]>,
    weight_gradient: Vec<f64>,
}

fn plain(lines: &[UniformLine], inputs: &[usize], weights: &[f32], gradient: &Sums) -> Plain {
    let g = |i: usize| f64::from(gradient[i / 16][i % 16]);
    let mut out = Plain {
        scores: [0.0; LANES],
        input_gradient: vec![[0.0; LANES]; lines.len()],
        weight_gradient: vec![0.0; inputs.len()],
    };
    for (t, (&input, &weight)) in inputs.iter().zip(weights).enumerate() {
        for i in 0..LANES {
            let x = f64::from(lines[input].get(i));
            out.scores[i] += x * f64::from(weight);
            out.input_gradient[input][i] += g(i) * f64::from(weight);
            out.weight_gradient[t] += g(i) * x;
        }
    }
    out
}

/// Compares all products with plain sums, and their bits on every instruction set with those of the
/// plain path. `forward` is the first product, so that a wrong one can be put in its place.
fn check_products<I: IndexWidth>(
    forward: impl Fn(UniformKernels, &[UniformLine], &[I], &[f32], &[I]) -> Sums,
    lines: &[UniformLine],
    inputs: &[usize],
    weights: &[f32],
    gradient: &Sums,
) -> Result<(), TestCaseError> {
    let stored: Vec<I> = inputs.iter().map(|&i| I::of(i)).collect();
    let expected = plain(lines, inputs, weights, gradient);
    let mut first: Option<(Sums, Vec<Sums>, Vec<f32>)> = None;
    for isa in Isa::available() {
        let kernels = UniformKernels::of(isa);
        let scores = forward(kernels, lines, &stored, weights, &stored[1..]);
        let mut input_gradient = vec![Sums::default(); lines.len()];
        kernels.add_input_gradient(&mut input_gradient, &stored, weights, gradient);
        let mut sums = vec![[0.0; 16]; inputs.len()];
        kernels.add_weight_gradient(&mut sums, lines, &stored, gradient);
        let mut weight_gradient = vec![0.0; inputs.len()];
        weight_gradients(&sums, &mut weight_gradient);
        let got = (scores, input_gradient, weight_gradient);
        // With a bias and a bar: the same sums, and which of them are not at or below it.
        for bar in [f32::NEG_INFINITY, -0.5, 0.0, 0.7, f32::INFINITY] {
            let mut above = Sums::default();
            let lanes = kernels.forward_above(lines, &stored, weights, &[], [0.25, bar], &mut above);
            let biased = kernels.forward(lines, &stored, weights, &[]).map(|half| half.map(|z| z + 0.25));
            let expected = (0..LANES).fold(0u32, |mask, i| mask | u32::from(biased[i / 16][i % 16] > bar) << i);
            prop_assert!(lanes == expected, "{isa}: {lanes:b} above {bar}, expected {expected:b}");
            prop_assert!(above == if lanes == 0 { Sums::default() } else { biased }, "{isa}: sums with a bias");
            // Two blocks at once are each block alone.
            let other: Vec<UniformLine> = lines.iter().rev().copied().collect();
            let (mut a, mut b, mut alone) = <(Sums, Sums, Sums)>::default();
            let both = [&mut a, &mut b];
            let got = kernels.forward_above_two([lines, &other], &stored, weights, &stored, [0.25, bar], both);
            let second = kernels.forward_above(&other, &stored, weights, &[], [0.25, bar], &mut alone);
            prop_assert!(got == [lanes, second] && a == above && b == alone, "{isa}: two blocks at once");
        }
        let close = |got: f32, expected: f64| (f64::from(got) - expected).abs() <= 1e-4 * (1.0 + expected.abs());
        for i in 0..LANES {
            prop_assert!(close(got.0[i / 16][i % 16], expected.scores[i]), "{isa}: score of lane {i}");
            for j in 0..lines.len() {
                prop_assert!(
                    close(got.1[j][i / 16][i % 16], expected.input_gradient[j][i]),
                    "{isa}: input {j}, lane {i}"
                );
            }
        }
        for t in 0..inputs.len() {
            prop_assert!(close(got.2[t], expected.weight_gradient[t]), "{isa}: weight {t}");
        }
        match &first {
            None => first = Some(got),
            Some(first) => prop_assert!(*first == got, "{isa}: other bits than the plain path"),
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn products_are_plain_sums_on_every_instruction_set(
        n_inputs in 1usize..80,
        share in 0.0f64..=1.0,
        len in 1usize..=LANES,
        n_active in 0usize..=LANES,
        seed: u64,
    ) {
        let mut next = random(seed);
        let per_label = ((n_inputs as f64 * share) as usize).clamp(1, n_inputs);
        let inputs = distinct(per_label, n_inputs, Vec::new().into_iter(), &mut next);
        let values: Vec<f32> = (0..len * n_inputs).map(|_| number(&mut next)).collect();
        let mut lines = Lines::default();
        lines.fill(&values, len, n_inputs);
        let weights: Vec<f32> = inputs.iter().map(|_| number(&mut next)).collect();
        let mut gradient = Sums::default();
        for lane in distinct(n_active.min(len), len, Vec::new().into_iter(), &mut next) {
            gradient[lane / 16][lane % 16] = number(&mut next);
        }
        check_products::<u16>(UniformKernels::forward, lines.block(0), &inputs, &weights, &gradient)?;
        check_products::<u32>(UniformKernels::forward, lines.block(0), &inputs, &weights, &gradient)?;
        // One instance alone has the bits that it has in its lane; labels may come in a run.
        let (stored, block): (Vec<u32>, _) = (inputs.iter().map(|&i| i as u32).collect(), lines.block(0));
        let other: Vec<f32> = weights.iter().map(|w| 0.5 - w).collect();
        let run = ([&stored[..], &stored].concat(), [&weights[..], &other].concat());
        for kernels in Isa::available().map(UniformKernels::of) {
            let in_block = [&weights, &other].map(|weights| kernels.forward(block, &stored, weights, &[]));
            for lane in 0..len {
                let alone: Vec<f32> = block.iter().map(|line| line.get(lane)).collect();
                let mut got = [f32::NAN; 2];
                kernels.forward_one(&alone, &run.0, &run.1, per_label, &mut got);
                prop_assert_eq!(got, in_block.map(|sums| sums[lane / 16][lane % 16]));
            }
        }
        // The gradients are what finite differences say: the products are linear, so one step of 1
        // is exact but for rounding.
        let score = |lines: &[UniformLine], weights: &[f32]| -> f64 {
            let stored: Vec<u32> = inputs.iter().map(|&i| i as u32).collect();
            let sums = UniformKernels::current().forward(lines, &stored, weights, &[]);
            (0..LANES).map(|i| f64::from(sums[i / 16][i % 16]) * f64::from(gradient[i / 16][i % 16])).sum()
        };
        let expected = plain(lines.block(0), &inputs, &weights, &gradient);
        // Taken one instance after the other they are the same sums.
        let mut of_weights = vec![0.0f32; per_label];
        for lane in 0..len {
            let alone: Vec<f32> = block.iter().map(|line| line.get(lane)).collect();
            let (mut of_inputs, g) = (vec![0.0f32; n_inputs], gradient[lane / 16][lane % 16]);
            UniformKernels::current().add_gradients_of_one(&alone, &mut of_inputs, &stored, &weights, g, &mut of_weights);
            for (got, expected) in of_inputs.iter().zip(&expected.input_gradient) {
                prop_assert!((f64::from(*got) - expected[lane]).abs() < 1e-5);
            }
        }
        for (got, expected) in of_weights.iter().zip(&expected.weight_gradient) {
            prop_assert!((f64::from(*got) - expected).abs() < 1e-4);
        }
        let base = score(lines.block(0), &weights);
        for t in 0..per_label {
            let mut moved = weights.clone();
            moved[t] += 1.0;
            prop_assert!((score(lines.block(0), &moved) - base - expected.weight_gradient[t]).abs() < 1e-3);
        }
        let (j, i) = (inputs[0], len - 1);
        let mut moved = values.clone();
        moved[i * n_inputs + j] = 0.5 + lines.block(0)[j].get(i);
        let step = f64::from(half::bf16::from_f32(moved[i * n_inputs + j]).to_f32()) - f64::from(lines.block(0)[j].get(i));
        let mut other = Lines::default();
        other.fill(&moved, len, n_inputs);
        let got = score(other.block(0), &weights) - base;
        prop_assert!((got - step * expected.input_gradient[j][i]).abs() < 1e-3, "{} {}", got, step);
    }

    #[test]
    fn rewiring_keeps_the_number_and_never_repeats(
        n_labels in 0usize..40,
        n_inputs in 1usize..30,
        share in 0.0f64..=1.0,
        fraction in 0.0f64..=1.0,
        seed: u64,
    ) {
        let per_label = ((n_inputs as f64 * share) as usize).clamp(1, n_inputs);
        let before = connections(n_labels, n_inputs, per_label, DType::F32, seed);
        let mut after = before.clone();
        let Rewired::InPlace(replaced) = after.rewire(fraction, |label| random(seed ^ label as u64)) else {
            panic!("uniform connections are rewired in place");
        };
        prop_assert_eq!(after.check(), Ok(()));
        let replaced: HashSet<u32> = replaced.into_iter().collect();
        let size = |at: u32| before.weights().get(at as usize).abs();
        let largest_lost = replaced.iter().map(|&at| size(at)).fold(0.0, f32::max);
        for label in 0..n_labels {
            let old: HashSet<usize> = before.range(label).map(|at| before.indices().get(at)).collect();
            let lost = before.range(label).filter(|at| replaced.contains(&(*at as u32))).count();
            for at in before.range(label) {
                if replaced.contains(&(at as u32)) {
                    prop_assert!(!old.contains(&after.indices().get(at)), "an old input came back");
                    prop_assert_eq!(after.weights().get(at), 0.0);
                } else {
                    prop_assert_eq!(after.indices().get(at), before.indices().get(at));
                    prop_assert_eq!(after.weights().get(at), before.weights().get(at));
                    // Only a label without a free input keeps a weaker one.
                    prop_assert!(size(at as u32) >= largest_lost || lost == n_inputs - per_label);
                }
            }
        }
        let expected = (before.len() as f64 * fraction) as usize;
        prop_assert!(replaced.len() <= expected);
        if per_label * 2 <= n_inputs {
            prop_assert_eq!(replaced.len(), expected);
        }
        let mut again = before.clone();
        again.rewire(fraction, |label| random(seed ^ label as u64));
        prop_assert_eq!(again, after);
    }

    #[test]
    fn unstructured_connections_come_back_anywhere(
        n_labels in 1usize..20, n_inputs in 1usize..30, share in 0.0f64..=1.0, fraction in 0.0f64..=1.0, seed: u64,
    ) {
        let per_label = ((n_inputs as f64 * share) as usize).clamp(1, n_inputs);
        let uniform = connections(n_labels, n_inputs, per_label, DType::Bf16, seed);
        let before = Connections::from_csc(uniform.to_csc().view(), DType::Bf16, false).unwrap();
        let mut after = before.clone();
        let Rewired::Moved(source) = after.rewire(fraction, |label| random(seed ^ label as u64)) else {
            panic!("others move");
        };
        prop_assert_eq!(after.check(), Ok(()));
        prop_assert_eq!(after.len(), before.len());
        prop_assert_eq!(source.len(), after.len());
        let label_of = |c: &Connections, at: usize| (0..n_labels).find(|&l| c.range(l).contains(&at)).unwrap();
        for (at, &from) in source.iter().enumerate() {
            if from == u32::MAX {
                prop_assert_eq!(after.weights().get(at), 0.0);
            } else {
                prop_assert_eq!(label_of(&after, at), label_of(&before, from as usize));
                prop_assert_eq!(after.indices().get(at), before.indices().get(from as usize));
                prop_assert_eq!(after.weights().get(at), before.weights().get(from as usize));
            }
        }
    }

    #[test]
    fn columns_and_files_give_back_what_they_got(
        n_labels in 0usize..20, n_inputs in 1usize..40, share in 0.0f64..=1.0, seed: u64, which in 0usize..5,
    ) {
        let of = [DType::F32, DType::Bf16, DType::F16, DType::E4m3, DType::E5m2][which];
        let per_label = ((n_inputs as f64 * share) as usize).clamp(1, n_inputs);
        let made = connections(n_labels, n_inputs, per_label, of, seed);
        let csc = made.to_csc();
        let back = Connections::from_csc(csc.view(), of, n_labels > 0).unwrap();
        prop_assert_eq!(back.to_csc(), csc);
        let folder = tempfile::tempdir().unwrap();
        for (name, c, per_label) in [("uniform", &made, Some(per_label)), ("varying", &back, None)] {
            let c = if per_label.is_none() { Connections::from_csc(c.to_csc().view(), of, false).unwrap() } else { c.clone() };
            let path = folder.path().join(name);
            let mut writer = ContainerWriter::create(&path, "test").unwrap();
            c.write("head.", &mut writer).unwrap();
            writer.finish().unwrap();
            let container = Container::open(&path, OpenMode::Map).unwrap();
            let opened = Connections::open(&container, "head.", n_labels, n_inputs, per_label, of, true).unwrap();
            prop_assert_eq!(&opened, &c);
            prop_assert!(Connections::open(&container, "head.", n_labels + 1, n_inputs, per_label, of, true).is_err());
        }
    }

    #[test]
    fn a_slice_of_labels_has_their_rows(n_labels in 1usize..20, seed: u64) {
        let made = connections(n_labels, 17, 5, DType::F32, seed);
        let mut next = random(seed);
        let labels: Vec<u32> = (0..7).map(|_| (next() % n_labels as u64) as u32).collect();
        let some = made.select(&labels);
        prop_assert_eq!(some.check(), Ok(()));
        for (at, &label) in labels.iter().enumerate() {
            for (a, b) in some.range(at).zip(made.range(label as usize)) {
                prop_assert_eq!(some.indices().get(a), made.indices().get(b));
                prop_assert_eq!(some.weights().get(a), made.weights().get(b));
            }
        }
    }
}

#[test]
fn planted_wrong_kernels_are_found() {
    let values: Vec<f32> = (0..LANES * 3).map(|i| i as f32 - 40.0).collect();
    let mut lines = Lines::default();
    lines.fill(&values, LANES, 3);
    let lines = lines.block(0);
    type Forward = fn(UniformKernels, &[UniformLine], &[u16], &[f32], &[u16]) -> Sums;
    let check = |forward: Forward| check_products(forward, lines, &[0, 2], &[1.0, -2.0], &Sums::default());
    assert!(check(UniformKernels::forward).is_ok());
    // Halves exchanged; the last connection forgotten; a neighbour's line; bits that differ on one
    // instruction set alone.
    assert!(
        check(|k, lines, inputs, weights, _| {
            let [a, b] = k.forward(lines, inputs, weights, &[]);
            [b, a]
        })
        .is_err()
    );
    assert!(check(|k, lines, inputs, weights, _| k.forward(lines, &inputs[1..], &weights[1..], &[])).is_err());
    assert!(
        check(|k, lines, inputs, weights, _| k.forward(
            lines,
            &inputs.iter().map(|i| (i + 1) % 3).collect::<Vec<_>>(),
            weights,
            &[]
        ))
        .is_err()
    );
    if Isa::available().count() > 1 {
        assert!(
            check(|k, lines, inputs, weights, _| {
                let mut sums = k.forward(lines, inputs, weights, &[]);
                if format!("{k:?}").contains("Scalar") {
                    sums[1][3] = f32::from_bits(sums[1][3].to_bits() + 1);
                }
                sums
            })
            .is_err()
        );
    }
}

#[test]
fn what_is_no_layer_is_said() {
    let zeros = |n| FloatBuffer::zeros(DType::F32, n);
    let indices = |values: &[u16]| InputIds::U16(values.to_vec().into());
    let parts = |n_inputs, per_label, values: &[u16], weights| {
        Connections::from_parts(2, n_inputs, FanIn::Uniform(per_label), indices(values), weights)
            .unwrap_err()
            .to_string()
    };
    assert_eq!(parts(0, 1, &[], zeros(0)), "the number of inputs is 0, expected at least 1");
    assert_eq!(parts(3, 0, &[], zeros(0)), "the number of connections a label is 0, expected at least 1");
    assert_eq!(parts(3, 4, &[], zeros(0)), "4 connections a label, expected at most the number of inputs, 3");
    assert_eq!(parts(3, 2, &[0, 1, 2], zeros(3)), "3 indices, expected 4");
    assert_eq!(parts(3, 2, &[0, 1, 2, 0], zeros(3)), "3 weights, expected 4");
    assert_eq!(parts(3, 2, &[0, 1, 2, 3], zeros(4)), "label 1 is connected with input 3 of 3");
    assert_eq!(parts(3, 2, &[1, 1, 2, 0], zeros(4)), "label 0 is connected with input 1 twice");
    let nan = FloatBuffer::nearest(DType::E5m2, [0.0, 1.0, f32::NAN, 0.0].into_iter());
    assert_eq!(parts(3, 2, &[0, 1, 2, 0], nan), "a weight of label 1 is not finite");
    let varying = |starts: &[u64]| {
        let fan_in = FanIn::Varying(starts.to_vec().into());
        Connections::from_parts(2, 3, fan_in, indices(&[0, 1, 2]), zeros(3)).map(drop).map_err(|e| e.to_string())
    };
    assert_eq!(varying(&[0, 0, 3]), Ok(()));
    assert!(varying(&[0, 3]).unwrap_err().contains("2 starts of labels, expected 3"));
    for (starts, at) in [([1, 2, 3], 0), ([0, 4, 3], 1), ([0, 2, 1], 2), ([0, 1, 2], 2)] {
        assert!(varying(&starts).unwrap_err().contains(&format!("start {at} of")), "{starts:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn forward_and_backward_of_a_batch_equal_plain_sums(
        len in 0usize..70, n_inputs in 1usize..40, n_labels in 0usize..12, which in 0usize..5, varying in any::<bool>(), seed in any::<u64>()
    ) {
        let of = [DType::F32, DType::Bf16, DType::F16, DType::E4m3, DType::E5m2][which];
        let mut layer = connections(n_labels, n_inputs, n_inputs.min(5), of, seed);
        if varying {
            layer = Connections::from_csc(layer.to_csc().view(), of, false).unwrap();
        }
        let mut random = random(seed ^ 1);
        // Small multiples of 1/8 are exact in bf16, and so are all sums of their products in f32.
        let mut numbers = |n: usize| -> Vec<f32> { (0..n).map(|_| (random() % 17) as f32 / 8.0 - 1.0).collect() };
        let (x, biases, gradient) = (numbers(len * n_inputs), numbers(n_labels), numbers(len * n_labels));
        let mut batch = Lines::default();
        batch.fill(&x, len, n_inputs);
        let mut scores = vec![f32::NAN; len * n_labels];
        layer.forward(&batch, &biases, &mut scores);
        let (mut of_weights, mut of_inputs) = (vec![f32::NAN; layer.len()], vec![f32::NAN; x.len()]);
        layer.backward(&batch, &gradient, &mut of_weights, &mut of_inputs);
        let (mut score_sums, mut weight_sums, mut input_sums) =
            (vec![0.0f64; scores.len()], vec![0.0f64; of_weights.len()], vec![0.0f64; x.len()]);
        for i in 0..len {
            for label in 0..n_labels {
                score_sums[i * n_labels + label] = f64::from(biases[label]);
                let g = f64::from(gradient[i * n_labels + label]);
                for at in layer.range(label) {
                    let (input, weight) = (layer.indices().get(at), f64::from(layer.weights().get(at)));
                    let value = f64::from(x[i * n_inputs + input]);
                    score_sums[i * n_labels + label] += value * weight;
                    weight_sums[at] += value * g;
                    input_sums[i * n_inputs + input] += weight * g;
                }
            }
        }
        for (got, sums) in [(&scores, &score_sums), (&of_weights, &weight_sums), (&of_inputs, &input_sums)] {
            for (&got, &sum) in got.iter().zip(sums) {
                prop_assert!((f64::from(got) - sum).abs() < 1e-4, "{} {}", got, sum);
            }
        }
    }
}
