//! The kernels without vector instructions: they define what the others compute.

use super::{Bins, LANES, RANKED};

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

/// See [`super::add_scaled`].
#[inline(always)]
pub(super) fn add_scaled(factor: f32, row: &[f32], out: &mut [f32]) {
    for (out, &value) in out.iter_mut().zip(row) {
        *out = factor.mul_add(value, *out);
    }
}
