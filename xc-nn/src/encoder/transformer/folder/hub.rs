//! Folders by the names of their repositories: what programs of Hugging Face have downloaded before is found in the place where
//! they keep it. Nothing is downloaded here.
//!
//! ```text
//!   CACHE/models--ORG--NAME/refs/main ──▶ HASH        CACHE/models--ORG--NAME/snapshots/HASH/config.json ...
//! ```

use super::error::FolderError;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Bytes of a file that names a snapshot, at most.
const LONGEST_HASH: usize = 128;

/// The folder that is named: itself where there is one, else the snapshot of a repository of this name in the cache of Hugging
/// Face's programs, which `HF_HUB_CACHE`, `HF_HOME` or `XDG_CACHE_HOME` say the place of.
///
/// # Errors
/// Neither is there, or the cache has another version than the one it names.
pub fn find_folder(name: &Path) -> Result<PathBuf, FolderError> {
    find_folder_by(name, |variable| std::env::var_os(variable))
}

/// The same with variables of another environment.
///
/// # Errors
/// As [`find_folder`].
pub fn find_folder_by(name: &Path, variable: impl Fn(&str) -> Option<OsString>) -> Result<PathBuf, FolderError> {
    if name.exists() {
        return Ok(name.to_owned());
    }
    let missing = || FolderError::NoFolder { path: name.to_owned() };
    let repository = name.to_str().filter(|name| is_repository(name)).ok_or_else(missing)?;
    let cache = cache(variable).ok_or_else(missing)?;
    let at = cache.join(format!("models--{}", repository.replace('/', "--")));
    if !at.is_dir() {
        return Err(FolderError::NotCached { path: name.to_owned(), cache });
    }
    let unfinished =
        |what: String| FolderError::Unfinished { path: at.clone(), repository: repository.to_owned(), what };
    let hash = std::fs::read(at.join("refs/main")).map_err(|_| unfinished("no refs/main".to_owned()))?;
    let hash = std::str::from_utf8(&hash[..hash.len().min(LONGEST_HASH)]).map_or("", str::trim);
    if hash.is_empty() || !hash.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Err(unfinished("refs/main names no snapshot".to_owned()));
    }
    let folder = at.join("snapshots").join(hash);
    if folder.is_dir() { Ok(folder) } else { Err(unfinished(format!("no snapshots/{hash}"))) }
}

/// `NAME`, or `ORG/NAME`, as repositories are called.
fn is_repository(name: &str) -> bool {
    let is_part = |part: &str| {
        let is_known = |byte: u8| byte.is_ascii_alphanumeric() || [b'-', b'_', b'.'].contains(&byte);
        !part.is_empty() && part.len() <= 96 && !part.starts_with(['.', '-']) && part.bytes().all(is_known)
    };
    name.split('/').count() <= 2 && name.split('/').all(is_part)
}

/// Where downloads are kept.
fn cache(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let folder = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = || {
        let of_user = || folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache")));
        folder("HF_HOME").or_else(|| Some(of_user()?.join("huggingface")))
    };
    folder("HF_HUB_CACHE").or_else(|| Some(home()?.join("hub")))
}
