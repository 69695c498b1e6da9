//! The directory probe, in two steps so that the memory of one step can be fetched during the
//! other.

#![allow(unsafe_code, reason = "the probe of a checked level")]

use super::probe::{Probes, probe as probe_slots};
use super::{ChunkView, ChunkedView, Matches, QueryView};
use xc_buffer::simd::Isa;

/// What [`probe`] has appended, and where.
pub(crate) enum Probed {
    /// Each feature has its own slot: what was found are matches.
    Matches(std::ops::Range<usize>),
    /// Candidates that [`confirm`] has to look at.
    Candidates(std::ops::Range<usize>),
}

/// Looks every feature of a query up in a chunk's directory.
///
/// Costs one directory read a feature; the header of each row found is fetched ahead.
pub(crate) fn probe(
    isa: Isa,
    level: &ChunkedView<'_>,
    chunk: &ChunkView<'_>,
    query: &QueryView<'_>,
    matches: &mut Matches,
) -> Probed {
    let direct = chunk.is_direct(level.n_features());
    let found = if direct { &mut matches.found } else { &mut matches.candidates };
    let start = found.rows.len();
    if chunk.n_rows > 0 {
        let slots = if direct { query.indices } else { query.slots };
        let probes = Probes { slots, direct, features: query.indices, values: query.values };
        // SAFETY: callers name an instruction set that is available; slots are below `n_slots`
        // (directly, or as images scaled by it) and the directory has a word for each 32 of them,
        // by the level's invariants; the three slices are those of one query.
        unsafe { probe_slots(isa, chunk.words, chunk.n_slots, probes, found) };
    }
    let range = start..found.rows.len();
    if direct { Probed::Matches(range) } else { Probed::Candidates(range) }
}

/// Turns a range of the candidates into matches: compares keys, and walks over rows that were
/// pushed on. `each` is told the offset of each match's values.
pub(crate) fn confirm(
    chunk: &ChunkView<'_>,
    candidates: std::ops::Range<usize>,
    matches: &mut Matches,
    mut each: impl FnMut(usize),
) {
    let Matches { found, candidates: all } = matches;
    let first = found.rows.len();
    found.rows.resize(first + candidates.len(), 0);
    found.values.resize(first + candidates.len(), 0.0);
    let mut n = first;
    for at in candidates {
        let (mut row, wanted) = (all.rows[at], all.features[at]);
        let mut met = chunk.feature(row as usize);
        while met < wanted && row + 1 < chunk.n_rows {
            row += 1;
            met = chunk.feature(row as usize);
        }
        found.rows[n] = row;
        found.values[n] = all.values[at];
        if met == wanted {
            n += 1;
            each(chunk.offset(row as usize));
        }
    }
    found.rows.truncate(n);
    found.values.truncate(n);
}
