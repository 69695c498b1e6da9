//! No command writes a file that it reads, or one file twice: both are said before anything is opened.

use crate::config::Arguments;
use crate::error::CliError;
use std::any::TypeId;
use std::path::{Path, PathBuf};
use xc_store::atomic::parent_of;

/// Arguments that name what is written, by their ids; all others that name files are read.
const WRITTEN: [&str; 10] = [
    "output",
    "output_labels",
    "destination",
    "per_label",
    "worst",
    "plot",
    "picture",
    "save_pipeline",
    "untrained",
    "written_vectors",
];

/// A file that was named, and as what.
pub(crate) struct Named {
    /// As it was typed: `--output p.txt`.
    pub(crate) typed: String,
    pub(crate) path: PathBuf,
    pub(crate) is_written: bool,
}

/// Whether an argument names a file or folder.
fn names_a_file(argument: &clap::Arg) -> bool {
    argument.get_value_parser().type_id() == TypeId::of::<PathBuf>()
}

/// The files and folders of the command that was typed.
pub(crate) fn named(root: &clap::Command, matches: &clap::ArgMatches, arguments: &Arguments) -> Vec<Named> {
    let leaf = Arguments::of_command(matches);
    let mut named = Vec::new();
    for argument in arguments.command(root).get_arguments().filter(|argument| names_a_file(argument)) {
        let id = argument.get_id().as_str();
        for value in leaf.try_get_raw(id).ok().flatten().into_iter().flatten() {
            let path = PathBuf::from(value);
            let typed = match argument.get_long() {
                Some(long) => format!("--{long} {}", path.display()),
                None => path.display().to_string(),
            };
            named.push(Named { typed, path, is_written: WRITTEN.contains(&id) });
        }
    }
    named
}

/// Refuses a file that is written and also read, or written twice, however it is named: links are followed.
pub(crate) fn refuse_overwriting(named: &[Named]) -> Result<(), CliError> {
    let files: Vec<Option<Identity>> = named.iter().map(|named| Identity::of_file(&named.path)).collect();
    for (at, one) in named.iter().enumerate().filter(|(_, one)| one.is_written) {
        let is_same = |other: usize| other != at && files[at].is_some() && files[other] == files[at];
        if let Some(other) = (0..named.len()).find(|&other| is_same(other)) {
            let other = &named[other];
            let what = if other.is_written { "both are written" } else { "it is read, and would be lost" };
            return Err(CliError::usage(format_args!(
                "{} and {} are one file, and {what}; another file is expected",
                one.typed, other.typed
            )));
        }
    }
    Ok(())
}

/// What tells one file from another: two paths lead to the same one.
#[derive(PartialEq, Eq)]
enum Identity {
    /// A file or folder that is there.
    #[cfg(unix)]
    There(u64, u64),
    /// Its path without links; of one that is not there, its folder's and its name.
    Path(PathBuf),
}

impl Identity {
    /// Of a regular file, or of one that is not there. Nothing for folders, devices, pipes and what cannot be looked at.
    fn of_file(path: &Path) -> Option<Self> {
        match std::fs::metadata(path) {
            // The standard streams.
            _ if path == Path::new("-") => None,
            Ok(meta) if meta.is_file() => Self::of(path),
            Ok(_) => None,
            Err(_) => Self::of(path),
        }
    }

    fn of(path: &Path) -> Option<Self> {
        match std::fs::metadata(path) {
            #[cfg(unix)]
            Ok(meta) => {
                use std::os::unix::fs::MetadataExt;
                Some(Self::There(meta.dev(), meta.ino()))
            }
            #[cfg(not(unix))]
            Ok(_) => path.canonicalize().ok().map(Self::Path),
            Err(_) => {
                // A link to a file that is not there leads to its name.
                let target = std::fs::read_link(path).map(|to| parent_of(path).join(to));
                let path = target.as_deref().unwrap_or(path);
                Some(Self::Path(parent_of(path).canonicalize().ok()?.join(path.file_name()?)))
            }
        }
    }
}

/// Whether two paths lead to one file or folder.
pub(crate) fn is_same(a: &Path, b: &Path) -> bool {
    matches!((Identity::of(a), Identity::of(b)), (Some(a), Some(b)) if a == b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn leaves<'a>(command: &'a clap::Command, into: &mut Vec<&'a clap::Command>) {
        into.push(command);
        command.get_subcommands().for_each(|command| leaves(command, into));
    }

    /// A file that is written under another name than these could be one that is read.
    #[test]
    fn arguments_that_name_what_is_written_are_known_as_such() {
        let root = crate::Cli::command();
        let mut commands = Vec::new();
        leaves(&root, &mut commands);
        let arguments = || commands.iter().flat_map(|command| command.get_arguments()).filter(|of| names_a_file(of));
        let mut written: Vec<&str> =
            arguments().map(|of| of.get_id().as_str()).filter(|id| WRITTEN.contains(id)).collect();
        written.sort_unstable();
        written.dedup();
        assert_eq!(written.len(), WRITTEN.len(), "{written:?}");
        for argument in arguments().filter(|of| !WRITTEN.contains(&of.get_id().as_str())) {
            let help = argument.get_help().map(ToString::to_string).unwrap_or_default().to_lowercase();
            let id = argument.get_id();
            assert!(!["write", "save to", "file for"].iter().any(|word| help.starts_with(word)), "{id}: {help}");
        }
        assert!(arguments().count() > 50);
    }
}
