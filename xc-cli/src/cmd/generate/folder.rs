//! The folder of generated files, which replaces no file but its own.

use crate::error::CliError;
use crate::output::{self, Output};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::Xxh3;

/// The file that lists the files that were generated in its folder, with their hashes.
const NOTE: &str = "generated.json";

/// Files by name, each with the hashes of what was generated under it: one, and the one that is about to replace it.
#[derive(Default, Deserialize, Serialize)]
struct Note {
    xxh3: BTreeMap<String, Vec<String>>,
}

/// A folder to generate into.
pub(super) struct Folder {
    path: PathBuf,
    before: Note,
    files: Vec<Generated>,
}

/// A file that is being generated.
struct Generated {
    name: String,
    output: Output,
    hash: Xxh3,
}

impl Folder {
    /// Makes the folder where there is none, and opens a file of each name.
    ///
    /// # Errors
    /// There is a file of one of these names that was not generated there, or has changed since: it would be lost.
    pub(super) fn create(path: &Path, names: &[String]) -> Result<Self, CliError> {
        output::make_folder(path)?;
        let before = match std::fs::read(path.join(NOTE)) {
            // Whatever else it is lists nothing.
            Ok(bytes) => serde_json::from_slice::<Note>(&bytes).unwrap_or_default(),
            Err(_) => Note::default(),
        };
        for name in names {
            let file = path.join(name);
            let is_own = match hash_of(&file) {
                Ok(hash) => before.xxh3.get(name).is_some_and(|hashes| hashes.contains(&hash)),
                Err(e) if e.kind() == io::ErrorKind::NotFound => true,
                // What is no file is said when it is to be replaced.
                Err(_) => file.is_dir(),
            };
            if !is_own {
                return Err(CliError::usage(format_args!(
                    "--output {}: its {name} is not a generated file, and would be lost; another folder is expected",
                    path.display()
                )));
            }
        }
        let open = |name: &String| {
            Ok(Generated { name: name.clone(), output: Output::create(&path.join(name))?, hash: Xxh3::new() })
        };
        let files = names.iter().map(open).collect::<Result<_, CliError>>()?;
        Ok(Self { path: path.to_owned(), before, files })
    }

    /// Whether a file of this name is generated.
    pub(super) fn has(&self, name: &str) -> bool {
        self.files.iter().any(|file| file.name == name)
    }

    /// Writes bytes to the file of this name; the error names the file.
    ///
    /// # Panics
    /// If none is generated.
    pub(super) fn put(&mut self, name: &str, bytes: &[u8]) -> Result<(), CliError> {
        let Some(file) = self.files.iter_mut().find(|file| file.name == name) else { panic!("{name} was not opened") };
        file.hash.update(bytes);
        file.output.put(bytes)
    }

    /// Puts all files in their places. Whenever this ends, the note lists what is there.
    pub(super) fn commit(self) -> Result<(), CliError> {
        let Self { path, before, mut files } = self;
        files.iter_mut().try_for_each(|file| file.output.send())?;
        let mut note = before;
        for file in &files {
            note.xxh3.entry(file.name.clone()).or_default().push(hex(&file.hash));
        }
        write_note(&path, &note)?;
        for file in files {
            note.xxh3.insert(file.name, vec![hex(&file.hash)]);
            file.output.commit()?;
        }
        write_note(&path, &note)
    }
}

fn write_note(folder: &Path, note: &Note) -> Result<(), CliError> {
    let mut file = Output::create(&folder.join(NOTE))?;
    let text = serde_json::to_string_pretty(note).map_err(CliError::failed)?;
    file.put(text.as_bytes())?;
    file.put(b"\n")?;
    file.commit()
}

fn hash_of(path: &Path) -> io::Result<String> {
    let (mut file, mut block, mut hash) = (std::fs::File::open(path)?, vec![0; 1 << 18], Xxh3::new());
    loop {
        match file.read(&mut block)? {
            0 => return Ok(hex(&hash)),
            n => hash.update(&block[..n]),
        }
    }
}

fn hex(hash: &Xxh3) -> String {
    format!("{:016x}", hash.digest())
}
