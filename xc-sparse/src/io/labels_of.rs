//! Labels of instances that stand in another file.

use super::dataset::{LabelLists, read_ids, read_labels_and_ids};
use super::error::{ReadError, ReadErrorKind};
use super::join::{Join, JoinError, Joined, Unmatched};
use super::options::ReadOptions;
use std::path::Path;

/// Reads the labels of the `n_rows` instances of the file `of`, one list for each, in the order of the instances: rows that both
/// files give ids belong together by them ([`Join`]), others by their numbers.
///
/// *Cost*: ids of the instances are read, in another pass over their file, only where the file of labels has ids.
///
/// # Errors
/// As [`read_labels`](super::read_labels); ids that do not fit; without ids, another number of rows.
pub fn read_labels_of(
    path: impl AsRef<Path>,
    options: &ReadOptions,
    of: impl AsRef<Path>,
    of_options: &ReadOptions,
    n_rows: usize,
) -> Result<(LabelLists, Joined), ReadError> {
    let (path, of) = (path.as_ref(), of.as_ref());
    let (mut lists, ids) = read_labels_and_ids(path, options)?;
    let located = |e: JoinError| ReadError::path(path, ReadErrorKind::Join(e));
    let mut joined = Joined::default();
    if !ids.ids.is_empty() {
        let first = read_ids(of, of_options)?;
        let mut join = Join::new(ids, lists.labels.len(), Unmatched::Refused);
        let mut rows = Vec::with_capacity(first.ids.len());
        for id in &first.ids {
            // Every row is matched, or the file is refused.
            rows.extend(join.next(id.as_ref()).map_err(located)?.map(|row| row as u32));
        }
        joined = join.finish().map_err(located)?;
        if joined.by_ids && (joined.is_reordered || joined.left_out > 0) {
            lists.labels = lists.labels.select(&rows);
        }
    }
    if lists.labels.len() != n_rows {
        let (got, expected) = (lists.labels.len() as u64, n_rows as u64);
        let kind = ReadErrorKind::LabelRows { got, expected, features: of.display().to_string() };
        return Err(ReadError::path(path, kind));
    }
    Ok((lists, joined))
}
