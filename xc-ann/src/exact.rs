//! The exact answers: all rows are compared.

use crate::metric::Metric;
use crate::query::spared;
use rayon::prelude::*;
use xc_sparse::DenseRows;
use xc_sparse::dense::{self, MatRef, MatmulPrecision, Start};
use xc_sparse::rank::{RankedBatch, Scored, TopK};

/// Queries of a block, and rows.
const QUERIES: usize = 32;
const ROWS: usize = 2048;

/// The `k` best rows of each query, best first, of equal scores the lower row; a row of zeros is no
/// answer under the cosine.
///
/// A product of matrices finds some more rows than are wanted, whose scores are then computed one by
/// one. *Cost*: 2 operations a coordinate of each row and query; the ambient threads share the
/// queries.
///
/// # Panics
/// If widths differ.
pub fn exact(rows: DenseRows<'_>, queries: DenseRows<'_>, metric: Metric, k: usize) -> RankedBatch {
    assert_eq!(rows.width(), queries.width(), "coordinates of rows and queries");
    // Under distances a score is 2 q x - x x, under the cosine q x over the length of x.
    let squares: Vec<f32> = if metric == Metric::InnerProduct {
        Vec::new()
    } else {
        rows.values().par_chunks(rows.width()).map(|row| crate::product::inner(row, row)).collect()
    };
    let keep = spared(k);
    let blocks: Vec<RankedBatch> = queries
        .values()
        .par_chunks(QUERIES * queries.width())
        .map_init(Block::default, |block, values| {
            let queries = DenseRows::new(values, rows.width());
            block.answer(rows, queries, metric, &squares, k, keep)
        })
        .collect();
    let mut all = RankedBatch::new();
    blocks.iter().for_each(|block| all.append(block));
    all
}

#[derive(Default)]
struct Block {
    scores: Vec<f32>,
    best: Vec<TopK>,
    scratch: dense::Scratch,
}

impl Block {
    fn answer(
        &mut self,
        rows: DenseRows<'_>,
        queries: DenseRows<'_>,
        metric: Metric,
        squares: &[f32],
        k: usize,
        keep: usize,
    ) -> RankedBatch {
        self.best.resize_with(queries.len(), TopK::default);
        self.best.iter_mut().for_each(|best| best.reset(keep));
        let width = rows.width();
        for (number, part) in rows.values().chunks(ROWS * width).enumerate() {
            let (n, first) = (part.len() / width, number * ROWS);
            self.scores.resize(queries.len() * n, 0.0);
            let (queries_of, rows_of) =
                (MatRef::new(queries.values(), queries.len(), width), MatRef::new(part, n, width));
            dense::product(
                &mut self.scores,
                queries_of,
                rows_of.t(),
                Start::Zero,
                MatmulPrecision::F32,
                &mut self.scratch,
            );
            for (scores, best) in self.scores.chunks_exact(n).zip(&mut self.best) {
                for (at, &score) in scores.iter().enumerate() {
                    let row = first + at;
                    let score = match metric {
                        Metric::InnerProduct => score,
                        Metric::L2 => 2.0 * score - squares[row],
                        Metric::Cosine if squares[row] > 0.0 => score / squares[row].sqrt(),
                        Metric::Cosine => continue,
                    };
                    best.push(Scored { label: row as u32, score });
                }
            }
        }
        let (mut all, mut exact) = (RankedBatch::new(), TopK::default());
        for (query, best) in queries.iter().zip(&mut self.best) {
            exact.reset(k);
            for found in best.best() {
                let score = metric.score(query, rows.row(found.label as usize));
                exact.push(Scored { label: found.label, score });
            }
            all.push_row(exact.sorted());
        }
        all
    }
}

/// The share of the exact answers that were found, over all queries; a row found with the score of the
/// last exact answer counts, as equal rows do. 1 where there is nothing to find.
///
/// # Panics
/// If there are not as many queries.
pub fn recall(found: &RankedBatch, exact: &RankedBatch) -> f64 {
    assert_eq!(found.len(), exact.len(), "queries");
    let (mut hits, mut wanted) = (0, 0);
    for (found, exact) in found.iter().zip(exact.iter()) {
        let Some(last) = exact.last() else { continue };
        let is_hit = |s: &&Scored| s.score >= last.score || exact.iter().any(|e| e.label == s.label);
        hits += found.iter().take(exact.len()).filter(is_hit).count();
        wanted += exact.len();
    }
    if wanted == 0 { 1.0 } else { hits as f64 / wanted as f64 }
}
