//! Which instruction set runs.

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
