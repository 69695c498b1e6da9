//! Kernels called one by one: places above 2^32, functions at the edges of their primes, grids larger than needed.

use crate::mixed;
use xc_kernels::layout::{self, Argument};
use xc_kernels::{Device, Emulated, Shape, address, arguments};
use xc_mach::Decoder;
use xc_sparse::rank::{Scored, rank_key};

arguments! {
    struct XcMachLabels {
        hashes: u64,
        by_prime: u64,
        prime: u32,
        n_buckets: u32,
        by_buckets: u32,
        n_repetitions: u32,
        first: u32,
        n: u32,
    }
    struct XcMachPassed {
        labels: u64,
        n: u64,
        room: u32,
        pad: u32,
    }
    struct XcMachLines {
        scores: u64,
        lines: u64,
        least: u64,
        largest: u64,
        not_finite: u64,
        n: u64,
        n_queries: u32,
        pad: u32,
    }
    struct XcMachRescore {
        lines: u64,
        bars: u64,
        network: u64,
        kept: u64,
        n_kept: u64,
        n_comparators: u32,
        decoder: u32,
    }
}

/// The first place that 32 bits do not name.
const FAR: usize = 1 << 32;
/// Queries of a line.
const QUERIES: usize = 32;
/// The largest prime of 32 bits.
const PRIME: u64 = (1 << 32) - 5;

fn blocks(n: usize, threads: u32) -> Shape {
    Shape { grid: [n, 1, 1], threads, shared: 0 }
}

#[test]
fn structs_are_those_of_the_kernels() {
    let _emulated = Emulated::hold();
    let device = Device::open(0).unwrap();
    let layouts = [XcMachLabels::LAYOUT, XcMachPassed::LAYOUT, XcMachLines::LAYOUT, XcMachRescore::LAYOUT];
    assert_eq!(layout::check(&device, "xc_layout_mach", &layouts), Ok(()));
}

#[test]
fn scores_above_2_to_the_32_become_lines() {
    // Places of the last block, and those behind it that block 0 has in its second turn.
    const LAST: usize = 32 + 8;
    let Some(emulated) = Emulated::hold_vast() else { return };
    let device = Device::open(0).unwrap();
    let (n, mut values) = (FAR + LAST, mixed(2 * LAST));
    values[5] = f32::INFINITY;
    let (of_first, of_second) = values.split_at(LAST);
    let scores = emulated.scattered(&device, 2 * n, &[(FAR, of_first), (n + FAR, of_second)]);
    let lines = emulated.scattered::<f32>(&device, n * QUERIES, &[]);
    let (least, largest) = (device.upload(&[u32::MAX; 2]).unwrap(), device.upload(&[0u32; 2]).unwrap());
    let not_finite = device.upload(&[u64::MAX; 2]).unwrap();
    let arguments = XcMachLines {
        scores: address(&scores),
        lines: address(&lines),
        least: address(&least),
        largest: address(&largest),
        not_finite: address(&not_finite),
        n: n as u64,
        n_queries: 2,
        pad: 0,
    };
    emulated.set_blocks(FAR as u64 / 32..u64::MAX);
    let kernel = device.kernel("xc_mach_lines").unwrap();
    // SAFETY: the struct is the kernel's; there are the scores of the block, and room for lines.
    unsafe { kernel.call(device.stream()).arg(&arguments).launch(blocks(FAR / 32 + 1, 256)) }.unwrap();
    let got = device.download(&lines.slice(FAR * QUERIES..)).unwrap();
    let expected = |at: usize| match (at / QUERIES, at % QUERIES) {
        (place, query) if place < 32 && query < 2 => values[query * LAST + place],
        _ => 0.0,
    };
    assert_eq!(got, (0..LAST * QUERIES).map(expected).collect::<Vec<f32>>());
    assert_eq!(device.download(&not_finite).unwrap(), [FAR as u64 + 5, u64::MAX]);
    let ascending = |score: f32| score.to_bits() | 1 << 31;
    let of_block = [&of_first[..32], &of_second[..32]];
    let least_of = |row: &[f32]| ascending(row.iter().copied().fold(f32::INFINITY, f32::min));
    let largest_of = |row: &[f32]| ascending(row.iter().copied().fold(0.0, f32::max));
    assert_eq!(device.download(&least).unwrap(), of_block.map(least_of));
    assert_eq!(device.download(&largest).unwrap(), of_block.map(largest_of));
}

#[test]
fn scores_above_2_to_the_32_are_bounded_and_marked() {
    // Lines of the last block, and those behind it that block 0 has in its second turn.
    const LAST: usize = 8 + 2;
    let Some(emulated) = Emulated::hold_vast() else { return };
    let device = Device::open(0).unwrap();
    let values = mixed(LAST * QUERIES);
    let (least, scales) = (device.upload(&[10.0f32; 32]).unwrap(), device.upload(&[0.25f32; 32]).unwrap());
    let first = FAR / QUERIES;
    let lines = emulated.scattered(&device, (first + LAST) * QUERIES, &[(first * QUERIES, &values)]);
    let mut bounds = emulated.scattered::<u8>(&device, (first + LAST) * QUERIES, &[]);
    let (kernel, n) = (device.kernel("xc_mach_bounds").unwrap(), (first + LAST) as u64);
    emulated.set_blocks(FAR as u64 / 256..u64::MAX);
    let call = kernel.call(device.stream()).arg(&lines).arg(&least).arg(&scales).arg(&n).arg(&mut bounds);
    // SAFETY: n lines, as many bounds, and a number for each of 32 queries.
    unsafe { call.launch(blocks(FAR / 256 + 1, 256)) }.unwrap();
    let bound = |&score: &f32| ((score - 10.0) * 0.25 * 1.000_001).ceil().clamp(0.0, 255.0) as u8;
    let expected: Vec<u8> = values[..256].iter().map(bound).chain([0; 2 * QUERIES]).collect();
    assert_eq!(device.download(&bounds.slice(first * QUERIES..)).unwrap(), expected);

    let lines = emulated.scattered(&device, (FAR + LAST) * QUERIES, &[(FAR * QUERIES, &values)]);
    let bars: Vec<f32> = (0..32).map(|query| values[query * 3]).collect();
    let (on_bars, n) = (device.upload(&bars).unwrap(), (FAR + LAST) as u64);
    let mut marks = emulated.scattered::<u32>(&device, FAR + LAST, &[]);
    let kernel = device.kernel("xc_mach_marks").unwrap();
    emulated.set_blocks(FAR as u64 / 8..u64::MAX);
    let call = kernel.call(device.stream()).arg(&lines).arg(&on_bars).arg(&n).arg(&mut marks);
    // SAFETY: n lines, as many words, and a number for each of 32 queries.
    unsafe { call.launch(blocks(FAR / 8 + 1, 256)) }.unwrap();
    let mark = |line: &[f32]| (0..32).fold(0u32, |word, query| word | u32::from(line[query] > bars[query]) << query);
    let expected: Vec<u32> = values[..256].chunks(QUERIES).map(mark).chain([0; 2]).collect();
    assert_eq!(device.download(&marks.slice(FAR..)).unwrap(), expected);
}

/// A function of a repetition: factor and offset; of the prime family modulo [`PRIME`].
type Hash = [u64; 2];

fn bucket(is_prime: bool, [factor, offset]: Hash, n_buckets: u32, label: u32) -> usize {
    let value = u128::from(factor) * u128::from(label) + u128::from(offset);
    let of = match is_prime {
        true => value % u128::from(PRIME) % u128::from(n_buckets),
        false => (u128::from(value as u64 >> 32) * u128::from(n_buckets)) >> 32,
    };
    of as usize
}

/// Labels without the address of their functions.
fn labels(is_prime: bool, n_buckets: u32, n_repetitions: usize, first: u32, n: u32) -> XcMachLabels {
    XcMachLabels {
        hashes: 0,
        by_prime: if is_prime { u64::MAX / PRIME } else { 0 },
        prime: if is_prime { PRIME as u32 } else { 0 },
        n_buckets,
        by_buckets: u32::MAX / n_buckets,
        n_repetitions: n_repetitions as u32,
        first,
        n,
    }
}

const SCREENS: [(Decoder, usize); 3] = [(Decoder::Mean, 512), (Decoder::Min, 2048), (Decoder::Median, 2048)];

fn screen(device: &Device, decoder: Decoder, is_prime: bool) -> xc_kernels::Kernel {
    device.kernel(&format!("xc_mach_{decoder}_{}", if is_prime { "prime" } else { "shift" })).unwrap()
}

#[test]
fn buckets_and_passed_labels_stand_above_2_to_the_32() {
    const REPETITIONS: usize = 64;
    const BUCKETS: u32 = 1 << 27;
    const ROOM: usize = 1 << 28;
    let Some(emulated) = Emulated::hold_vast() else { return };
    let device = Device::open(0).unwrap();
    // All labels fall into the same bucket of a repetition.
    let line = |r: usize| r * BUCKETS as usize + BUCKETS as usize - 1 - r;
    for (is_prime, shift) in [(true, 0), (false, 37)] {
        let hashes: Vec<u64> = (0..REPETITIONS).flat_map(|r| [0, u64::from(BUCKETS - 1 - r as u32) << shift]).collect();
        let on_hashes = device.upload(&hashes).unwrap();
        let of = XcMachLabels { hashes: address(&on_hashes), ..labels(is_prime, BUCKETS, REPETITIONS, 1000, 5) };
        for (decoder, _) in SCREENS {
            let (list, n) = (emulated.scattered::<u32>(&device, QUERIES * ROOM, &[]), device.zeros::<u32>(32).unwrap());
            let passed = XcMachPassed { labels: address(&list), n: address(&n), room: ROOM as u32, pad: 0 };
            let (kernel, n_lines) = (screen(&device, decoder, is_prime), REPETITIONS * BUCKETS as usize);
            // Labels pass for odd queries, and lack a step for the others.
            if decoder == Decoder::Mean {
                let bound = |r: usize, query: usize| ((7 * r + 3 * query) % 251) as u8;
                let rows: Vec<Vec<u8>> = (0..REPETITIONS).map(|r| (0..32).map(|q| bound(r, q)).collect()).collect();
                let parts: Vec<(usize, &[u8])> = (0..REPETITIONS).map(|r| (line(r) * QUERIES, &rows[r][..])).collect();
                let bounds = emulated.scattered(&device, n_lines * QUERIES, &parts);
                let sum = |query: usize| (0..REPETITIONS).map(|r| u32::from(bound(r, query))).sum::<u32>();
                let limits: Vec<u32> = (0..32).map(|query| sum(query) + u32::from(query % 2 == 0)).collect();
                let limits = device.upload(&limits).unwrap();
                let call = kernel.call(device.stream()).arg(&of).arg(&bounds).arg(&limits).arg(&passed);
                // SAFETY: the structs are the kernel's; the lines of the labels are there, and room for all labels.
                unsafe { call.launch(blocks(1, 256)) }.unwrap();
            } else {
                let all = if decoder == Decoder::Min { REPETITIONS } else { REPETITIONS / 2 };
                let words: Vec<[u32; 1]> = (0..REPETITIONS)
                    .map(|r| [if r + 1 < all { u32::MAX } else { 0xaaaa_aaaa * u32::from(r < all) }])
                    .collect();
                let parts: Vec<(usize, &[u32])> = (0..REPETITIONS).map(|r| (line(r), &words[r][..])).collect();
                let marks = emulated.scattered(&device, n_lines, &parts);
                let call = kernel.call(device.stream()).arg(&of).arg(&marks).arg(&passed);
                // SAFETY: as above.
                unsafe { call.launch(blocks(1, 256)) }.unwrap();
            }
            assert_eq!(device.download(&n).unwrap(), [0, 5].repeat(16), "{decoder}, prime: {is_prime}");
            for query in (1..QUERIES).step_by(2) {
                let mut got = device.download(&list.slice(query * ROOM..query * ROOM + 5)).unwrap();
                got.sort_unstable();
                assert_eq!(got, [1000, 1001, 1002, 1003, 1004], "{decoder}, query {query}");
            }
        }
    }
}

/// Functions at the edges of the prime, by the first of some labels: after it one has residue 0, or remainders of all are
/// found by a quotient that is one too small.
fn edges(first: u32) -> [Hash; 2] {
    let offset = PRIME - u64::from(first) - 256 - 3;
    [[1, offset], [PRIME - 1, u64::from(first) + 20]]
}

#[test]
fn the_edges_of_a_prime_are_met() {
    let by_prime = u64::MAX / PRIME;
    let quotient = |n: u64| ((u128::from(n) * u128::from(by_prime)) >> 64) as u64;
    let [steps, remainders] = edges(PRIME as u32 - 3000);
    let residue = |[factor, offset]: Hash, label: u64| (factor * label + offset) % PRIME;
    assert_eq!(residue(steps, PRIME - 3000 + 259), 0);
    for label in PRIME - 3000..PRIME - 2990 {
        let n = remainders[0] * label + remainders[1];
        // The remainder before it is corrected has more than 32 bits.
        assert_eq!(quotient(n) + 1, n / PRIME, "{label}");
        assert!(n - quotient(n) * PRIME >= 1 << 32, "{label}");
    }
}

#[test]
fn screens_pass_the_labels_that_a_definition_passes_once_each() {
    const BUCKETS: u32 = 23;
    let _emulated = Emulated::hold();
    let device = Device::open(0).unwrap();
    let first = PRIME as u32 - 3000;
    let cases: [(bool, Vec<Hash>); 3] = [
        (true, vec![edges(first)[0]]),
        (true, [edges(first).to_vec(), vec![[77_777_777, 3_333_333]]].concat()),
        (false, vec![[0x9e37_79b9_7f4a_7c15, 5], [0x2545_f491_4f6c_dd1d, 9], [3, 1 << 40]]),
    ];
    for (is_prime, hashes) in &cases {
        let n_repetitions = hashes.len();
        let on_hashes = device.upload(&hashes.concat()).unwrap();
        let of = XcMachLabels { hashes: address(&on_hashes), ..labels(*is_prime, BUCKETS, n_repetitions, first, 2900) };
        let line = |r: usize, label: u32| r * BUCKETS as usize + bucket(*is_prime, hashes[r], BUCKETS, label);
        let n_lines = n_repetitions * BUCKETS as usize;
        let bounds: Vec<u8> = (0..n_lines * QUERIES).map(|i| (i * 7919 % 251) as u8).collect();
        // Of the first bucket all are marked, of the others some.
        let marks: Vec<u32> = (0..n_lines as u32)
            .map(|line| if line % BUCKETS == 0 { u32::MAX } else { line.wrapping_mul(2_654_435_769) })
            .collect();
        // Every label has a sum of 0.
        let limits: Vec<u32> = (0..32).map(|query| 12 * n_repetitions as u32 * query).collect();
        let (on_bounds, on_limits) = (device.upload(&bounds).unwrap(), device.upload(&limits).unwrap());
        let on_marks = device.upload(&marks).unwrap();
        for (decoder, of_block) in SCREENS {
            let (list, n) = (device.zeros::<u32>(32 * 4096).unwrap(), device.zeros::<u32>(32).unwrap());
            let passed = XcMachPassed { labels: address(&list), n: address(&n), room: 4096, pad: 0 };
            let kernel = screen(&device, decoder, *is_prime);
            let call = kernel.call(device.stream()).arg(&of);
            let call = match decoder {
                Decoder::Mean => call.arg(&on_bounds).arg(&on_limits),
                _ => call.arg(&on_marks),
            };
            // More blocks than there are labels.
            // SAFETY: the structs are the kernel's; lines for all buckets, and room for all labels.
            unsafe { call.arg(&passed).launch(blocks(2900usize.div_ceil(of_block) + 1, 256)) }.unwrap();
            let (list, n) = (device.download(&list).unwrap(), device.download(&n).unwrap());
            for query in 0..QUERIES {
                let passes = |label: &u32| {
                    let lines = (0..n_repetitions).map(|r| line(r, *label));
                    let n_marked = lines.clone().filter(|&line| marks[line] >> query & 1 == 1).count();
                    match decoder {
                        Decoder::Mean => lines.map(|l| u32::from(bounds[l * 32 + query])).sum::<u32>() >= limits[query],
                        Decoder::Min => n_marked == n_repetitions,
                        Decoder::Median => n_marked >= n_repetitions - n_repetitions / 2,
                    }
                };
                let expected: Vec<u32> = (first..first + 2900).filter(passes).collect();
                let mut got = list[query * 4096..][..n[query].min(4096) as usize].to_vec();
                got.sort_unstable();
                assert_eq!(got, expected, "{decoder}, query {query}, {hashes:?}");
            }
        }
    }
}

#[test]
fn the_last_block_passes_the_last_labels_and_one_behind_it_none() {
    let emulated = Emulated::hold();
    if !emulated.is_emulated() {
        return;
    }
    let device = Device::open(0).unwrap();
    let on_hashes = device.upload(&[3u64, 1]).unwrap();
    let of = XcMachLabels { hashes: address(&on_hashes), ..labels(false, 5, 1, 0, u32::MAX) };
    let (bounds, limits) = (device.upload(&[9u8; 160]).unwrap(), device.upload(&[9u32; 32]).unwrap());
    let marks = device.upload(&[u32::MAX; 5]).unwrap();
    for (decoder, of_block) in SCREENS {
        let n_blocks = FAR / of_block;
        for (block, expected) in [(n_blocks - 1, of_block - 1), (n_blocks, 0)] {
            let (list, n) = (device.zeros::<u32>(32 * 2048).unwrap(), device.zeros::<u32>(32).unwrap());
            let passed = XcMachPassed { labels: address(&list), n: address(&n), room: 2048, pad: 0 };
            emulated.set_blocks(block as u64..block as u64 + 1);
            let kernel = screen(&device, decoder, false);
            let call = kernel.call(device.stream()).arg(&of);
            let call = match decoder {
                Decoder::Mean => call.arg(&bounds).arg(&limits),
                _ => call.arg(&marks),
            };
            // SAFETY: the structs are the kernel's; lines for all buckets, and room for a block's labels.
            unsafe { call.arg(&passed).launch(blocks(n_blocks + 1, 256)) }.unwrap();
            assert_eq!(device.download(&n).unwrap(), [expected as u32; 32], "{decoder}");
            let mut got = device.download(&list.slice(..expected)).unwrap();
            got.sort_unstable();
            assert_eq!(got, (u32::MAX - expected as u32..u32::MAX).collect::<Vec<u32>>(), "{decoder}");
        }
    }
}

/// Scores labels of one query without a screen, with room for 4,096, and returns their keys, ascending.
fn rescored(device: &Device, of: &XcMachLabels, lines: &[f32], decoder: Decoder, n_blocks: usize) -> Vec<u64> {
    let (on_lines, bars) = (device.upload(lines).unwrap(), device.upload(&[u64::MAX; 32]).unwrap());
    let (kept, n_kept) = (device.zeros::<u64>(32 * 4096).unwrap(), device.zeros::<u32>(32).unwrap());
    let passed = XcMachPassed { labels: 0, n: 0, room: 4096, pad: 0 };
    let to = XcMachRescore {
        lines: address(&on_lines),
        bars: address(&bars),
        network: 0,
        kept: address(&kept),
        n_kept: address(&n_kept),
        n_comparators: 0,
        decoder: decoder as u32,
    };
    let kernel = device.kernel("xc_mach_rescore").unwrap();
    let call = kernel.call(device.stream()).arg(of).arg(&passed).arg(&to);
    // SAFETY: the structs are the kernel's; lines for all buckets, and room for 4,096 keys.
    unsafe { call.launch(blocks(n_blocks, 128)) }.unwrap();
    let n = device.download(&n_kept).unwrap()[0] as usize;
    let mut keys: Vec<u64> = device.download(&kept).unwrap().into_iter().step_by(32).take(n).collect();
    keys.sort_unstable();
    keys
}

#[test]
fn labels_are_scored_by_buckets_at_the_edges_of_a_prime() {
    let _emulated = Emulated::hold();
    let device = Device::open(0).unwrap();
    let (first, n) = (PRIME as u32 - 3000, 700);
    for hash in edges(first) {
        let on_hash = device.upload(&hash).unwrap();
        let of = XcMachLabels { hashes: address(&on_hash), ..labels(true, 23, 1, first, n) };
        let lines = mixed(23 * QUERIES);
        for decoder in [Decoder::Mean, Decoder::Min] {
            let score = |label: u32| lines[bucket(true, hash, 23, label) * QUERIES];
            let mut expected: Vec<u64> =
                (first..first + n).map(|label| rank_key(Scored { label, score: score(label) })).collect();
            expected.sort_unstable();
            assert_eq!(rescored(&device, &of, &lines, decoder, 3), expected, "{decoder} {hash:?}");
        }
    }
}

#[test]
fn the_last_of_nearly_2_to_the_32_labels_are_scored_once() {
    let emulated = Emulated::hold();
    if !emulated.is_emulated() {
        return;
    }
    let device = Device::open(0).unwrap();
    let on_hash = device.upload(&[3u64, 1]).unwrap();
    let of = XcMachLabels { hashes: address(&on_hash), ..labels(false, 5, 1, 0, u32::MAX) };
    // A block less than there are labels for: block 0 scores the last of them in its second turn.
    let n_blocks = FAR / 128 - 1;
    emulated.set_blocks(n_blocks as u64 - 1..u64::MAX);
    let keys = rescored(&device, &of, &[0.5; 5 * QUERIES], Decoder::Min, n_blocks);
    let labels = u32::MAX - 255..=u32::MAX - 128;
    assert_eq!(keys, labels.map(|label| rank_key(Scored { label, score: 0.5 })).collect::<Vec<u64>>());
}
