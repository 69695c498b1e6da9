//! Which of the vertices found become edges: a vertex is left out if one that was taken is nearer to
//! it than the vertex that asks, by a factor.

use crate::code::codes::{Codes, Gathered, QueryCode};
use crate::search::best::nearer;
use xc_buffer::simd::Isa;

/// Vertices that are looked at, at most: those beyond are hardly ever taken.
const LOOKED_AT: usize = 256;

/// What pruning works with.
#[derive(Debug, Default)]
pub(crate) struct PruneScratch {
    gathered: Gathered,
    query: QueryCode,
    left: Vec<u32>,
    keys: Vec<f32>,
}

/// Chooses at most `degree` of the candidates, nearest first.
///
/// Candidates are keys from the vertex that asks, with vertices; they are sorted here, and what
/// stands twice counts once. A candidate v is left out when `factor * key(u, v) <= key(v)` for a
/// taken u: under distances a factor of 1 keeps the relative neighbourhood and a larger one more
/// edges; under inner products a smaller one does.
pub(crate) fn prune(
    isa: Isa,
    codes: &Codes,
    factor: f32,
    degree: usize,
    of: u32,
    candidates: &mut Vec<(f32, u32)>,
    scratch: &mut PruneScratch,
    chosen: &mut Vec<u32>,
) {
    chosen.clear();
    candidates.retain(|&(_, vertex)| vertex != of);
    candidates.sort_unstable_by(nearer);
    candidates.dedup_by_key(|c| c.1);
    candidates.truncate(LOOKED_AT);
    let PruneScratch { gathered, query, left, keys } = scratch;
    codes.gather(candidates.iter().map(|c| c.1), gathered);
    left.clear();
    left.extend(0..candidates.len() as u32);
    while let Some(&taken) = left.first() {
        chosen.push(candidates[taken as usize].1);
        if chosen.len() == degree {
            break;
        }
        left.remove(0);
        gathered.as_query(codes, taken as usize, query);
        gathered.keys(isa, query, left, keys);
        let mut n = 0;
        for at in 0..left.len() {
            let candidate = left[at];
            left[n] = candidate;
            n += usize::from(factor * keys[at] > candidates[candidate as usize].0);
        }
        left.truncate(n);
    }
}
