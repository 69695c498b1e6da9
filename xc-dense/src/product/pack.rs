//! Copies of operands in the order in which the tiles read them.

use super::MatRef;
use super::job::WIDEST;
use super::scalar::flushed;
use super::tile::{Words, pair_lines, pair_rows, plain_lines};
use std::ops::Range;
use xc_buffer::simd::{Loop, prefetch_all, vectorised_loop};

/// Which operand of a product is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operand {
    A,
    /// Where k is odd, the last pair has -0 as its second value: with A's 0 it adds -0, which changes
    /// no sum. 0 would change the sign of a sum of -0.
    B,
}

/// The sign of the second value of a pair.
const NEGATIVE: u32 = 0x8000;

/// A panel of `width` columns of B, its places one after another. Columns past the end are zeros.
pub(super) fn pack_columns(
    words: Words,
    width: usize,
    b: MatRef<'_>,
    panel: usize,
    inner: &Range<usize>,
    columns: &Range<usize>,
    out: &mut [f32],
) {
    let first = columns.start + panel * width;
    let present = width.min(columns.end - first);
    interleave(words, Operand::B, out, width, b.t(), first..first + present, inner.clone());
}

/// Rows of A in panels of `height`: panel after panel, in each the places one after another. Rows
/// past the end are zeros.
pub(super) fn pack_rows(
    words: Words,
    height: usize,
    a: MatRef<'_>,
    rows: Range<usize>,
    inner: Range<usize>,
    out: &mut Vec<f32>,
) {
    let places = words.count(inner.len());
    out.resize(rows.len().div_ceil(height) * height * places, 0.0);
    for (panel, out) in out.chunks_exact_mut((height * places).max(1)).enumerate() {
        let first = rows.start + panel * height;
        let present = height.min(rows.end - first);
        interleave(words, Operand::A, out, height, a, first..first + present, inner.clone());
    }
}

/// The place `p` of line i is `out[p * group + i]`, zeros where `i` is past the lines. A place
/// holds `m[lines.start + i, inner.start + p]`, or the two values from `inner.start + 2 p` on, with
/// the operand's zero past the end.
pub(super) fn interleave(
    words: Words,
    operand: Operand,
    out: &mut [f32],
    group: usize,
    m: MatRef<'_>,
    lines: Range<usize>,
    inner: Range<usize>,
) {
    if lines.len() < group {
        out.fill(0.0);
    }
    match words {
        Words::Plain => {
            let at = lines.start * m.row_stride + inner.start;
            let is_apart = m.row_stride != 1 && at < m.values.len();
            if !(is_apart && plain_lines(&m.values[at..], m.row_stride, lines.len(), inner.len(), out, group)) {
                singles(out, group, m, lines, inner, |value| value);
            }
        }
        Words::Rounded => singles(out, group, m, lines, inner, flushed),
        Words::Pairs => {
            let out = bytemuck::cast_slice_mut(out);
            pairs(out, group, m, lines.clone(), inner.clone());
            if inner.len() % 2 == 1 && operand == Operand::B {
                let last = inner.len() / 2 * group;
                out[last..][..lines.len()].iter_mut().for_each(|place| *place |= NEGATIVE);
            }
        }
    }
}

#[inline(always)]
fn singles(
    out: &mut [f32],
    group: usize,
    m: MatRef<'_>,
    lines: Range<usize>,
    inner: Range<usize>,
    map: impl Fn(f32) -> f32,
) {
    vectorised_loop(Singles { out, group, m, lines, inner, map });
}

struct Singles<'a, F> {
    out: &'a mut [f32],
    group: usize,
    m: MatRef<'a>,
    lines: Range<usize>,
    inner: Range<usize>,
    map: F,
}

impl<F: Fn(f32) -> f32> Loop for Singles<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { out, group, m, lines, inner, map } = self;
        if m.row_stride == 1 {
            // Lines lie side by side: each step of `inner` is one contiguous piece, whose length is known where a panel
            // is whole.
            let steps = inner.map(|p| &m.values[p * m.column_stride + lines.start..][..lines.len()]);
            match (lines.len(), group) {
                (6, 6) => steps.zip(out.as_chunks_mut().0).for_each(|(from, out)| copy::<6>(out, from, &map)),
                (12, 12) => steps.zip(out.as_chunks_mut().0).for_each(|(from, out)| copy::<12>(out, from, &map)),
                (16, 16) => steps.zip(out.as_chunks_mut().0).for_each(|(from, out)| copy::<16>(out, from, &map)),
                (32, 32) => steps.zip(out.as_chunks_mut().0).for_each(|(from, out)| copy::<32>(out, from, &map)),
                _ => {
                    for (from, out) in steps.zip(out.chunks_exact_mut(group)) {
                        out.iter_mut().zip(from).for_each(|(out, &value)| *out = map(value));
                    }
                }
            }
            return;
        }
        debug_assert!(m.column_stride == 1, "one stride is 1 in every matrix made here");
        // Sixteen steps of every line at a time: the written lines stay in the nearest cache.
        for p in (0..inner.len()).step_by(16) {
            let n = 16.min(inner.len() - p);
            let out = &mut out[p * group..(p + n) * group];
            for (i, line) in lines.clone().enumerate() {
                let from = &m.values[line * m.row_stride + inner.start + p..][..n];
                for (out, &value) in out.chunks_exact_mut(group).zip(from) {
                    out[i] = map(value);
                }
            }
        }
    }
}

/// Copies `N` values.
#[inline(always)]
fn copy<const N: usize>(out: &mut [f32; N], from: &[f32], map: &impl Fn(f32) -> f32) {
    assert!(from.len() == N, "{} values, expected {N}", from.len());
    // All are read before one is written: in vectors.
    *out = std::array::from_fn(|i| map(from[i]));
}

/// How many lines ahead values are asked for: four panels of rows of A.
const AHEAD: usize = 48;

fn pairs(out: &mut [u32], group: usize, m: MatRef<'_>, lines: Range<usize>, inner: Range<usize>) {
    if m.row_stride != 1 {
        debug_assert!(m.column_stride == 1, "one stride is 1 in every matrix made here");
        let values = &m.values[(lines.start * m.row_stride + inner.start).min(m.values.len())..];
        return pair_lines(values, m.row_stride, lines.len(), inner.len(), out, group);
    }
    let n = lines.len();
    for (p, out) in inner.clone().step_by(2).zip(out.chunks_exact_mut(group)) {
        let from = p * m.column_stride + lines.start;
        let first = &m.values[from..from + n];
        // What a later panel will want: each step of `inner` is elsewhere in memory, which the
        // machine does not foresee.
        for later in [from + AHEAD, from + AHEAD + m.column_stride] {
            prefetch_all(&m.values[later.min(m.values.len())..(later + n).min(m.values.len())]);
        }
        if p + 1 < inner.end {
            pair_rows(first, &m.values[from + m.column_stride..][..n], &mut out[..n]);
        } else {
            pair_rows(first, &[0.0; WIDEST][..n], &mut out[..n]);
        }
    }
}
