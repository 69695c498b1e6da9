//! Labels by their own texts as a [`Model`](crate::Model).

use crate::kind::{Answering, Ask, Cell, Check, InfoTable, Kind, ModelShape, Opened, Told};
use crate::label_texts::NamesModel;
use crate::message::chain;
use crate::query::QueryError;
use crate::{InputKind, OpenModelError, OpenOptions, Row};
use xc_ann::InvertedScratch;
use xc_sparse::rank::Scored;
use xc_store::{Container, ContainerWriter, WriteError};

pub(crate) const NAMES: Kind = Kind::standard(NamesModel::KIND, open, tables);

fn open(container: Container, _: &OpenOptions, _: Check) -> Result<(Opened, Container), OpenModelError> {
    let model = NamesModel::of(&container).map_err(OpenModelError::system)?;
    Ok((Opened::new(model), container))
}

/// Sizes of the arrays, as the configuration states them.
fn tables(container: &Container) -> Result<Vec<InfoTable>, OpenModelError> {
    let part = |(name, part)| {
        let entry = container.entry(name)?;
        let numbers = entry.n_elements().unwrap_or(0) as u64;
        Some(vec![Cell::Text(part), Cell::Count(numbers), Cell::Bytes(entry.n_bytes().unwrap_or(0) as u64)])
    };
    let rows = [("values", "features by label"), ("weights", "labels by feature")].into_iter().filter_map(part);
    let columns = ["part", "numbers", "bytes"].to_vec();
    Ok(vec![InfoTable { name: "parts", note: "", columns, rows: rows.collect() }])
}

impl Answering for NamesModel {
    type Scratch = InvertedScratch;

    fn shape(&self) -> ModelShape {
        ModelShape::new(InputKind::Sparse, self.n_features(), self.n_labels())
    }

    fn write(&self, writer: &mut ContainerWriter) -> Result<(), WriteError> {
        NamesModel::write(self, writer)
    }

    fn scores_at_most_one(&self) -> bool {
        true
    }

    fn one(
        &self,
        row: Row<'_>,
        ask: &Ask<'_>,
        scratch: &mut InvertedScratch,
        out: &mut Vec<Scored>,
    ) -> Result<Told, QueryError> {
        let found = self.find(row.sparse()?, ask.top_k, ask.candidates.of(0), scratch, out);
        found.map_err(|e| QueryError::Own(chain(&e).into()))?;
        Ok(Told::default())
    }
}
