//! Folders as PECOS lays them out, and how ours of that form come to stand.

use super::error::{PecosError, io_error};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use xc_store::atomic::OutputFolder;

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
    building.commit().map_err(|error| match error.is_occupied() {
        true => PecosError::Occupied { path: destination.to_owned() },
        false => error.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_is_filled_meanwhile_is_refused_and_kept() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("export");
        let outcome = replace_whole(&path, |_| {
            fs::create_dir(&path).and_then(|()| fs::write(path.join("mine"), "x")).map_err(io_error(&path))
        });
        assert!(matches!(outcome, Err(PecosError::Occupied { .. })), "{outcome:?}");
        let names: Vec<_> = fs::read_dir(place.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!((names, fs::read_to_string(path.join("mine")).unwrap()), (vec!["export".into()], "x".to_owned()));
    }
}
