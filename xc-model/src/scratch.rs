//! Memory of one thread's queries.

use super::Model;
use std::any::Any;
use std::fmt;
use xc_hash::text::PipelineScratch;
use xc_sparse::rank::LabelId;

/// Memory of one thread's queries; the caller's. It grows to what is needed and stays, so that a
/// query of a size seen before allocates nothing.
///
/// A scratch knows the model that it served: another model's, or one that a panic went through, is
/// made anew.
#[derive(Default)]
pub struct Scratch(Option<Box<Buffers>>);

/// What a [`Scratch`] holds between queries.
pub(crate) struct Buffers {
    /// [`Model::generation`].
    model: u64,
    pub(crate) making: Making,
    pub(crate) system: Box<dyn Any + Send>,
    pub(crate) lists: Lists,
    /// Labels of an answer that is checked.
    pub(crate) seen: Vec<LabelId>,
}

/// Labels that a query names, ascending and unique.
#[derive(Default)]
pub(crate) struct Lists {
    pub(crate) excluded: Vec<LabelId>,
    pub(crate) candidates: Vec<LabelId>,
}

/// Memory of making features.
#[derive(Default)]
pub(crate) struct Making {
    pub(crate) text: PipelineScratch,
    /// Weighted values of a row.
    pub(crate) values: Vec<f32>,
    /// Tokens of a text.
    pub(crate) tokens: Vec<u32>,
}

impl Scratch {
    /// Takes the memory out; a query that panics leaves nothing behind.
    pub(crate) fn take(&mut self, model: &Model) -> Box<Buffers> {
        self.0.take().filter(|buffers| buffers.model == model.generation).unwrap_or_else(|| {
            let (making, lists, seen) = Default::default();
            Box::new(Buffers { model: model.generation, making, system: model.system.scratch(), lists, seen })
        })
    }

    /// Keeps the memory for the next query.
    pub(crate) fn put(&mut self, buffers: Box<Buffers>) {
        self.0 = Some(buffers);
    }
}

impl fmt::Debug for Scratch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scratch").field("model", &self.0.as_ref().map(|buffers| buffers.model)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classifier::{Classifier, ClassifierParams, DENSE, EncoderParams};
    use crate::kind::{Ask, ModelShape, System, Told};
    use crate::query::{Answers, BatchError, QueryError};
    use crate::{Answer, QueryOptions, Row, Rows};
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::{AtomicBool, Ordering};
    use xc_sparse::SparseRow;
    use xc_sparse::chunked::Touched;
    use xc_sparse::rank::Scored;
    use xc_store::ContainerWriter;

    /// A model that panics in the middle of a query, once: its scratch is used by then.
    struct Panics {
        inner: Box<dyn System>,
        is_due: AtomicBool,
    }

    impl System for Panics {
        fn one(
            &self,
            row: Row<'_>,
            ask: &Ask<'_>,
            scratch: &mut dyn Any,
            out: &mut Vec<Scored>,
        ) -> Result<Told, QueryError> {
            let answer = self.inner.one(row, ask, scratch, out);
            assert!(!self.is_due.swap(false, Ordering::Relaxed), "in the middle of a query");
            answer
        }

        fn batch(&self, rows: Rows<'_>, ask: &Ask<'_>, scratch: &mut dyn Any) -> Result<Answers, BatchError> {
            self.inner.batch(rows, ask, scratch)
        }

        fn shape(&self) -> ModelShape {
            self.inner.shape()
        }

        fn scratch(&self) -> Box<dyn Any + Send> {
            self.inner.scratch()
        }

        fn scores_at_most_one(&self) -> bool {
            self.inner.scores_at_most_one()
        }

        fn touched(&self, row: SparseRow<'_>, ask: &Ask<'_>, scratch: &mut dyn Any, touched: &mut Touched) -> bool {
            self.inner.touched(row, ask, scratch, touched)
        }
    }

    #[test]
    fn a_scratch_that_a_panic_went_through_answers_as_a_new_one() {
        let params = ClassifierParams { encoder: EncoderParams::bag([3]), ..ClassifierParams::default() };
        let classifier = Classifier::new(DENSE, 4, 6, params).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m");
        let mut writer = ContainerWriter::create(&path, DENSE).unwrap();
        classifier.write(&mut writer).unwrap();
        writer.finish().unwrap();

        let mut model = Model::open(&path).unwrap();
        let query = |i: u32| ([i % 4], [1.0 + i as f32]);
        let ask = |model: &Model, i: u32, scratch: &mut Scratch, out: &mut Answer| {
            let (indices, values) = query(i);
            let row = SparseRow::from_checked(&indices, &values);
            model.predict(&Row::Sparse(row), &QueryOptions::top(3), scratch, out).unwrap();
        };
        let expected: Vec<Answer> = (0..4)
            .map(|i| {
                let mut answer = Answer::default();
                ask(&model, i, &mut Scratch::default(), &mut answer);
                answer
            })
            .collect();
        model.system = Box::new(Panics { inner: model.system, is_due: AtomicBool::new(false) });

        let (mut scratch, mut answer) = (Scratch::default(), Answer::default());
        ask(&model, 0, &mut scratch, &mut answer);
        let panics: &Panics = model.as_kind().unwrap();
        panics.is_due.store(true, Ordering::Relaxed);
        let outcome = catch_unwind(AssertUnwindSafe(|| ask(&model, 1, &mut scratch, &mut answer)));
        assert!(outcome.is_err());
        for (i, expected) in (0..4).zip(&expected) {
            ask(&model, i, &mut scratch, &mut answer);
            assert_eq!(answer, *expected, "query {i}");
        }
    }
}
