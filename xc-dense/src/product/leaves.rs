//! A product whose sums along k are cut into leaves, which the threads share.
//!
//! ```text
//!   k      leaf 0 | leaf 1 | leaf 2 | leaf 3 | ...          a task: one subtree of leaves, some rows of C
//!   task   `----- 0 -----'   `----- 1 -----'
//! ```
//!
//! Few rows (a batch) and many places along k (labels) leave nothing to share in C; leaves can
//! always be shared. A task packs what it reads itself, so no thread waits for another before the
//! sums of the subtrees are added.
//!
//! Inside of a task some leaves of B are packed together. The leaves' sums for a few rows of C stay
//! in the second-level cache; what leaves it is one sum of all of them.

use super::job::Target;
use super::{Chunk, DEPTH, LEAF_TILES, MatMut, MatRef, MatmulPrecision, MatmulScratch, Start, Tile, product};
use rayon::prelude::*;
use std::cell::Cell;
use std::ops::Range;
use xc_buffer::sums::{Blocks, TreeSum, add};

/// Rows of C that a task takes at most.
const TALL: usize = 512;

thread_local! {
    /// Packed operands and sums of a task. Taken rather than borrowed: a thread that waits may
    /// begin another task.
    static TASK: Cell<Option<Task>> = const { Cell::new(None) };
}

#[derive(Default)]
struct Task {
    /// Of all rows.
    sum: TreeSum,
    work: Work,
}

#[derive(Default)]
struct Work {
    packed_a: Vec<f32>,
    packed_b: MatmulScratch,
    /// Sums of a few rows.
    few: TreeSum,
}

/// `c = a * b` with the sums along k in the order of `inner`.
///
/// *Cost*: as [`product`], and an addition a leaf for every value of C; the scratch grows to C for
/// every two threads, and each thread holds 512 rows of C a level of the tree.
///
/// # Panics
/// If shapes disagree.
pub fn product_in_leaves(
    c: MatMut<'_>,
    a: MatRef<'_>,
    b: MatRef<'_>,
    inner: &Blocks,
    products: MatmulPrecision,
    scratch: &mut MatmulScratch,
) {
    let (m, n, k) = (a.rows, b.columns, (a.columns, b.rows, inner.n_items()));
    assert!(k.0 == k.1 && k.0 == k.2, "inner lengths {} and {}, leaves for {}", k.0, k.1, k.2);
    if inner.n_leaves() == 1 || m == 0 || n == 0 {
        return product(c, a, b, Start::Zero, products, scratch);
    }
    assert!(c.shape() == (m, n), "a matrix of {:?} for a product of {m} x {n}", c.shape());
    let tile = Tile::current(products);
    // Any power of two gives the same bits: subtrees are added as the whole tree adds them.
    let n_subtrees = (2 * rayon::current_num_threads()).next_power_of_two().min(inner.n_leaves());
    let each = inner.n_leaves() / n_subtrees;
    // Few rows read packed places once: they should still be in the second-level cache then.
    let deep = if m <= 2 * LEAF_TILES * tile.rows { DEPTH } else { 4 * DEPTH } * tile.words.values();
    let together = 1 << (deep / inner.leaf(0).len()).clamp(1, each).ilog2();
    let of = Operands { tile, a, b, inner, deep };
    let (tall, n_parts) = (m.min(TALL), m.div_ceil(TALL));
    let size = tall * n;
    let sums = &mut scratch.packed;
    sums.resize(sums.len().max(n_parts * n_subtrees * size), 0.0);
    let sums = &mut sums[..n_parts * n_subtrees * size];
    sums.par_chunks_exact_mut(size).enumerate().for_each(|(task, out)| {
        let (part, subtree) = (task / n_subtrees, task % n_subtrees);
        let rows = part * tall..m.min((part + 1) * tall);
        let mut own = TASK.take().unwrap_or_default();
        if each == 1 {
            of.one_leaf(rows.clone(), subtree, &mut own.work, &mut out[..rows.len() * n]);
            return TASK.set(Some(own));
        }
        own.sum.begin(rows.len() * n);
        for from in (subtree * each..(subtree + 1) * each).step_by(together) {
            let Task { sum, work } = &mut own;
            sum.add(|sum| match together {
                1 => of.one_leaf(rows.clone(), from, work, sum),
                _ => of.some_leaves(rows.clone(), from..from + together, work, sum),
            });
        }
        out[..rows.len() * n].copy_from_slice(own.sum.total());
        TASK.set(Some(own));
    });
    let mut step = 1;
    while step < n_subtrees {
        sums.par_chunks_exact_mut(2 * step * size).for_each(|pair| {
            let (low, high) = pair.split_at_mut(step * size);
            add(&mut low[..size], &high[..size]);
        });
        step *= 2;
    }
    for (c, sum) in c.values.chunks_mut(size).zip(sums.chunks_exact(n_subtrees * size)) {
        c.copy_from_slice(&sum[..c.len()]);
    }
}

/// What all tasks read.
struct Operands<'a> {
    tile: Tile,
    a: MatRef<'a>,
    b: MatRef<'a>,
    inner: &'a Blocks,
    /// Places of B that are packed together.
    deep: usize,
}

impl Operands<'_> {
    /// `c = a[rows, leaf] * b[leaf]` on this thread.
    fn one_leaf(&self, rows: Range<usize>, leaf: usize, work: &mut Work, c: &mut [f32]) {
        let (n, group, leaf) = (self.b.columns, LEAF_TILES * self.tile.rows, self.inner.leaf(leaf));
        c.fill(0.0);
        for from in leaf.clone().step_by(self.deep) {
            let piece = from..leaf.end.min(from + self.deep);
            let chunk = Chunk::pack(self.tile, self.b, piece.clone(), 0..n, false, &mut work.packed_b);
            for (c, first) in c.chunks_mut(group * n).zip(rows.clone().step_by(group)) {
                let rows = first..rows.end.min(first + group);
                chunk.multiply(self.a, rows, piece.clone(), &mut work.packed_a, Target::add(c, n));
            }
        }
    }

    /// `c = a[rows, leaves] * b[leaves]` on this thread, all leaves packed together.
    fn some_leaves(&self, rows: Range<usize>, leaves: Range<usize>, work: &mut Work, c: &mut [f32]) {
        let (n, group) = (self.b.columns, LEAF_TILES * self.tile.rows);
        let Work { packed_a, packed_b, few } = work;
        let inner = self.inner.leaf(leaves.start).start..self.inner.leaf(leaves.end - 1).end;
        let chunk = Chunk::pack(self.tile, self.b, inner, 0..n, false, packed_b);
        for (c, first) in c.chunks_mut(group * n).zip(rows.clone().step_by(group)) {
            few.begin(c.len());
            for leaf in leaves.clone() {
                let rows = first..rows.end.min(first + group);
                few.add(|sum| chunk.multiply(self.a, rows, self.inner.leaf(leaf), packed_a, Target::from_zero(sum, n)));
            }
            c.copy_from_slice(few.total());
        }
    }
}
