//! Scans on a device have the bits of those on the CPU.

mod kernels;

use proptest::prelude::*;
use std::sync::Arc;
use xc_hash::universal::{UniversalFamily, UniversalParams};
use xc_kernels::{Device, Emulated, Shape};
use xc_mach::{Assignment, BucketScores, BucketScoresError, DecodeScratch, Decoder, DeviceScanError};
use xc_sparse::rank::Scored;

fn assignment(family: UniversalFamily, n_labels: u64, n_buckets: u32, n_repetitions: u32) -> Assignment {
    Assignment::first(UniversalParams { family, n_keys: n_labels, n_buckets, seed: 11 }, n_repetitions).unwrap()
}

/// Labels and bits of each query's answer, by the CPU.
fn scanned(of: &Assignment, scores: &[f32], decoder: Decoder, k: usize) -> Vec<Vec<(u32, u32)>> {
    let (mut scratch, mut out) = (DecodeScratch::default(), Vec::new());
    let one = |scores: &[f32]| {
        let scores = BucketScores::try_new(scores, of.n_repetitions(), of.n_buckets()).unwrap();
        of.scan(&scores, decoder, k, &mut scratch, &mut out);
        bits(&out)
    };
    scores.chunks_exact(of.n_repetitions() * of.n_buckets()).map(one).collect()
}

fn bits(row: &[Scored]) -> Vec<(u32, u32)> {
    row.iter().map(|s| (s.label, s.score.to_bits())).collect()
}

fn on_device(
    device: &Arc<Device>,
    of: &Assignment,
    room: usize,
    scores: &[f32],
    decoder: Decoder,
    k: usize,
) -> Vec<Vec<(u32, u32)>> {
    let (uploaded, n) = (device.upload(scores).unwrap(), scores.len() / (of.n_repetitions() * of.n_buckets()));
    let answers = of.on(device).unwrap().with_room(room).scan(&uploaded, n, decoder, k).unwrap();
    answers.iter().map(bits).collect()
}

/// Numbers with many ties, peaks, of any sign, all the same, or near the smallest there are.
fn numbers(len: usize) -> impl Strategy<Value = Vec<f32>> {
    let ties = prop_oneof![4 => Just(0.0f32), 1 => Just(0.25), 1 => Just(0.5), 1 => Just(0.125)];
    let peaked = prop_oneof![9 => 0.0f32..1e-4, 1 => 0.2f32..1.0];
    let signed = prop_oneof![-2.0f32..2.0, Just(-0.0f32), Just(1e30), Just(-1e30)];
    let small = (0u32..9).prop_map(f32::from_bits);
    prop_oneof![
        3 => prop::collection::vec(ties, len),
        3 => prop::collection::vec(peaked, len),
        2 => prop::collection::vec(signed, len),
        1 => prop::collection::vec(small, len),
        1 => prop::collection::vec(Just(0.1f32), len),
    ]
}

fn families() -> impl Strategy<Value = UniversalFamily> {
    prop::sample::select(vec![UniversalFamily::Prime, UniversalFamily::MultiplyShift])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn scans_on_a_device_are_those_of_the_cpu(
        (scores, n_repetitions, n_buckets) in (1u32..12, prop_oneof![1u32..4, 4u32..60, 60u32..200], 0usize..5)
            .prop_flat_map(|(r, b, n)| (numbers((r * b) as usize * n), Just(r), Just(b))),
        n_labels in prop_oneof![1 => 0u64..3, 2 => 3u64..50, 4 => 50u64..3000],
        k in prop_oneof![1 => Just(0), 3 => 1usize..12, 1 => 12usize..120, 1 => Just(4000)],
        room in prop_oneof![1 => 1usize..9, 2 => 9usize..300, 3 => Just(usize::MAX)],
        family in families(),
        seed in 1u64..4,
    ) {
        let emulated = Emulated::hold();
        emulated.set_seed(seed);
        let device = Arc::new(Device::open(0).unwrap());
        let of = assignment(family, n_labels, n_buckets, n_repetitions);
        // Few labels at a time are many ranges.
        let room = room.max(n_labels as usize / 40 + 1);
        for decoder in Decoder::ALL {
            let got = on_device(&device, &of, room, &scores, decoder, k);
            prop_assert_eq!(got, scanned(&of, &scores, decoder, k), "{}", decoder);
        }
    }
}

/// Scores that are above 0 for a few labels.
fn confident(of: &Assignment, n_queries: usize) -> Vec<f32> {
    let (n_repetitions, n_buckets) = (of.n_repetitions(), of.n_buckets());
    let mut scores: Vec<f32> =
        (0..n_queries * n_repetitions * n_buckets).map(|i| (i * 7919 % 1009) as f32 * 1e-6).collect();
    for query in 0..n_queries {
        for (label, mass) in [(query * 37 % of.n_labels(), 0.6), (query * 2753 % of.n_labels(), 0.3)] {
            for position in 0..n_repetitions {
                let bucket = of.bucket(position, label as u32) as usize;
                scores[(query * n_repetitions + position) * n_buckets + bucket] += mass;
            }
        }
    }
    scores
}

#[test]
fn more_queries_than_a_batch_holds_are_answered_in_order() {
    let emulated = Emulated::hold();
    let device = Arc::new(Device::open(0).unwrap());
    for family in [UniversalFamily::Prime, UniversalFamily::MultiplyShift] {
        // More labels than are scored without a screen.
        let of = assignment(family, 9000, 300, 5);
        let scores = confident(&of, 33);
        for decoder in Decoder::ALL {
            let got = on_device(&device, &of, usize::MAX, &scores, decoder, 3);
            assert_eq!(got, scanned(&of, &scores, decoder, 3), "{family} {decoder}");
        }
    }
    drop(emulated);
}

#[test]
fn a_screen_leaves_few_labels_to_be_scored() {
    let emulated = Emulated::hold();
    let device = Arc::new(Device::open(0).unwrap());
    let of = assignment(UniversalFamily::Prime, 70_000, 300, 6);
    let scores = confident(&of, 2);
    for decoder in Decoder::ALL {
        emulated.clear_counts();
        let got = on_device(&device, &of, 4096, &scores, decoder, 2);
        assert_eq!(got, scanned(&of, &scores, decoder, 2), "{decoder}");
        if emulated.is_emulated() {
            // Three ranges, none of them twice.
            let counts = emulated.counts();
            assert_eq!(counts.matches("\"xc_mach_rescore\"").count(), 3, "{counts}");
        }
    }
}

#[test]
fn turns_of_one_instruction_and_any_number_of_repetitions_give_the_same() {
    let emulated = Emulated::hold();
    let device = Arc::new(Device::open(0).unwrap());
    for (n_repetitions, n_labels) in [(1, 40), (2, 60), (3, 60), (31, 50), (32, 50), (33, 50), (63, 40), (64, 40)] {
        emulated.set_turn(u32::from(n_repetitions < 4));
        for family in [UniversalFamily::Prime, UniversalFamily::MultiplyShift] {
            let of = assignment(family, n_labels, 7, n_repetitions);
            let scores = confident(&of, 2);
            for decoder in Decoder::ALL {
                let got = on_device(&device, &of, 12, &scores, decoder, 3);
                assert_eq!(got, scanned(&of, &scores, decoder, 3), "{family} {decoder} {n_repetitions}");
            }
        }
    }
}

#[test]
fn the_last_labels_that_there_can_be_are_scored() {
    let emulated = Emulated::hold();
    let device = Arc::new(Device::open(0).unwrap());
    // The largest prime of 32 bits, and the most labels of the other family.
    let largest = u64::from(u32::MAX);
    for (family, n_labels) in [
        (UniversalFamily::Prime, 4_294_967_291),
        (UniversalFamily::Prime, 3_000_000_000),
        (UniversalFamily::MultiplyShift, largest),
    ] {
        let of = assignment(family, n_labels, 90, 4);
        let scores: Vec<f32> = (0..360).map(|i| (i * 7919 % 1009) as f32 / 1009.0).collect();
        let uploaded = device.upload(&scores).unwrap();
        let (view, mut scratch) = (BucketScores::try_new(&scores, 4, 90).unwrap(), DecodeScratch::default());
        let labels: Vec<u32> = (n_labels as u32 - 5000..n_labels as u32).collect();
        for decoder in Decoder::ALL {
            let mut all = Vec::new();
            of.score_labels(&view, decoder, &labels, &mut scratch, &mut all);
            let mut expected: Vec<Scored> =
                labels.iter().zip(all).map(|(&label, score)| Scored { label, score }).collect();
            expected.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.label.cmp(&b.label)));
            let range = labels[0]..n_labels as u32;
            let got = of.on(&device).unwrap().with_room(60).scan_range(&uploaded, 1, decoder, range, 9).unwrap();
            assert_eq!(bits(got.row(0)), bits(&expected[..9]), "{family} {decoder}");
        }
    }
    drop(emulated);
}

#[test]
fn what_a_device_cannot_scan_is_refused() {
    let emulated = Emulated::hold();
    let device = Arc::new(Device::open(0).unwrap());
    for family in [UniversalFamily::Mersenne61, UniversalFamily::Tabulation] {
        let refused = assignment(family, 100, 7, 2).on(&device).unwrap_err();
        assert_eq!(refused, DeviceScanError::Family { family });
        assert!(refused.to_string().contains("expected prime or multiply-shift"), "{refused}");
    }
    let refused = assignment(UniversalFamily::Prime, 100, 7, 65).on(&device).unwrap_err();
    assert_eq!(refused.to_string(), "65 repetitions, expected at most 64 on a device");
    let of = assignment(UniversalFamily::Prime, 100, 7, 2);
    for (at, bad) in [(14 + 9, f32::NAN), (14, f32::INFINITY), (27, f32::NEG_INFINITY)] {
        let mut scores = vec![0.5f32; 28];
        scores[at] = bad;
        let uploaded = device.upload(&scores).unwrap();
        let error = of.on(&device).unwrap().scan(&uploaded, 2, Decoder::Mean, 1).unwrap_err();
        let DeviceScanError::Scores { query, source: BucketScoresError::NotFinite { position, bucket, got } } = error
        else {
            panic!("{error}");
        };
        assert_eq!((query, position, bucket, got.to_bits()), (1, (at - 14) / 7, (at - 14) % 7, bad.to_bits()));
    }
    drop(emulated);
}

#[test]
fn the_first_of_many_scores_that_are_not_finite_is_told() {
    let emulated = Emulated::hold();
    let device = Arc::new(Device::open(0).unwrap());
    let of = assignment(UniversalFamily::Prime, 100, 700, 2);
    for (seed, first) in [(1, 131), (2, 0), (3, 1390)] {
        emulated.set_seed(seed);
        let mut scores = vec![0.5f32; 2 * 1400];
        scores[1400 + first..].iter_mut().step_by(7).for_each(|score| *score = f32::INFINITY);
        let error = of.on(&device).unwrap().scan(&device.upload(&scores).unwrap(), 2, Decoder::Min, 1).unwrap_err();
        let source = BucketScoresError::NotFinite { position: first / 700, bucket: first % 700, got: f32::INFINITY };
        assert_eq!(error, DeviceScanError::Scores { query: 1, source });
    }
}

/// Numbers of 0 to 999 in any order.
fn mixed(n: usize) -> Vec<f32> {
    (0..n).map(|i| (i * 7919 % 1009 % 1000) as f32).collect()
}

#[test]
fn every_score_is_bounded_and_marked_by_any_number_of_blocks() {
    const LINES: usize = 77;
    let _emulated = Emulated::hold();
    let device = Device::open(0).unwrap();
    let lines = mixed(32 * LINES);
    let column = |query: usize| lines.iter().skip(query).step_by(32).copied();
    let least: Vec<f32> = (0..32).map(|query| column(query).fold(f32::INFINITY, f32::min)).collect();
    let largest = |query: usize| column(query).fold(f32::NEG_INFINITY, f32::max);
    let scales: Vec<f32> = (0..32).map(|query| 255.0 / (largest(query) - least[query])).collect();
    // Some of the scores are at the bar.
    let bars: Vec<f32> = (0..32).map(|query| lines[32 * query + query]).collect();
    let bound =
        |(i, &score): (usize, &f32)| ((score - least[i % 32]) * scales[i % 32] * 1.000_001).ceil().min(255.0) as u8;
    let bounds: Vec<u8> = lines.iter().enumerate().map(bound).collect();
    let mark = |line: &[f32]| (0..32).fold(0u32, |word, query| word | u32::from(line[query] > bars[query]) << query);
    let marks: Vec<u32> = lines.chunks_exact(32).map(mark).collect();
    let [lines, least, scales, bars] = [&lines, &least, &scales, &bars].map(|values| device.upload(values).unwrap());
    let n = LINES as u64;
    for blocks in [1, 2, 5, 40] {
        let shape = Shape { grid: [blocks, 1, 1], threads: 256, shared: 0 };
        let mut got = device.zeros::<u8>(32 * LINES).unwrap();
        let kernel = device.kernel("xc_mach_bounds").unwrap();
        let call = kernel.call(device.stream()).arg(&lines).arg(&least).arg(&scales).arg(&n).arg(&mut got);
        // SAFETY: n lines, as many bounds, and a number for each of 32 queries.
        unsafe { call.launch(shape) }.unwrap();
        assert_eq!(device.download(&got).unwrap(), bounds, "{blocks} blocks");
        let mut got = device.zeros::<u32>(LINES).unwrap();
        let kernel = device.kernel("xc_mach_marks").unwrap();
        let call = kernel.call(device.stream()).arg(&lines).arg(&bars).arg(&n).arg(&mut got);
        // SAFETY: n lines, as many words, and a number for each of 32 queries.
        unsafe { call.launch(shape) }.unwrap();
        assert_eq!(device.download(&got).unwrap(), marks, "{blocks} blocks");
    }
}
