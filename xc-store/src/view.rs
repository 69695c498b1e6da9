//! Bytes of model files, mapped or read. The only unsafe code of the store.

#![allow(unsafe_code, reason = "files mapped into memory")]

use memmap2::{Mmap, MmapOptions};
use std::{fs::File, io, io::Read as _, sync::Arc};
use xc_buffer::dtype::Element;
use xc_buffer::{Buffer, Pages};

/// Bytes of a mapped file, at most, for which large pages are asked for. What is not in the page
/// cache is then read from the disk in pieces of the size of such a page, of which a query needs a
/// few lines: too much for the largest models.
#[cfg(target_os = "linux")]
const LARGE_PAGES_UP_TO: usize = 2 << 30;

/// A file's bytes, starting at a multiple of 64 in memory.
pub(super) enum FileBytes {
    Mapped(Mmap),
    // Memory of no file, at the start of a page.
    Read(Pages<u8>),
}

impl FileBytes {
    /// Maps the whole file, read-only. `populate` reads all of it ahead. (A file of no bytes cannot
    /// be mapped.)
    pub(super) fn map(file: &File, populate: bool) -> io::Result<Self> {
        let mut options = MmapOptions::new();
        if populate {
            options.populate();
        }
        // Saving builds a new folder and renames it (see `replace`). A file of `Spill` has no name that another
        // program could open, and is not written while it is mapped: that borrows or takes the table.
        // SAFETY: the mapping is read-only, model files are never written in place, and that no other program
        // changes the file is the documented condition of `OpenMode::Map`.
        let map = unsafe { options.map(file) }?;
        #[cfg(target_os = "linux")]
        if map.len() <= LARGE_PAGES_UP_TO {
            // Best effort: not all file systems have large pages in their cache.
            let _ = map.advise(memmap2::Advice::HugePage);
        }
        Ok(Self::Mapped(map))
    }

    /// Reads the whole file of `length` bytes, into large pages where the system has them:
    /// scattered reads of a large model otherwise spend a tenth to a third of their time on address
    /// translation.
    pub(super) fn read(file: &mut File, length: usize) -> io::Result<Self> {
        let mut memory = Pages::default();
        memory.try_resize(length)?;
        file.read_exact(&mut memory)?;
        Ok(Self::Read(memory))
    }

    /// The file's content.
    pub(super) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Mapped(map) => map,
            Self::Read(memory) => memory,
        }
    }

    /// Lets go of the pages of a range that were touched, where the file is mapped: they are read
    /// again when they are touched again.
    pub(super) fn release(&self, range: std::ops::Range<usize>) {
        #[cfg(unix)]
        if let Self::Mapped(map) = self
            && !range.is_empty()
        {
            let advice = memmap2::UncheckedAdvice::DontNeed;
            // SAFETY: the mapping is read-only and of a file, so released pages come back from the
            // file with the same content.
            // Nothing is lost where the system refuses.
            let _ = unsafe { map.unchecked_advise_range(advice, range.start, range.len()) };
        }
        #[cfg(not(unix))]
        let _ = range;
    }

    /// The mapping, when the file is mapped.
    #[cfg(unix)]
    pub(super) fn mapping(&self) -> Option<&Mmap> {
        match self {
            Self::Mapped(map) => Some(map),
            Self::Read(_) => None,
        }
    }
}

/// Maps the bytes `range` of a file as elements: little-endian, as they are in memory. `None` when
/// they are misaligned or no whole number of elements. The file must not change while the array
/// lives.
///
/// # Panics
/// If the range lies outside the file.
pub fn map_elements<T: Element>(file: &File, range: std::ops::Range<usize>) -> io::Result<Option<Buffer<T>>> {
    let bytes = FileBytes::map(file, false)?;
    Ok(elements(Arc::new(bytes), range))
}

/// The bytes `range` of `file` as elements; `None` when they are misaligned or no whole number of
/// elements.
///
/// # Panics
/// If the range lies outside the file.
pub(super) fn elements<T: Element>(file: Arc<FileBytes>, range: std::ops::Range<usize>) -> Option<Buffer<T>> {
    Buffer::from_owner(file, |file| &file.as_bytes()[range]).ok()
}
