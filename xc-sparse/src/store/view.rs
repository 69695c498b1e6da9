//! Bytes of model files, mapped or read, and typed views of them. The only unsafe code of the store.

use super::Element;
use memmap2::{Mmap, MmapMut, MmapOptions};
use std::{any::Any, fs::File, io, io::Read as _, ops::Deref, sync::Arc};

/// Bytes of a mapped file, at most, for which large pages are asked for. What is not in the page cache is then read from the
/// disk in pieces of the size of such a page, of which a query needs a few lines: too much for the largest models.
#[cfg(target_os = "linux")]
const LARGE_PAGES_UP_TO: usize = 2 << 30;

/// A file's bytes, starting at a multiple of 64 in memory.
pub(super) enum FileBytes {
    Mapped(Mmap),
    // Memory of no file, at the start of a page.
    Read(Mmap),
    // A mapping of no bytes is refused by the system.
    Empty,
}

impl FileBytes {
    /// Maps the whole file, read-only. `populate` reads all of it ahead. (A file of no bytes cannot be mapped.)
    pub(super) fn map(file: &File, populate: bool) -> io::Result<Self> {
        let mut options = MmapOptions::new();
        if populate {
            options.populate();
        }
        // SAFETY: the mapping is read-only and model files are never written in place: saving builds a new folder and
        // renames it (see `replace`). That no other program changes the file is the documented condition of
        // `OpenMode::Map`.
        let map = unsafe { options.map(file) }?;
        #[cfg(target_os = "linux")]
        if map.len() <= LARGE_PAGES_UP_TO {
            // A wish only, and one that file systems without large pages in their cache do not fulfil.
            let _ = map.advise(memmap2::Advice::HugePage);
        }
        Ok(Self::Mapped(map))
    }

    /// Reads the whole file of `length` bytes, into large pages where the system has them: scattered reads of a large model
    /// otherwise spend a tenth to a third of their time on address translation.
    pub(super) fn read(file: &mut File, length: usize) -> io::Result<Self> {
        if length == 0 {
            return Ok(Self::Empty);
        }
        let mut memory = MmapMut::map_anon(length)?;
        #[cfg(target_os = "linux")]
        // A wish only: without large pages the memory serves as well.
        let _ = memory.advise(memmap2::Advice::HugePage);
        file.read_exact(&mut memory)?;
        memory.make_read_only().map(Self::Read)
    }

    /// The file's content.
    pub(super) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Mapped(map) | Self::Read(map) => map,
            Self::Empty => &[],
        }
    }

    /// The mapping, when the file is mapped.
    pub(super) fn mapping(&self) -> Option<&Mmap> {
        match self {
            Self::Mapped(map) => Some(map),
            Self::Read(_) | Self::Empty => None,
        }
    }
}

/// Maps the bytes `range` of a file as elements: little-endian, as they are in memory. `None` when they are misaligned or no whole number of
/// elements. The file must not change while the array lives.
///
/// # Panics
/// If the range lies outside the file.
pub(crate) fn map_elements<T: Element>(
    file: &File,
    range: std::ops::Range<usize>,
) -> io::Result<Option<MappedArray<T>>> {
    let bytes = FileBytes::map(file, false)?;
    Ok(MappedArray::of_file(Arc::new(bytes), range))
}

/// An array of a model: a slice of a mapped file, of a file read whole, or of a vector.
///
/// Whatever it points into stays alive as long as one clone of it does. Cloning copies a pointer.
pub struct MappedArray<T> {
    start: *const T,
    len: usize,
    _owner: Arc<dyn Any + Send + Sync>,
}

// SAFETY: a shared view of immutable memory that the owner (itself `Send + Sync`) keeps alive; `T: Sync` makes sharing
// its elements between threads sound, and no method gives them away by value.
unsafe impl<T: Sync> Send for MappedArray<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for MappedArray<T> {}

impl<T: Element> MappedArray<T> {
    /// The bytes `range` of `file` as elements; `None` when they are misaligned or no whole number of elements.
    ///
    /// # Panics
    /// If the range lies outside the file.
    pub(super) fn of_file(file: Arc<FileBytes>, range: std::ops::Range<usize>) -> Option<Self> {
        let slice: &[T] = bytemuck::try_cast_slice(&file.as_bytes()[range]).ok()?;
        let (start, len) = (slice.as_ptr(), slice.len());
        Some(Self { start, len, _owner: file })
    }
}

impl<T: Send + Sync + 'static> From<Vec<T>> for MappedArray<T> {
    /// Wraps values that were never on disk, such as those of a model just trained.
    fn from(values: Vec<T>) -> Self {
        let owner = Arc::new(values);
        Self { start: owner.as_ptr(), len: owner.len(), _owner: owner }
    }
}

impl<T> Deref for MappedArray<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: both constructors take pointer and length from a valid slice of the owner's memory. The owner is
        // immutable behind the `Arc`, its heap block or mapping does not move, and it lives as long as `self`.
        unsafe { std::slice::from_raw_parts(self.start, self.len) }
    }
}

impl<T> AsRef<[T]> for MappedArray<T> {
    fn as_ref(&self) -> &[T] {
        self
    }
}

impl<T> Clone for MappedArray<T> {
    fn clone(&self) -> Self {
        Self { start: self.start, len: self.len, _owner: Arc::clone(&self._owner) }
    }
}

impl<T: Send + Sync + 'static> Default for MappedArray<T> {
    fn default() -> Self {
        Vec::new().into()
    }
}

impl<T: std::fmt::Debug> std::fmt::Debug for MappedArray<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<T: PartialEq> PartialEq for MappedArray<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}
