//! Folders as PECOS lays them out, and how ours of that form come to stand.

use super::error::{PecosError, io_error};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use xc_sparse::atomic::OutputFolder;

/// Where a level is in a model's folder.
pub(super) fn layer_folder(level: usize) -> PathBuf {
    Path::new("ranker").join(format!("{level}.model"))
}

/// Has a folder filled beside `destination` and renames it: it appears whole or not at all.
pub(super) fn replace_whole(
    destination: &Path,
    fill: impl FnOnce(&OutputFolder) -> Result<(), PecosError>,
) -> Result<(), PecosError> {
    match fs::read_dir(destination).map(|mut entries| entries.next().is_some()) {
        Ok(true) => return Err(PecosError::Occupied { path: destination.to_owned() }),
        Ok(false) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) if error.kind() == ErrorKind::NotADirectory => {
            return Err(PecosError::Occupied { path: destination.to_owned() });
        }
        Err(error) => return Err(io_error(destination)(error)),
    }
    let building = OutputFolder::create(destination)?;
    fill(&building)?;
    Ok(building.commit()?)
}
