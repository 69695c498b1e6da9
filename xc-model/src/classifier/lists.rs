//! Labels of a sparse output layer by the units they are connected with: where few units are not 0, a query alone
//! reads the lists of these rather than all connections.
//!
//! ```text
//!   label   (its connections, bias)      ─▶ inverted index of xc-ann: labels by unit
//!   query   (units that are not 0, 1)    ─▶ the labels of the largest sums ─▶ their logits as the layer has them
//! ```

use super::LabelIndexError;
use std::sync::Arc;
use xc_ann::{InvertedIndex, InvertedScratch, Metric, QueryError};
use xc_nn::head::Sparse;
use xc_nn::head::sparse::{OneScratch, as_read};
use xc_sparse::rank::Scored;
use xc_sparse::rows::sort_row;
use xc_sparse::{CsrMatrix, SparseRow};

/// Queries that are answered one by one: from so many on a block of them reads the connections once for all.
const ALONE: usize = 16;

/// Labels by unit.
#[derive(Clone, Debug)]
pub(super) struct LabelLists {
    pub(super) index: Arc<InvertedIndex>,
}

/// Buffers of a query; they grow and stay.
#[derive(Default)]
pub(super) struct ListScratch {
    search: InvertedScratch,
    indices: Vec<u32>,
    values: Vec<f32>,
    found: Vec<Scored>,
    labels: Vec<u32>,
}

impl LabelLists {
    /// Lists of all labels of a layer.
    pub(super) fn new(head: &Sparse) -> Result<Self, LabelIndexError> {
        let (connections, bias) = (head.connections(), head.bias().values());
        let n_units = connections.n_inputs();
        let nnz = connections.len() + bias.len();
        let (mut indptr, mut indices, mut values) = (vec![0], Vec::with_capacity(nnz), Vec::with_capacity(nnz));
        let (mut units, mut weights, mut scratch) = (Vec::new(), Vec::new(), Vec::new());
        for (label, &bias) in bias.iter().enumerate() {
            let range = connections.range(label);
            units.clear();
            units.extend(range.clone().map(|at| connections.indices().get(at) as u32));
            weights.resize(range.len(), 0.0);
            connections.weights().widen(range, &mut weights);
            sort_row(&mut units, &mut weights, &mut scratch)
                .unwrap_or_else(|e| panic!("connections that were checked: {e:?}"));
            indices.extend_from_slice(&units);
            values.extend_from_slice(&weights);
            indices.push(n_units as u32);
            values.push(bias);
            indptr.push(indices.len());
        }
        let rows = CsrMatrix::from_checked((bias.len(), n_units + 1), indptr, indices, values);
        let index = InvertedIndex::build(rows.view(), Metric::InnerProduct)?;
        Ok(Self { index: Arc::new(index) })
    }

    /// Bytes that building takes, and the lists.
    pub(super) fn bytes(head: &Sparse) -> usize {
        let (n, n_units) = (head.connections().n_labels(), head.connections().n_inputs());
        let nnz = head.connections().len() + n;
        // Beside them the rows, and pairs that are grouped.
        InvertedIndex::bytes(n, n_units + 1, nnz) + 16 * nnz
    }

    /// Whether so many queries together are answered faster so.
    pub(super) fn pays(n_queries: usize) -> bool {
        n_queries <= ALONE
    }

    /// The `k` best labels for the units of a query, with their logits: those of all labels.
    pub(super) fn rank(
        &self,
        head: &Sparse,
        units: &[f32],
        k: usize,
        (scratch, one): (&mut ListScratch, &mut OneScratch),
        out: &mut Vec<Scored>,
    ) -> Result<(), QueryError> {
        let ListScratch { search, indices, values, found, labels } = scratch;
        indices.clear();
        values.clear();
        for (unit, value) in (0..).zip(units.iter().copied().map(as_read)) {
            if value != 0.0 {
                indices.push(unit);
                values.push(value);
            }
        }
        indices.push(units.len() as u32);
        values.push(1.0);
        let query = SparseRow::from_checked(indices, values);
        // The layer rounds sums in an order of its own: labels that are equal but for that are among some more.
        self.index.search(query, xc_ann::rerank_candidates(k).min(self.index.len()), None, search, found)?;
        labels.clear();
        labels.extend(found.iter().map(|found| found.label));
        head.rank_some(units, labels, k, one, out);
        Ok(())
    }
}
