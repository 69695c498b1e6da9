//! What a saved model may replace.

use super::config::{CONFIG_FILE, LABELS_FILE, is_ours};
use super::error::WriteError;
use crate::atomic::{Leftover, failed, leftover, name_of_partial};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Name of the folder inside a model folder that holds an index of its labels.
pub const PART_FOLDER: &str = "index";

/// What the names of the models in the folder of a model begin with; a number follows.
const MEMBER_FOLDER: &str = "member-";

/// Name of the folder of member `number`.
pub fn member_folder(number: usize) -> String {
    format!("{MEMBER_FOLDER}{number}")
}

/// Whether a folder is called as those of members are.
fn is_member_name(name: &str) -> bool {
    name.strip_prefix(MEMBER_FOLDER).is_some_and(|number| number.parse().is_ok_and(|n| member_folder(n) == name))
}

/// Gives a folder that is being built the part that the one in its place has, by links where the file
/// system can: a part outlives the model that it was made for. A model is not lost because its part cannot
/// be kept, which is made anew in minutes.
pub(super) fn keep_part(of: &Path, building: &Path) {
    let (from, to) = (of.join(PART_FOLDER), building.join(PART_FOLDER));
    if is_part(&from) && link_files(&from, &to).is_err() {
        // Nothing to be done about what cannot be removed either: it is then kept in part, and does not open.
        let _ = std::fs::remove_dir_all(&to);
    }
}

/// Makes a folder that holds the files of a model, and of its part if it has one: by links where the
/// file system can.
pub(super) fn link_model(from: &Path, to: &Path) -> io::Result<()> {
    link_files(from, to)?;
    link_part(from, to)
}

/// Gives a folder that is being built the part of a model, if it has one.
pub(super) fn link_part(from: &Path, to: &Path) -> io::Result<()> {
    let part = from.join(PART_FOLDER);
    if is_part(&part) { link_files(&part, &to.join(PART_FOLDER)) } else { Ok(()) }
}

/// Gives a folder that is being built the parts and members of a model.
pub(super) fn link_folders(from: &Path, to: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(from)? {
        let name = entry?.file_name();
        let (from, to) = (from.join(&name), to.join(&name));
        match name.to_str() {
            Some(PART_FOLDER) if is_part(&from) => link_files(&from, &to)?,
            Some(name) if is_member_name(name) && is_member(&from) => link_model(&from, &to)?,
            _ => {}
        }
    }
    Ok(())
}

/// Makes a folder that holds the files of another one, without what killed writers left there.
fn link_files(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::create_dir(to)?;
    for entry in std::fs::read_dir(from)? {
        let name = entry?.file_name();
        let (from, to) = (from.join(&name), to.join(&name));
        if from.is_file() && leftover(&from).is_none() {
            link_or_copy(&from, &to)?;
        }
    }
    // Whoever may read it may change their copy, whose parts are still to be written.
    keep_folder_permissions(from, to, true)
}

/// Gives the files of a folder that is being built the permissions of those that they replace: each
/// those of its namesake, a further one those of the configuration. A file that is a link to one of
/// another model, whose permissions are not to change, becomes a copy.
pub(super) fn keep_permissions(of: &Path, building: &Path) -> io::Result<()> {
    let others = std::fs::metadata(of.join(CONFIG_FILE))?.permissions();
    for entry in std::fs::read_dir(building)? {
        let path = entry?.path();
        if path.is_file() {
            let namesake = path.file_name().map(|name| std::fs::metadata(of.join(name)));
            let permissions = namesake.and_then(Result::ok).map_or(others.clone(), |found| found.permissions());
            if std::fs::metadata(&path)?.permissions() != permissions {
                unshare(&path)?;
                std::fs::set_permissions(path, permissions)?;
            }
        }
    }
    keep_folder_permissions(of, building, false)
}

/// Gives the folder that is being built the permissions of the one that it replaces; while it is
/// `open` its files can be written.
pub(super) fn keep_folder_permissions(of: &Path, building: &Path, open: bool) -> io::Result<()> {
    let permissions = std::fs::metadata(of)?.permissions();
    #[cfg(unix)]
    let permissions = {
        use std::os::unix::fs::PermissionsExt as _;
        let of_owner = if open { 0o700 } else { 0 };
        std::fs::Permissions::from_mode(permissions.mode() | of_owner)
    };
    #[cfg(not(unix))]
    if open {
        return Ok(());
    }
    std::fs::set_permissions(building, permissions)
}

/// Makes a file that holds what another one does, wherever symbolic links to that lead: by a hard link
/// where the file system can.
pub(super) fn link_or_copy(from: &Path, to: &Path) -> io::Result<()> {
    // A hard link to a symbolic link leads somewhere else, or depends on what it leads to.
    let from = std::fs::canonicalize(from)?;
    std::fs::hard_link(&from, to).or_else(|_| copy(&from, to))
}

/// Makes a file with other hard links one of its own.
#[cfg(unix)]
fn unshare(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt as _;
    if std::fs::metadata(path)?.nlink() == 1 {
        return Ok(());
    }
    let mut own = path.as_os_str().to_owned();
    own.push(".own");
    copy(path, Path::new(&own))?;
    std::fs::rename(own, path)
}

#[cfg(not(unix))]
fn unshare(_: &Path) -> io::Result<()> {
    Ok(())
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::copy(from, to)?;
    File::open(to)?.sync_all()
}

/// What is at the destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Nothing, or an empty folder.
    Nothing,
    /// A model of ours, to be replaced.
    Model,
}

/// The folder that `path` names, behind links and without a trailing `.`.
pub(super) fn resolve(path: &Path) -> Result<PathBuf, WriteError> {
    let path = match std::fs::canonicalize(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if path.is_symlink() {
                return Err(WriteError::Occupied { path: path.to_owned(), why: "a link to nothing".to_owned() });
            }
            path.to_owned()
        }
        Err(error) => return Err(failed(path, "look at the destination")(error).into()),
    };
    if path.parent().is_none() {
        return Err(WriteError::Occupied { path, why: "the root of a file system".to_owned() });
    }
    Ok(path)
}

/// Looks at the destination and refuses to touch anything but a model of ours.
pub(super) fn inspect(path: &Path) -> Result<Standing, WriteError> {
    inspect_folder(path, Inside::Members)
}

/// Refuses a model in which something is being written, which would be lost with it.
pub(super) fn refuse_under_way(path: &Path) -> Result<(), WriteError> {
    for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
        if leftover(&entry.path()) == Some(Leftover::Held) {
            let why = format!("a model folder in which {:?} is being written", entry.file_name());
            return Err(WriteError::Occupied { path: path.to_owned(), why });
        }
    }
    Ok(())
}

/// Whether a folder holds a part and nothing else.
fn is_part(path: &Path) -> bool {
    matches!(inspect_folder(path, Inside::Nothing), Ok(Standing::Model))
}

/// Whether a folder holds a member of a model and nothing else.
fn is_member(path: &Path) -> bool {
    matches!(inspect_folder(path, Inside::Part), Ok(Standing::Model))
}

/// Which folders may be in one of ours.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Inside {
    Nothing,
    Part,
    /// And a part.
    Members,
}

/// An entry of a model folder.
enum Entry {
    File,
    Part,
    Member,
}

/// What an entry of this name is in a folder of ours.
fn expected(name: &str, inside: Inside) -> Option<Entry> {
    if is_model_file(name) || name == CONFIG_FILE || name == LABELS_FILE {
        Some(Entry::File)
    } else if inside >= Inside::Part && name == PART_FOLDER {
        Some(Entry::Part)
    } else {
        (inside == Inside::Members && is_member_name(name)).then_some(Entry::Member)
    }
}

fn inspect_folder(path: &Path, inside: Inside) -> Result<Standing, WriteError> {
    let occupied = |why: String| Err(WriteError::Occupied { path: path.to_owned(), why });
    let entries = match std::fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Standing::Nothing),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => return occupied("a file".to_owned()),
        Err(error) => return Err(failed(path, "list the destination")(error).into()),
    };
    let mut foreign = None;
    let mut is_empty = true;
    for entry in entries {
        let entry = entry.map_err(failed(path, "list the destination"))?;
        is_empty = false;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = entry.path();
        let is_ours = match name_of_partial(&name) {
            // What a killed writer left of it may hold anything.
            Some(of) => leftover(&path).is_some() && expected(of, inside).is_some(),
            None => match expected(&name, inside) {
                None => false,
                Some(Entry::File) => true,
                Some(Entry::Part) => is_part(&path),
                Some(Entry::Member) => is_member(&path),
            },
        };
        if !is_ours {
            foreign = Some(name);
        }
    }
    if is_empty {
        return Ok(Standing::Nothing);
    }
    if !is_ours(path) {
        return occupied("a folder that is not empty and holds no xc model".to_owned());
    }
    match foreign {
        Some(name) => occupied(format!("a model folder that also holds {name:?}, which would be lost")),
        None => Ok(Standing::Model),
    }
}

/// True for the names that array files may have.
pub(super) fn is_model_file(name: &str) -> bool {
    let is_plain = |c: char| !c.is_control() && c != '/' && c != '\\';
    name.starts_with("model") && name.ends_with(".safetensors") && name.chars().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Container, ContainerWriter, OpenMode};

    fn save(path: &Path, seed: u32) {
        let mut writer = ContainerWriter::create(path, "tree").unwrap();
        writer.add_slice("a", &[seed]).unwrap();
        writer.finish().unwrap();
    }

    #[test]
    fn a_model_with_members_is_replaced_as_a_whole_and_members_are_models() {
        let folder = tempfile::tempdir().unwrap();
        let [one, all] = ["one", "all"].map(|name| folder.path().join(name));
        save(&one, 1);
        save(&one.join(PART_FOLDER), 2);
        let build = |n: usize| {
            let member = Container::open(&one, OpenMode::Map).unwrap();
            let mut writer = ContainerWriter::create(&all, "blend").unwrap();
            (0..n).for_each(|number| writer.add_member(number, &member).unwrap());
            writer.finish().unwrap();
        };
        build(2);
        let inside = |number: usize| all.join(member_folder(number));
        for number in 0..2 {
            assert!(Container::open(&inside(number).join(PART_FOLDER), OpenMode::Map).is_ok());
            assert_eq!(&*Container::open(&inside(number), OpenMode::Map).unwrap().array::<u32>("a").unwrap(), &[1]);
        }
        build(1);
        assert!(inside(0).is_dir() && !inside(1).exists());

        // Another file in a member is not ours to remove.
        std::fs::write(inside(0).join("notes"), "mine").unwrap();
        let refused = ContainerWriter::check(&all).unwrap_err().to_string();
        assert!(refused.contains("also holds \"member-0\""), "{refused}");
        std::fs::remove_file(inside(0).join("notes")).unwrap();
        std::fs::rename(inside(0), all.join("member-00")).unwrap();
        assert!(ContainerWriter::check(&all).is_err());
    }

    #[test]
    fn a_member_that_was_replaced_meanwhile_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let [one, all] = ["one", "all"].map(|name| folder.path().join(name));
        save(&one, 1);
        let member = Container::open(&one, OpenMode::Map).unwrap();
        save(&one, 2);
        let mut writer = ContainerWriter::create(&all, "blend").unwrap();
        let refused = writer.add_member(0, &member).unwrap_err();
        assert_eq!(refused.to_string(), format!("{}: replaced since it was opened", one.display()));
        drop(writer);
        assert!(!all.exists());
    }
}
