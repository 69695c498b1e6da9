//! Trees on the emulated driver, or on the machine's card with `XC_REQUIRE_GPU=1`, against the CPU.

use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use xc_buffer::dtype::DType;
use xc_kernels::{Device, Emulated};
use xc_sparse::chunked::ChunkRows;
use xc_sparse::rank::{RankedBatch, Scored};
use xc_sparse::{CsrMatrix, CsrView};
use xc_tree::*;

const D: usize = 3000;

/// A tree whose nodes of level l have `widths[l]` children, or a number near it where it is not the first.
fn tree(rng: &mut Xoshiro256PlusPlus, widths: &[usize], first_label: u32) -> TreeParts {
    let mut boundaries = Vec::new();
    let mut n_parents = 1;
    for (level, &width) in widths.iter().enumerate() {
        let mut ends = vec![0u32];
        for _ in 0..n_parents {
            let width =
                if level == 0 || rng.random_range(0..3) == 0 { width } else { rng.random_range(1..=width.max(1)) };
            ends.push(ends[ends.len() - 1] + width as u32);
        }
        n_parents = ends[ends.len() - 1] as usize;
        boundaries.push(ends);
    }
    let mut labels: Vec<u32> = (first_label..first_label + n_parents as u32).collect();
    for i in (1..labels.len()).rev() {
        labels.swap(i, rng.random_range(0..=i));
    }
    let topology = Topology::try_new(boundaries, labels, first_label as usize + n_parents).unwrap();
    let levels = (0..topology.depth()).map(|level| {
        let families = topology.boundaries(level).windows(2).enumerate();
        families.map(|(parent, ends)| chunk(rng, parent, (ends[1] - ends[0]) as usize)).collect()
    });
    TreeParts { levels: levels.collect(), topology: topology.clone() }
}

/// Weights of a parent's children. Those of the first are of the last features alone: where the others have few of these,
/// they crowd at the end of the chunk's slots, and some are pushed past it.
fn chunk(rng: &mut Xoshiro256PlusPlus, parent: usize, width: usize) -> ChunkRows {
    let mut entries = vec![];
    let features = if parent == 0 { D - 60..D } else { 0..200 };
    for column in 0..width as u32 {
        for _ in 0..rng.random_range(0..8) {
            // Few values, so that scores tie.
            let weight = rng.random_range(-4i32..=4) as f32 / 4.0;
            entries.push((rng.random_range(features.clone()) as u32, column, weight));
        }
    }
    entries.retain(|entry| entry.2 != 0.0);
    entries.sort_by_key(|e| (e.0, e.1));
    entries.dedup_by_key(|e| (e.0, e.1));
    let bias = (0..width).map(|_| rng.random_range(-2i32..=2) as f32 / 2.0).collect();
    ChunkRows::from_entries(width, entries, bias).unwrap()
}

/// Rows of 0 to `most` features, half of them at the end.
fn queries(rng: &mut Xoshiro256PlusPlus, n: usize, most: usize) -> CsrMatrix {
    let (mut indptr, mut indices, mut values) = (vec![0], vec![], vec![]);
    for _ in 0..n {
        let n_features = rng.random_range(0..=most);
        let mut row: Vec<u32> =
            (0..n_features).map(|i| rng.random_range(if i % 2 == 0 { D - 60..D } else { 0..200 }) as u32).collect();
        row.sort();
        row.dedup();
        values.extend(row.iter().map(|_| rng.random_range(-1.0f32..2.0)));
        indices.extend(row);
        indptr.push(indices.len());
    }
    CsrMatrix::try_new((n, D), indptr, indices, values).unwrap()
}

/// Rows of these features.
fn matrix(rows: &[Vec<u32>], width: usize, mut value: impl FnMut() -> f32) -> CsrMatrix {
    let ends = rows.iter().scan(0, |end, row| {
        *end += row.len();
        Some(*end)
    });
    let indices = rows.concat();
    let values = indices.iter().map(|_| value()).collect();
    CsrMatrix::try_new((rows.len(), width), std::iter::once(0).chain(ends).collect(), indices, values).unwrap()
}

fn model(parts: Vec<TreeParts>, post: PostProcessor, stored: DType) -> TreeModel {
    let n_labels =
        parts.iter().map(|part| part.topology.labels().iter().max().map_or(0, |&l| l as usize + 1)).max().unwrap();
    let info = ModelInfo { n_features: D, n_labels, post, normalise_rows: false, row_length: 1.5, beam: 4 };
    TreeModel::from_parts(info, parts, stored).unwrap()
}

fn bits(answers: &RankedBatch) -> Vec<Vec<(u32, u32)>> {
    answers.iter().map(|row| row.iter().map(|s| (s.label, s.score.to_bits())).collect()).collect()
}

fn assert_same(model: &TreeModel, device: &Device, rows: CsrView<'_>, params: &PredictParams) {
    let on_device = model.on(device).unwrap();
    let got = on_device.predict_batch(rows, params).unwrap();
    assert_eq!(bits(&got), bits(&model.predict_batch(rows, params).unwrap()), "{params:?}");
}

const EXACT: [PostProcessor; 4] = [
    PostProcessor::Hinge { p: 3 },
    PostProcessor::Hinge { p: 1 },
    PostProcessor::LogHinge { p: 2 },
    PostProcessor::Noop,
];
const STORED: [DType; 3] = [DType::F32, DType::F16, DType::Bf16];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]

    #[test]
    fn answers_have_the_cpus_bytes(
        seed in any::<u64>(),
        scheduler in 1u64..=3,
        widths in prop_oneof![
            prop::sample::select(vec![1usize, 31, 33, 70, 128, 129, 300]).prop_map(|w| vec![w]),
            prop::sample::select(vec![1usize, 31, 33, 70, 128, 129, 300]).prop_map(|w| vec![3, w]),
            prop::sample::select(vec![1usize, 5, 33]).prop_map(|w| vec![2, 40, w]),
            Just(vec![2, 2, 2, 3]),
        ],
        post in prop::sample::select(EXACT.to_vec()),
        stored in prop::sample::select(STORED.to_vec()),
        // From 10 queries on, fewer warps search for each.
        n in prop_oneof![Just(0usize), Just(1), 2..8usize, 10..12usize],
        most in prop_oneof![Just(0usize), Just(5), Just(80)],
        top_k in prop_oneof![Just(0usize), Just(1), Just(5), Just(30), Just(1000), Just(usize::MAX)],
        beam in prop_oneof![Just(0usize), Just(1), Just(2), Just(10), Just(30), Just(usize::MAX)],
    ) {
        let emulated = Emulated::hold();
        emulated.set_seed(scheduler);
        emulated.set_processors(1);
        let device = Device::open(0).unwrap();
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let model = model(vec![tree(&mut rng, &widths, 0)], post, stored);
        let rows = queries(&mut rng, n, most);
        assert_same(&model, &device, rows.view(), &PredictParams::top(top_k).with_beam(beam));
    }

    #[test]
    fn means_of_trees_have_the_cpus_bytes(
        seed in any::<u64>(),
        scheduler in 1u64..=3,
        n_trees in 2usize..4,
        post in prop::sample::select(EXACT.to_vec()),
        stored in prop::sample::select(STORED.to_vec()),
        top_k in prop_oneof![Just(0usize), Just(1), Just(7), Just(5000)],
        beam in prop_oneof![Just(0usize), Just(1), Just(3), Just(50)],
    ) {
        let emulated = Emulated::hold();
        emulated.set_seed(scheduler);
        let device = Device::open(0).unwrap();
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let shapes: [&[usize]; 4] = [&[20], &[4, 9], &[3, 130], &[2, 3, 6]];
        let parts = (0..n_trees).map(|_| {
            let widths = shapes[rng.random_range(0..4)];
            // Trees share some labels, not all.
            let first = rng.random_range(0..20);
            tree(&mut rng, widths, first)
        });
        let model = model(parts.collect(), post, stored);
        let rows = queries(&mut rng, 3, 40);
        assert_same(&model, &device, rows.view(), &PredictParams::top(top_k).with_beam(beam));
    }
}

#[test]
fn threads_may_take_turns_after_every_instruction() {
    let emulated = Emulated::hold();
    emulated.set_turn(1);
    let device = Device::open(0).unwrap();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(5);
    let model = model(vec![tree(&mut rng, &[3, 40], 0)], EXACT[0], DType::F32);
    let rows = queries(&mut rng, 2, 20);
    assert_same(&model, &device, rows.view(), &PredictParams::top(5).with_beam(2));
}

#[test]
fn a_batch_of_some_more_queries_than_a_warp_has_lanes() {
    let _emulated = Emulated::hold();
    let device = Device::open(0).unwrap();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(6);
    let model = model(vec![tree(&mut rng, &[5, 20], 0)], EXACT[0], DType::Bf16);
    let rows = queries(&mut rng, 33, 30);
    assert_same(&model, &device, rows.view(), &PredictParams::top(5).with_beam(2));
}

/// Few keys are ranked by counting, more by what bounds them, many by a sort; more and fewer are wanted than each takes.
#[test]
fn as_many_labels_as_each_way_of_ranking_takes() {
    let emulated = Emulated::hold();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(14);
    // Blocks of ten warps and of five.
    for (processors, wanted) in
        [(132, &[23, 24, 25, 63, 64, 65, 239, 240, 241, 290][..]), (0, &[25, 64, 119, 120, 121])]
    {
        emulated.set_processors(processors);
        let device = Device::open(0).unwrap();
        for (seed, widths) in [(1, &[64][..]), (2, &[65]), (3, &[300]), (1, &[5, 257]), (2, &[70, 20])] {
            emulated.set_seed(seed);
            let model = model(vec![tree(&mut rng, widths, 0)], EXACT[0], DType::F32);
            let rows = queries(&mut rng, 2, 60);
            for &top_k in wanted {
                assert_same(&model, &device, rows.view(), &PredictParams::top(top_k).with_beam(64));
            }
        }
    }
}

#[test]
fn long_queries_are_answered_beside_short_ones() {
    let _emulated = Emulated::hold();
    let device = Device::open(0).unwrap();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
    for post in [EXACT[0], PostProcessor::Noop] {
        let model = model(vec![tree(&mut rng, &[3, 12], 0)], post, DType::F32);
        let mut rows: Vec<Vec<u32>> =
            vec![(0..1025).collect(), (0..1024).collect(), vec![], (0..2900).collect(), vec![2999]];
        rows[3].extend(D as u32 - 50..D as u32);
        let rows = matrix(&rows, D, || rng.random_range(-1.0..1.0));
        assert_same(&model, &device, rows.view(), &PredictParams::top(9).with_beam(2));
    }
}

#[test]
fn rows_of_length_one_are_normalised_as_on_the_cpu() {
    let _emulated = Emulated::hold();
    let device = Device::open(0).unwrap();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(8);
    let parts = tree(&mut rng, &[3, 12], 0);
    let info =
        ModelInfo { n_features: D, n_labels: 36, post: EXACT[0], normalise_rows: true, row_length: 1.0, beam: 2 };
    let model = TreeModel::from_parts(info, vec![parts], DType::F32).unwrap();
    let rows = queries(&mut rng, 4, 30);
    assert_same(&model, &device, rows.view(), &PredictParams::top(9));
}

/// Units in the last place between two numbers of one sign.
fn apart(a: f32, b: f32) -> u32 {
    a.to_bits().abs_diff(b.to_bits())
}

#[test]
fn scores_of_the_sigmoid_are_close() {
    let _emulated = Emulated::hold();
    let device = Device::open(0).unwrap();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(9);
    let parts = || tree(&mut Xoshiro256PlusPlus::seed_from_u64(10), &[3, 7, 12], 0);
    let rows = queries(&mut rng, 6, 60);
    let (levels, all) = (3, PredictParams::top(1000).with_beam(100));
    let log = model(vec![parts()], PostProcessor::LogSigmoid, DType::F32);
    let (got, expected) = (
        log.on(&device).unwrap().predict_batch(rows.view(), &all).unwrap(),
        log.predict_batch(rows.view(), &all).unwrap(),
    );
    let by_label = |row: &[Scored]| {
        let mut row = row.to_vec();
        row.sort_by_key(|s| s.label);
        row
    };
    for (got, expected) in got.iter().zip(expected.iter()) {
        assert!(expected.len() > 20 && got.len() == expected.len());
        assert!(got.windows(2).all(|pair| pair[0].score >= pair[1].score));
        for (got, expected) in by_label(got).iter().zip(by_label(expected)) {
            assert_eq!(got.label, expected.label);
            assert!(apart(got.score, expected.score) <= 4 * levels, "{got:?} {expected:?}");
        }
    }
    // What the scores themselves are: exponentials of those.
    let model = model(vec![parts()], PostProcessor::Sigmoid, DType::F32);
    let scores = model.on(&device).unwrap().predict_batch(rows.view(), &all).unwrap();
    for (log, scores) in got.iter().zip(scores.iter()) {
        assert!(
            log.iter().zip(scores).all(|(a, b)| a.label == b.label && a.score.exp().to_bits() == b.score.to_bits())
        );
    }
}

#[test]
fn a_model_larger_than_the_card_is_refused_with_the_numbers() {
    let emulated = Emulated::hold();
    if !emulated.is_emulated() {
        return;
    }
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(11);
    let model = model(vec![tree(&mut rng, &[3, 128, 12], 0)], EXACT[0], DType::F32);
    emulated.set_device((8, 0), 1 << 16, 1, 13000);
    let device = Device::open(0).unwrap();
    let error = model.on(&device).unwrap_err().to_string();
    assert!(error.starts_with("the device has 65536 bytes free, "), "{error}");
    assert!(error.ends_with(" for weights") || error.ends_with(" for rows of weights"), "{error}");
}

#[test]
fn few_queries_may_have_a_beam_that_many_may() {
    let emulated = Emulated::hold();
    if !emulated.is_emulated() {
        return;
    }
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(15);
    let model = model(vec![tree(&mut rng, &[100, 128, 1], 0)], EXACT[0], DType::F32);
    let rows = queries(&mut rng, 1, 3);
    // With ten warps a block these 7,300 parents would take more than a block may have.
    for processors in [132, 0] {
        emulated.set_processors(processors);
        let device = Device::open(0).unwrap();
        assert_same(&model, &device, rows.view(), &PredictParams::top(5).with_beam(7300));
    }
}

#[test]
fn more_labels_than_a_block_has_shared_memory_for_are_refused() {
    let emulated = Emulated::hold();
    let device = Device::open(0).unwrap();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(12);
    let model = model(vec![tree(&mut rng, &[300, 120], 0)], EXACT[0], DType::F32);
    let rows = queries(&mut rng, 1, 3);
    let on_device = model.on(&device).unwrap();
    if emulated.is_emulated() {
        let error = on_device.predict_batch(rows.view(), &PredictParams::top(1 << 20)).unwrap_err().to_string();
        assert!(error.contains("bytes of shared memory in a block"), "{error}");
    }
    // It still answers.
    let params = PredictParams::top(3);
    let got = on_device.predict_batch(rows.view(), &params).unwrap();
    assert_eq!(bits(&got), bits(&model.predict_batch(rows.view(), &params).unwrap()));
}

/// A number of all launches, added up.
fn counted(emulated: &Emulated, name: &str) -> u64 {
    let number =
        |line: &str| line.split_once(&format!("\"{name}\": "))?.1.split([',', '}']).next()?.parse::<u64>().ok();
    emulated.counts().lines().map(|line| number(line).unwrap_or_else(|| panic!("no {name} in {line}"))).sum()
}

/// A feature of `n`, the first more often than the others, as words of a text are.
fn skewed(rng: &mut Xoshiro256PlusPlus, n: usize) -> u32 {
    (((n as f64).ln() * rng.random_range(0.0..1.0)).exp() as usize - 1).min(n - 1) as u32
}

/// The shape of a tree that was trained on names of files, but for a quarter of the nodes: of each level the children of
/// a node, and the weights of a child.
const FILES: [(usize, usize); 4] = [(16, 21_000), (4, 5200), (3, 1970), (90, 118)];
const FILES_FEATURES: usize = 54_226;

fn tree_of_files(rng: &mut Xoshiro256PlusPlus) -> TreeModel {
    let (mut boundaries, mut levels, mut n) = (Vec::new(), Vec::new(), 1);
    for (width, weights) in FILES {
        boundaries.push((0..=n).map(|parent| (parent * width) as u32).collect());
        let chunks = (0..n).map(|_| {
            let mut entries: Vec<(u32, u32, f32)> = (0..width as u32)
                .flat_map(|column| std::iter::repeat_n(column, weights))
                .map(|column| (skewed(rng, FILES_FEATURES), column, rng.random_range(-1.0..1.0)))
                .collect();
            entries.sort_by_key(|e| (e.0, e.1));
            entries.dedup_by_key(|e| (e.0, e.1));
            let bias = (0..width).map(|_| rng.random_range(-1.0..1.0)).collect();
            ChunkRows::from_entries(width, entries, bias).unwrap()
        });
        levels.push(chunks.collect());
        n *= width;
    }
    let topology = Topology::try_new(boundaries, (0..n as u32).collect(), n).unwrap();
    let (n_features, post) = (FILES_FEATURES, PostProcessor::Hinge { p: 3 });
    let info = ModelInfo { n_features, n_labels: n, post, normalise_rows: false, row_length: 1.0, beam: 10 };
    TreeModel::from_parts(info, vec![TreeParts { levels, topology }], DType::Bf16).unwrap()
}

#[test]
fn ranking_takes_at_most_a_tenth_of_a_search() {
    let emulated = Emulated::hold();
    if !emulated.is_emulated() {
        return;
    }
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(13);
    let (model, device) = (tree_of_files(&mut rng), Device::open(0).unwrap());
    let rows = (0..12).map(|_| {
        let mut row: Vec<u32> = (0..29).map(|_| skewed(&mut rng, FILES_FEATURES)).collect();
        row.sort_unstable();
        row.dedup();
        row
    });
    let rows: Vec<Vec<u32>> = rows.collect();
    let rows = matrix(&rows, FILES_FEATURES, || rng.random_range(0.0..0.3));
    emulated.clear_counts();
    assert_same(&model, &device, rows.view(), &PredictParams::top(10));
    // Margins are made of weights, which are in global memory. Between two barriers without any of it a block looks for
    // the best of the keys that it has, or makes parents of them.
    let [ranking, all] = ["local_instructions", "warp_instructions"].map(|name| counted(&emulated, name));
    assert!(0 < ranking && 10 * ranking <= all, "{ranking} of {all} warp instructions rank");
}

#[test]
fn structs_are_laid_out_as_the_kernels_have_them() {
    let _emulated = Emulated::hold();
    let device = Device::open(0).unwrap();
    assert_eq!(DeviceTrees::check_layouts(&device), Ok(()));
}
