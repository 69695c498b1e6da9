//! Labels found by their own texts, without training: the cosine between a query and the text of each label.
//!
//! ```text
//!   label 0: "openssl"           ┐  features by one     ┌─ rows of an inverted index ─┐
//!   label 1: "apache http server"├─▶ pipeline (tf-idf) ─┤                             ├─▶ cosine of each label that
//!   query:   "a flaw in openssl" ┘                      └─ a row of features ─────────┘   shares a feature
//! ```
//!
//! A label that shares no feature with a query is no answer, unless it is asked for: then its score is 0.

use xc_ann::{BuildError, Filter, InvertedIndex, InvertedScratch, Metric, OpenGraphError, QueryError};
use xc_sparse::rank::{LabelId, Scored};
use xc_sparse::{CsrView, SparseRow};
use xc_store::{Container, ContainerWriter, WriteError};

/// The texts of labels as rows of features.
#[derive(Clone, Debug)]
pub struct NamesModel {
    index: InvertedIndex,
}

impl NamesModel {
    /// The name that folders of the kind state.
    pub const KIND: &str = "names";

    /// Of a row of features for each label; a label without a feature is found by no query.
    ///
    /// *Cost*: two passes over the rows. *Memory*: [`InvertedIndex::bytes`].
    ///
    /// # Errors
    /// Rows with values that have no length, or too many of them.
    pub fn new(rows: CsrView<'_>) -> Result<Self, BuildError> {
        Ok(Self { index: InvertedIndex::build(rows, Metric::Cosine)? })
    }

    /// Number of labels.
    pub fn n_labels(&self) -> usize {
        self.index.len()
    }

    /// Number of features of a query.
    pub fn n_features(&self) -> usize {
        self.index.n_columns()
    }

    /// Features of a label's text.
    ///
    /// # Panics
    /// If there is no such label.
    pub fn row(&self, label: LabelId) -> SparseRow<'_> {
        self.index.row(label as usize)
    }

    /// Replaces `out` by the `k` labels with the largest cosines, among `candidates` where these are given, ascending.
    ///
    /// # Errors
    /// A query with features out of order or range, or values that are not finite.
    pub fn find(
        &self,
        query: SparseRow<'_>,
        k: usize,
        candidates: Option<&[LabelId]>,
        scratch: &mut InvertedScratch,
        out: &mut Vec<Scored>,
    ) -> Result<(), QueryError> {
        let is_candidate = |label: u32| candidates.is_some_and(|only| only.binary_search(&label).is_ok());
        let filter = Filter::Test(&is_candidate);
        self.index.search(query, k, candidates.is_some().then_some(&filter), scratch, out)?;
        if candidates.is_none() {
            out.retain(|found| found.score > 0.0);
        }
        Ok(())
    }

    /// Adds the rows to a container.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn write(&self, writer: &mut ContainerWriter) -> Result<(), WriteError> {
        writer.set_parameter("n_features", self.n_features());
        writer.set_parameter("n_labels", self.n_labels());
        self.index.write(writer)
    }

    /// Those of a container.
    ///
    /// # Errors
    /// Arrays that are no rows, or rows that are compared by another metric.
    pub fn of(container: &Container) -> Result<Self, OpenGraphError> {
        let index = InvertedIndex::read(container)?;
        match index.metric() {
            Metric::Cosine => Ok(Self { index }),
            _ => Err(OpenGraphError::Graph {
                path: container.folder().to_owned(),
                what: "texts of labels that are not compared by the cosine",
            }),
        }
    }
}
