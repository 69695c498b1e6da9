//! A trained model of any kind, and how it is asked.

use crate::calibrate::Calibration;
use crate::kind::{Ask, Kind, ModelShape, System};
use crate::kinds::blend;
use crate::names::NamesOfLabels;
use crate::query::{WrongAnswer, check_labels, check_lists, check_rows, sorted};
use crate::rest::Rest;
use crate::scratch::{Buffers, Lists};
use crate::training_rows::{TrainingRows, TrainingRowsError};
use crate::{
    Answer, Answers, BatchError, Candidates, Description, Excluded, InputKind, QueryError, QueryOptions, Row, Rows,
    ScoreOptions, Scratch,
};
use std::any::Any;
use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::sync::OnceLock;
use xc_buffer::parallel::in_pool;
#[cfg(feature = "data")]
use xc_data::FileForm;
use xc_hash::text::{Featurizer, TextsTaken};
use xc_mach::Certificate;
use xc_sparse::LabelRows;
use xc_sparse::chunked::Touched;
use xc_sparse::rank::{RankedBatch, Scored};
use xc_store::Container;

/// A trained model of any kind.
pub struct Model {
    pub(crate) kind: Kind,
    pub(crate) system: Box<dyn System>,
    pub(crate) shape: ModelShape,
    pub(crate) maker: Option<Featurizer>,
    #[cfg(feature = "data")]
    pub(crate) input: FileForm,
    pub(crate) container: Container,
    pub(crate) calibration: Option<Calibration>,
    pub(crate) warnings: Vec<Box<dyn Error + Send + Sync>>,
    pub(crate) generation: u64,
    /// Read when the first name is asked for.
    pub(crate) names: OnceLock<NamesOfLabels>,
    /// What answers batches in place of `system`.
    #[cfg(feature = "cuda")]
    pub(crate) on_device: Option<crate::device::OnDevice>,
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Model").field("folder", &self.folder()).field("is", &self.describe()).finish_non_exhaustive()
    }
}

// Any number of threads ask one model.
const _: fn() = || {
    fn shared<T: Send + Sync>() {}
    shared::<Model>();
};

impl Model {
    /// Describes the model.
    pub fn describe(&self) -> Description {
        Description {
            kind: self.kind.name,
            takes: self.takes(),
            n_features: self.shape.n_features,
            n_labels: self.shape.n_labels,
            n_bytes: self.container.n_bytes() + self.as_kind().map_or(0, blend::Blend::n_bytes),
            batch_size: self.shape.batch_size,
            shares_queries: self.shape.shares_queries,
            calibrated: self.calibration.is_some(),
        }
    }

    /// A number that is unique among the open models of this process: a folder opened again is another
    /// model.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Whether its folder has been replaced by another model since it was opened. This one still answers as before.
    pub fn was_replaced(&self) -> bool {
        self.container.replacement()()
    }

    /// Parts that were left out when the model was opened, and why: damaged repetitions.
    pub fn warnings(&self) -> impl ExactSizeIterator<Item = &(dyn Error + Send + Sync + 'static)> {
        self.warnings.iter().map(|warning| &**warning)
    }

    /// The rows that it was trained on, if its folder records them; for a blend, those of its members.
    ///
    /// *Cost*: reads them at each call.
    ///
    /// # Errors
    /// The arrays are damaged.
    pub fn training_rows(&self) -> Result<Option<TrainingRows>, TrainingRowsError> {
        match self.as_kind::<blend::Blend>() {
            Some(blend) => blend.training_rows(self.shape.n_labels),
            None => TrainingRows::read(&self.container),
        }
    }

    /// The folder that it was opened from; an empty path for a model in memory.
    pub fn folder(&self) -> &Path {
        self.container.folder()
    }

    /// The hash of its configuration and, through that, of all its arrays: equal models have equal ones.
    pub fn config_hash(&self) -> &str {
        self.container.config_hash()
    }

    /// The pipeline that makes features; `None` if features are used unchanged.
    pub fn pipeline(&self) -> Option<&Featurizer> {
        self.maker.as_ref()
    }

    /// A note about the texts that were cut since the model was opened; `None` if there were none.
    pub fn texts_cut(&self) -> Option<String> {
        self.texts_cut_since(&[])
    }

    /// How many texts the model, or each member of a blend, has tokenised and cut since it was opened.
    pub fn texts_taken(&self) -> Vec<TextsTaken> {
        let members = self.as_kind().map_or(std::slice::from_ref(self), blend::Blend::members);
        members.iter().filter_map(|member| member.pipeline()?.taken()).collect()
    }

    /// The same for the texts after `before`, an earlier result of [`Model::texts_taken`].
    pub fn texts_cut_since(&self, before: &[TextsTaken]) -> Option<String> {
        let mut before = before.iter();
        self.texts_taken().into_iter().find_map(|taken| before.next().map_or(taken, |&of| taken.since(of)).note())
    }

    /// The pipeline by which rows of a file can be read: the model's own, or, for a blend, that of its
    /// first member.
    pub fn reading_pipeline(&self) -> Option<&Featurizer> {
        self.pipeline().or_else(|| self.as_kind::<blend::Blend>()?.members()[0].pipeline())
    }

    /// The form of the files that it was trained on.
    #[cfg(feature = "data")]
    pub fn input(&self) -> &FileForm {
        &self.input
    }

    /// The model as the type of its kind, such as `xc_tree::TreeModel` or that of a custom kind, for operations that
    /// only this type has.
    pub fn as_kind<T: Any>(&self) -> Option<&T> {
        (&*self.system as &dyn Any).downcast_ref()
    }

    /// The same of a standard kind alone: what a custom kind has inside is its own business.
    pub(crate) fn as_standard<T: Any>(&self) -> Option<&T> {
        if self.kind.is_own() { None } else { self.as_kind() }
    }

    /// Answers one query into `out`.
    ///
    /// *Cost*: that of the kind of model. Allocates nothing once `scratch` and `out` have grown.
    ///
    /// *Determinism*: the same bits as in any batch, at any number of threads.
    ///
    /// # Errors
    /// An input or option that the model does not take; `out` is then empty.
    pub fn predict(
        &self,
        query: &Row<'_>,
        options: &QueryOptions<'_>,
        scratch: &mut Scratch,
        out: &mut Answer,
    ) -> Result<(), QueryError> {
        out.labels.clear();
        (out.certificate, out.known_terms) = (None, None);
        let mut buffers = scratch.take(self);
        let outcome = self.answer(query, options, &mut buffers, out);
        if outcome.is_err() {
            out.labels.clear();
        }
        scratch.put(buffers);
        outcome
    }

    fn answer(
        &self,
        query: &Row<'_>,
        options: &QueryOptions<'_>,
        buffers: &mut Buffers,
        out: &mut Answer,
    ) -> Result<(), QueryError> {
        let Buffers { making, system, lists, seen, .. } = buffers;
        let ask = self.ask(options, 1, lists)?;
        let ask = Ask { candidates: ask.candidates.at(0), ..ask };
        let row = self.row(query, options.made, making)?;
        if let (true, Row::Sparse(row)) = (self.knows_terms(), row) {
            out.known_terms = Some(row.indices().len());
        }
        if options.top_k > 0 && out.known_terms != Some(0) {
            let told = self.system.one(row, &ask, &mut **system, &mut out.labels)?;
            self.kind.check(&out.labels, &ask, 0, self.shape.n_labels, seen)?;
            out.certificate = told.certificate;
            out.known_terms = out.known_terms.or(told.known_terms);
            let rest = Rest { options, excluded: &lists.excluded, calibration: self.calibration_for(options)? };
            rest.finish(&mut out.labels)?;
        }
        Ok(())
    }

    /// Answers queries.
    ///
    /// *Cost*: per query less than [`Model::predict`] if weights are read once for several queries, and
    /// divided among the threads of the caller's pool; outside of one, of rayon's global pool, which the
    /// first batch of more than one query starts.
    ///
    /// *Determinism*: the bits of [`Model::predict`].
    ///
    /// # Errors
    /// The first query that the model does not take, or options that it does not take (as of query
    /// 0).
    pub fn predict_batch(&self, queries: Rows<'_>, options: &QueryOptions<'_>) -> Result<Answers, BatchError> {
        self.predict_batch_in(queries, options, &mut Scratch::default())
    }

    /// The same in memory that is kept.
    pub(crate) fn predict_batch_in(
        &self,
        queries: Rows<'_>,
        options: &QueryOptions<'_>,
        scratch: &mut Scratch,
    ) -> Result<Answers, BatchError> {
        if !in_pool() {
            return match queries.len() {
                0 | 1 => self.predict_each(queries, options, scratch),
                _ => rayon::scope(|_| self.predict_batch(queries, options)),
            };
        }
        if let Excluded::ByQuery { rows, first } = options.exclude {
            return self.predict_without(queries, rows, first, options);
        }
        let of_all = |source| BatchError { query: 0, source };
        let mut lists = Lists::default();
        let ask = self.ask(options, queries.len(), &mut lists).map_err(of_all)?;
        let calibration = self.calibration_for(options).map_err(of_all)?;
        let mut known_terms = Vec::new();
        let made;
        let rows = match (queries, self.maker.as_ref().filter(|_| !options.made)) {
            (Rows::OneHot(_), _) => {
                let all: Vec<u32> = (0..queries.len() as u32).collect();
                return self.predict_batch(queries.select(&all).view(), options);
            }
            (_, Some(_)) if queries.kind() == self.takes() => {
                made = self.features(queries)?;
                made.view()
            }
            (rows, maker) => {
                let (got, expected) = (rows.kind(), maker.map_or(self.shape.takes, |_| self.takes()));
                if got != expected {
                    return Err(of_all(QueryError::Input { got, expected }));
                }
                let (width, expected) = (rows.width(), self.shape.n_features);
                if got != InputKind::Text && width != expected {
                    let dense = got == InputKind::Dense;
                    return Err(of_all(QueryError::Width { got: width, expected, dense }));
                }
                rows
            }
        };
        check_rows(rows)?;
        if let (true, Rows::Sparse(rows)) = (self.knows_terms(), rows) {
            known_terms = rows.indptr().windows(2).map(|w| w[1] - w[0]).collect();
        }
        if options.top_k == 0 {
            let mut ranked = RankedBatch::new();
            (0..queries.len()).for_each(|_| ranked.push_row(&[]));
            return Ok(Answers { known_terms, ..Answers::of(ranked) });
        }
        let mut buffers = scratch.take(self);
        let answers = self.batch(rows, &ask, &mut *buffers.system);
        scratch.put(buffers);
        let mut answers = answers?;
        if self.kind.is_own() {
            self.check_batch(&answers, rows.len(), &ask)?;
        }
        if !known_terms.is_empty() {
            answers.known_terms = known_terms;
        }
        let rest = Rest { options, excluded: &lists.excluded, calibration };
        answers.ranked = rest.finish_batch(answers.ranked, &answers.known_terms)?;
        Ok(answers)
    }

    /// Answers a batch: on the device that the model was put on, or on the CPU.
    fn batch(&self, rows: Rows<'_>, ask: &Ask<'_>, scratch: &mut dyn Any) -> Result<Answers, BatchError> {
        #[cfg(feature = "cuda")]
        if let Some(answers) = self.batch_on_device(rows, ask, scratch) {
            return answers;
        }
        self.system.batch(rows, ask, scratch)
    }

    /// Refuses invalid answers of a custom kind.
    fn check_batch(&self, answers: &Answers, n: usize, ask: &Ask<'_>) -> Result<(), BatchError> {
        let wrong = |query| move |source| BatchError { query, source };
        let is_for_each = |len: usize| len == 0 || len == n;
        let lens = [answers.certificates.len(), answers.known_terms.len()];
        if answers.ranked.len() != n || !lens.into_iter().all(is_for_each) {
            let kind = self.kind.name;
            return Err(wrong(0)(QueryError::Answer { kind, wrong: WrongAnswer::Queries }));
        }
        let (n_labels, mut seen) = (self.shape.n_labels, Vec::new());
        let mut lists = answers.ranked.iter().enumerate();
        lists.try_for_each(|(query, list)| self.kind.check(list, ask, query, n_labels, &mut seen).map_err(wrong(query)))
    }

    /// Answers queries of which each has excluded labels of its own: those with room for as many are
    /// asked together.
    fn predict_without(
        &self,
        queries: Rows<'_>,
        excluded: &LabelRows,
        first: usize,
        options: &QueryOptions<'_>,
    ) -> Result<Answers, BatchError> {
        let n = queries.len();
        let of_all = |source| BatchError { query: 0, source };
        check_lists("excluded labels", excluded, first, n, self.shape.n_labels).map_err(of_all)?;
        let calibration = self.calibration_for(options).map_err(of_all)?;
        let mut rooms: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
        (0..n).for_each(|i| rooms.entry(room(excluded.row(first + i).len())).or_default().push(i as u32));
        let mut rows: Vec<Vec<Scored>> = vec![Vec::new(); n];
        let (mut certificates, mut known_terms) = (vec![None; n], vec![None; n]);
        for (room, numbers) in rooms {
            let some = queries.select(&numbers);
            let candidates = options.candidates.select(&numbers);
            let asked = QueryOptions {
                top_k: if options.top_k == 0 { 0 } else { options.top_k.saturating_add(room) },
                min_score: None,
                candidates: candidates
                    .as_ref()
                    .map_or(options.candidates, |rows| Candidates::ByQuery { rows, first: 0 }),
                exclude: Excluded::None,
                // Made of what is left.
                scores: ScoreOptions { raw: true, threshold: None },
                ..*options
            };
            let answers = self.predict_batch(some.view(), &asked);
            let answers = answers.map_err(|e| BatchError { query: numbers[e.query] as usize, source: e.source })?;
            for (at, &i) in numbers.iter().enumerate() {
                let row = &mut rows[i as usize];
                row.extend_from_slice(answers.ranked.row(at));
                let rest = Rest { options, excluded: excluded.row(first + i as usize), calibration };
                rest.finish(row).map_err(|source| BatchError { query: i as usize, source })?;
                certificates[i as usize] = answers.certificates.get(at).copied();
                known_terms[i as usize] = answers.known_terms.get(at).copied();
            }
        }
        let mut ranked = RankedBatch::new();
        rows.iter().for_each(|row| ranked.push_row(row));
        let (certificates, known_terms) =
            (certificates.into_iter().flatten().collect(), known_terms.into_iter().flatten().collect());
        Ok(Answers { ranked, certificates, known_terms })
    }

    /// Answers one query after the other on this thread: for few queries sooner than [`Model::predict_batch`], which
    /// divides them among threads.
    ///
    /// *Determinism*: the bits of [`Model::predict`].
    ///
    /// # Errors
    /// As [`Model::predict_batch`].
    pub fn predict_each(
        &self,
        queries: Rows<'_>,
        options: &QueryOptions<'_>,
        scratch: &mut Scratch,
    ) -> Result<Answers, BatchError> {
        let (mut answer, mut answers, mut certificates) = (Answer::default(), Answers::default(), Vec::new());
        // A row alone does not say how wide it is.
        let widths = match queries {
            Rows::Sparse(rows) if options.made || self.takes() == InputKind::Sparse => {
                Some((rows.cols(), self.shape.n_features))
            }
            Rows::Tokens(rows) => rows.words().map(|words| words.cols()).zip(self.shape.words),
            _ => None,
        };
        if let Some((got, expected)) = widths.filter(|(got, expected)| got != expected) {
            return Err(BatchError { query: 0, source: QueryError::Width { got, expected, dense: false } });
        }
        for query in 0..queries.len() {
            let (candidates, exclude) = (options.candidates.from(query), options.exclude.from(query));
            let options = QueryOptions { candidates, exclude, ..*options };
            let outcome = self.predict(&queries.row(query), &options, scratch, &mut answer);
            outcome.map_err(|source| BatchError { query, source })?;
            answers.ranked.push_row(&answer.labels);
            certificates.push(answer.certificate);
            answers.known_terms.extend(answer.known_terms);
        }
        if certificates.iter().any(Option::is_some) {
            // Of a query without a known term no label is asked for.
            let nothing = Certificate { exact: true, bound: f32::NEG_INFINITY, ..Certificate::default() };
            answers.certificates = certificates.into_iter().map(|of| of.unwrap_or(nothing)).collect();
        }
        Ok(answers)
    }

    /// Adds the memory that a query touches to `touched`; returns false if this kind of model cannot tell.
    ///
    /// *Cost*: many times that of the query.
    ///
    /// # Errors
    /// As [`Model::predict`].
    pub fn touched(
        &self,
        query: &Row<'_>,
        options: &QueryOptions<'_>,
        scratch: &mut Scratch,
        touched: &mut Touched,
    ) -> Result<bool, QueryError> {
        let mut buffers = scratch.take(self);
        let Buffers { making, system, lists, .. } = &mut *buffers;
        let ask = self.ask(options, 1, lists)?;
        let row = self.row(query, options.made, making)?.sparse();
        let can = row.is_ok_and(|row| self.system.touched(row, &ask, &mut **system, touched));
        scratch.put(buffers);
        Ok(can)
    }

    /// What the kind of model is asked: room for the excluded labels is made among the best.
    fn ask<'a>(
        &self,
        options: &QueryOptions<'a>,
        n_queries: usize,
        lists: &'a mut Lists,
    ) -> Result<Ask<'a>, QueryError> {
        let kind = self.kind.name;
        if let Some(option) = options.search.given().find(|option| !self.kind.options.contains(option)) {
            return Err(QueryError::Option { option, kind });
        }
        if options.search.beam == Some(0) {
            return Err(QueryError::Beam);
        }
        if let Some(width) =
            options.search.scope.map(|scope| scope.slack()).filter(|width| width.is_nan() || *width <= -1.0)
        {
            return Err(QueryError::SearchWidth { width });
        }
        if options.min_score.is_some_and(f32::is_nan) {
            return Err(QueryError::MinScore);
        }
        let n_labels = self.shape.n_labels;
        let Lists { excluded, candidates } = lists;
        let candidates = match options.candidates {
            Candidates::All => Candidates::All,
            Candidates::Labels(labels) => {
                check_labels(labels, n_labels)?;
                sorted(labels, candidates);
                Candidates::Labels(candidates)
            }
            Candidates::ByQuery { rows, first } => {
                check_lists("candidates", rows, first, n_queries, n_labels)?;
                Candidates::ByQuery { rows, first }
            }
        };
        if let Excluded::ByQuery { rows, first } = options.exclude {
            check_lists("excluded labels", rows, first, n_queries, n_labels)?;
        }
        // A batch whose queries have lists of their own never comes here.
        let exclude = options.exclude.of(0);
        check_labels(exclude, n_labels)?;
        sorted(exclude, excluded);
        let top_k = options.top_k.saturating_add(room(excluded.len())).min(n_labels);
        Ok(Ask { top_k, candidates, search: options.search })
    }
}

/// Answers asked for beyond those wanted where so many labels are excluded: the same for nearby numbers,
/// so that such queries can be asked together.
fn room(n_excluded: usize) -> usize {
    if n_excluded == 0 { 0 } else { n_excluded.next_power_of_two() }
}
