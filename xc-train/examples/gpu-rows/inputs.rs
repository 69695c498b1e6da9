//! Inputs made from seeds.

use rayon::prelude::*;
use std::collections::HashSet;
use xc_buffer::dtype::DType;
use xc_sparse::CsrMatrix;
use xc_sparse::chunked::ChunkRows;
use xc_tree::{ModelInfo, PostProcessor, Topology, TreeModel, TreeParts};

/// Numbers that look random.
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    /// In [0, 1).
    pub(crate) fn unit(&mut self) -> f64 {
        self.next() as f64 / (1u64 << 31) as f64
    }

    /// In [-1, 1).
    pub(crate) fn signed(&mut self) -> f32 {
        self.unit() as f32 * 2.0 - 1.0
    }

    /// Below `n`, small numbers more often than large ones, as words of a text are.
    fn skewed(&mut self, n: usize) -> u32 {
        // Zipf's law with exponent 1.
        (((n as f64).ln() * self.unit()).exp() as u32 - 1).min(n as u32 - 1)
    }
}

/// `n` numbers in [-1, 1).
pub(crate) fn numbers(n: usize, seed: u64) -> Vec<f32> {
    const PART: usize = 1 << 16;
    let mut out = vec![0.0; n];
    out.par_chunks_mut(PART).enumerate().for_each(|(at, part)| {
        let mut numbers = Numbers::new(seed + 7919 * at as u64);
        part.fill_with(|| numbers.signed());
    });
    out
}

/// A tree: of each level the children of a parent, and the weights of a child.
pub(crate) struct TreeShape {
    pub(crate) levels: &'static [(usize, usize)],
    pub(crate) n_features: usize,
}

impl TreeShape {
    pub(crate) fn model(&self) -> TreeModel {
        let (mut boundaries, mut n) = (Vec::new(), 1);
        for &(width, _) in self.levels {
            boundaries.push((0..=n).map(|parent| (parent * width) as u32).collect::<Vec<_>>());
            n *= width;
        }
        let topology = Topology::try_new(boundaries, (0..n as u32).collect(), n).expect("a tree");
        let mut parents = 1;
        let levels = self.levels.iter().enumerate().map(|(level, &(width, weights))| {
            let chunks = (0..parents)
                .into_par_iter()
                .map(|parent| self.chunk(Numbers::new((level as u64) << 32 | parent as u64), width, weights));
            parents *= width;
            chunks.collect()
        });
        let parts = TreeParts { levels: levels.collect(), topology };
        let info = ModelInfo {
            n_features: self.n_features,
            n_labels: n,
            post: PostProcessor::Hinge { p: 3 },
            normalise_rows: false,
            row_length: 1.0,
            beam: 10,
        };
        TreeModel::from_parts(info, vec![parts], DType::Bf16).expect("a model")
    }

    fn chunk(&self, mut numbers: Numbers, width: usize, weights: usize) -> ChunkRows {
        let mut entries = Vec::with_capacity(width * weights);
        for column in 0..width as u32 {
            for _ in 0..weights {
                entries.push((numbers.skewed(self.n_features), column, numbers.signed()));
            }
        }
        entries.sort_unstable_by_key(|e| (e.0, e.1));
        entries.dedup_by_key(|e| (e.0, e.1));
        entries.retain(|e| e.2 != 0.0);
        let bias = (0..width).map(|_| numbers.signed()).collect();
        ChunkRows::from_entries(width, entries, bias).expect("a chunk")
    }

    /// Rows of about so many features: some have a quarter, a few four times as many.
    pub(crate) fn queries(&self, n: usize, n_features: usize) -> CsrMatrix {
        sparse_rows(n, self.n_features, n_features)
    }
}

pub(crate) fn sparse_rows(n: usize, width: usize, per_row: usize) -> CsrMatrix {
    let mut numbers = Numbers::new(99);
    let (mut indptr, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for _ in 0..n {
        // The mean of this factor is 1.
        let factor = 0.25 + (-numbers.unit().max(1e-6).ln() * 0.75).min(4.0);
        let wanted = ((per_row as f64 * factor) as usize).clamp(1, width / 2);
        let mut row = HashSet::new();
        while row.len() < wanted {
            row.insert(numbers.skewed(width));
        }
        let mut row: Vec<u32> = row.into_iter().collect();
        row.sort_unstable();
        values.extend(row.iter().map(|_| numbers.unit() as f32 * 0.3));
        indices.extend(row);
        indptr.push(indices.len());
    }
    CsrMatrix::try_new((n, width), indptr, indices, values).expect("rows")
}
