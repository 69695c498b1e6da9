//! Word vectors as a [`Model`](crate::Model): labels are words, an answer the words nearest to a text's.

use crate::kind::{Answering, Ask, Cell, Check, InfoTable, Kind, ModelShape, Opened, Told};
use crate::query::{Answers, BatchError, QueryError};
use crate::skipgram::{NearestScratch, SkipgramModel};
use crate::{InputKind, OpenModelError, OpenOptions, Row, Rows};
use xc_sparse::rank::Scored;
use xc_store::{Container, ContainerWriter, WriteError};

pub(crate) const SKIPGRAM: Kind = Kind::standard(SkipgramModel::KIND, open, tables);

fn open(container: Container, _: &OpenOptions, _: Check) -> Result<(Opened, Container), OpenModelError> {
    let model = SkipgramModel::of(&container).map_err(OpenModelError::system)?;
    Ok((Opened::new(model), container))
}

/// Sizes of the arrays, as the configuration states them.
fn tables(container: &Container) -> Result<Vec<InfoTable>, OpenModelError> {
    let part = |(name, part)| {
        let entry = container.entry(name)?;
        let numbers = entry.n_elements().unwrap_or(0) as u64;
        Some(vec![Cell::Text(part), Cell::Count(numbers), Cell::Bytes(entry.n_bytes().unwrap_or(0) as u64)])
    };
    let rows = [("vectors", "vectors"), ("words", "words by feature")].into_iter().filter_map(part).collect();
    Ok(vec![InfoTable { name: "parts", note: "", columns: ["part", "numbers", "bytes"].to_vec(), rows }])
}

impl Answering for SkipgramModel {
    type Scratch = NearestScratch;

    fn shape(&self) -> ModelShape {
        ModelShape { shares_queries: true, ..ModelShape::new(InputKind::Sparse, self.n_words(), self.n_words()) }
    }

    fn write(&self, writer: &mut ContainerWriter) -> Result<(), WriteError> {
        SkipgramModel::write(self, writer)
    }

    fn scores_at_most_one(&self) -> bool {
        true
    }

    fn one(
        &self,
        row: Row<'_>,
        ask: &Ask<'_>,
        scratch: &mut NearestScratch,
        out: &mut Vec<Scored>,
    ) -> Result<Told, QueryError> {
        self.nearest(row.sparse()?, ask.top_k, ask.candidates.of(0), scratch, out);
        Ok(Told::default())
    }

    fn batch(&self, rows: Rows<'_>, ask: &Ask<'_>, scratch: &mut NearestScratch) -> Result<Answers, BatchError> {
        let rows = rows.sparse().map_err(BatchError::first)?;
        Ok(Answers::of(self.nearest_of_batch(rows, ask.top_k, |i| ask.candidates.of(i), scratch)))
    }
}
