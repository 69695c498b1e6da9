//! Texts or features of labels, as instances that are learned from.

use super::{Dataset, FeatureRows, InputArgs, LabelsFrom, Making, read_labelled};
use crate::context::Context;
use crate::error::CliError;
use std::path::Path;
use xc_sparse::io::UnknownLabels;
use xc_sparse::{CsrMatrix, LabelRows};

/// Appends the rows of a file, one a label in the order of their ids, as instances of which that label is
/// true, made into features as the others are. Gives the number of the first one.
///
/// # Errors
/// The file cannot be read, holds features where the others are text or the other way round, or has not
/// one row a label.
pub(crate) fn add_label_rows(
    data: &mut Dataset,
    path: &Path,
    input: &InputArgs,
    context: &Context,
) -> Result<usize, CliError> {
    let input = input.of_any_format();
    let making = Making::Apply { maker: data.maker.as_ref(), n_features: data.width() };
    let texts =
        read_labelled(path, LabelsFrom::Nowhere, None, UnknownLabels::Drop, &input, making, context)?.into_sparse();
    let (got, n_labels) = (texts.rows(), data.labels.n_labels());
    if got != n_labels {
        return Err(CliError::usage(format_args!(
            "{}: {got} rows; one for each of the {n_labels} labels is expected",
            path.display()
        )));
    }
    let (first, own) = (data.len(), 0..n_labels as u32);
    let lists = data.labels.iter().map(<[u32]>::to_vec).chain(own.map(|label| vec![label]));
    data.labels = LabelRows::from_lists(lists, n_labels).unwrap_or_else(|e| panic!("one label a row: {e}"));
    let (before, width) = (data.sparse(), data.width());
    let end = before.nnz();
    let mut indptr = before.indptr().to_vec();
    indptr.extend(texts.indptr()[1..].iter().map(|at| end + at));
    let (indices, values) = ([before.indices(), texts.indices()].concat(), [before.data(), texts.data()].concat());
    data.features = FeatureRows::Sparse(CsrMatrix::from_checked((first + n_labels, width), indptr, indices, values));
    Ok(first)
}
