//! A graph over the labels of a classifier whose outputs are connected with all units: some labels of
//! a query are scored rather than all of them.
//!
//! ```text
//!   label   (weights, (bias - mean bias) / s)  ─▶ graph of xc-ann, largest inner products
//!   query   (units, s)                         ─▶ labels that may be the best ─▶ their exact logits ─▶ k best
//! ```

use super::lists::{LabelLists, ListScratch};
use super::{Classifier, Output};
use std::sync::Arc;
use thiserror::Error;
use xc_ann::{
    BuildError, BuildEvent, BuildParams, Graph, InvertedIndex, Metric, OpenGraphError, Refresh, Refreshed, Scope,
    SearchParams,
};
use xc_buffer::{FloatSlice, Observer};
use xc_dense::{DenseMatrix, DenseRows};
use xc_dense::{MatMut, MatRef, MatmulPrecision, MatmulScratch, Start, product};
use xc_nn::encoder::Stack;
use xc_nn::head::sparse::OneScratch;
use xc_nn::in_memory;
use xc_nn::label_rows::BiasCoordinate;
use xc_nn::sampler::LabelWeights;
use xc_nn::{Activations, Batch, Encoder, Loss, Mode, Rows};
use xc_sparse::rank::{RankedBatch, Scored, TopK};
use xc_store::{Container, ContainerWriter, OpenError, WriteError};

/// An index over the labels of a classifier, made by [`Classifier::build_index`].
#[derive(Clone, Debug)]
pub struct LabelIndex {
    pub(super) searched: Searched,
}

/// How labels are found.
#[derive(Clone, Debug)]
pub(super) enum Searched {
    /// Labels that are vectors of all units.
    Near {
        /// The graph over them.
        graph: Arc<Graph>,
        /// What the last value of a label is divided by, and that of a query is.
        scale: f32,
    },
    /// Labels that are connected with some units.
    Lists(LabelLists),
}

/// Why labels have no index.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LabelIndexError {
    /// Labels that are not vectors of units.
    #[error("an index needs an output layer that connects each label with units; this one is {head}")]
    Head {
        /// What it is.
        head: &'static str,
    },
    /// The graph.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The folder.
    #[error(transparent)]
    Open(#[from] OpenGraphError),
    /// The index was made for another output layer.
    #[error("an index of {labels} labels and {width} units; the classifier has {expected_labels} and {expected_width}")]
    Shape {
        /// Labels of the index, at least.
        labels: usize,
        /// Units of the index.
        width: usize,
        /// Labels of the classifier.
        expected_labels: usize,
        /// Units of the classifier.
        expected_width: usize,
    },
}

impl From<OpenError> for LabelIndexError {
    fn from(error: OpenError) -> Self {
        Self::Open(error.into())
    }
}

impl Classifier {
    fn label_weights(&self) -> Result<LabelWeights<'_>, LabelIndexError> {
        match self.network().head() {
            Output::Dense(head) => {
                Ok(LabelWeights::new(FloatSlice::F32(head.weights().values()), self.n_units(), head.bias()))
            }
            Output::Candidates(head) => Ok(head.weights()),
            Output::Sparse(_) => Err(LabelIndexError::Head { head: "sparse" }),
        }
    }

    /// Units below the output layer.
    fn n_units(&self) -> usize {
        self.params().encoder.top_width(self.n_features())
    }

    /// Labels as vectors, the bias as one value more: less the mean of all biases, and divided by `scale`.
    ///
    /// # Errors
    /// The output layer does not connect labels with all units.
    pub fn label_vectors(&self, scale: f32) -> Result<DenseMatrix, LabelIndexError> {
        let weights = self.label_weights()?;
        Ok(BiasCoordinate::with_scale(weights.biases(), scale).labels(weights))
    }

    /// Units of queries below the output layer, and `scale` as one value more.
    ///
    /// # Panics
    /// If queries are not what the classifier takes.
    pub fn query_vectors(&self, queries: Rows<'_>, scale: f32) -> DenseMatrix {
        let (mut batch, mut units) = (Batch::default(), Activations::default());
        let mut scratch = <Stack<super::Input> as Encoder>::Scratch::default();
        let (width, mut values) = (self.n_units(), Vec::new());
        for first in (0..queries.len()).step_by(256) {
            batch.fill_features(queries, first..queries.len().min(first + 256));
            in_memory(self.network().encoder().forward(&batch, Mode::Predict, &mut units, &mut scratch));
            queries_of(scale).push_instances(DenseRows::new(units.values(), units.width()), &mut values);
        }
        DenseMatrix::new(queries.len(), width + 1, values)
    }

    /// The last values of labels and of queries that are in balance.
    fn balance(&self, queries: Option<Rows<'_>>) -> Result<f32, LabelIndexError> {
        let units = queries.map(|queries| self.query_vectors(queries, 0.0));
        Ok(BiasCoordinate::balanced(self.label_weights()?, units.as_ref().map(DenseMatrix::view)).scale)
    }

    /// Builds an index over the labels: a graph for `queries` like these, as units are another kind of
    /// vectors than labels are; or, of a sparse output layer, lists of labels by unit, whose answers are those
    /// of all labels and which need no settings.
    ///
    /// *Cost*: that of [`Graph::build_for`]. *Memory*: 4 bytes a weight beside the graph, while it is
    /// built.
    ///
    /// # Errors
    /// See [`LabelIndexError`].
    ///
    /// # Panics
    /// If queries are not what the classifier takes.
    pub fn build_index(
        &self,
        queries: Option<Rows<'_>>,
        params: &BuildParams,
        observer: &dyn Observer<BuildEvent>,
    ) -> Result<LabelIndex, LabelIndexError> {
        if let Output::Sparse(head) = self.network().head() {
            return Ok(LabelIndex { searched: Searched::Lists(LabelLists::new(head)?) });
        }
        let params = BuildParams { metric: Metric::InnerProduct, ..*params };
        let scale = self.balance(queries)?;
        let labels = self.label_vectors(scale)?;
        let asked = queries.map(|queries| self.query_vectors(queries, scale));
        let graph = Graph::build_for(labels.view(), asked.as_ref().map(DenseMatrix::view), &params, observer)?;
        Ok(LabelIndex { searched: Searched::Near { graph: Arc::new(graph), scale } })
    }

    /// Bytes that building an index takes, and the index.
    ///
    /// # Errors
    /// See [`LabelIndexError::Head`].
    pub fn index_bytes(&self, params: &BuildParams) -> Result<usize, LabelIndexError> {
        if let Output::Sparse(head) = self.network().head() {
            return Ok(LabelLists::bytes(head));
        }
        self.label_weights()?;
        let (n, width) = (self.n_labels(), self.n_units() + 1);
        Ok(4 * n * width + Graph::bytes(n, width, params))
    }

    /// Brings an index up to labels that moved; see [`Graph::refresh`]. Lists are made anew, of which there is
    /// nothing to tell.
    ///
    /// # Errors
    /// See [`LabelIndexError`].
    ///
    /// # Panics
    /// If queries are not what the classifier takes.
    pub fn refresh_index(
        &self,
        index: &mut LabelIndex,
        queries: Option<Rows<'_>>,
        policy: Option<Refresh>,
        observer: &dyn Observer<BuildEvent>,
    ) -> Result<Option<Refreshed>, LabelIndexError> {
        index.check(self)?;
        match (&mut index.searched, self.network().head()) {
            (Searched::Lists(lists), Output::Sparse(head)) => {
                *lists = LabelLists::new(head)?;
                Ok(None)
            }
            (Searched::Lists(_), _) => panic!("lists of a layer that was checked"),
            (Searched::Near { graph, scale }, _) => {
                let labels = self.label_vectors(*scale)?;
                let asked = queries.map(|queries| self.query_vectors(queries, *scale));
                let asked = asked.as_ref().map(DenseMatrix::view);
                Ok(Some(Arc::make_mut(graph).refresh(labels.view(), asked, policy, observer)?))
            }
        }
    }

    /// Answers with the index from now on.
    ///
    /// # Errors
    /// It was made for another output layer.
    pub fn set_index(&mut self, index: Option<LabelIndex>) -> Result<(), LabelIndexError> {
        if let Some(index) = &index {
            index.check(self)?;
        }
        self.index = index;
        Ok(())
    }

    /// The index that it answers with.
    pub fn index(&self) -> Option<&LabelIndex> {
        self.index.as_ref()
    }

    /// Appends the logits of some labels, as the product over all labels has them, to the bit.
    fn score(
        &self,
        weights: LabelWeights<'_>,
        units: &[f32],
        labels: &[Scored],
        SomeLabels { rows, biases, product: scratch }: &mut SomeLabels,
        logits: &mut Vec<f32>,
    ) {
        /// Rows between asking for a row and copying it.
        const AHEAD: usize = 6;
        let precision = match self.network().head() {
            Output::Candidates(head) => head.params().precision,
            Output::Dense(head) => head.products(),
            Output::Sparse(_) => MatmulPrecision::F32,
        };
        let (n, width, first) = (labels.len(), weights.width(), logits.len());
        let row = |s: &Scored| s.label as usize * width..(s.label as usize + 1) * width;
        rows.resize(rows.len().max(n * width), 0.0);
        for (at, (s, to)) in labels.iter().zip(rows.chunks_exact_mut(width.max(1))).enumerate() {
            if let Some(next) = labels.get(at + AHEAD) {
                weights.rows().prefetch(row(next));
            }
            weights.rows().widen(row(s), to);
        }
        biases.clear();
        biases.extend(labels.iter().map(|s| weights.bias(s.label)));
        logits.resize(first + n, 0.0);
        let rows = MatRef::new(&rows[..n * width], n, width);
        let (logits, units) = (MatMut::new(&mut logits[first..], 1, n), MatRef::new(units, 1, width));
        product(logits, units, rows.t(), Start::Bias(biases), precision, scratch);
    }

    /// The `k` best of the labels that the index finds for each row of units, by their logits. All labels that
    /// were found, and their logits, are left in `near`.
    pub(super) fn rank_near(
        &self,
        index: &LabelIndex,
        scope: Scope,
        units: &Activations,
        k: usize,
        near: &mut NearScratch,
        out: &mut RankedBatch,
    ) -> Result<(), xc_ann::QueryError> {
        let NearScratch { queries, found, search, one, logits, some, top, lists } = near;
        let (graph, scale) = match (&index.searched, self.network().head()) {
            (Searched::Near { graph, scale }, _) => (graph, *scale),
            (Searched::Lists(of_units), Output::Sparse(head)) => {
                out.clear();
                for row in 0..units.len() {
                    of_units.rank(head, units.row(row), k, (&mut lists.0, &mut lists.1), one)?;
                    out.push_row(one);
                }
                return Ok(());
            }
            (Searched::Lists(_), _) => panic!("lists of a layer that was checked"),
        };
        queries.clear();
        queries_of(scale).push_instances(DenseRows::new(units.values(), units.width()), queries);
        let params = SearchParams::top(xc_ann::rerank_candidates(k).min(self.n_labels())).with_scope(scope);
        let n_units = units.width();
        let rows = DenseRows::new(queries, n_units + 1);
        found.clear();
        if rows.len() == 1 {
            graph.search_codes(rows.row(0), params, None, search, one)?;
            found.push_row(one);
        } else {
            *found = graph.search_codes_batch(rows, params, None)?.0;
        }
        let weights = self.label_weights().unwrap_or_else(|e| panic!("an index that was set: {e}"));
        logits.clear();
        out.clear();
        for (row, near) in found.iter().enumerate() {
            let first = logits.len();
            self.score(weights, units.row(row), near, some, logits);
            top.reset(k);
            near.iter().zip(&logits[first..]).for_each(|(s, &score)| top.push(Scored { label: s.label, score }));
            out.push_row(top.sorted());
        }
        Ok(())
    }
}

/// Of queries alone, for which the mean of the biases does not matter.
fn queries_of(scale: f32) -> BiasCoordinate {
    BiasCoordinate { mean: 0.0, scale }
}

/// Buffers of a search; they grow and stay.
#[derive(Default)]
pub(super) struct NearScratch {
    queries: Vec<f32>,
    /// Labels that were found for each query, and their logits one after the other.
    pub(super) found: RankedBatch,
    pub(super) logits: Vec<f32>,
    search: xc_ann::SearchScratch,
    one: Vec<Scored>,
    some: SomeLabels,
    top: TopK,
    lists: (ListScratch, OneScratch),
}

/// Rows and biases of the labels that were found for a query, side by side.
#[derive(Default)]
struct SomeLabels {
    rows: Vec<f32>,
    biases: Vec<f32>,
    product: MatmulScratch,
}

const SCALE: &str = "bias_scale";

impl LabelIndex {
    /// The graph over labels, where they are vectors of all units.
    pub fn graph(&self) -> Option<&Graph> {
        match &self.searched {
            Searched::Near { graph, .. } => Some(graph),
            Searched::Lists(_) => None,
        }
    }

    /// The lists of labels by unit, where they are connected with some.
    pub fn lists(&self) -> Option<&InvertedIndex> {
        match &self.searched {
            Searched::Near { .. } => None,
            Searched::Lists(lists) => Some(&lists.index),
        }
    }

    /// What is looked at where nothing else is asked for. Lists need no settings.
    pub fn default_scope(&self) -> Scope {
        self.graph().map_or(Scope::width(0.0), Graph::default_scope)
    }

    /// Whether so many queries together are answered by it: lists leave many, and scores that depend on all
    /// labels, to a pass over all of them, which has the same answers.
    pub(super) fn answers(&self, n_queries: usize, loss: Loss) -> bool {
        self.graph().is_some() || LabelLists::pays(n_queries) && loss.is_separable()
    }

    pub(super) fn check(&self, classifier: &Classifier) -> Result<(), LabelIndexError> {
        let is_sparse = matches!(classifier.network().head(), Output::Sparse(_));
        let (labels, columns, is_whole) = match &self.searched {
            Searched::Near { graph, .. } => {
                classifier.label_weights()?;
                let labels = graph.n_rows_needed();
                (labels, graph.dim(), graph.len() == labels && graph.params().metric == Metric::InnerProduct)
            }
            Searched::Lists(lists) => {
                let is_whole = is_sparse && lists.index.metric() == Metric::InnerProduct;
                (lists.index.len(), lists.index.n_columns(), is_whole)
            }
        };
        let (width, expected_labels, expected_width) =
            (columns.saturating_sub(1), classifier.n_labels(), classifier.n_units());
        if is_whole && labels == expected_labels && width == expected_width {
            return Ok(());
        }
        Err(LabelIndexError::Shape { labels, width, expected_labels, expected_width })
    }

    /// The kind of a container that it stands in.
    pub fn kind(&self) -> &'static str {
        match &self.searched {
            Searched::Near { .. } => xc_ann::KIND,
            Searched::Lists(_) => xc_ann::INVERTED_KIND,
        }
    }

    /// Adds the index to a container of its kind.
    ///
    /// # Errors
    /// The container refuses.
    pub fn write(&self, writer: &mut ContainerWriter) -> Result<(), WriteError> {
        match &self.searched {
            Searched::Near { graph, scale } => {
                writer.set_parameter(SCALE, *scale);
                graph.write(writer)
            }
            Searched::Lists(lists) => lists.index.write(writer),
        }
    }

    /// The index of a container, as [`LabelIndex::write`] wrote it.
    ///
    /// *Cost*: a pass over all arrays.
    ///
    /// # Errors
    /// See [`LabelIndexError`].
    pub fn of(container: &Container) -> Result<Self, LabelIndexError> {
        if container.kind() == xc_ann::INVERTED_KIND {
            let index = Arc::new(InvertedIndex::read(container)?);
            return Ok(Self { searched: Searched::Lists(LabelLists { index }) });
        }
        container.expect_kind(xc_ann::KIND)?;
        let scale: f32 = container.parameter(SCALE)?;
        if !(scale.is_finite() && scale > 0.0) {
            let what = "parameter bias_scale, expected a number above 0";
            return Err(OpenGraphError::Graph { path: container.folder().to_owned(), what }.into());
        }
        let graph = Arc::new(Graph::read(container)?);
        Ok(Self { searched: Searched::Near { graph, scale } })
    }
}
