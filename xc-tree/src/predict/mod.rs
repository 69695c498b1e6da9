//! The best labels of a query: beam search, one query at a time or many at once, and scores of given labels.

mod batch;
mod ensemble;
mod online;
mod restrict;
mod scores;
mod select;
mod top;

pub use online::{PredictParams, PredictScratch};
pub use restrict::{Restriction, UnknownLabel};
