//! Beam search of many queries: level by level, and inside a level chunk by chunk, so that a
//! chunk's weights enter the cache once for all the queries of a tile that reach it (etter2022mscm,
//! Alg. 3).

use super::ensemble::Means;
use super::error::{QueryError, check_rows};
use super::online::{PredictParams, Sought};
use super::scores::{Leaves, Reached, offer_nodes, scaled};
use super::top;
use crate::model::{Tree, TreeModel};
use rayon::prelude::*;
use xc_sparse::chunked::{ChunkQuery, ChunkedView, ProductScratch, QueryView, Visit, shared_margins};
use xc_sparse::rank::{RankedBatch, Scored, TopK};
use xc_sparse::{CsrView, SparseRow};

/// Queries of one tile, at most: the more, the more of them share a chunk. Measured on trees of
/// 30,000 and 500,000 labels: 8,192 take a tenth to a quarter less time a query than 2,048.
const TILE: usize = 8192;

/// Candidates that a tile keeps, at most: bounds its memory (8 bytes each) when many labels are
/// asked for.
const TILE_CANDIDATES: usize = 1 << 20;

/// Leaves that a tile keeps of several trees, at most (8 bytes each).
const TILE_LEAVES: usize = 1 << 22;

/// The same for a model of at most so many bytes, which stays in a cache as it is, beside these leaves: three trees of
/// 4,682 labels (8 MB) and 581 (16 MB) take a sixth less time than with 1 << 20, three of 69,925 (280 MB) twice as much.
const SMALL: usize = 32 << 20;
const TILE_LEAVES_OF_SMALL: usize = 1 << 16;

/// Wave of each place in a query's beam, best first; places past the end belong to the last wave.
/// Before each wave, those of its clusters that can no longer change the query's best are left out.
const WAVES: [u8; 7] = [0, 0, 1, 1, 2, 2, 3];

/// Queries that share a chunk on average, and children of a cluster, before the beams are cut into
/// waves: a wave's chunks enter the cache anew, which costs more than the left-out clusters save
/// where few queries share them or clusters are small (trees of 30,000 labels: 100 queries a chunk
/// with branching 32 gain a tenth, 400 with branching 2 lose one).
const SHARED_BY_MANY: usize = 128;
const MANY_CHILDREN: usize = 8;

/// Memory of one thread's tiles.
#[derive(Default)]
struct TileScratch {
    product: ProductScratch,
    slots: Vec<ChunkQuery>,
    scaled: Vec<Vec<f32>>,
    selects: Vec<TopK>,
    beams: Beams,
    // Leaves that each query's beams reached, where there are several trees, tree after tree.
    reached: Vec<Reached>,
    means: Means,
}

/// What a tile's queries have to score at a level.
#[derive(Default)]
struct Beams {
    all: Vec<Candidate>,
    // Of one wave, those that can still change something: the visits, and their parents' scores.
    visits: Vec<Visit>,
    scores: Vec<f32>,
    nodes: Vec<Scored>,
}

#[derive(Clone, Copy, PartialEq)]
struct Candidate {
    wave: u8,
    visit: Visit,
    score: f32,
}

impl TreeModel {
    /// The best labels of every query, in the order of the rows.
    ///
    /// Tiles of queries run in parallel on the ambient rayon pool. *Cost*: per query that of
    /// [`TreeModel::predict_one`], with the weights' memory traffic shared within a tile; memory
    /// O(threads x tile x (beam + top_k)), and at most some 32 MB a thread for the leaves of several trees.
    ///
    /// *Determinism*: the same bits as [`TreeModel::predict_one`], for any thread count.
    ///
    /// # Errors
    /// A matrix of another width than the model has features.
    ///
    /// # Panics
    /// If a value is not finite.
    pub fn predict_batch(&self, queries: CsrView<'_>, params: &PredictParams) -> Result<RankedBatch, QueryError> {
        check_rows(queries, &self.info)?;
        let params = &params.of(&self.info);
        let rows = queries;
        let n = rows.rows();
        let threads = rayon::current_num_threads();
        let tile = n.div_ceil(threads.max(1)).clamp(1, self.most_rows(params));
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
        Ok(all)
    }

    fn predict_tile(
        &self,
        rows: &CsrView<'_>,
        range: std::ops::Range<usize>,
        params: &Sought,
        scratch: &mut TileScratch,
    ) -> RankedBatch {
        let n = range.len();
        scratch.slots.resize_with(n.max(scratch.slots.len()), ChunkQuery::default);
        scratch.scaled.resize_with(n.max(scratch.scaled.len()), Vec::new);
        scratch.selects.resize_with(n.max(scratch.selects.len()), TopK::default);
        scratch.reached.resize_with(n.max(scratch.reached.len()), Reached::default);
        let TileScratch { product, slots, scaled: rooms, selects, beams, reached, means } = scratch;
        let queries: Vec<SparseRow<'_>> =
            range.zip(rooms.iter_mut()).map(|(i, room)| scaled(rows.row(i), &self.info, room)).collect();
        let is_one = self.trees.len() == 1;
        let (selects, reached) = (&mut selects[..n], &mut reached[..n]);
        reached.iter_mut().for_each(Reached::clear);
        for tree in &self.trees {
            let map = tree.slot_map();
            let views: Vec<QueryView<'_>> =
                queries.iter().zip(slots.iter_mut()).map(|(&row, slots)| slots.prepare(row, map)).collect();
            self.search_tile(tree, &views, params, product, selects, beams, (!is_one).then_some(&mut *reached));
            reached.iter_mut().for_each(Reached::end_tree);
        }
        let mut out = RankedBatch::new();
        for (select, reached) in selects.iter_mut().zip(reached) {
            if is_one {
                // As of a query alone.
                out.push_items(select.sorted().iter().map(|&item| self.finished(item)));
            } else {
                self.ensemble().best_means(reached, params.top_k, means, select);
                out.push_items(select.sorted().iter().copied());
            }
        }
        out
    }

    /// Rows of a tile, at most.
    fn most_rows(&self, params: &Sought) -> usize {
        let most = TILE.min(TILE_CANDIDATES / params.beam.max(params.top_k).max(1));
        if self.trees.len() == 1 {
            return most.max(1);
        }
        // Leaves that the beams of a query reach, on average.
        let of_tree = |tree: &Tree| {
            let level = tree.level(tree.depth() - 1);
            let parents = level.n_parents().max(1);
            params.beam.min(parents).saturating_mul(level.n_columns().div_ceil(parents))
        };
        let reached = self.trees.iter().map(of_tree).fold(0, usize::saturating_add);
        let n_bytes: usize = self.trees.iter().flat_map(|tree| &tree.levels).map(|level| level.view().n_bytes()).sum();
        let leaves = if n_bytes <= SMALL { TILE_LEAVES_OF_SMALL } else { TILE_LEAVES };
        most.min(leaves / reached.max(1)).max(1)
    }

    fn search_tile(
        &self,
        tree: &Tree,
        queries: &[QueryView<'_>],
        params: &Sought,
        product: &mut ProductScratch,
        selects: &mut [TopK],
        beams: &mut Beams,
        mut reached: Option<&mut [Reached]>,
    ) {
        let Beams { all, visits, scores, nodes } = beams;
        let last = tree.depth() - 1;
        let root = (0..queries.len() as u32).map(|query| Visit { parent: 0, query });
        let searched = match &tree.top {
            Some(top) => {
                visits.clear();
                visits.extend(root);
                let query = |number: u32| queries[number as usize];
                let kept = (params.beam, params.top_k);
                shared_margins(&top.level.view(), visits, query, params.choice, product, |at, _, margins| {
                    let reached = reached.as_deref_mut().map(|reached| &mut reached[at]);
                    top::search(tree, top.depth, self.info.post, margins, kept, nodes, &mut selects[at], reached);
                });
                if top.depth <= last {
                    let keeps_all = top.depth == last && reached.is_some();
                    self.descend(&tree.level(top.depth), params, selects, keeps_all, all);
                }
                top.depth
            }
            None => {
                all.clear();
                all.extend(root.map(|visit| Candidate { wave: 0, visit, score: 0.0 }));
                0
            }
        };
        for number in searched..=last {
            let level = tree.level(number);
            for select in selects.iter_mut() {
                select.reset(if number == last { params.top_k } else { params.beam });
            }
            for wave in all.chunk_by(|a, b| a.wave == b.wave) {
                visits.clear();
                scores.clear();
                for candidate in wave {
                    // No child ranks above its parent, so a cluster below the worst that is kept
                    // changes nothing.
                    if candidate.wave == 0 || candidate.score >= selects[candidate.visit.query as usize].threshold() {
                        visits.push(candidate.visit);
                        scores.push(candidate.score);
                    }
                }
                let query = |number: u32| queries[number as usize];
                shared_margins(&level, visits, query, params.choice, product, |at, child, margins| {
                    let query = visits[at].query as usize;
                    let (post, select) = (self.info.post, &mut selects[query]);
                    if number == last {
                        let labels = &tree.labels()[child as usize..][..margins.len()];
                        let reached = reached.as_deref_mut().map(|reached| &mut reached[query]);
                        Leaves::of(reached, select).offer(post, scores[at], labels, margins);
                    } else {
                        offer_nodes(post, scores[at], child, margins, select);
                    }
                });
            }
            if number < last {
                let keeps_all = number + 1 == last && reached.is_some();
                self.descend(&tree.level(number + 1), params, selects, keeps_all, all);
            }
        }
    }

    /// Makes each query's selected nodes what it has to visit at the next level, in an order that
    /// shares chunks; in one wave where every leaf that is reached counts.
    fn descend(
        &self,
        next: &ChunkedView<'_>,
        params: &Sought,
        selects: &mut [TopK],
        keeps_all: bool,
        all: &mut Vec<Candidate>,
    ) {
        let parents = next.n_parents().max(1);
        let pays = !keeps_all
            && selects.len() * params.beam / parents >= SHARED_BY_MANY
            && next.n_columns() / parents >= MANY_CHILDREN
            && self.info.post.never_rises();
        let waves: &[u8] = if pays { &WAVES } else { &[0] };
        all.clear();
        for (query, select) in selects.iter_mut().enumerate() {
            all.extend(select.sorted().iter().enumerate().map(|(place, node)| Candidate {
                wave: waves[place.min(waves.len() - 1)],
                visit: Visit { parent: node.label, query: query as u32 },
                score: node.score,
            }));
        }
        all.sort_unstable_by_key(|c| (c.wave, c.visit.parent, c.visit.query));
    }
}
