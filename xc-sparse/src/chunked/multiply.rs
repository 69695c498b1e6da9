//! Margins of all children of the clusters that a query reaches.

use super::choose::{Choice, choose};
use super::intersect::{Intersect, Matches, Probed, confirm, find, probe};
use super::query::{DensePositions, QueryView};
use super::view::{ChunkView, ChunkedView, Values};
use super::{MAX_WIDTH, Weight};
use crate::arch::{self, Isa};

/// Memory that the products reuse from call to call.
#[derive(Clone, Debug, Default)]
pub struct ProductScratch {
    matches: Matches,
    // Per chunk of the call: what its probe gave, and where its matches stand.
    spans: Vec<Span>,
    dense: DensePositions,
    row: Vec<f32>,
}

/// Appends to `out` the margins of all children of each parent, parents in the given order.
///
/// *Determinism*: each child's products are added in ascending feature order, then its bias; the same bits come from
/// every iterator and instruction set.
///
/// *Cost*: see [`Intersect`]; memory traffic of one step is fetched while another chunk is worked on.
///
/// # Panics
/// If a parent is out of range.
pub fn margins(
    level: &ChunkedView<'_>,
    query: &QueryView<'_>,
    parents: &[u32],
    choice: Choice,
    scratch: &mut ProductScratch,
    out: &mut Vec<f32>,
) {
    margins_with(Isa::current(), level, query, parents, choice, scratch, out);
}

/// [`margins`] on a named instruction set.
///
/// # Panics
/// If a parent is out of range. The instruction set must be available.
pub fn margins_with(
    isa: Isa,
    level: &ChunkedView<'_>,
    query: &QueryView<'_>,
    parents: &[u32],
    choice: Choice,
    scratch: &mut ProductScratch,
    out: &mut Vec<f32>,
) {
    assert!(isa.is_available(), "{isa} kernels asked for on a machine without them");
    let ProductScratch { matches, spans, dense, .. } = scratch;
    matches.clear();
    spans.clear();
    if choice == Choice::Fixed(Intersect::Lookup) {
        dense.reserve(level.n_features());
    }
    // Three passes over the same chunks: what one touches, the one before has asked memory for.
    for_each_chunk(level, parents, |chunk| {
        let how = choose(choice, query.nnz(), chunk.n_rows(), 1);
        spans.push(match how {
            Intersect::Hashed => match probe(isa, level, &chunk, query, matches) {
                Probed::Matches(range) => Span::Matches(range),
                Probed::Candidates(range) => Span::Candidates(range),
            },
            how => Span::Unsought(how),
        });
    });
    let mut at = 0;
    for_each_chunk(level, parents, |chunk| {
        let span = &mut spans[at];
        at += 1;
        let first = matches.found.rows.len();
        match span {
            Span::Matches(range) => {
                for &row in &matches.found.rows[range.clone()] {
                    level.prefetch_value(chunk.value_start + chunk.offset(row as usize));
                }
                return;
            }
            Span::Candidates(range) => confirm(&chunk, range.clone(), matches, |offset| {
                level.prefetch_value(chunk.value_start + offset);
            }),
            Span::Unsought(Intersect::Lookup) => {
                dense.load(&chunk);
                find(isa, level, &chunk, query, Intersect::Lookup, dense, matches);
                dense.clear(&chunk);
            }
            Span::Unsought(how) => find(isa, level, &chunk, query, *how, dense, matches),
        }
        *span = Span::Matches(first..matches.found.rows.len());
    });
    let mut at = 0;
    for_each_chunk(level, parents, |chunk| {
        // The second pass has left matches everywhere.
        if let Span::Matches(range) = &spans[at] {
            let (rows, xs) = (&matches.found.rows[range.clone()], &matches.found.values[range.clone()]);
            push_margins(isa, level, &chunk, rows, xs, out);
        }
        at += 1;
    });
}

/// How far a chunk's matches are.
#[derive(Clone, Debug)]
enum Span {
    Unsought(Intersect),
    Candidates(std::ops::Range<usize>),
    Matches(std::ops::Range<usize>),
}

fn for_each_chunk<'a>(level: &ChunkedView<'a>, parents: &[u32], mut f: impl FnMut(ChunkView<'a>)) {
    for &parent in parents {
        for part in level.parts(parent as usize) {
            f(level.chunk(part));
        }
    }
}

/// The queries of a batch that reach one parent: its chunks enter the cache once.
///
/// Calls `each(position in queries, first child, margins)` for every query and every chunk of the parent, chunks
/// outermost, so a parent of more than [`MAX_WIDTH`] children answers several times for each query.
///
/// *Determinism*: the same bits as [`margins`].
pub fn shared_margins<'q>(
    level: &ChunkedView<'_>,
    parent: u32,
    n_queries: usize,
    query: impl Fn(usize) -> QueryView<'q>,
    choice: Choice,
    scratch: &mut ProductScratch,
    mut each: impl FnMut(usize, u32, &mut [f32]),
) {
    let isa = Isa::current();
    let ProductScratch { matches, dense, row, .. } = scratch;
    for part in level.parts(parent as usize) {
        let chunk = level.chunk(part);
        let mut loaded = false;
        for at in 0..n_queries {
            let query = query(at);
            let how = choose(choice, query.nnz(), chunk.n_rows(), n_queries);
            if how == Intersect::Lookup && !loaded {
                dense.reserve(level.n_features());
                dense.load(&chunk);
                loaded = true;
            }
            matches.clear();
            find(isa, level, &chunk, &query, how, dense, matches);
            row.clear();
            push_margins(isa, level, &chunk, matches.rows(), matches.values(), row);
            each(at, chunk.first_child, row);
        }
        if loaded {
            dense.clear(&chunk);
        }
    }
}

/// Multiplies the matched rows and appends one margin a child.
fn push_margins(
    isa: Isa,
    level: &ChunkedView<'_>,
    chunk: &ChunkView<'_>,
    rows: &[u32],
    xs: &[f32],
    out: &mut Vec<f32>,
) {
    let mut sums = [0.0f32; MAX_WIDTH];
    if !rows.is_empty() {
        match level.values {
            Values::F32(values) => accumulate(isa, chunk, values, rows, xs, &mut sums),
            Values::F16(values) => accumulate(isa, chunk, values, rows, xs, &mut sums),
            Values::Bf16(values) => accumulate(isa, chunk, values, rows, xs, &mut sums),
        }
    }
    let width = chunk.width();
    let bias = &level.bias[chunk.first_child as usize..][..width];
    out.extend(sums[..width].iter().zip(bias).map(|(sum, bias)| sum + bias));
}

fn accumulate<W: Weight>(
    isa: Isa,
    chunk: &ChunkView<'_>,
    values: &[W],
    rows: &[u32],
    xs: &[f32],
    sums: &mut [f32; MAX_WIDTH],
) {
    let stride = chunk.stride as usize;
    let values = &values[chunk.value_start..];
    debug_assert!(values.len() >= chunk.value_end - chunk.value_start + super::pack::VALUE_PADDING);
    match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the instruction set is available; rows are positions inside the chunk, their offsets lie inside the
        // chunk's values and 16 more entries follow the last value of the level, all by the level's invariants.
        // The number of groups is that of the chunk's mask words.
        Isa::Avx512 => unsafe {
            use arch::avx512::accumulate as run;
            let (h, v) = (chunk.headers.as_ptr(), values.as_ptr());
            match chunk.width {
                0..=16 => run::<W, 1>(h, stride, v, rows, xs, sums),
                17..=32 => run::<W, 2>(h, stride, v, rows, xs, sums),
                33..=64 => run::<W, 4>(h, stride, v, rows, xs, sums),
                65..=96 => run::<W, 6>(h, stride, v, rows, xs, sums),
                _ => run::<W, 8>(h, stride, v, rows, xs, sums),
            }
        },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above, with eight entries for sixteen.
        Isa::Avx2 => unsafe {
            use arch::avx2::accumulate as run;
            let (h, v) = (chunk.headers.as_ptr(), values.as_ptr());
            match chunk.width {
                0..=8 => run::<W, 1>(h, stride, v, rows, xs, sums),
                9..=16 => run::<W, 2>(h, stride, v, rows, xs, sums),
                17..=32 => run::<W, 4>(h, stride, v, rows, xs, sums),
                33..=64 => run::<W, 8>(h, stride, v, rows, xs, sums),
                65..=96 => run::<W, 12>(h, stride, v, rows, xs, sums),
                _ => run::<W, 16>(h, stride, v, rows, xs, sums),
            }
        },
        _ => arch::scalar::accumulate(chunk.headers, stride, values, rows, xs, sums),
    }
}
