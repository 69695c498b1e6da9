//! The same bits alone and in any batch, at any number of threads, and on every instruction set.

use crate::made::{batch, small, tokens};
use proptest::prelude::*;
use xc_buffer::simd::Isa;
use xc_dense::MatmulPrecision;
use xc_nn::encoder::transformer::{Distances, Pooling, Transformer, TransformerLearning, TransformerParams};
use xc_nn::head::Dense;
use xc_nn::{Activations, Batch, Encoder, Loss, Mode, Network, Optimizer, Row, Scratch, Step, StepParams, UpdateRule};

const PRECISIONS: [MatmulPrecision; 2] = [MatmulPrecision::F32, MatmulPrecision::Bf16];

/// Wide enough that products have several tiles and threads something to share.
fn wide() -> TransformerParams {
    let distances = Some(Distances { buckets: 16, most: 20 });
    let small = small(distances, Pooling::Mean, 2);
    TransformerParams { vocabulary: 97, positions: 60, width: 72, heads: 3, units: 130, layers: 2, ..small }
}

fn transformer(products: MatmulPrecision) -> Transformer {
    let learning =
        TransformerLearning { dropout: 0.1, attention_dropout: 0.1, pooled_dropout: 0.2, ..Default::default() };
    Transformer::new(wide(), learning, 11).unwrap().with_products(products)
}

fn vectors(of: &Transformer, batch: &Batch, mode: Mode) -> Vec<Vec<u32>> {
    let mut out = Activations::default();
    of.forward(batch, mode, &mut out, &mut Default::default()).unwrap();
    (0..out.len()).map(|i| out.row(i).iter().map(|value| value.to_bits()).collect()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn an_instance_has_the_same_vector_alone_and_in_any_batch(numbers in prop::collection::vec(0u32..12, 1..20)) {
        let rows = tokens(12, 97, 60);
        for products in PRECISIONS {
            let of = transformer(products);
            let train = Mode::Train(Step { number: 4, epoch: 0, seed: 9 });
            for mode in [Mode::Predict, train] {
                let together = vectors(&of, &batch(&rows, &numbers), mode);
                for (&number, got) in numbers.iter().zip(&together) {
                    prop_assert_eq!(got, &vectors(&of, &batch(&rows, &[number]), mode)[0]);
                }
            }
            // A query, as a model answers it.
            let mut one = Batch::default();
            one.fill_one(Row::tokens(rows.view().row(numbers[0] as usize)), 97);
            prop_assert_eq!(&vectors(&of, &one, Mode::Predict)[0], &vectors(&of, &batch(&rows, &numbers), Mode::Predict)[0]);
        }
    }
}

#[test]
fn vectors_of_a_large_batch_are_those_of_its_instances() {
    let rows = tokens(12, 97, 60);
    // More tokens than are answered together, with instances without any where groups begin and end.
    let numbers: Vec<u32> = (0..240).map(|i| i * 7 % 12).collect();
    assert!(numbers.iter().map(|&i| rows.view().row(i as usize).len()).sum::<usize>() > 3 * 2048);
    assert!((0..12).any(|i| rows.view().row(i).is_empty()));
    for products in PRECISIONS {
        let of = transformer(products);
        let alone: Vec<_> = (0..12).map(|i| vectors(&of, &batch(&rows, &[i]), Mode::Predict).remove(0)).collect();
        for n in [0, 1, 239, 240] {
            let together = vectors(&of, &batch(&rows, &numbers[..n]), Mode::Predict);
            let expected: Vec<_> = numbers[..n].iter().map(|&i| alone[i as usize].clone()).collect();
            assert!(together == expected, "{products:?}, {n} instances");
        }
    }
}

#[test]
fn few_instances_have_the_same_vectors_however_many_threads_share_them() {
    let rows = tokens(12, 97, 60);
    for products in PRECISIONS {
        let of = transformer(products);
        let train = Mode::Train(Step { number: 4, epoch: 0, seed: 9 });
        for (mode, numbers) in [(Mode::Predict, &[7][..]), (Mode::Predict, &[3, 0, 11]), (train, &[5, 2])] {
            let alone = vectors(&of, &batch(&rows, numbers), mode);
            for threads in [1, 2, 3, 8] {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                let shared = pool.install(|| vectors(&of, &batch(&rows, numbers), mode));
                assert_eq!(shared, alone, "{products:?}, {threads} threads");
            }
        }
    }
}

/// Every value after some steps, and the vectors.
fn trained(products: MatmulPrecision, clip_norm: Option<f64>) -> Vec<u32> {
    let optimizer = Optimizer::adam().with_weight_decay(0.01);
    let mut network = Network::new(transformer(products), Dense::new(3, 72, 1));
    network.prepare(optimizer, optimizer);
    let (rows, mut scratch) = (tokens(30, 97, 60), Scratch::default());
    for number in 0..3u64 {
        let numbers: Vec<u32> = (0..30).filter(|i| i % 3 != number as u32).collect();
        let at = Step { number, epoch: 0, seed: 3 };
        let params = StepParams { clip_norm, ..StepParams::new(at, UpdateRule { optimizer, rate: 0.01 }) };
        network.step(&batch(&rows, &numbers), Loss::Softmax, &params, &mut scratch).unwrap();
    }
    network.parameters().iter().flat_map(|p| p.parameter.values().iter().map(|v| v.to_bits())).collect()
}

#[test]
fn threads_do_not_change_a_bit() {
    for (products, clip_norm) in PRECISIONS.into_iter().flat_map(|products| [(products, Some(0.5)), (products, None)]) {
        let of = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| trained(products, clip_norm))
        };
        let one = of(1);
        assert!([2, 3, 8].into_iter().all(|threads| of(threads) == one), "{products:?}");
    }
}

#[test]
fn answers_follow_weights_that_change() {
    use xc_nn::Update;
    use xc_nn::state::State;
    let rows = tokens(7, 97, 60);
    let batch = batch(&rows, &[0, 1, 2, 3, 4, 5, 6]);
    for products in PRECISIONS {
        for frozen_layers in 0..=2 {
            let learning = TransformerLearning { frozen_layers, ..Default::default() };
            let mut of = Transformer::new(wide(), learning, 11).unwrap().with_products(products);
            let optimizer = Optimizer::sgd();
            of.prepare(optimizer.moments());
            // A copy packs its own weights.
            let check = |of: &Transformer| {
                let answers = vectors(of, &batch, Mode::Predict);
                assert_eq!(answers, vectors(&of.clone(), &batch, Mode::Predict));
                answers
            };
            let first = check(&of);
            let at = Step { number: 0, epoch: 0, seed: 3 };
            let (mut out, mut scratch) = (Activations::default(), Default::default());
            of.forward(&batch, Mode::Train(at), &mut out, &mut scratch).unwrap();
            let update = Update::new(at, UpdateRule { optimizer, rate: 0.1 }, 1.0);
            of.update(&batch, &out, &mut scratch, &update).unwrap();
            let second = check(&of);
            assert_eq!(second == first, frozen_layers == 2, "{products:?}, {frozen_layers} frozen");
            of.parameters_mut().into_iter().for_each(|named| named.parameter.values_mut()[0] += 0.5);
            assert!(check(&of) != second);
            let other = PRECISIONS.into_iter().find(|other| *other != products).unwrap();
            assert!(check(&of.clone().with_products(other)) != check(&of));
        }
    }
}

#[test]
fn states_that_are_known_give_the_bits_of_those_that_are_computed() {
    let (rows, all) = (tokens(9, 97, 60), [0, 1, 2, 3, 5, 6, 7, 8]);
    for products in PRECISIONS {
        for frozen_layers in 0..=2 {
            let learning = TransformerLearning { frozen_layers, dropout: 0.1, ..Default::default() };
            let of = Transformer::new(wide(), learning, 11).unwrap().with_products(products);
            let mut known = of.clone();
            known.cache_states(rows.view(), &all, |_| true).unwrap();
            let optimizer = Optimizer::adam();
            let mut networks = [of, known].map(|of| Network::new(of, Dense::new(3, 72, 1)));
            networks.iter_mut().for_each(|network| network.prepare(optimizer, optimizer));
            let mut scratch = Scratch::default();
            let mut step = |number: u64, network: &mut Network<Transformer, Dense>| {
                // The last step has an instance whose states are not known; one is empty in others.
                let numbers: &[u32] = if number == 2 { &[8, 4, 0] } else { &[7, 0, 3, 1, 8] };
                let at = Step { number, epoch: 0, seed: 3 };
                let params =
                    StepParams { clip_norm: Some(0.5), ..StepParams::new(at, UpdateRule { optimizer, rate: 0.01 }) };
                network.step(&batch(&rows, numbers), Loss::Softmax, &params, &mut scratch).unwrap();
                network.parameters().iter().flat_map(|p| p.parameter.values().to_vec()).collect::<Vec<f32>>()
            };
            for number in 0..3 {
                let [expected, got] = networks.each_mut().map(|network| step(number, network));
                assert!(got == expected, "{products:?}, {frozen_layers} frozen, step {number}");
            }
            // Other weights, other tokens under the same numbers: what was known is not used.
            for network in &mut networks {
                let mut words = network.parameters_mut();
                words[0].parameter.values_mut().iter_mut().for_each(|value| *value *= 1.5);
            }
            let [expected, got] = networks.each_mut().map(|network| step(3, network));
            assert!(got == expected, "{products:?}, {frozen_layers} frozen, other weights");
            let others = tokens(12, 97, 60);
            let train = Mode::Train(Step { number: 4, epoch: 0, seed: 9 });
            let [expected, got] =
                networks.each_ref().map(|network| vectors(network.encoder(), &batch(&others, &[11, 3, 4]), train));
            assert!(got == expected);
        }
    }
}

#[test]
fn parameters_are_the_arrays_that_the_sizes_say() {
    use xc_nn::state::State;
    for distances in [None, Some(Distances { buckets: 16, most: 20 })] {
        for types in [0, 2] {
            let params = TransformerParams { distances, types, ..wide() };
            let transformer = Transformer::new(params.clone(), Default::default(), 1).unwrap();
            let shape = |named: &xc_nn::Named<&xc_nn::Parameter>| {
                (named.name.clone(), [named.parameter.rows(), named.parameter.width()])
            };
            assert_eq!(transformer.parameters().iter().map(shape).collect::<Vec<_>>(), params.arrays());
        }
    }
}

/// What the test below asks of a process of its own.
const ASKED: &str = "XC_TEST_TRANSFORMER_BITS";

#[test]
fn instruction_sets_do_not_change_a_bit() {
    let hash = || {
        let all = PRECISIONS.map(|products| trained(products, None)).concat();
        all.iter().fold(0u64, |hash, &bits| (hash.rotate_left(5) ^ u64::from(bits)).wrapping_mul(0x9E37_79B9_7F4A_7C15))
    };
    // The instruction set is chosen once for a process.
    if let Some(path) = std::env::var_os(ASKED) {
        return std::fs::write(path, hash().to_string()).unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let of = |isa: Isa| {
        let path = folder.path().join(isa.name());
        let mut process = std::process::Command::new(std::env::current_exe().unwrap());
        process.args(["--exact", "bits::instruction_sets_do_not_change_a_bit"]);
        let done = process.env("XC_SIMD", isa.name()).env(ASKED, &path).output().unwrap();
        assert!(done.status.success(), "{isa}: {}", String::from_utf8_lossy(&done.stdout));
        std::fs::read_to_string(path).unwrap()
    };
    let all: Vec<String> = Isa::available().map(of).collect();
    assert!(all.iter().all(|hash| *hash == all[0]), "{all:?}");
    assert_eq!(all[0], hash().to_string());
}
