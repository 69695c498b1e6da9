//! Beam search of many queries: level by level, and inside a level chunk by chunk, so that a
//! chunk's weights enter the cache once for all the queries of a tile that reach it (etter2022mscm,
//! Alg. 3).

use super::ensemble::{ALL, Missing, NOWHERE, Others, Pooled, choose, locate, mean_of_trees, pool_size};
use super::online::{PredictParams, PredictScratch};
use super::scores::{offer_children, rank_scores, scaled};
use super::top;
use crate::model::{Tree, TreeModel};
use rayon::prelude::*;
use xc_sparse::chunked::{ChunkedView, ProductScratch, QueryScratch, QueryView, Visit, shared_margins};
use xc_sparse::rank::{RankedBatch, Scored, TopK};
use xc_sparse::{CsrView, Rows, SparseRow};

/// Queries of one tile, at most: the more, the more of them share a chunk. Measured on trees of
/// 30,000 and 500,000 labels: 8,192 take a tenth to a quarter less time a query than 2,048.
const TILE: usize = 8192;

/// Candidates that a tile keeps, at most: bounds its memory (8 bytes each) when many labels are
/// asked for.
const TILE_CANDIDATES: usize = 1 << 20;

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
    slots: Vec<QueryScratch>,
    scaled: Vec<Vec<f32>>,
    selects: Vec<TopK>,
    beams: Beams,
    // Clusters of leaves that each query's beam reached in each tree, where there are several.
    reached: Vec<Vec<Scored>>,
    // What is missing in each tree of the labels that may be the best.
    missing: Vec<Vec<Missing>>,
    rest: Vec<(usize, f32)>,
    online: PredictScratch,
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
    /// O(threads x tile x (beam + top_k)).
    ///
    /// *Determinism*: the same bits as [`TreeModel::predict_one`], for any thread count.
    ///
    /// # Panics
    /// If the matrix is stored by columns, or a value is not finite.
    pub fn predict_batch(&self, queries: CsrView<'_>, params: &PredictParams) -> RankedBatch {
        let rows = Rows::new(queries);
        let n = rows.len();
        let threads = rayon::current_num_threads();
        let kept = params.beam.max(pool_size(params.top_k, self.trees.len()));
        let most = TILE.min(TILE_CANDIDATES / kept.max(1)).max(1);
        let tile = n.div_ceil(threads.max(1)).clamp(1, most);
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
        scratch.scaled.resize_with(n.max(scratch.scaled.len()), Vec::new);
        scratch.selects.resize_with(n.max(scratch.selects.len()), TopK::default);
        let n_trees = self.trees.len();
        let n_reached = if n_trees == 1 { 0 } else { n * n_trees };
        scratch.reached.resize_with(n_reached.max(scratch.reached.len()), Vec::new);
        let TileScratch { product, slots, scaled: rooms, selects, beams, reached, missing, rest, online } = scratch;
        missing.resize_with(n_trees, Vec::new);
        let queries: Vec<SparseRow<'_>> =
            range.zip(rooms.iter_mut()).map(|(i, room)| scaled(rows.row(i), &self.info, room)).collect();
        let mut pooled: Vec<Vec<Pooled>> = Vec::new();
        if n_trees > 1 {
            pooled.resize_with(n, Vec::new);
        }
        let mut out = RankedBatch::new();
        for (number, tree) in self.trees.iter().enumerate() {
            let map = tree.slot_map();
            let views: Vec<QueryView<'_>> =
                queries.iter().zip(slots.iter_mut()).map(|(&row, slots)| slots.prepare(row, map)).collect();
            let reached = if n_trees == 1 { &mut [][..] } else { &mut reached[number * n..][..n] };
            self.search_tile(tree, &views, params, per_tree, product, &mut selects[..n], beams, reached);
            if n_trees == 1 {
                for select in &mut selects[..n] {
                    // Exponentials can tie where logarithms do not: the order of the ranking scale
                    // stands.
                    out.push_items(select.sorted().iter().map(|&item| self.finished(item)));
                }
                return out;
            }
            for (pool, select) in pooled.iter_mut().zip(selects.iter_mut()) {
                self.pool(number, select, pool);
            }
        }
        missing.iter_mut().for_each(Vec::clear);
        let sizes = (n_trees, params.top_k, per_tree);
        let choose = |(at, pool)| choose(sizes, at, pool, rest, &mut selects[0], missing);
        let others: Vec<Others> = pooled.iter_mut().enumerate().map(choose).collect();
        for (number, missing) in missing.iter_mut().enumerate() {
            self.fill_in(number, &queries, params, &reached[number * n..][..n], missing, &mut pooled, (product, slots));
        }
        let mut answer = Vec::new();
        for ((pool, others), &row) in pooled.iter_mut().zip(others).zip(&queries) {
            answer.clear();
            mean_of_trees(n_trees, params.top_k, pool, &mut selects[0], &mut answer);
            if !others.are_behind(&answer, params.top_k) {
                self.ask_all(row, params, ALL, online, &mut answer, &mut |_, _, _| {});
            }
            out.push_row(&answer);
        }
        out
    }

    /// Adds to the pools of a tile's queries what is missing in a tree, where its beam reached it.
    fn fill_in(
        &self,
        number: usize,
        queries: &[SparseRow<'_>],
        params: &PredictParams,
        reached: &[Vec<Scored>],
        missing: &mut Vec<Missing>,
        pooled: &mut [Vec<Pooled>],
        (product, slots): (&mut ProductScratch, &mut [QueryScratch]),
    ) {
        let (tree, post) = (&self.trees[number], self.info.post);
        for of_query in missing.chunk_by_mut(|a, b| a.query == b.query) {
            locate(tree, &reached[of_query[0].query as usize], of_query);
        }
        missing.retain(|one| one.cluster != NOWHERE);
        let node = |one: &Missing| reached[one.query as usize][one.cluster as usize];
        // Queries that something is missing of, and the clusters that they visit once more, each once.
        let mut asked: Vec<u32> = missing.iter().map(|one| one.query).collect();
        asked.dedup();
        let numbers = asked.iter().zip(slots.iter_mut());
        let views: Vec<QueryView<'_>> =
            numbers.map(|(&query, slots)| slots.prepare(queries[query as usize], tree.slot_map())).collect();
        missing.sort_unstable_by_key(|one| (node(one).label, one.query));
        let same = |a: &Missing, b: &Missing| (a.query, a.cluster) == (b.query, b.cluster);
        let groups: Vec<&[Missing]> = missing.chunk_by(same).collect();
        let visit = |group: &&[Missing]| Visit { parent: node(&group[0]).label, query: group[0].query };
        let visits: Vec<Visit> = groups.iter().map(visit).collect();
        let query = |number: u32| views[asked.partition_point(|&query| query < number)];
        let level = tree.level(tree.depth() - 1);
        shared_margins(&level, &visits, query, params.choice, product, |at, first, margins| {
            rank_scores(post, node(&groups[at][0]).score, margins);
            for &Missing { query, tree, label, leaf, .. } in groups[at] {
                // A cluster of many leaves comes in parts.
                let Some(&score) = leaf.checked_sub(first).and_then(|at| margins.get(at as usize)) else { continue };
                pooled[query as usize].push(Pooled { label, tree, score: post.finish(score) });
            }
        });
    }

    fn search_tile(
        &self,
        tree: &Tree,
        queries: &[QueryView<'_>],
        params: &PredictParams,
        per_tree: usize,
        product: &mut ProductScratch,
        selects: &mut [TopK],
        beams: &mut Beams,
        reached: &mut [Vec<Scored>],
    ) {
        let Beams { all, visits, scores, nodes } = beams;
        let last = tree.depth() - 1;
        let root = (0..queries.len() as u32).map(|query| Visit { parent: 0, query });
        let searched = match &tree.top {
            Some(top) => {
                visits.clear();
                visits.extend(root);
                let query = |number: u32| queries[number as usize];
                let kept = (params.beam, per_tree);
                shared_margins(&top.level.view(), visits, query, params.choice, product, |at, _, margins| {
                    top::search(tree, top.depth, self.info.post, margins, kept, nodes, &mut selects[at]);
                    if top.depth > last
                        && let Some(reached) = reached.get_mut(at)
                    {
                        nodes.clone_into(reached);
                    }
                });
                if top.depth <= last {
                    self.descend(&tree.level(top.depth), params, selects, all);
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
            if number == last && !reached.is_empty() {
                take_reached(number, selects, reached);
            }
            let level = tree.level(number);
            let leaves = (number == last).then(|| tree.labels());
            for select in selects.iter_mut() {
                select.reset(if number == last { per_tree } else { params.beam });
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
                    let select = &mut selects[visits[at].query as usize];
                    offer_children(self.info.post, scores[at], child, margins, leaves, select);
                });
            }
            if number < last {
                self.descend(&tree.level(number + 1), params, selects, all);
            }
        }
    }

    /// Makes each query's selected nodes what it has to visit at the next level, in an order that
    /// shares chunks.
    fn descend(&self, next: &ChunkedView<'_>, params: &PredictParams, selects: &mut [TopK], all: &mut Vec<Candidate>) {
        let parents = next.n_parents().max(1);
        let pays = selects.len() * params.beam / parents >= SHARED_BY_MANY
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

/// Keeps the clusters that each query's beam reached above the last level, `number`; the root where that
/// is the first.
fn take_reached(number: usize, selects: &mut [TopK], reached: &mut [Vec<Scored>]) {
    for (select, reached) in selects.iter_mut().zip(reached) {
        match number {
            0 => *reached = vec![Scored { label: 0, score: 0.0 }],
            _ => select.sorted().clone_into(reached),
        }
    }
}
