//! Stored number types: one enum and one trait for arrays in memory, in kernels and in files.
//!
//! ```
//! use xc_buffer::dtype::{DType, Float};
//!
//! assert_eq!((DType::Bf16.n_bytes(), DType::Bf16.name()), (2, "BF16"));
//! assert_eq!(<half::bf16 as Float>::nearest(1.001).widen(), 1.0);
//! ```

mod float;

pub use float::{E4m3, E5m2, Float, nearest_bf16};

use half::{bf16, f16};
use serde::{Deserialize, Serialize};

/// The type of an array's elements, named as safetensors names it. All are little-endian.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[non_exhaustive]
pub enum DType {
    /// `u8`
    U8,
    /// `i8`
    I8,
    /// `u16`
    U16,
    /// `i16`
    I16,
    /// 8-bit float, 5 bits of exponent
    #[serde(rename = "F8_E5M2")]
    E5m2,
    /// 8-bit float, 4 bits of exponent
    #[serde(rename = "F8_E4M3")]
    E4m3,
    /// IEEE half precision
    F16,
    /// The upper half of an `f32`
    #[serde(rename = "BF16")]
    Bf16,
    /// `u32`
    U32,
    /// `i32`
    I32,
    /// `f32`
    #[default]
    F32,
    /// `u64`
    U64,
    /// `i64`
    I64,
    /// `f64`
    F64,
}

impl DType {
    /// Bytes of one element.
    pub fn n_bytes(self) -> usize {
        match self {
            Self::U8 | Self::I8 | Self::E5m2 | Self::E4m3 => 1,
            Self::U16 | Self::I16 | Self::F16 | Self::Bf16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
        }
    }

    /// The name in headers and in `config.json`.
    pub fn name(self) -> &'static str {
        match self {
            Self::U8 => "U8",
            Self::I8 => "I8",
            Self::U16 => "U16",
            Self::I16 => "I16",
            Self::E5m2 => "F8_E5M2",
            Self::E4m3 => "F8_E4M3",
            Self::F16 => "F16",
            Self::Bf16 => "BF16",
            Self::U32 => "U32",
            Self::I32 => "I32",
            Self::F32 => "F32",
            Self::U64 => "U64",
            Self::I64 => "I64",
            Self::F64 => "F64",
        }
    }

    /// The name on the command line, which is that of the Rust type.
    pub fn short_name(self) -> &'static str {
        match self {
            Self::U8 => "u8",
            Self::I8 => "i8",
            Self::U16 => "u16",
            Self::I16 => "i16",
            Self::E5m2 => "e5m2",
            Self::E4m3 => "e4m3",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::U32 => "u32",
            Self::I32 => "i32",
            Self::F32 => "f32",
            Self::U64 => "u64",
            Self::I64 => "i64",
            Self::F64 => "f64",
        }
    }
}

impl std::fmt::Display for DType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// A Rust type that an array can be viewed as: any bit pattern is a value of it.
pub trait Element: bytemuck::Pod + Send + Sync {
    /// Its name on disk.
    const DTYPE: DType;
}

macro_rules! elements {
    ($($rust:ty => $dtype:ident),*) => {
        $(impl Element for $rust { const DTYPE: DType = DType::$dtype; })*
    };
}

elements!(u8 => U8, i8 => I8, u16 => U16, i16 => I16, f16 => F16, bf16 => Bf16, u32 => U32, i32 => I32, f32 => F32,
    u64 => U64, i64 => I64, f64 => F64, E4m3 => E4m3, E5m2 => E5m2);
