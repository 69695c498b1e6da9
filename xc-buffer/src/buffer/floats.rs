//! Arrays of floats in one of the stored types, chosen at run time.

use super::{Buffer, HugePageVec};
use crate::dtype::{DType, E4m3, E5m2, Float};
use crate::simd::prefetch_start;
use half::{bf16, f16};
use rayon::prelude::*;
use std::ops::Range;

macro_rules! floats {
    ($($variant:ident $rust:ty),*) => {
        /// Numbers of one stored type. They are stored little-endian, as they are in memory.
        #[derive(Clone, Debug, PartialEq)]
        pub enum FloatBuffer {
            $(#[doc = concat!("As ", stringify!($rust), ".")] $variant(Buffer<$rust>),)*
        }

        /// Numbers to read: a borrowed [`FloatBuffer`].
        #[derive(Clone, Copy, Debug)]
        pub enum FloatSlice<'a> {
            $(#[doc = concat!("As ", stringify!($rust), ".")] $variant(&'a [$rust]),)*
        }

        /// Numbers that may be changed: a part of a [`FloatBuffer`].
        #[derive(Debug)]
        pub enum FloatSliceMut<'a> {
            $(#[doc = concat!("As ", stringify!($rust), ".")] $variant(&'a mut [$rust]),)*
        }

        impl FloatBuffer {
            /// `len` zeros.
            ///
            /// # Panics
            /// If the type is not one of those of [`FloatBuffer`].
            pub fn zeros(of: DType, len: usize) -> Self {
                match of {
                    $(DType::$variant => Self::$variant(vec![<$rust>::default(); len].into()),)*
                    _ => not_a_float(of),
                }
            }

            /// `len` zeros in large pages ([`HugePageVec`]): for numbers that are read and changed here and
            /// there. A page that is first read and then written costs two faults, a small page that
            /// is shared by two threads an interrupt of the other as well.
            ///
            /// # Panics
            /// If the type is not one of those of [`FloatBuffer`].
            pub fn pages(of: DType, len: usize) -> Self {
                match of {
                    $(DType::$variant => Self::$variant(HugePageVec::<$rust>::zeros(len).into()),)*
                    _ => not_a_float(of),
                }
            }

            /// Values rounded to the nearest.
            ///
            /// # Panics
            /// If the type is not one of those of [`FloatBuffer`].
            pub fn nearest(of: DType, values: impl Iterator<Item = f32>) -> Self {
                match of {
                    $(DType::$variant => Self::$variant(values.map(<$rust>::nearest).collect()),)*
                    _ => not_a_float(of),
                }
            }

            /// The type.
            pub fn dtype(&self) -> DType {
                match self { $(Self::$variant(_) => DType::$variant,)* }
            }

            /// Number of elements.
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
            pub fn pick(&self, places: impl Iterator<Item = usize>) -> Self {
                match self {
                    $(Self::$variant(values) => Self::$variant(places.map(|at| values[at]).collect()),)*
                }
            }

            /// All numbers, to be changed; copied first if they lie in a file.
            pub fn to_mut(&mut self) -> FloatSliceMut<'_> {
                match self { $(Self::$variant(values) => FloatSliceMut::$variant(values.to_mut()),)* }
            }

            /// The bytes, little-endian.
            pub fn bytes(&self) -> &[u8] {
                match self { $(Self::$variant(values) => bytemuck::cast_slice(values),)* }
            }

            /// The bytes, to be changed.
            pub fn bytes_mut(&mut self) -> &mut [u8] {
                match self { $(Self::$variant(values) => bytemuck::cast_slice_mut(values.to_mut()),)* }
            }

            /// The numbers, borrowed.
            #[inline(always)]
            pub fn as_slice(&self) -> FloatSlice<'_> {
                match self { $(Self::$variant(values) => FloatSlice::$variant(values),)* }
            }

            /// Appends values rounded to the nearest.
            pub fn extend(&mut self, values: &[f32]) {
                match self { $(Self::$variant(all) => all.extend(values.iter().map(|&v| <$rust>::nearest(v))),)* }
            }

            /// The first number that is infinite or not a number. *Cost*: a pass over all, in
            /// parallel.
            pub fn not_finite(&self) -> Option<usize> {
                match self { $(Self::$variant(values) => not_finite(values),)* }
            }
        }

        impl FloatSlice<'_> {
            /// Number of elements.
            pub fn len(&self) -> usize {
                match self { $(Self::$variant(values) => values.len(),)* }
            }

            /// Widens the numbers of a range.
            ///
            /// # Panics
            /// If there are not so many, or `to` is shorter.
            #[inline(always)]
            pub fn widen(&self, range: Range<usize>, to: &mut [f32]) {
                match self { $(Self::$variant(values) => <$rust>::widen_all(&values[range], to),)* }
            }

            /// Asks for the first cache lines of a range, which will be read soon.
            ///
            /// # Panics
            /// If there are not so many numbers.
            #[inline(always)]
            pub fn prefetch(&self, range: Range<usize>) {
                match self { $(Self::$variant(values) => prefetch_start(&values[range]),)* }
            }

            /// The type.
            pub fn dtype(&self) -> DType {
                match self { $(Self::$variant(_) => DType::$variant,)* }
            }

            /// One number.
            ///
            /// # Panics
            /// If `at >= len()`.
            pub fn get(&self, at: usize) -> f32 {
                match self { $(Self::$variant(values) => values[at].widen(),)* }
            }
        }

        impl<'a> FloatSliceMut<'a> {
            /// Asks for the first cache lines of a range, which will be read soon.
            ///
            /// # Panics
            /// If there are not so many numbers.
            #[inline(always)]
            pub fn prefetch(&self, range: Range<usize>) {
                match self { $(Self::$variant(values) => prefetch_start(&values[range]),)* }
            }

            /// Number of elements.
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

            /// Replaces numbers from `first` on, rounded stochastically; `random` gives the bits, a
            /// number at a time. An f32 needs none.
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

floats!(F32 f32, Bf16 bf16, F16 f16, E4m3 E4m3, E5m2 E5m2);

impl FloatBuffer {
    /// True when there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl FloatSliceMut<'_> {
    /// True when there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl FloatSlice<'_> {
    /// True when there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

fn not_a_float(of: DType) -> ! {
    panic!("numbers of type {of}, expected a float of at most 32 bits");
}

fn not_finite<T: Float>(values: &[T]) -> Option<usize> {
    const BLOCK: usize = 1 << 16;
    let block = values.par_chunks(BLOCK).position_first(|block| !T::all_finite(block))?;
    (block * BLOCK..values.len()).find(|&at| !values[at].widen().is_finite())
}
