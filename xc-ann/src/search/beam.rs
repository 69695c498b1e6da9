//! Best-first search over a graph, for some queries at a time.
//!
//! ```text
//!   pop the nearest vertex ─▶ its row of edges ─▶ those not yet seen ─▶ their codes ─▶ keys ─▶ pool, best
//!                             (prefetched)                              (prefetched)
//! ```
//!
//! A hop waits for memory twice: for the row of edges, and for the codes of its vertices. So some
//! queries take turns: one issues a prefetch and yields; its data is in cache at its next turn. What
//! a query finds does not depend on the others.
//!
//! A search ends when the nearest vertex left is further off than the k-th best one by more than a
//! share of its distance, the *slack*: it looks longer where distances are alike.

use crate::code::codes::QueryCode;
use crate::code::product::{self, Coded, LINE, TOGETHER};
use crate::graph::edges::{Edges, NONE};
use crate::search::best::Best;
use crate::search::pool::Pool;
use crate::search::visited::Visited;
use xc_buffer::simd::{Isa, Loop, prefetch, prefetch_all, vectorised_loop_on};

/// Queries of a thread that take turns.
pub(crate) const TURNS: usize = 4;

/// How long to search.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reach {
    /// Vertices that are kept.
    pub(crate) keep: usize,
    /// A vertex is expanded while its key is at most that of the worst kept one, and this share of it;
    /// above -1.
    pub(crate) slack: f32,
    /// All vertices up to this key are wanted, whatever their number.
    pub(crate) within: f32,
    /// The search is given up when more vertices than this were compared.
    pub(crate) distances: u64,
}

impl Reach {
    /// The one nearest vertex.
    pub(crate) const NEAREST: Self = Self { keep: 1, slack: 0.0, within: f32::NEG_INFINITY, distances: u64::MAX };
}

/// The work of a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct SearchStats {
    /// Vertices whose code was compared with the query's.
    pub distances: u64,
    /// Vertices that were expanded.
    pub hops: u64,
    /// Rows compared exactly.
    pub exact: u64,
}

impl std::ops::AddAssign for SearchStats {
    fn add_assign(&mut self, other: Self) {
        self.distances += other.distances;
        self.hops += other.hops;
        self.exact += other.exact;
    }
}

/// One query on its way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slot {
    pub(crate) query: QueryCode,
    /// A vertex that the search is to know nothing of.
    pub(crate) hidden: Option<u32>,
    visited: Visited,
    pool: Pool,
    pub(crate) best: Best,
    /// Vertices to be compared.
    fresh: Fresh,
    at: u32,
    /// Vertices up to a key, where all of them are wanted.
    pub(crate) within: Vec<(f32, u32)>,
    /// Whether too many vertices would have had to be compared.
    pub(crate) gave_up: bool,
    /// Vertices that were expanded, with their keys, where they are asked for.
    pub(crate) expanded: Vec<(f32, u32)>,
    pub(crate) effort: SearchStats,
    phase: Phase,
}

/// Neighbours of one vertex.
#[derive(Clone, Debug)]
struct Fresh {
    vertices: [u32; TOGETHER],
    len: usize,
}

impl Default for Fresh {
    fn default() -> Self {
        Self { vertices: [0; TOGETHER], len: 0 }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Done,
    Expand,
    Compare,
}

/// What is searched.
pub(crate) struct Searched<'a, F> {
    pub(crate) isa: Isa,
    pub(crate) coded: Coded<'a>,
    pub(crate) edges: Edges<'a>,
    pub(crate) reach: Reach,
    /// Which vertices may be answers; all are walked over.
    pub(crate) passes: F,
    /// Whether [`Slot::expanded`] is wanted.
    pub(crate) records: bool,
}

impl<F: Fn(u32) -> bool> Searched<'_, F> {
    /// Begins at a vertex; the query is encoded in the slot already.
    pub(crate) fn begin(&self, slot: &mut Slot, from: u32) {
        slot.reset(self.coded.sides.len(), self.reach.keep);
        slot.visited.insert(from);
        slot.hidden.into_iter().for_each(|vertex| {
            slot.visited.insert(vertex);
        });
        (slot.fresh.vertices[0], slot.fresh.len) = (from, 1);
        self.coded.prefetch(slot.query.view().bytes.len(), from);
        slot.phase = Phase::Compare;
    }

    /// Goes on until memory has to be waited for. False once there is nothing left to do.
    #[inline(always)]
    pub(crate) fn turn(&self, slot: &mut Slot) -> bool {
        match slot.phase {
            Phase::Expand => self.expand(slot),
            Phase::Compare => self.compare(slot),
            Phase::Done => {}
        }
        slot.phase != Phase::Done
    }

    /// The whole search of one query.
    pub(crate) fn run(&self, slot: &mut Slot, from: u32) {
        self.begin(slot, from);
        while self.turn(slot) {}
    }

    #[inline(always)]
    fn expand(&self, slot: &mut Slot) {
        let (fresh, mut n) = (&mut slot.fresh.vertices, 0);
        for &vertex in self.edges.row(slot.at) {
            if vertex == NONE {
                break;
            }
            let (word, bit) = (&mut slot.visited.words[vertex as usize / 32], 1 << (vertex % 32));
            fresh[n % TOGETHER] = vertex;
            n += usize::from(*word & bit == 0);
            *word |= bit;
        }
        let n = n.min(TOGETHER);
        slot.fresh.len = n;
        let stride = slot.query.view().bytes.len();
        for &vertex in &fresh[..n] {
            self.coded.prefetch(stride, vertex);
        }
        slot.visited.seen.extend_from_slice(&fresh[..n]);
        slot.phase = Phase::Compare;
    }

    #[inline(always)]
    fn compare(&self, slot: &mut Slot) {
        let Fresh { vertices, len } = &slot.fresh;
        let mut keys = [0.0; TOGETHER];
        // Under a slack below 0 vertices may be kept that are not worth a look.
        let bar = self.limit(&slot.best).max(slot.best.worst());
        let mut near = product::keys(self.isa, slot.query.view(), self.coded, &vertices[..*len], bar, &mut keys);
        slot.effort.distances += *len as u64;
        while near != 0 {
            let at = near.trailing_zeros() as usize;
            near &= near - 1;
            let (key, vertex) = (keys[at], vertices[at]);
            if (key <= slot.best.worst() || key <= self.reach.within) && (self.passes)(vertex) {
                if key <= slot.best.worst() {
                    slot.best.push(self.isa, key, vertex);
                }
                if key <= self.reach.within {
                    slot.within.push((key, vertex));
                }
            }
            slot.pool.push(key, vertex);
        }
        let limit = self.limit(&slot.best);
        slot.gave_up = slot.effort.distances > self.reach.distances;
        let next = if slot.gave_up { None } else { slot.pool.pop(self.isa, limit) };
        let Some((key, vertex)) = next else {
            slot.phase = Phase::Done;
            return;
        };
        slot.effort.hops += 1;
        if self.records {
            slot.expanded.push((key, vertex));
        }
        slot.at = vertex;
        self.edges.prefetch(vertex);
        slot.phase = Phase::Expand;
    }

    /// The largest key that is worth a look.
    #[inline(always)]
    fn limit(&self, best: &Best) -> f32 {
        let worst = best.worst();
        // An infinite slack of a distance of 0 is no number.
        let limit = worst + self.reach.slack * worst.abs();
        if limit.is_nan() { f32::INFINITY } else { limit.max(self.reach.within) }
    }
}

impl Slot {
    fn reset(&mut self, n: usize, keep: usize) {
        self.visited.reset(n);
        self.pool.clear();
        self.best.reset(keep);
        self.expanded.clear();
        self.within.clear();
        (self.gave_up, self.effort) = (false, SearchStats::default());
    }
}

/// Searches for queries `0..n`: `begin` encodes one and says where it begins, `ask` asks memory for
/// what `done` will read, which takes what was found a turn later.
pub(crate) fn interleaved<F: Fn(u32) -> bool>(
    searched: &Searched<'_, F>,
    slots: &mut [Slot],
    n: usize,
    begin: impl FnMut(usize, &mut Slot) -> u32,
    ask: impl Fn(&mut Slot),
    done: impl FnMut(usize, &mut Slot),
) {
    vectorised_loop_on(searched.isa, Turns { searched, slots, n, begin, ask, done });
}

struct Turns<'a, 'b, F, B, A, D> {
    searched: &'a Searched<'b, F>,
    slots: &'a mut [Slot],
    n: usize,
    begin: B,
    ask: A,
    done: D,
}

impl<F, B, A, D> Loop for Turns<'_, '_, F, B, A, D>
where
    F: Fn(u32) -> bool,
    B: FnMut(usize, &mut Slot) -> u32,
    A: Fn(&mut Slot),
    D: FnMut(usize, &mut Slot),
{
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { searched, slots, n, mut begin, ask, mut done } = self;
        let mut queries = [usize::MAX; TURNS];
        let (mut next, mut active) = (0, slots.len().min(TURNS));
        let width = active;
        while active > 0 {
            active = 0;
            for (query, slot) in queries.iter_mut().zip(slots.iter_mut()).take(width) {
                if *query != usize::MAX {
                    if slot.phase != Phase::Done {
                        if !searched.turn(slot) {
                            ask(slot);
                        }
                        active += 1;
                        continue;
                    }
                    done(*query, slot);
                    *query = usize::MAX;
                }
                if next < n {
                    let from = begin(next, slot);
                    searched.begin(slot, from);
                    *query = next;
                    (next, active) = (next + 1, active + 1);
                }
            }
        }
    }
}

impl Coded<'_> {
    /// Asks memory for what the key of a row of `stride` bytes needs.
    #[inline(always)]
    fn prefetch(&self, stride: usize, row: u32) {
        for line in 0..stride / LINE {
            prefetch(self.bytes, row as usize * stride + line * LINE);
        }
        prefetch(self.sides, row as usize);
    }
}

impl Edges<'_> {
    #[inline(always)]
    fn prefetch(&self, vertex: u32) {
        prefetch_all(self.row(vertex));
    }
}
