//! Names that may be meant by one that is not there.

use std::path::{Path, PathBuf};
use xc_store::atomic::parent_of;

/// The option of a command whose name is nearly this one.
pub(crate) fn nearest_option<'a>(name: &str, root: &'a clap::Command, command: &'a clap::Command) -> Option<&'a str> {
    let options = command.get_arguments().chain(root.get_arguments());
    let names: Vec<_> = options.filter(|option| !option.is_hide_set()).filter_map(|option| option.get_long()).collect();
    // The last part of a dotted name counts too: branching and linear.branching for tree.branching.
    let last = |name: &str| name.rsplit('.').next().unwrap_or_default().to_owned();
    nearest(name, names.iter().copied()).or_else(|| {
        let dotted = names.iter().copied().filter(|option| option.contains('.') || name.contains('.'));
        dotted.filter_map(|option| Some((similar(&last(name), &last(option))?, option))).min().map(|(_, option)| option)
    })
}

/// The name that is nearly this one: one letter in four may differ.
pub(crate) fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    names.filter_map(|other| Some((similar(name, other)?, other))).min().map(|(_, other)| other)
}

/// The file or folder that is nearly called as one that is not there, beside which it would lie.
pub(crate) fn nearest_file(path: &Path) -> Option<PathBuf> {
    if std::fs::symlink_metadata(path).is_ok() {
        return None;
    }
    let name = path.file_name()?.to_str()?;
    let entries = std::fs::read_dir(parent_of(path)).ok()?.flatten();
    let names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    let shown = names.iter().map(|name| &**name).filter(|name| !name.starts_with('.'));
    Some(path.with_file_name(nearest(name, shown)?))
}

/// The letters in which two names differ, unless they are too many for the names to be taken for one
/// another.
fn similar(a: &str, b: &str) -> Option<usize> {
    let [a, b] = [a, b].map(|name| name.chars().take(64).collect::<String>());
    let most = a.chars().count().max(b.chars().count()) / 4;
    Some(strsim::osa_distance(&a, &b)).filter(|&n| n <= most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_may_be_meant_are_offered() {
        let near = |name, names: &[&'static str]| nearest(name, names.iter().copied());
        assert_eq!(near("serve", &["merge", "predict"]), None);
        assert_eq!(near("threshold", &["threads"]), None);
        assert_eq!(near("perdict", &["merge", "predict"]), Some("predict"));
        assert_eq!(near("tre", &["tree"]), Some("tree"));
        assert_eq!(near("k", &["o", "x"]), None);
        assert_eq!(near("", &["o", ""]), Some(""));
    }

    #[test]
    fn the_last_part_of_a_dotted_name_finds_it() {
        let option = |name: &'static str| clap::Arg::new(name).long(name);
        let command = clap::Command::new("tree").arg(option("tree.branching")).arg(option("beam"));
        let near = |name| nearest_option(name, &command, &command);
        assert_eq!(near("linear.branchng"), Some("tree.branching"));
        assert_eq!(near("branching"), Some("tree.branching"));
        assert_eq!(near("linear.rate"), None);
        assert_eq!(near("baem"), Some("beam"));
    }
}
