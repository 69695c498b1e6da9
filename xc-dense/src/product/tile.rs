//! Instruction sets: the inner tile of the dense product, and loops compiled once for each set.
//!
//! Every tile adds in ascending k and fuses each product with its sum, in plain code too: all of
//! them give the same bits.

use super::job::{Blocking, Job, Next, Target, WIDEST};
use super::{MatmulPrecision, Start, scalar};
#[cfg(target_arch = "x86_64")]
use super::{avx2, avx512};
use std::sync::OnceLock;
use xc_buffer::simd::Isa;

/// What is in a place of a packed panel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Words {
    /// A value.
    Plain,
    /// A value rounded to bf16.
    Rounded,
    /// Two values in bf16 that follow each other along k: the first in the upper half. The machine
    /// adds the product of the upper halves first, so that sums are those of `Rounded`.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "no other machine has such an instruction here"))]
    Pairs,
}

impl Words {
    /// Values of a place.
    pub(super) fn values(self) -> usize {
        match self {
            Self::Plain | Self::Rounded => 1,
            Self::Pairs => 2,
        }
    }

    /// Places for so many values.
    pub(super) fn count(self, n_values: usize) -> usize {
        n_values.div_ceil(self.values())
    }
}

/// The inner tile: `c = start + a * b` over `k` steps.
///
/// ```text
///   a: k groups of `rows` places      b: k groups of `columns` places      c: rows x columns, rows `stride` apart
/// ```
#[derive(Clone, Copy)]
pub(super) struct Tile {
    /// What its panels hold.
    pub(super) words: Words,
    /// Rows of the tile.
    pub(super) rows: usize,
    /// Columns of the tile.
    pub(super) columns: usize,
    pub(super) blocking: Blocking,
    run: unsafe fn(Job),
}

/// What sums begin with where nothing is added to.
static ZEROS: [f32; WIDEST] = [0.0; WIDEST];

impl Tile {
    /// The tile of one instruction set.
    pub(super) fn of(isa: Isa) -> Tile {
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => Tile {
                words: Words::Plain,
                rows: avx512::ROWS,
                columns: avx512::COLUMNS,
                blocking: avx512::BLOCKING,
                run: avx512::tile,
            },
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => Tile {
                words: Words::Plain,
                rows: avx2::ROWS,
                columns: avx2::COLUMNS,
                blocking: avx2::BLOCKING,
                run: avx2::tile,
            },
            _ => Tile {
                words: Words::Plain,
                rows: scalar::ROWS,
                columns: scalar::COLUMNS,
                blocking: scalar::BLOCKING,
                run: scalar::tile,
            },
        }
    }

    /// The tile of one instruction set for operands rounded to bf16. A product of two of them is
    /// exact in f32, so that fused or not the sums are the same: all tiles agree to the bit (but
    /// for sums below 1.2e-38, which are 0 to some, and products too large for f32, which fused may
    /// come back).
    pub(super) fn of_bf16(isa: Isa) -> Tile {
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 if has_pairs() => Tile { words: Words::Pairs, run: avx512::tile_of_pairs, ..Tile::of(isa) },
            _ => Tile { words: Words::Rounded, ..Tile::of(isa) },
        }
    }

    /// The tile of this process.
    pub(super) fn current(products: MatmulPrecision) -> Tile {
        static CHOICE: OnceLock<[Tile; 2]> = OnceLock::new();
        let [plain, rounded] = *CHOICE.get_or_init(|| [Tile::of(Isa::current()), Tile::of_bf16(Isa::current())]);
        match products {
            MatmulPrecision::F32 => plain,
            MatmulPrecision::Bf16 => rounded,
        }
    }

    /// The product of two packed panels, from the target's start on.
    ///
    /// # Panics
    /// If a slice is too short for the tile.
    #[inline]
    pub(super) fn run(&self, k: usize, a: &[f32], b: &[f32], target: Target<'_>, next: Next) {
        let Target { c, stride, start } = target;
        let start = match start {
            Start::Kept => std::ptr::null(),
            Start::Zero => ZEROS[..self.columns].as_ptr(),
            Start::Bias(bias) => bias[..self.columns].as_ptr(),
        };
        assert!(
            holds(a, k, self.rows, self.rows)
                && holds(b, k, self.columns, self.columns)
                && holds(c, self.rows, stride, self.columns)
                && stride >= self.columns
        );
        let job = Job { k, a: a.as_ptr(), b: b.as_ptr(), c: c.as_mut_ptr(), stride, start, next };
        // SAFETY: the lengths were just compared with what the kernel reads and writes, and `of`
        // chooses a kernel only where `Isa` found its instructions.
        unsafe { (self.run)(job) }
    }
}

/// Whether there are `n` lines of `k` values, `stride` apart.
#[inline(always)]
fn holds<T>(values: &[T], n: usize, stride: usize, k: usize) -> bool {
    let end = |last: usize| last.checked_mul(stride)?.checked_add(k);
    n == 0 || end(n - 1).is_some_and(|end| values.len() >= end)
}

/// `out[p * group + i]`: value p of line i. Lines are of `k` values, `stride` apart. Whether this
/// machine has a kernel for it; if not, nothing is written.
///
/// # Panics
/// If a slice is too short.
pub(super) fn plain_lines(lines: &[f32], stride: usize, n: usize, k: usize, out: &mut [f32], group: usize) -> bool {
    assert!(n <= group && holds(out, k, group, group) && holds(lines, n, stride, k));
    #[cfg(target_arch = "x86_64")]
    {
        let (from, to) = (lines.as_ptr(), out.as_mut_ptr());
        // SAFETY: the instructions are there, and the lengths were just compared with what is read
        // and written: of AVX2's kernels `group` lines.
        unsafe {
            match Isa::current() {
                Isa::Avx512 => avx512::plain_lines(from, stride, n, k, to, group),
                Isa::Avx2 if n == group && n == avx2::ROWS => avx2::plain_lines::<{ avx2::ROWS }>(from, stride, k, to),
                Isa::Avx2 if n == group && n == avx2::COLUMNS => {
                    avx2::plain_lines::<{ avx2::COLUMNS }>(from, stride, k, to);
                }
                _ => return false,
            }
        }
        true
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = stride;
        false
    }
}

/// `out[p * group + i]`: the values 2 p and 2 p + 1 of line i as [`Words::Pairs`] has them, with 0
/// past a line's end. Lines are of `k` values, `stride` apart.
///
/// # Panics
/// If a slice is too short.
pub(super) fn pair_lines(lines: &[f32], stride: usize, n: usize, k: usize, out: &mut [u32], group: usize) {
    assert!(n <= group && holds(out, k.div_ceil(2), group, group) && holds(lines, n, stride, k));
    #[cfg(target_arch = "x86_64")]
    if has_pairs() {
        // SAFETY: the instructions are there, and the lengths were just compared with what is read
        // and written.
        return unsafe { avx512::pair_lines(lines.as_ptr(), stride, n, k, out.as_mut_ptr(), group) };
    }
    scalar::pair_lines(lines, stride, n, k, out, group);
}

/// `out[i]`: `first[i]` and `second[i]` as [`Words::Pairs`] has them.
///
/// # Panics
/// If lengths differ.
pub(super) fn pair_rows(first: &[f32], second: &[f32], out: &mut [u32]) {
    assert!(first.len() == out.len() && second.len() == out.len(), "rows of {} and {}", first.len(), second.len());
    #[cfg(target_arch = "x86_64")]
    if has_pairs() {
        // SAFETY: the instructions are there.
        return unsafe { avx512::pair_rows(first, second, out) };
    }
    scalar::pair_rows(first, second, out);
}

#[cfg(target_arch = "x86_64")]
fn has_pairs() -> bool {
    is_x86_feature_detected!("avx512bf16") && Isa::Avx512.is_available()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::print_stderr, reason = "a skipped comparison is said")]
    fn pairs_are_packed_as_plain_code_packs_them() {
        #[cfg(target_arch = "x86_64")]
        let skipped = !has_pairs();
        #[cfg(not(target_arch = "x86_64"))]
        let skipped = true;
        if skipped {
            eprintln!("SKIPPED: this machine has no AVX512_BF16, plain code is compared with itself");
        }
        // Numbers of every kind, as bits.
        let value = |i: usize| match i % 11 {
            0 => f32::from_bits(i as u32 * 7919),
            1 => f32::INFINITY,
            2 => -f32::MIN_POSITIVE,
            3 => f32::from_bits(0x007f_ffff),
            _ => ((i * 7919 + 13) % 1013) as f32 / 50.0 - 1.0,
        };
        for (n, k, group) in
            [(0, 5, 12), (1, 0, 12), (1, 1, 1), (12, 512, 12), (5, 33, 12), (32, 31, 32), (17, 64, 32), (32, 47, 32)]
        {
            let stride = k + 3;
            let lines: Vec<f32> = (0..n * stride).map(value).collect();
            let mut expected = vec![7; usize::div_ceil(k, 2) * group];
            let mut got = expected.clone();
            scalar::pair_lines(&lines, stride, n, k, &mut expected, group);
            pair_lines(&lines, stride, n, k, &mut got, group);
            assert_eq!(got, expected, "{n} lines of {k} in groups of {group}");
            let first: Vec<f32> = (0..k).map(value).collect();
            let second: Vec<f32> = (0..k).map(|i| value(i + 5)).collect();
            let (mut expected, mut got) = (vec![0; k], vec![0; k]);
            scalar::pair_rows(&first, &second, &mut expected);
            pair_rows(&first, &second, &mut got);
            assert_eq!(got, expected, "rows of {k}");
        }
        for value in [f32::NAN, f32::from_bits(0x7f80_0001)] {
            let mut got = [0; 1];
            pair_rows(&[value], &[value], &mut got);
            assert!([got[0] & 0xffff_0000, got[0] << 16].iter().all(|&bits| f32::from_bits(bits).is_nan()));
        }
    }

    #[test]
    fn lines_whose_places_no_memory_has_are_none() {
        let values = [0f32; 4108];
        assert!(holds(&values, 3, 4, 4) && holds(&values, 0, usize::MAX, 9) && holds(&values, 1, usize::MAX, 9));
        // Products that wrap around to a few values.
        let wraps = (usize::MAX / 31).wrapping_add(1 + 4107 / 31);
        assert!(wraps.wrapping_mul(31) <= 4107, "{}", wraps.wrapping_mul(31));
        assert!(!holds(&values, 32, wraps, 9) && !holds(&values, wraps, 31, 31) && !holds(&values, 2, usize::MAX, 2));
    }

    #[test]
    #[expect(clippy::print_stderr, reason = "a skipped comparison is said")]
    fn lines_are_packed_as_plain_code_packs_them() {
        let of_avx512 = [(12, 512, 12), (5, 33, 12), (32, 31, 32), (17, 64, 32), (32, 47, 32)];
        let of_avx2 = [(6, 512, 6), (6, 7, 6), (6, 47, 6), (5, 33, 6), (16, 64, 16), (16, 31, 16), (15, 20, 16)];
        for (n, k, group) in [(0, 5, 12), (1, 0, 12), (1, 1, 1)].into_iter().chain(of_avx512).chain(of_avx2) {
            let stride = k + 3;
            // Numbers of every kind, as bits.
            let lines: Vec<u32> = (0..n * stride).map(|i| (i as u32).wrapping_mul(0x9e37_79b9)).collect();
            let mut got = vec![7; k * group];
            let values = bytemuck::cast_slice(&lines);
            if !plain_lines(values, stride, n, k, bytemuck::cast_slice_mut(&mut got), group) {
                eprintln!("SKIPPED: this machine packs {n} lines of {k} in groups of {group} in plain code");
                assert!(got.iter().all(|&bits| bits == 7));
                continue;
            }
            for (at, &bits) in got.iter().enumerate() {
                let (p, i) = (at / group, at % group);
                assert_eq!(bits, if i < n { lines[i * stride + p] } else { 7 }, "{n} lines of {k}, place {p} of {i}");
            }
        }
    }

    #[test]
    fn every_tile_agrees_with_plain_sums() {
        for isa in Isa::available() {
            let tile = Tile::of(isa);
            let bias: Vec<f32> = (0..tile.columns).map(|j| j as f32 / 8.0 - 1.0).collect();
            for (k, start) in [0, 1, 2, 3, 7, 8, 64, 257]
                .into_iter()
                .flat_map(|k| [Start::Kept, Start::Zero, Start::Bias(&bias)].map(|start| (k, start)))
            {
                let value = |i: usize| ((i * 7919 + 13) % 101) as f32 / 50.0 - 1.0;
                let a: Vec<f32> = (0..k * tile.rows).map(value).collect();
                let b: Vec<f32> = (0..k * tile.columns).map(|i| value(i + 5)).collect();
                let stride = tile.columns + 3;
                let mut c: Vec<f32> = (0..tile.rows * stride).map(|i| value(i + 9)).collect();
                let before = c.clone();
                let next = Next { b: std::ptr::null(), c: std::ptr::null() };
                tile.run(k, &a, &b, Target { c: &mut c, stride, start }, next);
                for (at, (&got, &old)) in c.iter().zip(&before).enumerate() {
                    let (i, j) = (at / stride, at % stride);
                    if j >= tile.columns {
                        assert_eq!(got, old, "{isa}: outside the tile");
                        continue;
                    }
                    let product = |p: usize| f64::from(a[p * tile.rows + i]) * f64::from(b[p * tile.columns + j]);
                    let start = match start {
                        Start::Kept => f64::from(old),
                        Start::Zero => 0.0,
                        Start::Bias(bias) => f64::from(bias[j]),
                    };
                    let expected = start + (0..k).map(product).sum::<f64>();
                    assert!((f64::from(got) - expected).abs() < 1e-4, "{isa}, k {k}, ({i}, {j}): {got} {expected}");
                }
            }
        }
    }
}
