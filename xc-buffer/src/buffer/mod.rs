//! Arrays in memory or in a mapped file.
//!
//! [`Buffer`] is a list of values that are owned by a `Vec`, large pages, or a file behind an `Arc`. Cloning
//! copies a pointer; writing copies the values first if they are in a file or shared.
//! [`FloatBuffer`] is a buffer of one of the float types, chosen at run time: match on it once per
//! operation, not once per value. [`HugePageVec`] is memory in large pages.
//!
//! ```
//! use xc_buffer::Buffer;
//!
//! let first = Buffer::from(vec![1.0f32, 2.0]);
//! let mut second = first.clone();
//! second.to_mut()[0] = 7.0;
//! assert_eq!((first[0], second[0]), (1.0, 7.0));
//!
//! // Memory of somebody else, kept alive and not copied.
//! let owner = std::sync::Arc::new([[1u8, 0], [2, 0]]);
//! let foreign = Buffer::<[u8; 2]>::from_owner(owner.clone(), |owner| owner.as_flattened())?;
//! assert_eq!(foreign.as_ptr().cast(), owner.as_ptr());
//! # Ok::<(), xc_buffer::BufferError>(())
//! ```

#![allow(unsafe_code, reason = "a slice of memory that somebody else owns")]

mod floats;
mod pages;

pub use floats::{FloatBuffer, FloatSlice, FloatSliceMut};
pub use pages::HugePageVec;

use std::any::Any;
use std::ops::Deref;
use std::sync::Arc;
use thiserror::Error;

/// Values in memory, or in a file until they are first changed. Cloning copies a pointer.
pub struct Buffer<T> {
    place: Place<T>,
}

enum Place<T> {
    Memory(Arc<Vec<T>>),
    HugePageVec(Arc<HugePageVec<T>>),
    /// A slice of memory that `_owner` keeps alive and never changes.
    Shared {
        start: *const T,
        len: usize,
        _owner: Arc<dyn Any + Send + Sync>,
    },
}

/// Why bytes are not elements.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum BufferError {
    /// The last element is cut off.
    #[error("{bytes} bytes, expected a multiple of {element}")]
    Length {
        /// Number of bytes.
        bytes: usize,
        /// Bytes of an element.
        element: usize,
    },
    /// The first element does not lie at a multiple of its alignment.
    #[error("the bytes do not lie at a multiple of {to}")]
    Alignment {
        /// The alignment.
        to: usize,
    },
}

// SAFETY: `Memory` is an `Arc<Vec<T>>`, `HugePageVec` one of a mapping that it owns. `Shared` is a shared view of immutable memory that the
// owner (itself `Send + Sync`) keeps alive; `T: Sync` makes sharing its elements between threads
// sound, and no method gives them away by value.
unsafe impl<T: Send + Sync> Send for Buffer<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Buffer<T> {}

impl<T: bytemuck::Pod> Buffer<T> {
    /// The elements that lie in some bytes of an owner, such as a mapped file or an array of another
    /// language, without a copy. The buffer keeps the owner alive; `bytes` finds the bytes in it.
    ///
    /// # Errors
    /// See [`BufferError`].
    pub fn from_owner<O: Any + Send + Sync>(
        owner: Arc<O>,
        bytes: impl FnOnce(&O) -> &[u8],
    ) -> Result<Self, BufferError> {
        // The owner is not changed any more: nobody can borrow what is in an `Arc` mutably while it
        // is shared, and this clone of it is kept. (Owners with interior mutability do not give out
        // plain slices.)
        let bytes = bytes(&owner);
        if !bytes.len().is_multiple_of(size_of::<T>().max(1)) {
            return Err(BufferError::Length { bytes: bytes.len(), element: size_of::<T>() });
        }
        let slice: &[T] =
            bytemuck::try_cast_slice(bytes).map_err(|_| BufferError::Alignment { to: align_of::<T>() })?;
        let (start, len) = (slice.as_ptr(), slice.len());
        Ok(Self { place: Place::Shared { start, len, _owner: owner } })
    }
}

impl<T> Buffer<T> {
    /// Whether the values lie in a mapped file, or in other memory that a [`Buffer::from_owner`] was given.
    pub fn is_foreign(&self) -> bool {
        matches!(self.place, Place::Shared { .. })
    }
}

impl<T> Buffer<T> {
    /// The vector that the values lie in, without a copy.
    ///
    /// # Errors
    /// The buffer again, where they lie elsewhere or another buffer shares them.
    pub fn try_into_vec(self) -> Result<Vec<T>, Self> {
        match self.place {
            Place::Memory(values) => Arc::try_unwrap(values).map_err(|shared| Self { place: Place::Memory(shared) }),
            place => Err(Self { place }),
        }
    }
}

impl<T: Clone> Buffer<T> {
    /// The values for writing; copied first if they are in a file or another buffer shares them.
    pub fn to_mut(&mut self) -> &mut [T] {
        if let Place::Shared { .. } = self.place {
            self.place = Place::Memory(Arc::new(self.to_vec()));
        }
        match &mut self.place {
            Place::Memory(values) => Arc::<Vec<T>>::make_mut(values),
            Place::HugePageVec(values) => Arc::<HugePageVec<T>>::make_mut(values),
            Place::Shared { .. } => unreachable!("was copied"),
        }
    }
}

impl<T: Clone> Buffer<T> {
    /// Appends values; those before are copied first if they lie in a file or another buffer shares
    /// them.
    pub fn extend(&mut self, more: impl IntoIterator<Item = T>) {
        if !matches!(self.place, Place::Memory(_)) {
            self.place = Place::Memory(Arc::new(self.to_vec()));
        }
        if let Place::Memory(values) = &mut self.place {
            Arc::make_mut(values).extend(more);
        }
    }
}

impl<T> From<Vec<T>> for Buffer<T> {
    fn from(values: Vec<T>) -> Self {
        Self { place: Place::Memory(Arc::new(values)) }
    }
}

impl<T: bytemuck::Pod> From<HugePageVec<T>> for Buffer<T> {
    fn from(values: HugePageVec<T>) -> Self {
        Self { place: Place::HugePageVec(Arc::new(values)) }
    }
}

impl<T> FromIterator<T> for Buffer<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        Vec::from_iter(values).into()
    }
}

impl<T> Deref for Buffer<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match &self.place {
            Place::Memory(values) => values,
            Place::HugePageVec(values) => values,
            // SAFETY: `from_owner` took pointer and length from a valid slice of the owner's memory,
            // which does not move or change while the owner lives, and it lives as long as `self`.
            Place::Shared { start, len, .. } => unsafe { std::slice::from_raw_parts(*start, *len) },
        }
    }
}

impl<T> AsRef<[T]> for Buffer<T> {
    fn as_ref(&self) -> &[T] {
        self
    }
}

impl<T> Clone for Buffer<T> {
    fn clone(&self) -> Self {
        let place = match &self.place {
            Place::Memory(values) => Place::Memory(Arc::clone(values)),
            Place::HugePageVec(values) => Place::HugePageVec(Arc::clone(values)),
            Place::Shared { start, len, _owner } => {
                Place::Shared { start: *start, len: *len, _owner: Arc::clone(_owner) }
            }
        };
        Self { place }
    }
}

impl<T> Default for Buffer<T> {
    fn default() -> Self {
        Vec::new().into()
    }
}

impl<T: std::fmt::Debug> std::fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<T: Eq> Eq for Buffer<T> {}

impl<T: PartialEq> PartialEq for Buffer<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writing_to_a_buffer_leaves_its_clones_and_its_file_alone() {
        let file = Arc::new(vec![1u8, 0, 2, 0]);
        let mut stored = Buffer::<u16>::from_owner(Arc::clone(&file), |bytes| bytes);
        // A vector of bytes may be misaligned; where it is not, values are read in place.
        for buffer in stored.iter_mut() {
            let other = buffer.clone();
            buffer.to_mut()[0] = 9;
            assert_eq!((&**buffer, &*other, &file[..]), (&[9, 2][..], &[1, 2][..], &[1, 0, 2, 0][..]));
        }
        let mut owned = Buffer::from(vec![1, 2, 3]);
        let start = owned.as_ptr();
        owned.to_mut()[2] = 5;
        assert_eq!(owned.as_ptr(), start, "values that nobody else sees are changed in place");
        let other = owned.clone();
        owned.to_mut()[0] = 7;
        assert_eq!((&*owned, &*other), (&[7, 2, 5][..], &[1, 2, 5][..]));
        let mut large = Buffer::from(HugePageVec::<u16>::zeros(3));
        let other = large.clone();
        large.to_mut()[1] = 4;
        assert_eq!((&*large, &*other), (&[0, 4, 0][..], &[0; 3][..]));
        large.extend([8]);
        assert_eq!(&*large, [0, 4, 0, 8]);
    }

    #[test]
    fn foreign_memory_is_not_copied_and_lives_as_long_as_its_buffer() {
        let owner = Arc::new(vec![3u64, 5, 7]);
        let of = |range: std::ops::Range<usize>| {
            Buffer::<u32>::from_owner(Arc::clone(&owner), |owner| &bytemuck::cast_slice(owner)[range])
        };
        let buffer = of(8..24).unwrap();
        assert_eq!((&*buffer, buffer.as_ptr().cast()), (&[5, 0, 7, 0][..], owner[1..].as_ptr()));
        assert!(of(4..4).unwrap().is_empty());
        assert_eq!(of(8..15).unwrap_err(), BufferError::Length { bytes: 7, element: 4 });
        assert_eq!(of(1..9).unwrap_err(), BufferError::Alignment { to: 4 });
        let weak = Arc::downgrade(&owner);
        drop(owner);
        let copy = buffer.clone();
        drop(buffer);
        assert_eq!(&*copy, [5, 0, 7, 0]);
        drop(copy);
        assert!(weak.upgrade().is_none());
    }
}
