//! Ranked labels: the total order, the k best, and lists of lists.
//!
//! Order: larger score first; equal scores by ascending label. `-0.0` equals `0.0`. NaN has no
//! place in a ranking: producers reject it, [`rank_order`] puts it last, and [`TopK`]
//! does not keep it.
//!
//! ```
//! use xc_sparse::rank::{RankedBatch, Scored, TopK, merge};
//!
//! let mut top = TopK::new(2);
//! for (label, score) in [(4, 0.5), (7, 0.9), (1, 0.5), (2, 0.1)] {
//!     top.push(Scored { label, score });
//! }
//! let here = top.sorted().to_vec();
//! assert_eq!(here.iter().map(|s| s.label).collect::<Vec<_>>(), [7, 1]);
//!
//! // Labels of another machine: the lists become one.
//! let mut both = Vec::new();
//! merge(&[&here, &[Scored { label: 9, score: 0.6 }]], 2, &mut both);
//! let mut answers = RankedBatch::new();
//! answers.push_row(&both);
//! assert_eq!(answers.row(0)[1], Scored { label: 9, score: 0.6 });
//! ```

mod batch;
mod label;
mod merge;
mod topk;

pub use batch::{RankedBatch, RankedBatchError};
pub use label::{LabelId, Scored, from_rank_key, rank_key, rank_order};
pub use merge::merge;
pub use topk::TopK;
