//! Plain loops compiled once for each instruction set.
//!
//! The compiler fuses no product with a sum by itself, so that all paths give the same bits.

use super::Isa;

/// A loop to run with [`vectorised_loop`].
pub trait Loop {
    /// What it gives.
    type Output;

    /// The loop. To be marked `#[inline(always)]`, with all it calls that has vectors: it is
    /// compiled for the instructions of its caller then.
    fn run(self) -> Self::Output;
}

/// Runs a loop compiled for the widest vectors of this machine. The loop should do at least some
/// hundred nanoseconds of work, and is compiled once for each instruction set.
#[inline(always)]
pub fn vectorised_loop<L: Loop>(body: L) -> L::Output {
    // SAFETY: `Isa::current` gives only instruction sets that this machine has.
    unsafe { run_on(Isa::current(), body) }
}

/// [`vectorised_loop`] compiled for a named instruction set.
///
/// # Panics
/// If this machine lacks it.
#[inline(always)]
pub fn vectorised_loop_on<L: Loop>(isa: Isa, body: L) -> L::Output {
    assert!(isa.is_available(), "{isa} code asked for on a machine without it");
    // SAFETY: the instruction set is available.
    unsafe { run_on(isa, body) }
}

/// # Safety
/// The machine has the instruction set.
#[inline(always)]
unsafe fn run_on<L: Loop>(isa: Isa, body: L) -> L::Output {
    match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the caller vouches for the instructions.
        Isa::Avx512 => unsafe { with_avx512(body) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Isa::Avx2 => unsafe { with_avx2(body) },
        _ => body.run(),
    }
}

/// [`vectorised_loop`] for a short loop. The compiler puts a closure of some tens of instructions
/// in its place three times; a larger one it may call instead, and then it is compiled for the
/// baseline instruction set: use [`Loop`] for those.
#[inline(always)]
pub fn vectorised<R>(body: impl FnOnce() -> R) -> R {
    vectorised_loop(Short(body))
}

struct Short<F>(F);

impl<R, F: FnOnce() -> R> Loop for Short<F> {
    type Output = R;

    #[inline(always)]
    fn run(self) -> R {
        (self.0)()
    }
}

/// # Safety
/// The machine has the instructions that [`Isa::Avx512`] asks for.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,bmi1,bmi2,popcnt")]
unsafe fn with_avx512<L: Loop>(body: L) -> L::Output {
    body.run()
}

/// # Safety
/// The machine has the instructions that [`Isa::Avx2`] asks for.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
unsafe fn with_avx2<L: Loop>(body: L) -> L::Output {
    body.run()
}
