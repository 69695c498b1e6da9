//! Large buffers that are read at random places.

use bytemuck::Pod;
use memmap2::MmapMut;
use std::io;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

/// Values in memory that the system is asked to hold in large pages: a connection then rarely waits
/// for an address to be translated (two threads over 32,768 inputs: 14 -> 19 G multiplications a
/// second and core). Begins with zeros.
#[derive(Debug)]
pub struct HugePageVec<T> {
    memory: Option<MmapMut>,
    len: usize,
    of: PhantomData<T>,
}

impl<T> Default for HugePageVec<T> {
    fn default() -> Self {
        Self { memory: None, len: 0, of: PhantomData }
    }
}

impl<T: Pod> HugePageVec<T> {
    /// Zeros.
    ///
    /// # Panics
    /// If allocation fails, as for `Vec`.
    pub fn zeros(len: usize) -> Self {
        let mut out = Self::default();
        out.resize(len);
        out
    }

    /// Resizes to `len` values. Contents are unspecified; new pages are zero. Never shrinks.
    ///
    /// # Panics
    /// If allocation fails, as for `Vec`.
    pub fn resize(&mut self, len: usize) {
        if let Err(e) = self.try_resize(len) {
            panic!("memory for {len} values of {} bytes: {e}", size_of::<T>());
        }
    }

    /// [`HugePageVec::resize`] that says when there is not so much memory.
    ///
    /// # Errors
    /// The system refuses, or no memory has so many bytes; there is no value then.
    pub fn try_resize(&mut self, len: usize) -> io::Result<()> {
        // Slices are made of it: those have at most `isize::MAX` bytes.
        let bytes = len.checked_mul(size_of::<T>()).filter(|&bytes| isize::try_from(bytes).is_ok());
        let Some(bytes) = bytes else {
            (self.memory, self.len) = (None, 0);
            return Err(io::ErrorKind::OutOfMemory.into());
        };
        if self.memory.as_ref().map_or(0, |m| m.len()) < bytes {
            (self.memory, self.len) = (None, 0);
            self.memory = Some(map(bytes)?);
        }
        self.len = len;
        Ok(())
    }

    /// Bytes held.
    pub fn n_bytes(&self) -> usize {
        self.memory.as_ref().map_or(0, |m| m.len())
    }
}

impl<T> Deref for HugePageVec<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match &self.memory {
            // SAFETY: there is memory only where `try_resize` was called, so T is Pod: any bytes are
            // values. The mapping has room for `len` of them, and begins at a page, which every type
            // is aligned to.
            Some(memory) => unsafe { std::slice::from_raw_parts(memory.as_ptr().cast(), self.len) },
            None => &[],
        }
    }
}

impl<T> DerefMut for HugePageVec<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.memory {
            // SAFETY: as above; `self` is borrowed mutably.
            Some(memory) => unsafe { std::slice::from_raw_parts_mut(memory.as_mut_ptr().cast(), self.len) },
            None => &mut [],
        }
    }
}

impl<T> Clone for HugePageVec<T> {
    fn clone(&self) -> Self {
        let Some(from) = &self.memory else { return Self::default() };
        let n_bytes = self.len * size_of::<T>();
        let copy = map(n_bytes).map(|mut to| {
            to[..n_bytes].copy_from_slice(&from[..n_bytes]);
            to
        });
        match copy {
            Ok(memory) => Self { memory: Some(memory), len: self.len, of: PhantomData },
            Err(e) => panic!("{n_bytes} bytes of memory: {e}"),
        }
    }
}

/// Zeros.
fn map(n_bytes: usize) -> io::Result<MmapMut> {
    let memory = MmapMut::map_anon(n_bytes)?;
    // Best effort: without large pages the memory serves as well. Miri knows no advice.
    #[cfg(all(target_os = "linux", not(miri)))]
    let _ = memory.advise(memmap2::Advice::HugePage);
    Ok(memory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_that_no_memory_has_are_refused() {
        fn refuses<T: Pod + std::fmt::Debug>() {
            let each = size_of::<T>();
            for len in [
                usize::MAX,
                usize::MAX / each,
                (usize::MAX / each).saturating_add(1),
                (usize::MAX / each).saturating_add(2),
                isize::MAX as usize + 1,
            ] {
                let mut pages = HugePageVec::<T>::zeros(3);
                assert!(pages.try_resize(len).is_err(), "{len} of {each} bytes");
                assert!(pages.is_empty() && pages.clone().is_empty());
                assert!(std::panic::catch_unwind(|| HugePageVec::<T>::zeros(len).len()).is_err());
                pages.resize(2);
                assert_eq!(pages.len(), 2);
            }
        }
        refuses::<u8>();
        refuses::<u16>();
        refuses::<u32>();
        refuses::<u64>();
        refuses::<[u32; 4]>();
        assert_eq!(
            HugePageVec::<u64>::default().try_resize((1 << 61) + 1).unwrap_err().kind(),
            io::ErrorKind::OutOfMemory
        );
    }

    #[test]
    fn a_buffer_grows_and_shrinks() {
        let mut pages = HugePageVec::<u32>::default();
        assert!(pages.is_empty());
        pages.resize(0);
        assert!(pages.is_empty());
        pages.resize(5000);
        assert!(pages.iter().all(|&v| v == 0));
        pages[4999] = 7;
        pages.resize(3);
        assert_eq!(&*pages, [0; 3]);
        pages.resize(5000);
        assert_eq!((pages[4999], pages.clone()[4999]), (7, 7));
        pages.resize(10);
        assert_eq!((pages.clone().len(), pages.n_bytes()), (10, 20_000));
    }
}
