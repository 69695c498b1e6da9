//! Numbers that are written in any order, then read: in memory, or in a file without a name.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;
use xc_buffer::dtype::Element;
use xc_buffer::{Buffer, FileBytes};

/// A table that may be in a file instead of memory: for data that are too large for memory and are read
/// one part at a time.
///
/// The file has no name, so it is never left behind. It is written with ordinary writes, which report a
/// full disk, and mapped for reading.
///
/// ```
/// use xc_store::MmapVec;
///
/// let mut table = MmapVec::<u32>::zeros(1000, Some(&std::env::temp_dir()))?;
/// table.write(7, &[1, 2])?;
/// assert_eq!(table.finish()?[6..10], [0, 1, 2, 0]);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct MmapVec<T> {
    place: Place<T>,
}

#[derive(Debug)]
enum Place<T> {
    Memory(Vec<T>),
    File { file: File, len: usize },
}

impl<T: Element> MmapVec<T> {
    /// `len` zeros; in a file in `folder`, if it is given.
    ///
    /// # Errors
    /// The folder cannot hold a file of this size.
    pub fn zeros(len: usize, folder: Option<&Path>) -> io::Result<Self> {
        let place = match folder {
            None => Place::Memory(vec![T::zeroed(); len]),
            Some(folder) => {
                let bytes = len.checked_mul(size_of::<T>()).ok_or(io::ErrorKind::FileTooLarge)?;
                let file = tempfile::tempfile_in(folder)?;
                // What is never written stays a hole: it takes no room, and reads as zeros.
                file.set_len(bytes as u64)?;
                Place::File { file, len }
            }
        };
        Ok(Self { place })
    }

    /// The given values; in a file in `folder`, if it is given.
    ///
    /// # Errors
    /// As [`MmapVec::zeros`] and [`MmapVec::write`].
    pub fn of(values: Vec<T>, folder: Option<&Path>) -> io::Result<Self> {
        if folder.is_none() {
            return Ok(Self { place: Place::Memory(values) });
        }
        let mut table = Self::zeros(values.len(), folder)?;
        table.write(0, &values)?;
        Ok(table)
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        match &self.place {
            Place::Memory(values) => values.len(),
            Place::File { len, .. } => *len,
        }
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Overwrites the values from `at` on.
    ///
    /// # Errors
    /// A write fails, for example because the disk is full.
    ///
    /// # Panics
    /// If there are fewer values from `at` on.
    pub fn write(&mut self, at: usize, values: &[T]) -> io::Result<()> {
        let end = at.saturating_add(values.len());
        assert!(end <= self.len(), "values {at} to {end} of {}", self.len());
        match &mut self.place {
            Place::Memory(all) => {
                all[at..end].copy_from_slice(values);
                Ok(())
            }
            Place::File { file, .. } => write_all_at(file, bytemuck::cast_slice(values), (at * size_of::<T>()) as u64),
        }
    }

    /// Calls `work` with all values; a file is mapped.
    ///
    /// # Errors
    /// The file cannot be mapped.
    pub fn read<R>(&self, work: impl FnOnce(&[T]) -> R) -> io::Result<R> {
        match &self.place {
            Place::Memory(values) => Ok(work(values)),
            Place::File { len: 0, .. } => Ok(work(&[])),
            Place::File { file, len } => Ok(work(&mapped(file, *len)?)),
        }
    }

    /// All values, which no longer change; a file is mapped.
    ///
    /// # Errors
    /// The file cannot be mapped.
    pub fn finish(self) -> io::Result<Buffer<T>> {
        match self.place {
            Place::Memory(values) => Ok(values.into()),
            Place::File { len: 0, .. } => Ok(Buffer::default()),
            Place::File { file, len } => mapped(&file, len),
        }
    }
}

/// Nobody else can open the file, and who has it borrowed cannot write.
fn mapped<T: Element>(file: &File, len: usize) -> io::Result<Buffer<T>> {
    // It has no name that another program could open, and to write it the table is borrowed or taken.
    let bytes = Arc::new(FileBytes::map(file, false)?);
    let values = bytes.elements(0..len * size_of::<T>());
    values.ok_or_else(|| io::Error::other("a mapping that does not begin at a page"))
}

#[cfg(unix)]
fn write_all_at(file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, at)
}

#[cfg(not(unix))]
fn write_all_at(mut file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
    use std::io::{Seek as _, SeekFrom, Write as _};
    file.seek(SeekFrom::Start(at))?;
    file.write_all(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_holds_what_memory_holds_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        for len in [0, 1, 5000] {
            let places = [None, Some(folder.path())];
            let mut tables = places.map(|place| MmapVec::<f32>::zeros(len, place).unwrap());
            for table in &mut tables {
                assert_eq!((table.len(), table.is_empty()), (len, len == 0));
                table.write(0, &[]).unwrap();
                if len > 1 {
                    table.write(4998, &[1.5, -2.0]).unwrap();
                    table.write(7, &[3.0]).unwrap();
                }
            }
            let [memory, file] = tables;
            let copy = MmapVec::of(memory.read(<[f32]>::to_vec).unwrap(), Some(folder.path())).unwrap();
            assert_eq!(copy.finish().unwrap(), file.read(|all| all.to_vec().into()).unwrap());
            let wanted = memory.read(<[f32]>::to_vec).unwrap();
            assert_eq!(file.read(<[f32]>::to_vec).unwrap(), wanted);
            assert_eq!((&file.finish().unwrap()[..], &memory.finish().unwrap()[..]), (&wanted[..], &wanted[..]));
            assert_eq!(wanted.iter().sum::<f32>(), if len > 1 { 2.5 } else { 0.0 });
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        assert!(MmapVec::<u32>::zeros(1, Some(&folder.path().join("none"))).is_err());
    }

    #[test]
    #[should_panic(expected = "values 3 to 5 of 4")]
    fn values_behind_the_end_are_refused() {
        let _ = MmapVec::<u32>::zeros(4, None).unwrap().write(3, &[1, 2]);
    }
}
