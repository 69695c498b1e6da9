//! The metrics against frozen values, a reference, and their edges.

mod edges;
mod golden;
mod intervals;
mod per_label;
mod properties;
mod threshold;

use xc_sparse::{
    LabelRows,
    rank::{RankedBatch, Scored},
};

/// Ranked lists with falling scores.
fn ranked<R: AsRef<[u32]>>(rows: &[R]) -> RankedBatch {
    let mut out = RankedBatch::new();
    for row in rows {
        let list: Vec<Scored> =
            row.as_ref().iter().enumerate().map(|(r, &label)| Scored { label, score: -(r as f32) }).collect();
        out.push_row(&list);
    }
    out
}

fn truth<R: AsRef<[u32]>>(rows: &[R], n_labels: usize) -> LabelRows {
    LabelRows::from_lists(rows, n_labels).unwrap()
}

/// `body` on a pool of its own.
fn with_threads<T: Send>(n: usize, body: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap().install(body)
}
