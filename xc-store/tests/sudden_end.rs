//! A process that ends at once. Alone in its own program: afterwards nothing can be committed.

use std::io::Write as _;
use xc_store::atomic::{OutputFile, OutputFolder, remove_partial};

#[test]
fn a_sudden_end_removes_what_is_being_written_and_leaves_what_was_there() {
    let place = tempfile::tempdir().unwrap();
    let (path, folder) = (place.path().join("file"), place.path().join("folder"));
    std::fs::write(&path, "before").unwrap();
    let mut file = OutputFile::create(&path).unwrap();
    file.write_all(b"half").unwrap();
    let building = OutputFolder::create(&folder).unwrap();
    building.file("deep/a", |file| file.write_all(b"half")).unwrap();
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 3);
    remove_partial();
    let left: Vec<_> = std::fs::read_dir(place.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!((left, std::fs::read_to_string(&path).unwrap()), (vec!["file".into()], "before".to_owned()));
    // Dropping them would wait for ever, as every other commit in the program that ends.
    std::mem::forget((file, building));
}
