//! Label trees as a [`Model`](crate::Model).

use crate::kind::{Answering, Ask, Cell, Check, InfoTable, Kind, ModelShape, Opened, Told};
use crate::query::{Answers, BatchError, Candidates, QueryError};
use crate::{InputKind, OpenModelError, OpenOptions, Row, Rows};
use rayon::prelude::*;
use xc_sparse::SparseRow;
use xc_sparse::chunked::{LevelSizes, Touched};
use xc_sparse::rank::{LabelId, RankedBatch, Scored};
use xc_store::{Container, ContainerWriter, WriteError};
use xc_tree::{PostProcessor, PredictParams, PredictScratch, Restriction, TreeChanges, TreeModel, UnknownLabel};

pub(crate) const TREE: Kind =
    Kind { options: &["beam", "iterator"], has_margins: true, ..Kind::standard(xc_tree::KIND, open, tables) };

#[allow(unsafe_code, reason = "hands on the promise that `Model::open_trusted` was given")]
fn open(container: Container, options: &OpenOptions, check: Check) -> Result<(Opened, Container), OpenModelError> {
    let model = match check {
        Check::Structure => TreeModel::from_container(&container),
        // SAFETY: `Check::None` comes from `Model::open_trusted` alone, whose caller vouches for
        // the folder.
        Check::None => unsafe { xc_tree::trusted::open(&container) },
    };
    let mut model = model.map_err(OpenModelError::system)?;
    if let Some(name) = &options.post_processor {
        let post = name.parse().map_err(OpenModelError::system)?;
        let changes = TreeChanges { post: Some(post), ..TreeChanges::default() };
        model = model.changed(&changes).map_err(OpenModelError::system)?;
    }
    Ok((Opened::new(model), container))
}

/// Sizes level by level.
fn tables(container: &Container) -> Result<Vec<InfoTable>, OpenModelError> {
    let per = |a: usize, b: usize| Cell::Mean(if b == 0 { 0.0 } else { a as f64 / b as f64 });
    let count = |n: usize| Cell::Count(n as u64);
    let mut rows = Vec::new();
    let depths: Vec<usize> = container.parameter("depths")?;
    for (tree, depth) in depths.into_iter().enumerate() {
        for level in 0..depth {
            let LevelSizes { n_parents, n_columns, nnz, n_rows, n_bytes } =
                LevelSizes::read(container, &format!("tree{tree}.level{level}"))?;
            rows.push(vec![
                count(tree),
                count(level),
                count(n_parents),
                count(n_columns),
                count(nnz),
                per(nnz, n_columns),
                per(nnz, n_rows),
                Cell::Bytes(n_bytes as u64),
            ]);
        }
    }
    let columns =
        ["tree", "level", "parents", "nodes", "weights", "weights_per_node", "siblings_per_row", "bytes"].to_vec();
    let note = "siblings_per_row: how many children of one parent share a feature, on average";
    Ok(vec![InfoTable { name: "levels", note, columns, rows }])
}

/// Memory of one thread's queries.
#[derive(Debug, Default)]
pub struct TreeScratch {
    predict: PredictScratch,
    /// The candidates of the query before, and the same prepared.
    candidates: Vec<LabelId>,
    restriction: Restriction,
}

impl From<UnknownLabel> for QueryError {
    fn from(UnknownLabel { label, n_labels }: UnknownLabel) -> Self {
        Self::Label { label, n_labels }
    }
}

pub(crate) fn params(ask: &Ask<'_>) -> PredictParams {
    PredictParams { top_k: ask.top_k, beam: ask.search.beam, choice: ask.search.matching.unwrap_or_default() }
}

impl Answering for TreeModel {
    type Scratch = TreeScratch;

    fn shape(&self) -> ModelShape {
        let of = self.info();
        // Tiles of so many queries share a chunk.
        ModelShape { batch_size: 8192, ..ModelShape::new(InputKind::Sparse, of.n_features, of.n_labels) }
    }

    fn write(&self, writer: &mut ContainerWriter) -> Result<(), WriteError> {
        TreeModel::write(self, writer)
    }

    fn scores_at_most_one(&self) -> bool {
        self.info().post != PostProcessor::Noop
    }

    fn one(
        &self,
        row: Row<'_>,
        ask: &Ask<'_>,
        scratch: &mut TreeScratch,
        out: &mut Vec<Scored>,
    ) -> Result<Told, QueryError> {
        let TreeScratch { predict, candidates, restriction } = scratch;
        let row = row.sparse()?;
        let Some(labels) = ask.candidates.of(0) else {
            self.predict_one(row, &params(ask), predict, out)?;
            return Ok(Told::default());
        };
        // Preparing them passes over all labels, so the same candidates are prepared once.
        if *candidates != labels || restriction.n_trees() == 0 {
            self.restrict_into(labels, restriction)?;
            labels.clone_into(candidates);
        }
        self.predict_restricted(row, restriction, ask.top_k, predict, out)?;
        Ok(Told::default())
    }

    fn batch(&self, rows: Rows<'_>, ask: &Ask<'_>, _: &mut TreeScratch) -> Result<Answers, BatchError> {
        let rows = rows.sparse().map_err(BatchError::first)?;
        let mut shared = Restriction::default();
        match ask.candidates {
            Candidates::All => {
                return self.predict_batch(rows, &params(ask)).map(Answers::of).map_err(BatchError::first);
            }
            Candidates::Labels(labels) => self.restrict_into(labels, &mut shared).map_err(BatchError::first)?,
            Candidates::ByQuery { .. } => {}
        }
        let answers = (0..rows.rows()).into_par_iter().map_init(
            <(PredictScratch, Restriction)>::default,
            |(scratch, own), i| -> Result<Vec<Scored>, BatchError> {
                let restriction = if let Candidates::ByQuery { .. } = ask.candidates {
                    let labels = ask.candidates.of(i).unwrap_or_default();
                    self.restrict_into(labels, own).map_err(|e| BatchError { query: i, source: e.into() })?;
                    &*own
                } else {
                    &shared
                };
                let mut answer = Vec::new();
                let found = self.predict_restricted(rows.row(i), restriction, ask.top_k, scratch, &mut answer);
                found.map(|()| answer).map_err(|e| BatchError { query: i, source: e.into() })
            },
        );
        let answers: Vec<Vec<Scored>> = answers.collect::<Result<_, _>>()?;
        let mut batch = RankedBatch::new();
        answers.iter().for_each(|answer| batch.push_row(answer));
        Ok(Answers::of(batch))
    }

    fn touched(&self, row: SparseRow<'_>, ask: &Ask<'_>, scratch: &mut TreeScratch, touched: &mut Touched) -> bool {
        let params = params(ask);
        let traced =
            self.predict_traced(row, &params, &mut scratch.predict, &mut Vec::new(), |level, query, parents| {
                parents.iter().for_each(|&parent| touched.add(level, query, parent, params.choice));
            });
        traced.is_ok()
    }
}
