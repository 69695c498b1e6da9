//! Vectors of the texts of a file by a transformer as it comes.

use super::Queries;
use std::path::Path;
use xc_data::FileForm;
use xc_model::OwnedRows;
use xc_train::fit::{Context, Embed, Embedded, FitError};

/// Texts that are read together.
const BLOCK: usize = 256;

/// Writes the vectors of the texts of a file as rows of an `.npy` file, in their order. *Memory*: the weights, and what a
/// block of texts needs.
///
/// # Errors
/// A folder that is no transformer, a file that holds no texts, an output that cannot be written, a build without feature
/// `transformer`, or an observer that cancels.
pub fn embed(
    of: &Embed,
    texts: &Path,
    input: &FileForm,
    output: &Path,
    context: &Context<'_>,
) -> Result<Embedded, FitError> {
    let mut queries = None;
    // Opened once the folder of the transformer is.
    let mut next = || {
        let queries = match &mut queries {
            Some(queries) => queries,
            none => none.insert(Queries::texts(texts, input)?),
        };
        Ok(queries.next_batch(BLOCK)?.map(|block| match block {
            OwnedRows::Texts(block) => block,
            _ => panic!("{}: rows that are no texts", queries.name()),
        }))
    };
    of.write(&texts.display().to_string(), &mut next, output, context)
}
