//! The kernels without vector instructions: they define what the others compute.

use super::{Bins, Combination, LANES, RANKED};

/// See [`super::rank`].
pub(super) fn rank(values: &[f32; RANKED], n: usize, ranks: &mut [u8; RANKED]) {
    for (i, rank) in ranks.iter_mut().enumerate().take(n) {
        let before = values[..i].iter().filter(|&&other| other < values[i]).count();
        let after = values[i + 1..n].iter().filter(|&&other| other <= values[i]).count();
        *rank = (before + after) as u8;
    }
}

/// See [`super::winners`].
pub(super) fn winners(ranks: &[[u8; RANKED]], bins: &Bins, codes: &mut [u8]) {
    let units = bins.places.chunks_exact(LANES * bins.size).zip(codes.chunks_exact_mut(LANES));
    for ((places, codes), ranks) in units.zip(ranks.iter().cycle()) {
        let mut best = [0u8; LANES];
        for (at, places) in places.chunks_exact(LANES).enumerate() {
            for lane in 0..LANES {
                let rank = ranks[usize::from(places[lane])];
                if at == 0 || rank > best[lane] {
                    best[lane] = rank;
                    codes[lane] = at as u8;
                }
            }
        }
    }
}

/// See [`super::combine`]: columns are taken `TILE` at a time, whose sums stay in registers.
#[inline(always)]
pub(super) fn combine<const TILE: usize>(of: Combination<'_>, out: &mut [f32]) {
    let n = out.len();
    let rows = of.rows.map_or(of.factors.len(), <[u32]>::len);
    assert_eq!(rows, of.factors.len(), "rows, and factors");
    let row = |at: usize| &of.matrix[of.rows.map_or(at, |rows| rows[at] as usize) * n..][..n];
    let (tiles, rest) = out.as_chunks_mut::<TILE>();
    let first = tiles.len() * TILE;
    for (tile, out) in tiles.iter_mut().enumerate() {
        let mut sums = [0.0f32; TILE];
        for (at, &factor) in of.factors.iter().enumerate() {
            let values: &[f32] = &row(at)[tile * TILE..][..TILE];
            for lane in 0..TILE {
                sums[lane] = factor.mul_add(values[lane], sums[lane]);
            }
        }
        *out = sums;
    }
    rest.fill(0.0);
    for (at, &factor) in of.factors.iter().enumerate() {
        for (out, &value) in rest.iter_mut().zip(&row(at)[first..]) {
            *out = factor.mul_add(value, *out);
        }
    }
}
