//! An open folder: every file comes from this folder, even if another one replaces it meanwhile.

use super::OpenError;
use super::memory::MemoryFiles;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use xc_buffer::FileBytes;

/// A folder behind a handle, which stays with it when its path names another one.
#[derive(Debug)]
pub(super) struct OpenFolder {
    pub(super) path: PathBuf,
    /// Nothing where it is in memory.
    #[cfg(unix)]
    handle: Option<File>,
    /// Its files, where it is in memory.
    memory: Option<MemoryFiles>,
    /// The folder that this one was opened in, with its name there.
    parent: Option<(Arc<Self>, String)>,
    /// Whether something else was seen in its place. It may be put back there: what was missing in
    /// between was missing all the same.
    seen_replaced: AtomicBool,
}

#[cfg(unix)]
impl OpenFolder {
    /// Opens a folder.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        use rustix::fs::{Mode, OFlags};
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle = Some(File::from(rustix::fs::open(path, flags, Mode::empty())?));
        Ok(Self { handle, ..Self::at(path) })
    }

    /// Opens a folder in this one.
    pub(super) fn inside(self: &Arc<Self>, name: &str) -> io::Result<Self> {
        use rustix::fs::{Mode, OFlags};
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle = Some(File::from(rustix::fs::openat(self.handle()?, name, flags, Mode::empty())?));
        let parent = Some((Arc::clone(self), name.to_owned()));
        Ok(Self { handle, parent, ..Self::at(&self.path.join(name)) })
    }

    fn open_file(&self, name: &str) -> io::Result<File> {
        use rustix::fs::{Mode, OFlags};
        // Without waiting for a writer of what turns out to be a pipe.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Ok(File::from(rustix::fs::openat(self.handle()?, name, flags, Mode::empty())?))
    }

    fn handle(&self) -> io::Result<&File> {
        self.handle.as_ref().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// A folder that is not open.
    fn at(path: &Path) -> Self {
        Self { path: path.to_owned(), handle: None, memory: None, parent: None, seen_replaced: AtomicBool::new(false) }
    }

    /// Whether the path names another folder now, or none; of a folder in another, its name there.
    fn is_replaced(&self) -> bool {
        use rustix::fs::{AtFlags, fstat, stat, statat};
        let Ok(handle) = self.handle() else { return false };
        let named = match &self.parent {
            Some((parent, name)) => match parent.handle() {
                Ok(parent) => statat(parent, name.as_str(), AtFlags::empty()),
                Err(_) => return false,
            },
            None => stat(&self.path),
        };
        let own = fstat(handle);
        !own.is_ok_and(|own| named.is_ok_and(|named| (own.st_dev, own.st_ino) == (named.st_dev, named.st_ino)))
    }
}

#[cfg(not(unix))]
impl OpenFolder {
    /// Opens a folder.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        if !std::fs::metadata(path)?.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(Self::at(path))
    }

    /// A folder that is not open.
    fn at(path: &Path) -> Self {
        Self { path: path.to_owned(), memory: None, parent: None, seen_replaced: AtomicBool::new(false) }
    }

    /// Opens a folder in this one.
    pub(super) fn inside(self: &Arc<Self>, name: &str) -> io::Result<Self> {
        if self.memory.is_some() {
            return Err(io::ErrorKind::NotFound.into());
        }
        let opened = Self::open(&self.path.join(name))?;
        Ok(Self { parent: Some((Arc::clone(self), name.to_owned())), ..opened })
    }

    fn open_file(&self, name: &str) -> io::Result<File> {
        File::open(self.path.join(name))
    }

    /// Whether the path names another folder now: a folder with open files cannot be replaced
    /// there.
    fn is_replaced(&self) -> bool {
        false
    }
}

impl OpenFolder {
    /// A folder of files in memory, without a path.
    pub(super) fn of_memory(files: MemoryFiles) -> Self {
        Self { memory: Some(files), ..Self::at(Path::new("")) }
    }

    /// Its files, where it is in memory.
    pub(super) fn memory(&self) -> Option<&MemoryFiles> {
        self.memory.as_ref()
    }

    /// A file of it, where it is in memory.
    ///
    /// # Errors
    /// There is no such file.
    pub(super) fn in_memory(&self, name: &str) -> io::Result<Option<&Arc<FileBytes>>> {
        match &self.memory {
            Some(files) => files.get(name).map(Some).ok_or_else(|| io::ErrorKind::NotFound.into()),
            None => Ok(None),
        }
    }

    /// Whether something else is in its place, or was seen there before.
    pub(super) fn was_replaced(&self) -> bool {
        let is_replaced = self.seen_replaced.load(Ordering::Relaxed) || self.is_replaced();
        self.seen_replaced.fetch_or(is_replaced, Ordering::Relaxed);
        is_replaced
    }

    /// Whether a folder that this one was opened in was replaced: then this one may be gone soon, or
    /// has lost files already.
    pub(super) fn is_of_replaced(&self) -> bool {
        self.parent.as_ref().is_some_and(|(parent, _)| parent.was_replaced() || parent.is_of_replaced())
    }

    /// Opens a regular file in the folder. Pipes and devices have no end, or keep their reader
    /// waiting.
    pub(super) fn file(&self, name: &str) -> io::Result<File> {
        let file = self.open_file(name)?;
        match file.metadata()?.is_file() {
            true => Ok(file),
            false => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")),
        }
    }

    /// Reads a file of at most `limit` bytes; `what` says which part of a model it is.
    pub(super) fn read(&self, name: &str, what: &'static str, limit: u64) -> Result<Vec<u8>, OpenError> {
        let io = |source| OpenError::Io { path: self.path.join(name), source };
        if let Some(bytes) = self.in_memory(name).map_err(io)? {
            let got = bytes.as_bytes().len() as u64;
            if got > limit {
                return Err(OpenError::TooLarge { path: self.path.join(name), what, got, limit });
            }
            return Ok(bytes.as_bytes().to_vec());
        }
        let file = self.file(name).map_err(io)?;
        read_all(&file, &self.path.join(name), what, limit)
    }
}

/// Reads a whole file from its beginning, at most `limit` bytes of it, wherever others that share
/// it stand.
pub(super) fn read_all(file: &File, path: &Path, what: &'static str, limit: u64) -> Result<Vec<u8>, OpenError> {
    let mut bytes = Vec::new();
    let n = ReadAt { file, at: 0 }.take(limit.saturating_add(1)).read_to_end(&mut bytes);
    let got = n.map_err(|source| OpenError::Io { path: path.to_owned(), source })? as u64;
    if got > limit {
        let got = file.metadata().map_or(got, |meta| meta.len().max(got));
        return Err(OpenError::TooLarge { path: path.to_owned(), what, got, limit });
    }
    Ok(bytes)
}

/// A reader with a position of its own.
struct ReadAt<'a> {
    file: &'a File,
    at: u64,
}

impl Read for ReadAt<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        #[cfg(unix)]
        let n = std::os::unix::fs::FileExt::read_at(self.file, into, self.at)?;
        #[cfg(windows)]
        let n = std::os::windows::fs::FileExt::seek_read(self.file, into, self.at)?;
        self.at += n as u64;
        Ok(n)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use crate::{Container, ContainerWriter, OpenMode, PART_FOLDER};
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::Path;

    fn save(path: &Path, value: u32) {
        let mut writer = ContainerWriter::create(path, "tree").unwrap();
        writer.add_slice("a", &[value]).unwrap();
        writer.finish().unwrap();
    }

    fn value(container: &Container) -> u32 {
        container.array::<u32>("a").unwrap()[0]
    }

    #[test]
    fn what_stands_in_a_model_is_opened_in_the_folder_that_was_opened() {
        let folder = tempfile::tempdir().unwrap();
        let [model, other] = ["model", "other"].map(|name| folder.path().join(name));
        for (path, value) in [(&model, 1), (&other, 2)] {
            save(path, value);
            save(&path.join(PART_FOLDER), 10 * value);
        }
        let container = Container::open(&model, OpenMode::Map).unwrap();
        let was_replaced = container.replacement();
        assert!(container.inside("absent", OpenMode::Map).unwrap().is_none() && !was_replaced());
        fs::rename(&model, folder.path().join("aside")).unwrap();
        fs::rename(&other, &model).unwrap();
        assert!(was_replaced());
        fs::rename(&model, &other).unwrap();
        fs::rename(folder.path().join("aside"), &model).unwrap();
        assert!(was_replaced(), "though it is back");
        fs::rename(&model, folder.path().join("aside")).unwrap();
        fs::rename(&other, &model).unwrap();
        let inside = container.inside(PART_FOLDER, OpenMode::Map).unwrap().unwrap();
        assert_eq!((value(&container), value(&inside)), (1, 10));
        assert!(inside.replacement()(), "that of the folder that it stands in");
        assert_eq!(value(&container.inside_parts(PART_FOLDER, OpenMode::Read).unwrap().unwrap()), 10);
        // Whether there was one cannot be known any more.
        fs::remove_dir_all(folder.path().join("aside/index")).unwrap();
        assert!(container.inside(PART_FOLDER, OpenMode::Map).is_err());
    }

    #[test]
    fn a_model_that_replaces_another_has_its_permissions() {
        let folder = tempfile::tempdir().unwrap();
        let model = folder.path().join("model");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        save(&model, 1);
        save(&model.join(PART_FOLDER), 2);
        set(&model, 0o700);
        set(&model.join(PART_FOLDER), 0o710);
        set(&model.join("config.json"), 0o600);
        set(&model.join("model.safetensors"), 0o640);
        let mut writer = ContainerWriter::create(&model, "tree").unwrap();
        let building = fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().path()).find(|path| *path != model);
        assert_eq!(mode(&building.unwrap()), 0o700, "while it is written");
        writer.add_slice("a", &[3u32]).unwrap();
        writer.stream("b", xc_buffer::dtype::DType::F32).unwrap().finish().unwrap();
        writer.finish().unwrap();
        let of = ["", "index", "config.json", "model.safetensors", "model-b.safetensors"];
        assert_eq!(of.map(|name| mode(&model.join(name))), [0o700, 0o710, 0o600, 0o640, 0o600]);
        assert_eq!(value(&Container::open(&model, OpenMode::Map).unwrap()), 3);
    }
}
