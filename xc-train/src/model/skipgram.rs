//! Word vectors as a [`Model`](super::Model): labels are words, an answer the words nearest to a text's.

use super::query::{Answers, QueryError};
use super::system::{Ask, Cell, Check, InfoTable, Kind, Opened, Shape, System, Told, scratch_of};
use super::{OpenModelError, OpenOptions, Row, Rows};
use crate::skipgram::{NearestScratch, SkipgramModel};
use std::any::Any;
use xc_sparse::rank::Scored;
use xc_store::Container;

pub(super) const SKIPGRAM: Kind =
    Kind { name: SkipgramModel::KIND, options: &[], answers_in_part: false, has_margins: false, open, tables };

fn open(container: Container, _: &OpenOptions, _: Check) -> Result<Opened, OpenModelError> {
    let model = SkipgramModel::of(&container).map_err(OpenModelError::system)?;
    let shape = Shape::new::<NearestScratch>(model.n_words(), model.n_words());
    Ok(Opened { system: Box::new(model), shape, container, warnings: Vec::new() })
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

impl System for SkipgramModel {
    fn one(
        &self,
        row: Row<'_>,
        ask: &Ask<'_>,
        scratch: &mut dyn Any,
        out: &mut Vec<Scored>,
    ) -> Result<Told, QueryError> {
        self.nearest(row.sparse()?, ask.top_k, ask.candidates.of(0), scratch_of(scratch), out);
        Ok(Told::default())
    }

    fn batch(&self, rows: Rows<'_>, ask: &Ask<'_>, scratch: &mut dyn Any) -> Result<Answers, (usize, QueryError)> {
        let rows = rows.sparse().map_err(|e| (0, e.into()))?;
        Ok(Answers::of(self.nearest_of_batch(rows, ask.top_k, |i| ask.candidates.of(i), scratch_of(scratch))))
    }
}
