//! The directory probe, in two steps so that the memory of one step can be fetched during the other.

use super::{ChunkView, ChunkedView, Matches, QueryView};
use crate::arch::{self, Isa};

/// Appends to the candidates each query position whose slot is taken, with the first row it can be.
///
/// Costs one directory read a feature; the header of each candidate is fetched ahead.
pub(crate) fn probe(
    isa: Isa,
    level: &ChunkedView<'_>,
    chunk: &ChunkView<'_>,
    query: &QueryView<'_>,
    matches: &mut Matches,
) {
    if chunk.n_rows == 0 {
        return;
    }
    let direct = chunk.is_direct(level.n_features());
    let slots = if direct { query.indices } else { query.slots };
    let (rows, of) = (&mut matches.candidate_rows, &mut matches.candidate_of);
    match isa {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => {
            // SAFETY: `Isa::Avx512` is only chosen where available; slots are below `n_bits` (directly, or as
            // images scaled by it) and the directory has a word for each 32 of them, by the level's invariants.
            unsafe { arch::avx512::probe(chunk.words, chunk.n_bits, direct, slots, rows, of) }
        }
        _ => arch::scalar::probe(chunk.words, chunk.n_bits, direct, slots, rows, of),
    }
}

/// Turns a range of the candidates into matches: compares keys, and walks over rows that were pushed on.
pub(crate) fn confirm(
    level: &ChunkedView<'_>,
    chunk: &ChunkView<'_>,
    query: &QueryView<'_>,
    candidates: std::ops::Range<usize>,
    matches: &mut Matches,
) {
    let n_candidates = candidates.len();
    let first = matches.rows.len();
    if chunk.is_direct(level.n_features()) {
        // Each feature has its own slot: a taken slot is a match.
        let values = matches.candidate_of[candidates.clone()].iter().map(|&of| query.values[of as usize]);
        matches.values.extend(values);
        matches.rows.extend_from_slice(&matches.candidate_rows[candidates]);
        return;
    }
    matches.rows.resize(first + n_candidates, 0);
    matches.values.resize(first + n_candidates, 0.0);
    let mut n = first;
    for at in candidates {
        let of = matches.candidate_of[at] as usize;
        let (mut row, wanted) = (matches.candidate_rows[at], query.indices[of]);
        let mut met = chunk.feature(row as usize);
        while met < wanted && row + 1 < chunk.n_rows {
            row += 1;
            met = chunk.feature(row as usize);
        }
        matches.rows[n] = row;
        matches.values[n] = query.values[of];
        n += usize::from(met == wanted);
    }
    matches.rows.truncate(n);
    matches.values.truncate(n);
}
