//! Matcher-aware negatives: where the levels trained so far would send each training instance.

use super::check::TrainError;
use super::level::Trainer;
use super::matched::Matched;
use super::weights::LevelWeights;
use crate::model::PostProcessor;
use rayon::prelude::*;

/// How a training beam ranks: the post-processor of the squared hinge.
const RANKING: PostProcessor = PostProcessor::Hinge { p: 3 };

impl Trainer<'_> {
    /// Moves every instance's beam one level down, chunk by chunk.
    ///
    /// *Cost*: O(beam x nnz) look-ups and the weights they meet; memory for instances x beam x
    /// branching scores.
    pub(super) fn match_level(
        &self,
        level: usize,
        chunks: &LevelWeights,
        above: Option<Matched>,
        beam: usize,
    ) -> Result<Matched, TrainError> {
        let n = self.features.rows();
        let above = above.unwrap_or_else(|| Matched {
            indptr: vec![0, n],
            instances: (0..n as u32).collect(),
            scores: vec![0.0; n],
        });
        let boundaries = self.topology.boundaries(level);
        // Scores of every (instance, cluster above) pair's children, parents in order.
        let scored: Vec<Vec<f32>> = (0..boundaries.len() - 1)
            .into_par_iter()
            .with_max_len(1)
            .map_init(
                || vec![u32::MAX; self.features.cols()],
                |row_of, p| {
                    if self.observer.cancelled() {
                        return Err(TrainError::Cancelled);
                    }
                    let chunk = chunks.chunk(p)?;
                    for (row, &f) in chunk.features.iter().enumerate() {
                        row_of[f as usize] = row as u32;
                    }
                    let range = above.indptr[p]..above.indptr[p + 1];
                    let mut out = Vec::with_capacity(range.len() * chunk.n_columns);
                    let mut margins = vec![0.0f32; chunk.n_columns];
                    for at in range {
                        margins.copy_from_slice(&chunk.bias);
                        for (f, x) in self.features.row(above.instances[at] as usize).iter() {
                            let row = row_of[f as usize];
                            if row != u32::MAX {
                                let entries =
                                    chunk.row_ptr[row as usize] as usize..chunk.row_ptr[row as usize + 1] as usize;
                                for e in entries {
                                    margins[chunk.columns[e] as usize] += x * chunk.values[e];
                                }
                            }
                        }
                        out.extend(margins.iter().map(|&m| RANKING.accumulate(above.scores[at], m)));
                    }
                    chunk.features.iter().for_each(|&f| row_of[f as usize] = u32::MAX);
                    Ok(out)
                },
            )
            .collect::<Result<_, TrainError>>()?;
        if self.observer.cancelled() {
            return Err(TrainError::Cancelled);
        }
        // The same pairs by instance.
        let mut start = vec![0usize; n + 1];
        above.instances.iter().for_each(|&i| start[i as usize + 1] += 1);
        for i in 0..n {
            start[i + 1] += start[i];
        }
        let mut next = start.clone();
        let mut pairs = vec![(0u32, 0u32); above.instances.len()];
        for p in 0..boundaries.len() - 1 {
            for (nth, &i) in above.of(p).iter().enumerate() {
                pairs[next[i as usize]] = (p as u32, nth as u32);
                next[i as usize] += 1;
            }
        }
        let kept: Vec<Vec<(f32, u32)>> = (0..n)
            .into_par_iter()
            .with_min_len(256)
            .map(|i| {
                let mut children = Vec::new();
                for &(p, nth) in &pairs[start[i]..start[i + 1]] {
                    let p = p as usize;
                    let width = (boundaries[p + 1] - boundaries[p]) as usize;
                    let scores = &scored[p][nth as usize * width..][..width];
                    children.extend(scores.iter().enumerate().map(|(c, &s)| (s, boundaries[p] + c as u32)));
                }
                if children.len() > beam {
                    children.select_nth_unstable_by(beam - 1, |a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
                    children.truncate(beam);
                }
                children
            })
            .collect();
        let n_nodes = self.topology.n_nodes(level);
        let mut indptr = vec![0usize; n_nodes + 1];
        kept.iter().flatten().for_each(|&(_, node)| indptr[node as usize + 1] += 1);
        for node in 0..n_nodes {
            indptr[node + 1] += indptr[node];
        }
        let mut next = indptr.clone();
        let (mut instances, mut scores) = (vec![0u32; indptr[n_nodes]], vec![0.0f32; indptr[n_nodes]]);
        for (i, list) in kept.iter().enumerate() {
            for &(score, node) in list {
                let at = next[node as usize];
                next[node as usize] += 1;
                (instances[at], scores[at]) = (i as u32, score);
            }
        }
        Ok(Matched { indptr, instances, scores })
    }
}
