//! How a weight is stored.

use bytemuck::Pod;
use half::{bf16, f16};

/// A stored weight: `f32`, or a half-precision form that is widened when it is used.
pub trait Weight: Pod + Send + Sync + PartialEq + std::fmt::Debug {
    /// The precision's name in files.
    const PRECISION: Precision;
    /// Rounds to nearest even.
    fn from_f32(value: f32) -> Self;
    /// Exact.
    fn to_f32(self) -> f32;
}

/// Names the type that weights are stored in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// 4 bytes.
    F32,
    /// 2 bytes: 5 bits of exponent, 10 of mantissa.
    F16,
    /// 2 bytes: 8 bits of exponent, 7 of mantissa.
    Bf16,
}

impl Precision {
    /// Bytes a weight.
    pub fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::Bf16 => 2,
        }
    }
}

impl Weight for f32 {
    const PRECISION: Precision = Precision::F32;
    fn from_f32(value: f32) -> Self {
        value
    }
    #[inline(always)]
    fn to_f32(self) -> f32 {
        self
    }
}

impl Weight for f16 {
    const PRECISION: Precision = Precision::F16;
    fn from_f32(value: f32) -> Self {
        f16::from_f32(value)
    }
    #[inline(always)]
    fn to_f32(self) -> f32 {
        f16::to_f32(self)
    }
}

impl Weight for bf16 {
    const PRECISION: Precision = Precision::Bf16;
    fn from_f32(value: f32) -> Self {
        bf16::from_f32(value)
    }
    #[inline(always)]
    fn to_f32(self) -> f32 {
        bf16::to_f32(self)
    }
}
