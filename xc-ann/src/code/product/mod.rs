//! Kernels: products of 8-bit codes of listed rows with one query, and the smallest of some keys.
//!
//! The scalar file defines every operation; the others are tested against it, and give the same
//! bits: products of codes are exact integers.

#![allow(unsafe_code, reason = "kernels written by hand for an instruction set")]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod scalar;

use xc_buffer::simd::Isa;

/// Bytes of a cache line: codes of a row fill whole lines.
pub(crate) const LINE: usize = 64;
/// Most coordinates of a row: sums of their products fit 32 bits.
pub(crate) const MOST_COORDINATES: usize = 65_536;

/// Rows that are compared in one call, at most: a bit each.
pub(crate) const TOGETHER: usize = 64;

/// A query in bytes, which are above -128. The key of a row is
/// `norm + row norm - factor * row scale * (sum of row byte * byte - shift)`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) bytes: &'a [i8],
    pub(crate) factor: f32,
    pub(crate) shift: i32,
    pub(crate) norm: f32,
}

/// Rows of codes: as many bytes each as the query has, and norm and scale.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Coded<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) sides: &'a [[f32; 2]],
}

/// The key of each listed row, and a bit for each that is at most `limit`. What is behind the keys of
/// the listed rows means nothing.
///
/// # Panics
/// If the query is no whole number of lines, or a listed row is not there.
#[inline(always)]
pub(crate) fn keys(
    isa: Isa,
    asked: Asked<'_>,
    coded: Coded<'_>,
    rows: &[u32],
    limit: f32,
    keys: &mut [f32; TOGETHER],
) -> u64 {
    assert!(
        asked.bytes.len().is_multiple_of(LINE) && rows.len() <= TOGETHER,
        "{} rows of {}",
        rows.len(),
        asked.bytes.len()
    );
    match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: an instruction set is only named here where it is available; shapes were compared.
        Isa::Avx512 => unsafe { avx512::keys(asked, coded, rows, limit, keys) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Isa::Avx2 => unsafe { avx2::keys(asked, coded, rows, limit, keys) },
        _ => scalar::keys(asked, coded, rows, limit, keys),
    }
}

/// Rows of a block.
pub(crate) const BLOCK: usize = 16;
/// Numbers beside a block: the norms of its rows, then their scales.
pub(crate) const BLOCK_SIDES: usize = 2 * BLOCK;
/// Bytes of a row of a block are a multiple of this.
pub(crate) const BLOCK_STEP: usize = 16;
/// Blocks that are compared in one call, at most.
pub(crate) const BLOCKS: usize = TOGETHER / BLOCK;

/// Rows of codes in blocks: the first four bytes of each row of a block, then the next four, so that sixteen
/// sums grow side by side and none has to be added up in the end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Blocked<'a> {
    /// [`BLOCK`] times as many bytes a block as the query has.
    pub(crate) bytes: &'a [u8],
    /// [`BLOCK_SIDES`] a block.
    pub(crate) sides: &'a [f32],
}

/// The key of each row of at most [`BLOCKS`] blocks, and a bit for each that is at most `limit`: those of
/// [`keys`]. Of bytes 0 and 1 of the query, 2 and 3 and so on the absolute values add up to at most 128: products
/// with two bytes of a row then fit 16 bits.
///
/// # Panics
/// If the query is no whole number of steps, or blocks are not whole or too many.
#[inline(always)]
pub(crate) fn block_keys(
    isa: Isa,
    asked: Asked<'_>,
    blocks: Blocked<'_>,
    limit: f32,
    keys: &mut [f32; TOGETHER],
) -> u64 {
    let (n, width) = (blocks.sides.len() / BLOCK_SIDES, asked.bytes.len());
    assert!(
        width.is_multiple_of(BLOCK_STEP)
            && n <= BLOCKS
            && blocks.sides.len() == n * BLOCK_SIDES
            && blocks.bytes.len() == n * BLOCK * width,
        "{} bytes and {} sides in blocks of {BLOCK} rows of {width}",
        blocks.bytes.len(),
        blocks.sides.len()
    );
    debug_assert!(
        asked
            .bytes
            .as_chunks::<2>()
            .0
            .iter()
            .all(|[a, b]| u32::from(a.unsigned_abs()) + u32::from(b.unsigned_abs()) <= 128),
        "two bytes of a query that do not fit"
    );
    match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: an instruction set is only named here where it is available; shapes were compared.
        Isa::Avx512 => unsafe { avx512::block_keys(asked, blocks, limit, keys) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Isa::Avx2 => unsafe { avx2::block_keys(asked, blocks, limit, keys) },
        _ => scalar::block_keys(asked, blocks, limit, keys),
    }
}

/// The position of the smallest key, the first of equal ones; 0 where there is none.
#[inline(always)]
pub(crate) fn smallest(isa: Isa, keys: &[f32]) -> usize {
    match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: an instruction set is only named here where it is available.
        Isa::Avx512 => unsafe { avx512::smallest(keys) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Isa::Avx2 => unsafe { avx2::smallest(keys) },
        _ => scalar::smallest(keys),
    }
}

/// The position of the largest key, of equal ones that of the largest vertex; 0 where there is none.
///
/// # Panics
/// If there are not as many vertices.
#[inline(always)]
pub(crate) fn largest(isa: Isa, keys: &[f32], vertices: &[u32]) -> usize {
    assert_eq!(keys.len(), vertices.len(), "keys and vertices");
    match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: an instruction set is only named here where it is available; lengths are equal.
        Isa::Avx512 => unsafe { avx512::largest(keys, vertices) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Isa::Avx2 => unsafe { avx2::largest(keys, vertices) },
        _ => scalar::largest(keys, vertices),
    }
}

/// Keys that [`insert`] keeps.
pub(crate) const FEW: usize = 32;

/// Puts a key and its vertex where they belong among ascending ones, of equal keys by vertex; the
/// last ones are lost.
#[inline(always)]
pub(crate) fn insert(isa: Isa, keys: &mut [f32; FEW], vertices: &mut [u32; FEW], key: f32, vertex: u32) {
    match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: an instruction set is only named here where it is available.
        Isa::Avx512 => unsafe { avx512::insert(keys, vertices, key, vertex) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Isa::Avx2 => unsafe { avx2::insert(keys, vertices, key, vertex) },
        _ => scalar::insert(keys, vertices, key, vertex),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use xc_hash::stream::Stream;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn every_instruction_set_has_the_same_keys(lines in 1usize..6, n in 1usize..20, n_listed in 0usize..=TOGETHER, seed: u64) {
            let width = lines * LINE;
            let mut stream = Stream::new(seed);
            let bytes: Vec<u8> = (0..n * width).map(|_| if seed % 3 == 0 { 255 } else { stream.below(256) as u8 }).collect();
            let query: Vec<i8> = (0..width).map(|_| if seed % 5 == 0 { -127 } else { (stream.below(255) as i32 - 127) as i8 }).collect();
            let sides: Vec<[f32; 2]> = (0..n).map(|_| [stream.unit() as f32, stream.unit() as f32]).collect();
            let rows: Vec<u32> = (0..n_listed).map(|_| stream.below(n as u32)).collect();
            let asked = Asked { bytes: &query, factor: 0.7, shift: 128 * query.iter().map(|&b| i32::from(b)).sum::<i32>(), norm: 3.0 };
            let coded = Coded { bytes: &bytes, sides: &sides };
            let key = |row: u32| {
                let codes = &bytes[row as usize * width..][..width];
                let sum = codes.iter().zip(&query).map(|(&c, &q)| i32::from(c) * i32::from(q)).sum::<i32>();
                let [norm, scale] = sides[row as usize];
                3.0 + norm - 0.7 * scale * (sum - asked.shift) as f32
            };
            let expected: Vec<f32> = rows.iter().map(|&row| key(row)).collect();
            let limit = expected.iter().copied().sum::<f32>() / n_listed.max(1) as f32;
            let bits = expected.iter().enumerate().fold(0u64, |bits, (at, key)| bits | u64::from(*key <= limit) << at);
            for isa in Isa::available() {
                let mut found = [7.0; TOGETHER];
                prop_assert_eq!(keys(isa, asked, coded, &rows, limit, &mut found), bits, "{}", isa);
                prop_assert_eq!(&found[..n_listed], &expected[..], "{}", isa);
            }
        }

        #[test]
        fn blocks_have_the_keys_of_their_rows(steps in 1usize..20, n_blocks in 0usize..=BLOCKS, seed: u64) {
            let (width, n) = (steps * BLOCK_STEP, n_blocks * BLOCK);
            let mut stream = Stream::new(seed);
            let bytes: Vec<u8> = (0..n * width).map(|_| if seed % 3 == 0 { 255 } else { stream.below(256) as u8 }).collect();
            let pair = |_| {
                let first = if seed % 5 == 0 { -127 } else { stream.below(255) as i32 - 127 };
                let left = 128 - first.abs();
                [first as i8, if seed % 5 == 0 { -left } else { (stream.below(2 * left as u32 + 1) as i32 - left).clamp(-127, 127) } as i8]
            };
            let query: Vec<i8> = (0..width / 2).flat_map(pair).collect();
            let sides: Vec<[f32; 2]> = (0..n).map(|_| [stream.unit() as f32, stream.unit() as f32]).collect();
            let asked = Asked { bytes: &query, factor: 0.7, shift: 128 * query.iter().map(|&b| i32::from(b)).sum::<i32>(), norm: 3.0 };
            let all: Vec<u32> = (0..n as u32).collect();
            let mut expected = [7.0; TOGETHER];
            scalar::keys(asked, Coded { bytes: &bytes, sides: &sides }, &all, 0.0, &mut expected);
            let limit = expected[..n].iter().sum::<f32>() / n.max(1) as f32;
            let bits = scalar::keys(asked, Coded { bytes: &bytes, sides: &sides }, &all, limit, &mut expected);
            let (mut in_blocks, mut block_sides) = (Vec::new(), Vec::new());
            for block in 0..n_blocks {
                let rows = BLOCK * block..BLOCK * (block + 1);
                for four in 0..width / 4 {
                    rows.clone().for_each(|row| in_blocks.extend_from_slice(&bytes[row * width + 4 * four..][..4]));
                }
                (0..2).for_each(|side| block_sides.extend(sides[rows.clone()].iter().map(|s| s[side])));
            }
            let blocks = Blocked { bytes: &in_blocks, sides: &block_sides };
            for isa in Isa::available() {
                let mut found = [7.0; TOGETHER];
                prop_assert_eq!(block_keys(isa, asked, blocks, limit, &mut found), bits, "{}", isa);
                prop_assert_eq!(&found[..n], &expected[..n], "{}", isa);
            }
        }

        #[test]
        fn the_smallest_key_is_the_first_of_equal_ones(
            keys in prop::collection::vec(prop_oneof![-2f32..2.0, Just(-1.5), Just(f32::INFINITY), Just(1.0)], 0..100)
        ) {
            let expected = keys.iter().enumerate().fold(0, |best, (at, key)| if *key < keys[best] { at } else { best });
            for isa in Isa::available() {
                prop_assert_eq!(smallest(isa, &keys), expected, "{}: {:?}", isa, &keys);
            }
        }

        #[test]
        fn the_largest_key_is_that_of_the_largest_vertex(items in prop::collection::vec((0i8..5, 0u32..50), 0..100)) {
            let (keys, vertices): (Vec<f32>, Vec<u32>) = items.iter().map(|&(key, vertex)| (f32::from(key), vertex)).unzip();
            let expected = items.iter().max().copied();
            for isa in Isa::available() {
                let at = largest(isa, &keys, &vertices);
                prop_assert_eq!(items.get(at).copied(), expected, "{}", isa);
            }
        }

        #[test]
        fn an_inserted_key_stands_where_a_sort_puts_it(items in prop::collection::vec((0i8..9, 0u32..99), 0..60)) {
            for isa in Isa::available() {
                let (mut keys, mut vertices) = ([f32::INFINITY; FEW], [u32::MAX; FEW]);
                let mut all = vec![(f32::INFINITY, u32::MAX); FEW];
                for &(key, vertex) in &items {
                    let key = f32::from(key);
                    insert(isa, &mut keys, &mut vertices, key, vertex);
                    all.push((key, vertex));
                    all.sort_by(|a, b| a.partial_cmp(b).unwrap());
                    let found: Vec<(f32, u32)> = keys.iter().copied().zip(vertices.iter().copied()).collect();
                    prop_assert_eq!(&found[..], &all[..FEW], "{}", isa);
                }
            }
        }
    }

    #[test]
    #[should_panic(expected = "range")]
    fn a_row_that_is_not_there_is_refused() {
        let asked = Asked { bytes: &[0; LINE], factor: 1.0, shift: 0, norm: 0.0 };
        keys(Isa::current(), asked, Coded { bytes: &[0; LINE], sides: &[[0.0; 2]] }, &[1], 0.0, &mut [0.0; TOGETHER]);
    }
}
