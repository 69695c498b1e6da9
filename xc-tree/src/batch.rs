//! Beam search of many queries: level by level, and inside a level chunk by chunk, so that a chunk's weights
//! enter the cache once for all the queries of a tile that reach it (etter2022mscm, Alg. 3).

use crate::beam::{Pooled, PredictParams, mean_of_trees, normalised, pool_size, rank_scores};
use crate::model::{Tree, TreeModel};
use crate::select::Select;
use rayon::prelude::*;
use xc_sparse::chunked::{ProductScratch, QueryScratch, QueryView, shared_margins};
use xc_sparse::rank::RankedBatch;
use xc_sparse::{CsrView, Rows, SparseRow};

/// Queries of one tile: enough that a chunk serves several, few enough that their candidates stay in cache.
const TILE: usize = 2048;

/// Memory of one thread's tiles.
#[derive(Default)]
struct TileScratch {
    product: ProductScratch,
    slots: Vec<QueryScratch>,
    normalised: Vec<Vec<f32>>,
    selects: Vec<Select>,
    // One block to be scored: its parent, then its query, in one sortable number; and its parent's score.
    blocks: Vec<Block>,
}

#[derive(Clone, Copy, PartialEq)]
struct Block {
    parent: u32,
    query: u32,
    score: f32,
}

impl TreeModel {
    /// The best labels of every query, in the order of the rows.
    ///
    /// Tiles of queries run in parallel on the ambient rayon pool. *Cost*: as [`TreeModel::predict_one`] a query, with
    /// the weights' memory traffic shared inside a tile; memory O(threads x tile x (beam + top_k)).
    ///
    /// *Determinism*: the same bits as [`TreeModel::predict_one`], for any thread count.
    pub fn predict_batch(&self, queries: CsrView<'_>, params: &PredictParams) -> RankedBatch {
        let rows = Rows::new(queries);
        let n = rows.len();
        let threads = rayon::current_num_threads();
        let tile = n.div_ceil(threads.max(1)).clamp(1, TILE);
        let starts: Vec<usize> = (0..n).step_by(tile).collect();
        let tiles: Vec<RankedBatch> = starts
            .par_iter()
            .map_init(TileScratch::default, |scratch, &start| {
                self.predict_tile(&rows, start..(start + tile).min(n), params, scratch)
            })
            .collect();
        let mut all = RankedBatch::new();
        for tile in &tiles {
            all.append(tile);
        }
        all
    }

    fn predict_tile(
        &self,
        rows: &Rows<'_>,
        range: std::ops::Range<usize>,
        params: &PredictParams,
        scratch: &mut TileScratch,
    ) -> RankedBatch {
        let n = range.len();
        let per_tree = pool_size(params.top_k, self.trees.len());
        scratch.slots.resize_with(n.max(scratch.slots.len()), QueryScratch::default);
        scratch.normalised.resize_with(n.max(scratch.normalised.len()), Vec::new);
        scratch.selects.resize_with(n.max(scratch.selects.len()), Select::default);
        let TileScratch { product, slots, normalised: rooms, selects, blocks } = scratch;
        let queries: Vec<SparseRow<'_>> = range
            .zip(rooms.iter_mut())
            .map(|(i, room)| normalised(rows.row(i), self.info.normalise_rows, room))
            .collect();
        let mut pooled: Vec<Vec<Pooled>> = Vec::new();
        if self.trees.len() > 1 {
            pooled.resize_with(n, Vec::new);
        }
        let mut out = RankedBatch::new();
        for (number, tree) in self.trees.iter().enumerate() {
            let map = tree.level(0).slot_map();
            let views: Vec<QueryView<'_>> =
                queries.iter().zip(slots.iter_mut()).map(|(&row, slots)| slots.prepare(row, map)).collect();
            self.search_tile(tree, &views, params, per_tree, product, &mut selects[..n], blocks);
            if self.trees.len() == 1 {
                for select in &mut selects[..n] {
                    let ranked = select.ranked();
                    for item in ranked.iter_mut() {
                        *item = self.finished(*item);
                    }
                    // Exponentials can tie where logarithms do not: the order of the ranking scale stands.
                    out.push_row(ranked);
                }
                return out;
            }
            for (pool, select) in pooled.iter_mut().zip(selects.iter_mut()) {
                self.pool(number, select, pool);
            }
        }
        let mut row = Vec::new();
        for pool in &mut pooled {
            row.clear();
            mean_of_trees(self.trees.len(), params.top_k, pool, &mut selects[0], &mut row);
            out.push_row(&row);
        }
        out
    }

    fn search_tile(
        &self,
        tree: &Tree,
        queries: &[QueryView<'_>],
        params: &PredictParams,
        per_tree: usize,
        product: &mut ProductScratch,
        selects: &mut [Select],
        blocks: &mut Vec<Block>,
    ) {
        blocks.clear();
        blocks.extend((0..queries.len()).map(|q| Block { parent: 0, query: q as u32, score: 0.0 }));
        let last = tree.depth() - 1;
        for number in 0..=last {
            let level = tree.level(number);
            for select in selects.iter_mut() {
                select.reset(if number == last { per_tree } else { params.beam });
            }
            let mut rest = &blocks[..];
            while let Some(first) = rest.first() {
                let parent = first.parent;
                let (group, others) = rest.split_at(rest.partition_point(|b| b.parent == parent));
                rest = others;
                let query = |i: usize| queries[group[i].query as usize];
                shared_margins(&level, parent, group.len(), query, params.choice, product, |i, child, margins| {
                    let block = &group[i];
                    let select = &mut selects[block.query as usize];
                    rank_scores(self.info.post, block.score, margins);
                    if number == last {
                        let labels = &tree.labels()[child as usize..][..margins.len()];
                        for (&label, &score) in labels.iter().zip(margins.iter()) {
                            select.push(label, score);
                        }
                    } else {
                        for (child, &score) in (child..).zip(margins.iter()) {
                            select.push(child, score);
                        }
                    }
                });
            }
            if number < last {
                blocks.clear();
                for (query, select) in selects.iter_mut().enumerate() {
                    let nodes = select.best().iter();
                    blocks.extend(nodes.map(|s| Block { parent: s.label, query: query as u32, score: s.score }));
                }
                blocks.sort_unstable_by_key(|b| u64::from(b.parent) << 32 | u64::from(b.query));
            }
        }
    }
}
