//! The kernels in AVX-512: all 128 ranks stand in two registers, and one instruction looks 64 of
//! them up.

use super::{Bins, Combination, LANES, RANKED};
use std::arch::x86_64::*;

/// Values of a register, and registers of all values.
const WIDTH: usize = 16;
const BLOCKS: usize = RANKED / WIDTH;

/// See [`super::scalar::rank`]. Each pair is compared once: if the later value is at most the earlier
/// one, the earlier one beats it, else the later one does.
///
/// # Safety
/// The machine has AVX-512 F and POPCNT.
#[target_feature(enable = "avx512f,popcnt")]
pub(super) unsafe fn rank(values: &[f32; RANKED], n: usize, ranks: &mut [u8; RANKED]) {
    let blocks = values.as_chunks::<WIDTH>().0;
    // SAFETY: blocks of sixteen values.
    let of: [__m512; BLOCKS] = std::array::from_fn(|at| unsafe { _mm512_loadu_ps(blocks[at].as_ptr()) });
    let mut beaten = [_mm512_setzero_si512(); BLOCKS];
    let of_block = ranks.as_chunks_mut::<WIDTH>().0;
    against::<0>(&of, &blocks[0], n, &mut beaten, &mut of_block[0]);
    against::<1>(&of, &blocks[1], n, &mut beaten, &mut of_block[1]);
    against::<2>(&of, &blocks[2], n, &mut beaten, &mut of_block[2]);
    against::<3>(&of, &blocks[3], n, &mut beaten, &mut of_block[3]);
    against::<4>(&of, &blocks[4], n, &mut beaten, &mut of_block[4]);
    against::<5>(&of, &blocks[5], n, &mut beaten, &mut of_block[5]);
    against::<6>(&of, &blocks[6], n, &mut beaten, &mut of_block[6]);
    against::<7>(&of, &blocks[7], n, &mut beaten, &mut of_block[7]);
    for (beaten, ranks) in beaten.iter().zip(of_block) {
        let counts = _mm512_cvtepi32_epi8(*beaten);
        // SAFETY: sixteen ranks, read and written.
        unsafe {
            let earlier = _mm_loadu_si128(ranks.as_ptr().cast());
            _mm_storeu_si128(ranks.as_mut_ptr().cast(), _mm_add_epi8(earlier, counts));
        }
    }
}

/// Compares the values of block `AT` with all before them: counts in `beaten` for those before, in
/// `ranks` for the block's own.
#[inline]
#[target_feature(enable = "avx512f,popcnt")]
fn against<const AT: usize>(
    of: &[__m512; BLOCKS],
    others: &[f32; WIDTH],
    n: usize,
    beaten: &mut [__m512i; BLOCKS],
    ranks: &mut [u8; WIDTH],
) {
    let one = _mm512_set1_epi32(1);
    for (j, &other) in others.iter().enumerate().take(n.saturating_sub(AT * WIDTH)) {
        let other = _mm512_set1_ps(other);
        let mut lost = 0;
        for block in 0..AT {
            let wins = _mm512_cmp_ps_mask::<_CMP_LE_OQ>(other, of[block]);
            beaten[block] = _mm512_mask_add_epi32(beaten[block], wins, beaten[block], one);
            lost += wins.count_ones();
        }
        let before = (1u16 << j) - 1;
        let wins = _mm512_mask_cmp_ps_mask::<_CMP_LE_OQ>(before, other, of[AT]);
        beaten[AT] = _mm512_mask_add_epi32(beaten[AT], wins, beaten[AT], one);
        ranks[j] = ((AT * WIDTH + j) as u32 - lost - wins.count_ones()) as u8;
    }
}

/// See [`super::scalar::winners`].
///
/// # Safety
/// The machine has AVX-512 F, BW and VBMI; `codes` has [`LANES`] places for each unit of `bins`.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
pub(super) unsafe fn winners(ranks: &[[u8; RANKED]], bins: &Bins, codes: &mut [u8]) {
    let mut subset = 0;
    let units = bins.places.chunks_exact(LANES * bins.size).zip(codes.chunks_exact_mut(LANES));
    for (places, codes) in units {
        let of = ranks[subset].as_ptr();
        subset = if subset + 1 == ranks.len() { 0 } else { subset + 1 };
        // SAFETY: 128 ranks; a list of places and the codes of a unit have 64 entries each.
        unsafe {
            let (low, high) = (_mm512_loadu_epi8(of.cast()), _mm512_loadu_epi8(of.add(64).cast()));
            let mut lists = places.chunks_exact(LANES).map(|p| _mm512_loadu_epi8(p.as_ptr().cast()));
            let mut code = _mm512_setzero_si512();
            if let Some(first) = lists.next() {
                let mut best = _mm512_permutex2var_epi8(low, first, high);
                for (at, list) in lists.enumerate() {
                    let rank = _mm512_permutex2var_epi8(low, list, high);
                    let wins = _mm512_cmpgt_epu8_mask(rank, best);
                    best = _mm512_max_epu8(best, rank);
                    code = _mm512_mask_mov_epi8(code, wins, _mm512_set1_epi8(at as i8 + 1));
                }
            }
            _mm512_storeu_epi8(codes.as_mut_ptr().cast(), code);
        }
    }
}

/// See [`super::scalar::combine`].
///
/// # Safety
/// The machine has AVX-512 F.
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn combine(of: Combination<'_>, out: &mut [f32]) {
    super::scalar::combine::<128>(of, out);
}
