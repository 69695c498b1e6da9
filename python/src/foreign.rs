//! Arrays of Python that another thread may write into while they are read.
//!
//! No slice of such memory is ever made: values are copied out, and what is checked is the copy.

#![allow(unsafe_code, reason = "memory that Python owns")]

use numpy::{Element, PyArray1, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::ops::Range;

/// A contiguous array of numbers that Python keeps alive.
pub(crate) struct Foreign<T> {
    start: *const T,
    len: usize,
    _owner: Py<PyAny>,
}

// SAFETY: the memory is kept alive by `_owner`, which may be held and given up on any thread; values are copied out of it
// one by one or as bytes, and every bit pattern is one of `T` (see `Number`).
unsafe impl<T: Number> Send for Foreign<T> {}
// SAFETY: as above.
unsafe impl<T: Number> Sync for Foreign<T> {}

/// Numbers of which every bit pattern is a value.
pub(crate) trait Number: Copy + Element + 'static {}

impl Number for i32 {}
impl Number for i64 {}
impl Number for u8 {}
impl Number for u32 {}
impl Number for f32 {}
impl Number for f64 {}

impl<T: Number> Foreign<T> {
    /// The values of an array, where they lie.
    ///
    /// # Errors
    /// It is not contiguous.
    pub(crate) fn of(array: &Bound<'_, PyArray1<T>>) -> PyResult<Self> {
        if !array.is_contiguous() || !array.data().is_aligned() {
            return Err(PyValueError::new_err("a contiguous array is expected"));
        }
        Ok(Self { start: array.data(), len: array.len(), _owner: array.clone().into_any().unbind() })
    }

    /// Number of values.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// A value.
    ///
    /// # Panics
    /// If there is none at `at`.
    pub(crate) fn get(&self, at: usize) -> T {
        assert!(at < self.len, "value {at} of {}", self.len);
        // SAFETY: `at` is inside of the array, which `_owner` keeps alive. A value that is being written meanwhile is read
        // as some bits, all of which are a value.
        unsafe { self.start.add(at).read_volatile() }
    }

    /// Appends a copy of some values.
    ///
    /// # Panics
    /// If `range` is not inside of the array.
    pub(crate) fn copy_to(&self, range: Range<usize>, out: &mut Vec<T>) {
        self.copy_bits(range, out);
    }

    /// The same, as numbers of another type with the same bits.
    fn copy_bits<U: Number>(&self, range: Range<usize>, out: &mut Vec<U>) {
        const { assert!(size_of::<T>() == size_of::<U>() && align_of::<T>() == align_of::<U>()) };
        assert!(range.start <= range.end && range.end <= self.len, "values {range:?} of {}", self.len);
        let n = range.len();
        out.reserve(n);
        // SAFETY: `range` is inside of the array, room for it was reserved, both types have the same size and alignment,
        // and the two do not overlap: one is a `Vec` of ours. Bytes that are being written meanwhile are copied as they
        // are: every bit pattern is a value of `U`.
        unsafe {
            let start = self.start.add(range.start).cast::<U>();
            std::ptr::copy_nonoverlapping(start, out.as_mut_ptr().add(out.len()), n);
            out.set_len(out.len() + n);
        }
    }
}

impl Foreign<i32> {
    /// Appends a copy of some values without their sign: what is below 0 is then 2^31 or more.
    ///
    /// # Panics
    /// If `range` is not inside of the array.
    pub(crate) fn copy_unsigned_to(&self, range: Range<usize>, out: &mut Vec<u32>) {
        self.copy_bits(range, out);
    }
}
