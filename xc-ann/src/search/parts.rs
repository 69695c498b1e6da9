//! Queries of a batch, in parts that threads share.

use crate::error::QueryError;
use rayon::prelude::*;
use std::ops::{AddAssign, Range};
use xc_buffer::parallel;
use xc_sparse::rank::RankedBatch;

/// Answers `n` queries, `some` at a time, each part with a scratch that others use after it. A single part is worked on
/// where the caller is, outside a pool.
pub(crate) fn in_parts<S: Default, E: AddAssign + Default + Send>(
    n: usize,
    some: usize,
    work: impl Fn(&mut S, Range<usize>) -> Result<(RankedBatch, E), QueryError> + Sync,
) -> Result<(RankedBatch, E), QueryError> {
    let part = |scratch: &mut S, first: usize| work(scratch, first..n.min(first + some));
    let firsts: Vec<usize> = (0..n).step_by(some).collect();
    let parts: Vec<(RankedBatch, E)> = if parallel::in_pool() || firsts.len() > 1 {
        firsts.into_par_iter().map_init(S::default, part).collect::<Result<_, QueryError>>()?
    } else {
        let mut scratch = S::default();
        firsts.into_iter().map(|first| part(&mut scratch, first)).collect::<Result<_, QueryError>>()?
    };
    let (parts, efforts): (Vec<RankedBatch>, Vec<E>) = parts.into_iter().unzip();
    let mut effort = E::default();
    efforts.into_iter().for_each(|of_part| effort += of_part);
    Ok((RankedBatch::concat(parts), effort))
}
