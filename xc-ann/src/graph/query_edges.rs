//! Edges that queries ask for: rows that are answers of one query lead to each other.
//!
//! Under inner products queries may be distributed differently from rows, as hidden units and the weights
//! of labels are. Rows near a query then need not be near each other, and edges among near rows lead past
//! them. Queries like those that will be asked show which rows belong together
//! (`[chen2024roargraph]`).

use crate::graph::whole::Graph;
use rayon::prelude::*;
use xc_dense::DenseRows;
use xc_sparse::rank::RankedBatch;

/// Best rows of a query that get edges, and those that they lead to.
const FROM: usize = 8;
const TO: usize = 48;

impl Graph {
    /// The answers of queries that edges are made among.
    pub(crate) fn answers_of(&self, rows: DenseRows<'_>, queries: DenseRows<'_>) -> RankedBatch {
        self.exact(rows, queries, TO, None)
    }

    /// Adds edges among the best rows of each query. At most three quarters of a vertex's places are taken by
    /// them, those of the most queries first; its own farthest edges give way.
    pub(crate) fn link_answers(&mut self, best: &RankedBatch) {
        let vertex_of = self.items.vertex_of();
        let mut pairs: Vec<(u32, u32)> = Vec::new();
        for answers in best.iter() {
            let answers: Vec<u32> = answers.iter().map(|s| vertex_of[s.label as usize]).collect();
            for &from in answers.iter().take(FROM) {
                pairs.extend(answers.iter().filter(|&&to| to != from).map(|&to| (from, to)));
            }
        }
        pairs.par_sort_unstable();
        let (degree, edges) = (self.edges.degree(), self.edges.view());
        let groups: Vec<&[(u32, u32)]> = pairs.chunk_by(|a, b| a.0 == b.0).collect();
        let rows: Vec<(u32, Vec<u32>)> = groups
            .par_iter()
            .map(|group| {
                let mut asked: Vec<(usize, u32)> = group.chunk_by(|a, b| a == b).map(|c| (c.len(), c[0].1)).collect();
                asked.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
                let mut row: Vec<u32> = asked.iter().take(degree * 3 / 4).map(|a| a.1).collect();
                let own = edges.of(group[0].0).iter().filter(|to| !row.contains(to)).copied().collect::<Vec<_>>();
                row.extend(own);
                row.truncate(degree);
                (group[0].0, row)
            })
            .collect();
        rows.iter().for_each(|(vertex, row)| self.edges.set(*vertex, row));
    }
}
