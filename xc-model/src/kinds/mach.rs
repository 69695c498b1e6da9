//! MACH as a [`Model`](crate::Model).

use crate::kind::{Answering, Ask, Cell, Check, InfoTable, Kind, ModelShape, Opened, Told};
use crate::mach::{self, AnswerError, Asking, MachContainer, MachModel, MachScratch, array_prefix};
use crate::query::{Answers, BatchError, QueryError};
use crate::{OpenModelError, OpenOptions, Row, Rows};
use std::error::Error;
use xc_mach::Effort;
use xc_sparse::rank::Scored;
use xc_store::{Container, ContainerWriter, WriteError};

pub(crate) const MACH: Kind =
    Kind { options: &["decoder", "max-labels"], answers_in_part: true, ..Kind::standard(mach::KIND, open, tables) };

fn open(container: Container, options: &OpenOptions, _: Check) -> Result<(Opened, Container), OpenModelError> {
    let open = MachContainer::of(container).map_err(OpenModelError::system)?;
    let (model, lost) = open.model(options.repetitions.as_deref()).map_err(OpenModelError::system)?;
    let mut warnings: Vec<Box<dyn Error + Send + Sync>> = Vec::new();
    if !lost.is_empty() {
        let (n, of) = (model.assignment().n_repetitions(), open.numbers().len());
        warnings.extend(lost.into_iter().map(|lost| Box::new(lost) as Box<dyn Error + Send + Sync>));
        warnings.push(Box::new(InPart { n, of }));
    }
    Ok((Opened { warnings, ..Opened::new(model) }, open.into_container()))
}

/// How much of a model answers.
#[derive(Debug, thiserror::Error)]
#[error("{n} of {of} repetitions answer")]
struct InPart {
    n: usize,
    of: usize,
}

/// Sizes of all repetitions, as the configuration states them, and whether the file of each opens.
fn tables(container: &Container) -> Result<Vec<InfoTable>, OpenModelError> {
    let numbers: Vec<u32> = container.parameter("repetitions")?;
    let row = |number: u32| {
        let prefix = array_prefix(number);
        let (mut parameters, mut bytes, mut whole) = (0, 0, true);
        for (name, entry) in container.arrays().filter(|(name, _)| name.starts_with(&prefix)) {
            // What is said of a file that is lost may be anything.
            parameters = u64::saturating_add(parameters, entry.n_elements().unwrap_or(0) as u64);
            bytes = u64::saturating_add(bytes, entry.n_bytes().unwrap_or(0) as u64);
            whole &= container.array::<f32>(name).is_ok();
        }
        let file = if whole && bytes > 0 { "whole" } else { "lost" };
        vec![Cell::Count(number.into()), Cell::Count(parameters), Cell::Bytes(bytes), Cell::Text(file)]
    };
    let columns = ["repetition", "parameters", "bytes", "file"].to_vec();
    Ok(vec![InfoTable { name: "repetitions", note: "", columns, rows: numbers.into_iter().map(row).collect() }])
}

pub(crate) fn asking(ask: &Ask<'_>) -> Asking {
    let effort = ask.search.max_labels.map_or(Effort::Exact, Effort::Labels);
    Asking { top_k: ask.top_k, decoder: ask.search.decoder, effort }
}

/// The query that has no answer, in a batch.
pub(crate) fn failed(error: AnswerError) -> BatchError {
    match error {
        AnswerError::Scores { query, .. } => BatchError { query, source: QueryError::Scores },
        AnswerError::Lists(_) => BatchError::first(QueryError::Mach(error)),
    }
}

impl Answering for MachModel {
    type Scratch = MachScratch;

    fn shape(&self) -> ModelShape {
        let takes = self.params().classifier.encoder.input();
        ModelShape { shares_queries: true, ..ModelShape::new(takes, self.n_features(), self.n_labels()) }
    }

    fn write(&self, writer: &mut ContainerWriter) -> Result<(), WriteError> {
        MachModel::write(self, writer)
    }

    fn scores_at_most_one(&self) -> bool {
        true
    }

    fn one(
        &self,
        row: Row<'_>,
        ask: &Ask<'_>,
        scratch: &mut MachScratch,
        out: &mut Vec<Scored>,
    ) -> Result<Told, QueryError> {
        let asking = asking(ask);
        let certificate = match ask.candidates.of(0) {
            None => self.predict_one(row, &asking, scratch, out).map(Some),
            Some(labels) => self.predict_one_of(row, labels, &asking, scratch, out).map(|()| None),
        };
        Ok(Told { certificate: certificate.map_err(|e| failed(e).source)?, known_terms: None })
    }

    fn batch(&self, rows: Rows<'_>, ask: &Ask<'_>, _: &mut MachScratch) -> Result<Answers, BatchError> {
        let asking = asking(ask);
        if ask.candidates.is_all() {
            let answers = self.predict_batch(rows, &asking).map_err(failed)?;
            return Ok(Answers { certificates: answers.certificates, ..Answers::of(answers.ranked) });
        }
        let candidates = |i: usize| ask.candidates.of(i).unwrap_or_default();
        let ranked = self.predict_candidates(rows, candidates, ask.top_k, self.decoder(&asking));
        ranked.map(Answers::of).map_err(failed)
    }
}
