//! Arrays of numbers in one of the stored types, chosen at run time.

use super::precision::{E4m3, E5m2, Stored};
use crate::store::{Container, Dtype, Element, MappedArray, OpenError};
use half::{bf16, f16};
use serde::{Deserialize, Serialize};
use std::ops::{Deref, Range};

/// A type that numbers are stored in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum NumberType {
    /// 4 bytes.
    #[default]
    F32,
    /// 2 bytes: 8 bits of exponent, 7 of mantissa.
    Bf16,
    /// 2 bytes: 5 bits of exponent, 10 of mantissa.
    F16,
    /// 1 byte: 4 bits of exponent, 3 of mantissa.
    E4m3,
    /// 1 byte: 5 bits of exponent, 2 of mantissa.
    E5m2,
}

impl NumberType {
    /// Bytes of a number.
    pub fn bytes(self) -> usize {
        self.dtype().n_bytes()
    }

    /// The type's name in model files.
    pub fn dtype(self) -> Dtype {
        match self {
            Self::F32 => Dtype::F32,
            Self::Bf16 => Dtype::BF16,
            Self::F16 => Dtype::F16,
            Self::E4m3 => Dtype::F8E4M3,
            Self::E5m2 => Dtype::F8E5M2,
        }
    }

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::Bf16 => "bf16",
            Self::F16 => "f16",
            Self::E4m3 => "e4m3",
            Self::E5m2 => "e5m2",
        }
    }
}

/// Values in memory, or in a model file until they are to change.
#[derive(Clone, Debug)]
pub enum Buffer<T> {
    /// In memory.
    Owned(Vec<T>),
    /// In a file, shared.
    Stored(MappedArray<T>),
}

impl<T> Deref for Buffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match self {
            Self::Owned(values) => values,
            Self::Stored(values) => values,
        }
    }
}

impl<T: Clone> Buffer<T> {
    /// The values, copied first if they lie in a file.
    pub fn to_mut(&mut self) -> &mut Vec<T> {
        if let Self::Stored(values) = self {
            *self = Self::Owned(values.to_vec());
        }
        match self {
            Self::Owned(values) => values,
            Self::Stored(_) => unreachable!("was copied"),
        }
    }
}

impl<T> From<Vec<T>> for Buffer<T> {
    fn from(values: Vec<T>) -> Self {
        Self::Owned(values)
    }
}

impl<T: PartialEq> PartialEq for Buffer<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

macro_rules! numbers {
    ($($variant:ident $rust:ty),*) => {
        /// Numbers of one stored type.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Numbers {
            $(#[doc = concat!("As ", stringify!($rust), ".")] $variant(Buffer<$rust>),)*
        }

        /// Numbers that may be changed: a part of [`Numbers`].
        #[derive(Debug)]
        pub enum NumbersMut<'a> {
            $(#[doc = concat!("As ", stringify!($rust), ".")] $variant(&'a mut [$rust]),)*
        }

        impl Numbers {
            /// So many zeros.
            pub fn zeros(of: NumberType, len: usize) -> Self {
                match of { $(NumberType::$variant => Self::$variant(vec![<$rust>::default(); len].into()),)* }
            }

            /// Values rounded to the nearest.
            pub fn nearest(of: NumberType, values: impl Iterator<Item = f32>) -> Self {
                match of {
                    $(NumberType::$variant => Self::$variant(values.map(<$rust>::nearest).collect::<Vec<_>>().into()),)*
                }
            }

            /// The type.
            pub fn number_type(&self) -> NumberType {
                match self { $(Self::$variant(_) => NumberType::$variant,)* }
            }

            /// Number of numbers.
            pub fn len(&self) -> usize {
                match self { $(Self::$variant(values) => values.len(),)* }
            }

            /// One number.
            ///
            /// # Panics
            /// If `at >= len()`.
            pub fn get(&self, at: usize) -> f32 {
                match self { $(Self::$variant(values) => values[at].widen(),)* }
            }

            /// Widens the numbers of a range.
            ///
            /// # Panics
            /// If there are not so many, or `to` is shorter.
            #[inline(always)]
            pub fn widen(&self, range: Range<usize>, to: &mut [f32]) {
                match self { $(Self::$variant(values) => <$rust>::widen_all(&values[range], to),)* }
            }

            /// The numbers at some places, in their order.
            pub(super) fn pick(&self, places: impl Iterator<Item = usize>) -> Self {
                match self {
                    $(Self::$variant(values) => Self::$variant(places.map(|at| values[at]).collect::<Vec<_>>().into()),)*
                }
            }

            /// All numbers, to be changed; copied first if they lie in a file.
            pub fn to_mut(&mut self) -> NumbersMut<'_> {
                match self { $(Self::$variant(values) => NumbersMut::$variant(values.to_mut()),)* }
            }

            /// The bytes, little-endian.
            pub fn bytes(&self) -> &[u8] {
                match self { $(Self::$variant(values) => bytemuck::cast_slice(values),)* }
            }

            /// The bytes, to be changed.
            pub fn bytes_mut(&mut self) -> &mut [u8] {
                match self { $(Self::$variant(values) => bytemuck::cast_slice_mut(values.to_mut()),)* }
            }

            /// An array of a container, which stays where it is.
            ///
            /// # Errors
            /// There is none of that name, shape and type.
            pub fn open(container: &Container, name: &str, of: NumberType, shape: &[usize]) -> Result<Self, OpenError> {
                Ok(match of {
                    $(NumberType::$variant => Self::$variant(Buffer::Stored(container.array_shaped::<$rust>(name, shape)?)),)*
                })
            }
        }

        impl<'a> NumbersMut<'a> {
            /// Number of numbers.
            pub fn len(&self) -> usize {
                match self { $(Self::$variant(values) => values.len(),)* }
            }

            /// The first `at` and the rest.
            ///
            /// # Panics
            /// If there are fewer.
            pub fn split_at(self, at: usize) -> (Self, Self) {
                match self {
                    $(Self::$variant(values) => {
                        let (a, b) = values.split_at_mut(at);
                        (Self::$variant(a), Self::$variant(b))
                    })*
                }
            }

            /// Widens the numbers of a range.
            ///
            /// # Panics
            /// If there are not so many, or `to` is shorter.
            #[inline(always)]
            pub fn widen(&self, range: Range<usize>, to: &mut [f32]) {
                match self { $(Self::$variant(values) => <$rust>::widen_all(&values[range], to),)* }
            }

            /// Replaces numbers from `first` on, rounded stochastically; `random` gives the bits, a number at a time. An f32 needs none.
            ///
            /// # Panics
            /// If there are not so many.
            #[inline(always)]
            pub fn store(&mut self, first: usize, from: &[f32], mut random: impl FnMut() -> u32) {
                if let Self::F32(values) = self {
                    return values[first..first + from.len()].copy_from_slice(from);
                }
                match self {
                    $(Self::$variant(values) => {
                        for (to, &from) in values[first..first + from.len()].iter_mut().zip(from) {
                            *to = <$rust>::stochastic(from, random());
                        }
                    })*
                }
            }

            /// Sets one number to 0.
            ///
            /// # Panics
            /// If `at >= len()`.
            pub fn clear(&mut self, at: usize) {
                match self { $(Self::$variant(values) => values[at] = Default::default(),)* }
            }
        }
    };
}

numbers!(F32 f32, Bf16 bf16, F16 f16, E4m3 E4m3, E5m2 E5m2);

impl Numbers {
    /// True when there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The first number that is infinite or not a number.
    pub fn not_finite(&self) -> Option<usize> {
        (0..self.len()).find(|&at| !self.get(at).is_finite())
    }
}

impl NumbersMut<'_> {
    /// True when there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Element for E4m3 {
    const DTYPE: Dtype = Dtype::F8E4M3;
}

impl Element for E5m2 {
    const DTYPE: Dtype = Dtype::F8E5M2;
}
