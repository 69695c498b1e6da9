//! Rows to search.

use xc_ann::{BuildParams, Graph, Metric, Silent};
use xc_dense::{DenseMatrix, DenseRows};
use xc_hash::stream::Stream;

/// Rows around centres, of lengths that differ.
pub(crate) fn clustered(n: usize, columns: usize, n_centres: usize, seed: u64) -> DenseMatrix {
    let mut stream = Stream::new(seed);
    let mut centres = vec![0.0; n_centres * columns];
    stream.fill_uniform(1.0, &mut centres);
    let mut values = vec![0.0; n * columns];
    stream.fill_uniform(0.4, &mut values);
    for row in values.chunks_exact_mut(columns) {
        let centre = stream.below(n_centres as u32) as usize;
        let length = (stream.unit() as f32 - 0.5).exp();
        row.iter_mut().zip(&centres[centre * columns..]).for_each(|(v, c)| *v = (*v + c) * length);
    }
    DenseMatrix::new(n, columns, values)
}

pub(crate) fn build(rows: DenseRows<'_>, metric: Metric) -> Graph {
    Graph::build(rows, &BuildParams::new(metric), &Silent).expect("rows that a graph may have")
}
