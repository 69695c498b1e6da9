//! Kernels called one by one: places above 2^32, filters, and every bit of their sums.

use super::super::cells::{CellsOnDevice, Code};
use super::super::exact::{BoundOnDevice, Open};
use xc_dense::{wide_dot_and_square, wide_squared_distance};
use xc_kernels::best::Keeping;
use xc_kernels::cudarc::driver::CudaSlice;
use xc_kernels::product::{Operands, Rows, Tiles};
use xc_kernels::{Device, Emulated, Shape, address};
use xc_sparse::rank::{Scored, from_rank_key, rank_key};

/// The first place that 32 bits do not name.
const FAR: usize = 1 << 32;
/// Keys that a query has room for: those of queries from 16 on stand above 2^32.
const ROOM: usize = 1 << 28;

/// Numbers between -1 and 1, and so many sizes of them that sums in f64 are rounded.
fn of_many_sizes(n: usize, seed: usize) -> Vec<f32> {
    values(n, seed).iter().zip(0..).map(|(v, i)| v * 2f32.powi(i * 5 % 41 - 20)).collect()
}

/// Numbers between -1 and 1.
fn values(n: usize, seed: usize) -> Vec<f32> {
    (0..n).map(|i| ((i * 7919 + seed * 104_729) % 10_007) as f32 / 5003.0 - 1.0).collect()
}

#[test]
fn sums_of_keys_above_2_to_the_32_are_those_of_the_cpu_to_the_bit() {
    const KEYS: usize = 70;
    let Some(emulated) = Emulated::hold_vast() else { return };
    let device = Device::open(0).unwrap();
    let kernel = device.kernel("xc_ann_sums").unwrap();
    let (width, stride) = (37usize, 40u64);
    let (query, rows) = (of_many_sizes(width, 1), of_many_sizes(12 * 40, 2));
    let labels: Vec<u64> = (0..KEYS as u64).map(|i| ((i * 3) << 32) | (i * 5 % 12)).collect();
    let (on_query, on_rows) = (device.upload(&query).unwrap(), device.upload(&rows).unwrap());
    let keys = emulated.scattered(&device, FAR + KEYS, &[(FAR, &labels)]);
    let begin = device.upload(&[FAR as u64, (FAR + KEYS) as u64]).unwrap();
    let turned: Vec<u32> = (0..12).rev().collect();
    let on_turned = device.upload(&turned).unwrap();
    for (is_distance, first, blocks) in [(0u32, 0, 1), (1, 0, 2), (0, address(&on_turned), 3), (1, 0, 5)] {
        let mut out = emulated.scattered::<f64>(&device, 2 * (FAR + KEYS), &[]);
        let call = kernel.call(device.stream()).arg(&on_query).arg(&on_rows).arg(&stride).arg(&first);
        let width_of_32_bits = width as u32;
        let call = call.arg(&width_of_32_bits).arg(&is_distance).arg(&keys).arg(&begin).arg(&mut out);
        // SAFETY: keys are of rows that are there, and each has two sums.
        unsafe { call.launch(Shape { grid: [1, blocks, 1], threads: 256, shared: 0 }) }.unwrap();
        let got = device.download(&out.slice(2 * FAR..)).unwrap();
        for (sums, key) in got.chunks(2).zip(&labels) {
            let label = *key as u32 as usize;
            let row = &rows[if first == 0 { label } else { turned[label] as usize } * 40..][..width];
            let [product, square] = wide_dot_and_square(&query, row);
            let wanted = if is_distance == 1 { wide_squared_distance(&query, row) } else { product };
            assert_eq!([sums[0].to_bits(), sums[1].to_bits()], [wanted.to_bits(), square.to_bits()], "row {label}");
        }
    }
}

#[test]
fn cells_keep_the_labels_that_there_are_and_that_pass_a_filter() {
    // The query of the last block, which has two cells of two blocks of codes each.
    const QUERY: usize = 19;
    const N_LABELS: u32 = 130;
    let Some(emulated) = Emulated::hold_vast() else { return };
    let device = Device::open(0).unwrap();
    let bytes: Vec<u8> = (0..4 * 16 * 8).map(|i| (i * 53 % 256) as u8).collect();
    let sides: Vec<f32> = (0..4 * 32).map(|i| (i % 32) as f32 * 0.5).collect();
    // Each label once, labels that are none, and the first label that is none.
    let mut labels: Vec<u32> = (0..64).map(|place| N_LABELS - 32 + place).collect();
    labels[3] = u32::MAX;
    labels[7] = 64;
    labels[8] = 65;
    let queries: Vec<i8> = (0..(QUERY + 1) * 8).map(|i| (i * 37 % 255) as i8).collect();
    let code = Code { factor: 0.25, norm: 3.0, shift: 40 };
    let filter = [0u64, 0x5555_5555_5555_5556, 0b10];
    let on = (device.upload(&bytes).unwrap(), device.upload(&sides).unwrap(), device.upload(&labels).unwrap());
    let (begins, on_queries) = (device.upload(&[0u32, 2, 4]).unwrap(), device.upload(&queries).unwrap());
    let (codes, visits) =
        (device.upload(&[code; QUERY + 1]).unwrap(), device.upload(&[1u32, 0].repeat(QUERY + 1)).unwrap());
    let (on_filter, bars) = (device.upload(&filter).unwrap(), device.upload(&[u64::MAX; QUERY + 1]).unwrap());
    for filter_at in [0, address(&on_filter)] {
        let (kept, n_kept) =
            (emulated.scattered::<u64>(&device, (QUERY + 1) * ROOM, &[]), device.zeros::<u32>(QUERY + 1).unwrap());
        let cells = CellsOnDevice {
            bytes: address(&on.0),
            sides: address(&on.1),
            labels: address(&on.2),
            begins: address(&begins),
            queries: address(&on_queries),
            codes: address(&codes),
            visits: address(&visits),
            stride: 8,
            n_visits: 2,
            n_labels: N_LABELS,
        };
        let best = Keeping {
            bars: address(&bars),
            kept: address(&kept),
            n_kept: address(&n_kept),
            filter: filter_at,
            room: ROOM as u32,
            label0: 0,
        };
        let (kernel, from) = (device.kernel("xc_ann_cells").unwrap(), 0u32);
        let call = kernel.call(device.stream()).arg(&cells).arg(&from).arg(&best);
        // SAFETY: cells, queries and visits are there, and room for all labels of a query.
        unsafe { call.launch(Shape { grid: [QUERY + 1, 2, 1], threads: 256, shared: 8 }) }.unwrap();
        let mut expected = Vec::new();
        for (place, &label) in labels.iter().enumerate().filter(|&(_, &label)| label < N_LABELS) {
            if filter_at != 0 && filter[label as usize / 64] >> (label % 64) & 1 == 0 {
                continue;
            }
            let (block, lane) = (place / 16, place % 16);
            let of_query = |i: usize| i32::from(queries[QUERY * 8 + i]);
            let of_row = |i: usize| i32::from(bytes[block * 128 + i / 4 * 64 + lane * 4 + i % 4]);
            let sum = (0..8).map(|i| of_query(i) * of_row(i)).sum::<i32>();
            let product = code.factor * sides[block * 32 + 16 + lane] * (sum - code.shift) as f32;
            expected.push(rank_key(Scored { label, score: -(code.norm + sides[block * 32 + lane] - product) }));
        }
        expected.sort_unstable();
        let n = device.download(&n_kept).unwrap()[QUERY] as usize;
        let mut got = device.download(&kept.slice(QUERY * ROOM..QUERY * ROOM + n.min(64))).unwrap();
        got.sort_unstable();
        assert_eq!(got, expected);
    }
}

/// Rows with sides and lengths, of which some are 0, infinite in a score, or of which nothing is known.
struct Sided {
    sides: Vec<f32>,
    lengths: Vec<f32>,
    bounds: Vec<BoundOnDevice>,
}

impl Sided {
    fn new(n_rows: usize, n_queries: usize) -> Self {
        let side = |i: usize| match i % 31 {
            0 => f32::MAX,
            1 => -f32::MAX,
            _ => (i % 7) as f32 - 3.0,
        };
        let bound = |i: usize| BoundOnDevice {
            base: 0.125,
            by_length: 0.01 * (i % 5) as f32,
            by_square: 0.003,
            longest: if i % 3 == 2 { 0.5 } else { 1.25 },
        };
        Self {
            sides: (0..n_rows).map(side).collect(),
            lengths: (0..n_rows).map(|i| if i % 9 == 0 { 0.0 } else { (i % 13) as f32 * 0.125 }).collect(),
            bounds: (0..n_queries).map(bound).collect(),
        }
    }

    /// By how much the score of a row for a query may be off.
    fn off(&self, query: usize, row: usize) -> f32 {
        let (of, length) = (&self.bounds[query], self.lengths[row]);
        let off = of.base + length * (of.by_length + length * of.by_square);
        if length > of.longest { f32::INFINITY } else { off }
    }

    /// What a row is kept by, if it may beat the bar.
    fn key(&self, query: usize, row: usize, score: f32, bar: f32, has_directions: bool) -> Option<u64> {
        let off = self.off(query, row);
        let is_known = (score - off).is_finite() && (score + off).is_finite();
        let low = if is_known { score - off } else { f32::NEG_INFINITY };
        let may = score + off >= bar || (score + off).is_nan() || bar.is_nan();
        let may = may && (!has_directions || self.lengths[row] > 0.0);
        may.then(|| rank_key(Scored { label: row as u32, score: low }))
    }
}

/// The keys of a query, ascending.
fn kept_of(device: &Device, kept: &CudaSlice<u64>, query: usize, n: u32) -> Vec<u64> {
    let mut keys = device.download(&kept.slice(query * ROOM..query * ROOM + (n as usize).min(4096))).unwrap();
    keys.sort_unstable();
    keys
}

#[test]
fn rows_are_open_by_their_definition_and_kept_above_2_to_the_32() {
    const N: usize = 150;
    const LABEL0: usize = 60;
    let Some(emulated) = Emulated::hold_vast() else { return };
    let device = Device::open(0).unwrap();
    let tiles = Tiles::load(&device, "xc_ann_open").unwrap();
    let filter: Vec<u64> = (1..5).map(|i| 0x9e37_79b9_7f4a_7c15u64.wrapping_mul(i)).collect();
    let on_filter = device.upload(&filter).unwrap();
    // A row of B ends in its first step, or has whole steps and a part of one, or one value more. Rows are copied by 16
    // bytes where they begin at such; those of an odd width, and those behind a value, do not.
    for (m, width, before) in [
        (1, 5, 0),
        (1, 33, 0),
        (1, 36, 1),
        (5, 33, 0),
        (5, 36, 0),
        (20, 5, 0),
        (20, 33, 0),
        (20, 36, 0),
        (20, 36, 1),
        (100, 36, 0),
    ] {
        let rows = values((LABEL0 + N) * width, 3);
        let shifted = [&vec![0.0; before], &rows[..]].concat();
        let queries: Vec<f32> = values(m * width, 4).iter().map(|v| 2.5 * v).collect();
        let of = Sided::new(LABEL0 + N, m);
        let [on_rows, on_queries, on_lengths, on_sides] =
            [&shifted, &queries, &of.lengths, &of.sides].map(|values| device.upload(values).unwrap());
        let on_bounds = device.upload(&of.bounds).unwrap();
        // The score of a bar, or none.
        let bar = |i: usize| if i % 4 == 3 { f32::NAN } else { i as f32 % 3.0 - 0.5 };
        let bar_key =
            |i: usize| Some(bar(i)).filter(|bar| !bar.is_nan()).map(|score| rank_key(Scored { label: 9, score }));
        let bars: Vec<u64> = (0..m).map(|i| bar_key(i).unwrap_or(u64::MAX)).collect();
        let on_bars = device.upload(&bars).unwrap();
        for (form, has_directions, filtered) in [(0u32, 0u32, true), (1, 1, false), (2, 1, true)] {
            let kept = emulated.scattered::<u64>(&device, m * ROOM, &[]);
            let n_kept = device.zeros::<u32>(m).unwrap();
            let best = Keeping {
                bars: address(&on_bars),
                kept: address(&kept),
                n_kept: address(&n_kept),
                filter: if filtered { address(&on_filter) } else { 0 },
                room: ROOM as u32,
                label0: LABEL0 as u32,
            };
            let open = Open {
                best,
                sides: address(&on_sides),
                lengths: address(&on_lengths),
                bounds: address(&on_bounds),
                form,
                has_directions,
            };
            // SAFETY: the rows are there, behind the values before them.
            let all = unsafe { Rows::at(address(&on_rows) + 4 * before as u64, LABEL0 as u64, N, width, width) };
            let operands = Operands::new(Rows::new(&on_queries, m, width, width), all, None);
            // SAFETY: the operands were made of rows that are there, and there is room for all keys.
            unsafe { tiles.launch(device.stream(), &operands, &open) }.unwrap();
            let n_kept = device.download(&n_kept).unwrap();
            for (i, query) in queries.chunks(width).enumerate() {
                let key = |row: usize| {
                    let product = query.iter().zip(&rows[row * width..]).fold(0.0f32, |sum, (a, b)| a.mul_add(*b, sum));
                    let score = match form {
                        0 => 2.0 * product - of.sides[row],
                        1 => product,
                        _ => product * of.sides[row],
                    };
                    let passes = !filtered || filter[row / 64] >> (row % 64) & 1 == 1;
                    of.key(i, row, score, bar(i), has_directions == 1).filter(|_| passes)
                };
                let mut expected: Vec<u64> = (LABEL0..LABEL0 + N).filter_map(key).collect();
                expected.sort_unstable();
                assert_eq!(
                    kept_of(&device, &kept, i, n_kept[i]),
                    expected,
                    "query {i} of {m}, {width} wide, form {form}"
                );
            }
        }
    }
}

#[test]
fn keys_above_2_to_the_32_are_narrowed_by_their_definition() {
    const QUERIES: usize = 20;
    const K: usize = 5;
    let Some(emulated) = Emulated::hold_vast() else { return };
    let device = Device::open(0).unwrap();
    let of = Sided::new(900, QUERIES);
    // Keys of a query: none, fewer than are wanted, as many, more than a block has threads. Some say nothing.
    let n = |query: usize| [0, K - 1, K, K + 1, 77, 256, 700][query % 7];
    let key = |query: usize, i: usize| {
        let score = match i % 17 {
            16 if query % 5 < 3 => f32::NEG_INFINITY,
            // Labels alone tell keys apart, down to the last digit.
            _ if query % 7 == 4 => 0.25,
            _ => ((i * 7919 + query) % 613) as f32 * 0.003 - 0.9,
        };
        rank_key(Scored { label: (i * 11 % 900) as u32, score })
    };
    let keys: Vec<Vec<u64>> = (0..QUERIES).map(|query| (0..n(query)).map(|i| key(query, i)).collect()).collect();
    let parts: Vec<(usize, &[u64])> = keys.iter().enumerate().map(|(query, keys)| (query * ROOM, &keys[..])).collect();
    let kept = emulated.scattered(&device, QUERIES * ROOM, &parts);
    let counts: Vec<u32> = keys.iter().map(|keys| keys.len() as u32).collect();
    let (n_kept, bars) = (device.upload(&counts).unwrap(), device.upload(&[7u64; QUERIES]).unwrap());
    let (on_lengths, on_sides) = (device.upload(&of.lengths).unwrap(), device.upload(&of.sides).unwrap());
    let (on_bounds, mut lost) = (device.upload(&of.bounds).unwrap(), device.zeros::<u32>(QUERIES).unwrap());
    let best = Keeping {
        bars: address(&bars),
        kept: address(&kept),
        n_kept: address(&n_kept),
        filter: 0,
        room: ROOM as u32,
        label0: 0,
    };
    let open = Open {
        best,
        sides: address(&on_sides),
        lengths: address(&on_lengths),
        bounds: address(&on_bounds),
        form: 1,
        has_directions: 0,
    };
    let (kernel, k) = (device.kernel("xc_ann_narrow").unwrap(), K as u32);
    let call = kernel.call(device.stream()).arg(&open).arg(&k).arg(&mut lost);
    // SAFETY: of each query there are as many keys as its count says.
    unsafe { call.launch(Shape { grid: [QUERIES, 1, 1], threads: 256, shared: 0 }) }.unwrap();
    assert_eq!(device.download(&lost).unwrap(), [0; QUERIES]);
    let (bars, n_kept) = (device.download(&bars).unwrap(), device.download(&n_kept).unwrap());
    // Two f32 worse, or better; keys of scores that are not known are worse than all others.
    let (steps, unknown) = (2u64 << 32, rank_key(Scored { label: 0, score: f32::NEG_INFINITY }));
    for (query, mut keys) in keys.into_iter().enumerate() {
        keys.sort_unstable();
        let mut bar = 7;
        if keys.len() >= K {
            bar = if keys[K - 1] >= unknown { u64::MAX } else { keys[K - 1] + steps };
            let least = f64::from(from_rank_key(bar).score);
            keys.retain(|&key| {
                let (low, row) = (from_rank_key(key.wrapping_sub(steps)).score, from_rank_key(key).label);
                let most = f64::from(low) + 2.0 * f64::from(of.off(query, row as usize));
                key >= unknown || most >= least || least.is_nan()
            });
        }
        assert_eq!((bars[query], n_kept[query] as usize), (bar, keys.len()), "query {query}");
        assert_eq!(kept_of(&device, &kept, query, n_kept[query]), keys, "query {query}");
    }
}
