//! Instruction sets: which one runs, and one file of kernels for each.
//!
//! The scalar file defines every operation; the others are tested against it bit for bit. No kernel of label trees fuses a
//! multiplication with an addition, and each adds a child's products in ascending feature order; the forward products of output
//! layers are fused everywhere, in plain code too: so all of them give the same bits. The choice is made once a process; `XC_SIMD=scalar|avx2|avx512` forces one.

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx512;
pub(crate) mod scalar;
#[cfg(target_arch = "x86_64")]
pub(crate) mod screen_avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) mod screen_avx512;
#[cfg(target_arch = "x86_64")]
pub(crate) mod uniform_avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) mod uniform_avx512;
#[cfg(target_arch = "x86_64")]
mod uniform_products;

use std::sync::OnceLock;

/// An instruction set that kernels exist for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Isa {
    /// Portable code.
    Scalar,
    /// AVX2 with FMA, BMI and POPCNT.
    Avx2,
    /// AVX-512 F, BW, DQ, VL, VPOPCNTDQ and VNNI (Ice Lake, Zen 4 and later).
    Avx512,
}

impl Isa {
    /// True if this machine can run it.
    pub fn is_available(self) -> bool {
        match self {
            Self::Scalar => true,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => {
                is_x86_feature_detected!("avx2")
                    && is_x86_feature_detected!("fma")
                    && is_x86_feature_detected!("popcnt")
                    && is_x86_feature_detected!("bmi1")
                    && is_x86_feature_detected!("bmi2")
                    && is_x86_feature_detected!("f16c")
            }
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => {
                Self::Avx2.is_available()
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
                    && is_x86_feature_detected!("avx512vpopcntdq")
                    && is_x86_feature_detected!("avx512vnni")
            }
            #[cfg(not(target_arch = "x86_64"))]
            _ => false,
        }
    }

    /// Every instruction set of this machine, the plain one first.
    pub fn available() -> impl Iterator<Item = Isa> {
        [Self::Scalar, Self::Avx2, Self::Avx512].into_iter().filter(|isa| isa.is_available())
    }

    /// The one that the products use: the widest available, unless `XC_SIMD` names another.
    ///
    /// # Panics
    /// If `XC_SIMD` names an unknown instruction set or one that this machine lacks: a silent change of path
    /// would make a forced test pass for the wrong reason.
    pub fn current() -> Isa {
        static CHOICE: OnceLock<Isa> = OnceLock::new();
        *CHOICE.get_or_init(|| {
            let Some(name) = std::env::var_os("XC_SIMD") else {
                return Self::available().last().unwrap_or(Self::Scalar);
            };
            let isa = match name.to_str() {
                Some("scalar") => Self::Scalar,
                Some("avx2") => Self::Avx2,
                Some("avx512") => Self::Avx512,
                _ => panic!("XC_SIMD={name:?}: wanted scalar, avx2 or avx512"),
            };
            assert!(isa.is_available(), "XC_SIMD={name:?}: this machine does not have it");
            isa
        })
    }
}

impl std::fmt::Display for Isa {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Scalar => "scalar",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        })
    }
}

/// Asks for the cache line of entry `at`, which may be anywhere.
#[inline(always)]
pub(crate) fn prefetch<T>(slice: &[T], at: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch is a hint: it neither faults nor reads, whatever the address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(slice.as_ptr().wrapping_add(at).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (slice, at);
}

/// A loop to run with [`vectorised_loop`].
pub trait Loop {
    /// What it gives.
    type Output;

    /// The loop. To be marked `#[inline(always)]`, with all it calls that has vectors: it is compiled for the instructions of its caller then.
    fn run(self) -> Self::Output;
}

/// Runs a loop compiled for the widest vectors of this machine. The loop should do at least some hundred nanoseconds of work, and is
/// compiled once for each instruction set.
#[inline(always)]
pub fn vectorised_loop<L: Loop>(body: L) -> L::Output {
    #[cfg(target_arch = "x86_64")]
    match Isa::current() {
        // SAFETY: `Isa::current` gives only instruction sets that this machine has.
        Isa::Avx512 => return unsafe { with_avx512(body) },
        // SAFETY: as above.
        Isa::Avx2 => return unsafe { with_avx2(body) },
        Isa::Scalar => {}
    }
    body.run()
}

/// [`vectorised_loop`] for a short loop. The compiler puts a closure of some tens of instructions in its place three times; a larger one it may call
/// instead, and then it is compiled for the least instruction set: those are for [`Loop`].
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
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
unsafe fn with_avx512<L: Loop>(body: L) -> L::Output {
    body.run()
}

/// # Safety
/// The machine has AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn with_avx2<L: Loop>(body: L) -> L::Output {
    body.run()
}
