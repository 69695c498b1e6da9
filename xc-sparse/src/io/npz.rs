//! npz (being written).
use super::error::{ReadError, ReadErrorKind};
use super::format::Format;
use super::options::ReadOptions;
use crate::matrix::{Dataset, LabelRows};
use std::path::Path;

pub(crate) fn read_features(path: &Path, _: Format, _: &ReadOptions) -> Result<Dataset, ReadError> {
    Err(ReadError::path(path, ReadErrorKind::UnknownFormat))
}
pub(crate) fn read_label_lists(path: &Path, _: &ReadOptions) -> Result<LabelRows, ReadError> {
    Err(ReadError::path(path, ReadErrorKind::UnknownFormat))
}
