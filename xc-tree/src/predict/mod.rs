//! The best labels of a query: beam search, one query at a time or many at once, and scores of
//! given labels.

mod batch;
mod ensemble;
mod error;
mod online;
mod path;
mod restrict;
mod scores;
mod top;

#[cfg(feature = "cuda")]
pub(crate) use ensemble::{Ensemble, Means};
pub use error::QueryError;
#[cfg(feature = "cuda")]
pub(crate) use error::check_rows;
#[cfg(feature = "cuda")]
pub(crate) use online::Sought;
pub use online::{PredictParams, PredictScratch};
pub use path::PathNode;
pub use restrict::{Restriction, UnknownLabel};

#[cfg(feature = "cuda")]
pub(crate) use scores::{Reached, scaled};

use crate::model::TreeModel;
use xc_sparse::SparseRow;
use xc_sparse::rank::Scored;

impl TreeModel {
    /// The `top_k` best labels of one query, best first, with the model's own beam.
    ///
    /// *Cost*: that of [`TreeModel::predict_one`], and new scratch memory for each call: a server should
    /// keep its scratch and call that.
    ///
    /// # Errors
    /// A feature that the model does not have.
    ///
    /// # Panics
    /// If the row is none: features that do not ascend, or a value that is not finite
    /// ([`SparseRow::from_checked`]).
    pub fn predict(&self, row: SparseRow<'_>, top_k: usize) -> Result<Vec<Scored>, QueryError> {
        let mut out = Vec::new();
        self.predict_one(row, &PredictParams::top(top_k), &mut PredictScratch::default(), &mut out)?;
        Ok(out)
    }
}
