//! The lane solver compiled once for each instruction set, chosen at run time.
//!
//! The copies share one body and give the same bits (see [`super::lanes`]), so the choice is invisible.

mod aligned;

pub(crate) use aligned::Aligned;

use super::lanes::{self, Problem, State};
use std::sync::OnceLock;
use xc_hash::stream::Stream;

/// Instruction sets with a copy of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InstructionSet {
    Baseline,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl InstructionSet {
    /// All sets that this machine runs, the widest last.
    pub(super) fn available() -> Vec<Self> {
        #[allow(unused_mut)] // nothing is pushed on other architectures
        let mut sets = vec![Self::Baseline];
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx2") {
                sets.push(Self::Avx2);
            }
            if is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512bw")
            {
                sets.push(Self::Avx512);
            }
        }
        sets
    }

    fn best() -> Self {
        static BEST: OnceLock<InstructionSet> = OnceLock::new();
        *BEST.get_or_init(|| Self::available().pop().unwrap_or(Self::Baseline))
    }
}

/// Asks for the first cache lines of an instance and for its dual variables; changes nothing.
#[inline(always)]
pub(super) fn prefetch<const N: usize>(row: (&[u32], &[f32]), alpha: &[f32; N]) {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        /// 16 numbers of 4 bytes are a cache line; the hardware fetches on by itself.
        const LINES: usize = 4;
        for line in 0..LINES {
            let (index, value) = (row.0.as_ptr().wrapping_add(16 * line), row.1.as_ptr().wrapping_add(16 * line));
            // SAFETY: a prefetch is a hint: it neither faults nor reads, whatever the address (SSE is in the baseline).
            unsafe {
                _mm_prefetch::<_MM_HINT_T0>(index.cast());
                _mm_prefetch::<_MM_HINT_T0>(value.cast());
            }
        }
        // SAFETY: as above.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(alpha.as_ptr().cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (row, alpha);
}

/// Solves with the widest instruction set at hand.
pub(super) fn solve<const N: usize>(problem: &Problem<'_, N>, state: &mut State<'_, N>, rng: &mut Stream) {
    solve_with(InstructionSet::best(), problem, state, rng);
}

/// Solves with a given instruction set.
///
/// # Panics
/// If this machine does not run it.
pub(super) fn solve_with<const N: usize>(
    set: InstructionSet,
    problem: &Problem<'_, N>,
    state: &mut State<'_, N>,
    rng: &mut Stream,
) {
    match set {
        InstructionSet::Baseline => lanes::solve(problem, state, rng),
        #[cfg(target_arch = "x86_64")]
        InstructionSet::Avx2 => {
            assert!(is_x86_feature_detected!("avx2"), "AVX2 asked, not present");
            // SAFETY: the feature was detected on the line above.
            unsafe { solve_avx2(problem, state, rng) }
        }
        #[cfg(target_arch = "x86_64")]
        InstructionSet::Avx512 => {
            assert!(InstructionSet::available().contains(&set), "AVX-512 F, VL, DQ, BW asked, not present");
            // SAFETY: `available` lists the set only when all four features are detected.
            unsafe { solve_avx512(problem, state, rng) }
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn solve_avx2<const N: usize>(problem: &Problem<'_, N>, state: &mut State<'_, N>, rng: &mut Stream) {
    lanes::solve(problem, state, rng);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw")]
fn solve_avx512<const N: usize>(problem: &Problem<'_, N>, state: &mut State<'_, N>, rng: &mut Stream) {
    lanes::solve(problem, state, rng);
}
