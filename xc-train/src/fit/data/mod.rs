//! Rows, texts and vectors in memory as instances that are learned from.

mod dataset;
mod features;
mod making;
mod text_advice;
mod text_source;
mod texts;
mod vectors;

pub use dataset::{Dataset, Datasets};
pub use features::{no_labels, of_features, with_names};
pub use making::Making;
pub use text_source::TextSource;
pub use texts::read_texts;
pub use vectors::of_vectors;
