//! Bytes of files, mapped or read.

#![allow(unsafe_code, reason = "files mapped into memory")]

use crate::dtype::Element;
use crate::{Buffer, HugePageVec};
use memmap2::{Mmap, MmapOptions};
use std::fs::File;
use std::io::{self, Read as _};
use std::ops::Range;
use std::sync::Arc;

/// Bytes of a mapped file, at most, for which large pages are asked for. What is not in the page
/// cache is then read from the disk in pieces of the size of such a page, of which a query needs a
/// few lines: too much for the largest models.
#[cfg(target_os = "linux")]
const LARGE_PAGES_UP_TO: usize = 2 << 30;

/// A file's bytes, starting at a multiple of 64 in memory.
#[derive(Debug)]
pub struct FileBytes(Bytes);

#[derive(Debug)]
enum Bytes {
    Mapped(Mmap),
    // Memory of no file, at the start of a page.
    Read(HugePageVec<u8>),
}

/// How bytes will be used, for [`FileBytes::advise`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Advice {
    /// No particular way.
    Normal,
    /// Scattered reads.
    Random,
    /// From the beginning to the end.
    Sequential,
    /// All of it, soon.
    WillNeed,
}

impl FileBytes {
    /// Maps the whole file, read-only. `populate` reads all of it ahead. The file must not change while it is mapped.
    ///
    /// # Errors
    /// The system refuses: a file of no bytes cannot be mapped.
    pub fn map(file: &File, populate: bool) -> io::Result<Self> {
        let mut options = MmapOptions::new();
        if populate {
            options.populate();
        }
        // SAFETY: the mapping is read-only, and that nobody changes the file meanwhile is the documented condition of this call:
        // who cannot know it calls `read`.
        let map = unsafe { options.map(file) }?;
        #[cfg(target_os = "linux")]
        if map.len() <= LARGE_PAGES_UP_TO {
            // Best effort: not all file systems have large pages in their cache.
            let _ = map.advise(memmap2::Advice::HugePage);
        }
        Ok(Self(Bytes::Mapped(map)))
    }

    /// Reads the whole file of `length` bytes, into large pages where the system has them:
    /// scattered reads of a large model otherwise spend a tenth to a third of their time on address
    /// translation.
    ///
    /// # Errors
    /// The file cannot be read, or is shorter, or there is no memory for it.
    pub fn read(file: &mut File, length: usize) -> io::Result<Self> {
        let mut memory = HugePageVec::default();
        memory.try_resize(length)?;
        file.read_exact(&mut memory)?;
        Ok(Self(Bytes::Read(memory)))
    }

    /// The content.
    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Bytes::Mapped(map) => map,
            Bytes::Read(memory) => memory,
        }
    }

    /// Lets go of the pages of a range that were touched, where the file is mapped: they are read
    /// again when they are touched again.
    pub fn release(&self, range: Range<usize>) {
        #[cfg(unix)]
        if let Bytes::Mapped(map) = &self.0
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

    /// Tells the system how the bytes will be used. Does nothing for a file that was read into memory, or if the system has no
    /// such call.
    ///
    /// # Errors
    /// The system call fails.
    pub fn advise(&self, advice: Advice) -> io::Result<()> {
        #[cfg(unix)]
        if let Bytes::Mapped(map) = &self.0
            && !map.is_empty()
        {
            map.advise(match advice {
                Advice::Normal => memmap2::Advice::Normal,
                Advice::Random => memmap2::Advice::Random,
                Advice::Sequential => memmap2::Advice::Sequential,
                Advice::WillNeed => memmap2::Advice::WillNeed,
            })?;
        }
        #[cfg(not(unix))]
        let _ = advice;
        Ok(())
    }

    /// The bytes `range` as elements, little-endian as they are in memory; `None` when they are misaligned or no whole number
    /// of elements.
    ///
    /// # Panics
    /// If the range lies outside the file.
    pub fn elements<T: Element>(self: Arc<Self>, range: Range<usize>) -> Option<Buffer<T>> {
        Buffer::from_owner(self, |file| &file.as_bytes()[range]).ok()
    }
}

/// Of no file.
impl From<HugePageVec<u8>> for FileBytes {
    fn from(memory: HugePageVec<u8>) -> Self {
        Self(Bytes::Read(memory))
    }
}

/// Maps the bytes `range` of a file as elements: little-endian, as they are in memory. `None` when
/// they are misaligned or no whole number of elements. The file must not change while the array
/// lives.
///
/// # Errors
/// The system refuses: a file of no bytes cannot be mapped.
///
/// # Panics
/// If the range lies outside the file.
pub fn map_elements<T: Element>(file: &File, range: Range<usize>) -> io::Result<Option<Buffer<T>>> {
    Ok(Arc::new(FileBytes::map(file, false)?).elements(range))
}
