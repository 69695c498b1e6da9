//! Which instruction set runs.

use std::ffi::OsString;
use std::sync::OnceLock;
use thiserror::Error;

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

    /// The one that `XC_SIMD` names; the widest available where it is not set.
    ///
    /// # Errors
    /// An unknown instruction set, or one that this machine lacks. Products then run on the widest one
    /// ([`Isa::current`]): a program, or a test that forces one, asks here first, so that no other is
    /// taken without a word.
    pub fn from_env() -> Result<Isa, IsaError> {
        match std::env::var_os("XC_SIMD") {
            None => Ok(Self::widest()),
            Some(name) => Self::named(name.to_str().unwrap_or_default())
                .ok_or_else(|| IsaError::Unknown { name: name.clone() })
                .and_then(|isa| if isa.is_available() { Ok(isa) } else { Err(IsaError::Missing { isa }) }),
        }
    }

    fn widest() -> Isa {
        Self::available().last().unwrap_or(Self::Scalar)
    }

    fn named(name: &str) -> Option<Isa> {
        [Self::Scalar, Self::Avx2, Self::Avx512].into_iter().find(|isa| isa.name() == name)
    }

    /// The one that the products use: [`Isa::from_env`] of the first call of the process; where that is
    /// an error, the widest of this machine.
    #[inline]
    pub fn current() -> Isa {
        static CHOICE: OnceLock<Isa> = OnceLock::new();
        *CHOICE.get_or_init(|| Self::from_env().unwrap_or_else(|_| Self::widest()))
    }

    /// The name that asks for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        }
    }
}

/// Why `XC_SIMD` names no instruction set of this machine.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum IsaError {
    /// No such name.
    #[error("XC_SIMD={name:?}: expected scalar, avx2 or avx512")]
    Unknown {
        /// The name found.
        name: OsString,
    },
    /// The machine lacks it.
    #[error("XC_SIMD={isa}: this machine does not have it")]
    Missing {
        /// What was asked for.
        isa: Isa,
    },
}

impl std::fmt::Display for Isa {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
