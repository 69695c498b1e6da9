//! Large buffers that are read at random places.

use bytemuck::Pod;
use memmap2::{Advice, MmapMut};
use std::io;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

/// Values in memory that the system is asked to hold in large pages: a connection then rarely waits
/// for an address to be translated (two threads over 32,768 inputs: 14 -> 19 G multiplications a
/// second and core). Begins with zeros.
#[derive(Debug, Default)]
pub struct Pages<T> {
    memory: Option<MmapMut>,
    len: usize,
    of: PhantomData<T>,
}

impl<T: Pod> Pages<T> {
    /// Has `len` values afterwards. What they are is not said, but for new memory: zeros. No memory
    /// is given back.
    ///
    /// # Panics
    /// If there is not so much memory, as a vector would.
    pub fn resize(&mut self, len: usize) {
        if let Err(e) = self.try_resize(len) {
            panic!("{} bytes of memory: {e}", len * size_of::<T>());
        }
    }

    /// [`Pages::resize`] that says when there is not so much memory.
    ///
    /// # Errors
    /// The system refuses; there is no value then.
    pub fn try_resize(&mut self, len: usize) -> io::Result<()> {
        let bytes = len * size_of::<T>();
        if self.memory.as_ref().map_or(0, |m| m.len()) < bytes {
            (self.memory, self.len) = (None, 0);
            let memory = MmapMut::map_anon(bytes)?;
            // A wish only: without large pages the memory serves as well.
            #[cfg(target_os = "linux")]
            let _ = memory.advise(Advice::HugePage);
            self.memory = Some(memory);
        }
        self.len = len;
        Ok(())
    }

    /// Bytes held.
    pub fn n_bytes(&self) -> usize {
        self.memory.as_ref().map_or(0, |m| m.len())
    }
}

impl<T: Pod> Deref for Pages<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match &self.memory {
            // A mapping begins at a page, which every type is aligned to.
            Some(memory) => bytemuck::cast_slice(&memory[..self.len * size_of::<T>()]),
            None => &[],
        }
    }
}

impl<T: Pod> DerefMut for Pages<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.memory {
            Some(memory) => bytemuck::cast_slice_mut(&mut memory[..self.len * size_of::<T>()]),
            None => &mut [],
        }
    }
}

impl<T: Pod> Clone for Pages<T> {
    fn clone(&self) -> Self {
        let mut out = Self { memory: None, len: 0, of: PhantomData };
        out.resize(self.len);
        out.copy_from_slice(self);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_grows_and_shrinks() {
        let mut pages: Pages<u32> = Pages { memory: None, len: 0, of: PhantomData };
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
    }
}
