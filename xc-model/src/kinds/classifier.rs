//! Classifiers as a [`Model`](crate::Model).

use crate::classifier::{Classifier, ClassifierScratch, Only, PredictError, ScoreScale};
use crate::index::take_index;
use crate::kind::{Answering, Ask, Cell, Check, InfoTable, Kind, ModelShape, Opened, Told};
use crate::query::{Answers, BatchError, CELLS, Candidates, QueryError, WIDTH};
use crate::{InputKind, OpenModelError, OpenOptions, Row, Rows};
use xc_ann::Scope;
use xc_sparse::rank::Scored;
use xc_store::{Container, ContainerWriter, WriteError};

/// The kind of a name of a classifier.
pub(crate) const fn kind(name: &'static str) -> Kind {
    Kind { options: &[WIDTH, CELLS, "exact"], has_margins: true, ..Kind::standard(name, open, tables) }
}

fn open(container: Container, options: &OpenOptions, check: Check) -> Result<(Opened, Container), OpenModelError> {
    let mut model = Classifier::of(&container, check == Check::Structure).map_err(OpenModelError::system)?;
    if let Some(name) = &options.post_processor {
        model.set_scale(Some(name.parse::<ScoreScale>().map_err(OpenModelError::system)?));
    }
    let warning = take_index(&mut model, &container, options)?;
    let warnings = warning.into_iter().map(|warning| Box::new(warning) as _).collect();
    Ok((Opened { warnings, ..Opened::new(model) }, container))
}

/// Sizes of the parts of the network, as the configuration states them.
fn tables(container: &Container) -> Result<Vec<InfoTable>, OpenModelError> {
    let part = |name: &str| match name.split_once('.') {
        Some(("bag", _)) => Some("embeddings"),
        Some(("head", "indices" | "starts")) => Some("output layer: connections"),
        Some(("head", "weights")) => Some("output layer: weights"),
        Some(("head", _)) => Some("output layer: biases"),
        Some(("wide", _)) => Some("wide term"),
        Some(("transformer", _)) => Some("transformer"),
        Some((layer, _)) if layer.starts_with("layer") => Some("dense layers"),
        _ => None,
    };
    let mut parts: Vec<(&'static str, u64, u64)> = Vec::new();
    for (name, entry) in container.arrays() {
        let Some(part) = part(name) else { continue };
        let at = parts.iter().position(|p| p.0 == part).unwrap_or_else(|| {
            parts.push((part, 0, 0));
            parts.len() - 1
        });
        parts[at].1 += entry.n_elements().unwrap_or(0) as u64;
        parts[at].2 += entry.n_bytes().unwrap_or(0) as u64;
    }
    let row = |(part, numbers, bytes)| vec![Cell::Text(part), Cell::Count(numbers), Cell::Bytes(bytes)];
    let columns = ["part", "numbers", "bytes"].to_vec();
    Ok(vec![InfoTable { name: "parts", note: "", columns, rows: parts.into_iter().map(row).collect() }])
}

/// The query that has no answer, in a batch.
pub(crate) fn failed(error: PredictError) -> BatchError {
    let (query, source) = match error {
        PredictError::NotFinite { query } => (query, QueryError::Scores),
        PredictError::NoWords { query } => (query, QueryError::NoWords),
        PredictError::Words { got, expected } => (0, QueryError::Width { got, expected, dense: false }),
        PredictError::TooManyTokens { query, got, most } => (query, QueryError::TooManyTokens { got, most }),
        // Kind, width, features and candidates were checked at the door.
        other => panic!("a query that was checked: {other}"),
    };
    BatchError { query, source }
}

/// The labels that are scored: by default those that the index finds, where there is one.
pub(crate) fn only<'a>(classifier: &Classifier, ask: &Ask<'a>) -> Result<Only<'a>, QueryError> {
    let name = |scope: Scope| if scope.n_cells() > 0 { CELLS } else { WIDTH };
    Ok(match (ask.candidates, ask.search.scope, classifier.index()) {
        (Candidates::Labels(labels), ..) => Only::Labels(labels),
        (Candidates::ByQuery { rows, first }, ..) => Only::Rows { rows, first },
        (Candidates::All, Some(scope), Some(index)) => match index.graph() {
            None => return Err(QueryError::NoWidth { option: name(scope) }),
            Some(graph) if scope.n_cells() > 0 && graph.n_cells() == 0 => return Err(QueryError::NoCells),
            Some(_) => Only::Near(scope),
        },
        (Candidates::All, Some(scope), None) => return Err(QueryError::NoIndex { option: name(scope) }),
        (Candidates::All, None, Some(index)) if !ask.search.exact => Only::Near(index.default_scope()),
        (Candidates::All, None, _) => Only::All,
    })
}

impl Answering for Classifier {
    type Scratch = ClassifierScratch;

    fn shape(&self) -> ModelShape {
        let takes = self.params().encoder.input();
        let beside = self.wide().filter(|_| takes == InputKind::Tokens);
        let words = beside.map(|wide| wide.rankers.n_features());
        ModelShape { words, shares_queries: true, ..ModelShape::new(takes, self.n_features(), self.n_labels()) }
    }

    fn write(&self, writer: &mut ContainerWriter) -> Result<(), WriteError> {
        Classifier::write(self, writer)
    }

    fn scores_at_most_one(&self) -> bool {
        !matches!(self.scale(), ScoreScale::Logit)
    }

    fn one(
        &self,
        row: Row<'_>,
        ask: &Ask<'_>,
        scratch: &mut ClassifierScratch,
        out: &mut Vec<Scored>,
    ) -> Result<Told, QueryError> {
        let only = only(self, ask)?;
        self.predict_one(row, ask.top_k, only, scratch, out).map_err(|e| failed(e).source)?;
        Ok(Told::default())
    }

    fn batch(&self, rows: Rows<'_>, ask: &Ask<'_>, scratch: &mut ClassifierScratch) -> Result<Answers, BatchError> {
        let only = only(self, ask).map_err(BatchError::first)?;
        self.predict(rows, ask.top_k, only, scratch).map(Answers::of).map_err(failed)
    }
}
