//! Models that answer.

use crate::error::{self, defect, guarded};
use crate::input::{Input, vector_of};
use crate::json::to_python;
use crate::labels::Lists;
use crate::pools::{default_threads, pool};
use crate::ranked::{Arrays, Found};
use crate::train::chosen;
use numpy::{IntoPyArray, PyArray1, PyArrayMethods, PyReadonlyArray1};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};
use serde_json::json;
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};
use xc_data::LabelNames;
use xc_model::calibrate::ThresholdKind;
use xc_model::explain::ExplainOptions;
use xc_model::message::chain;
use xc_model::{
    Answer, Candidates, Changes, Excluded, InputKind, OpenOptions, QueryError, QueryOptions, Row, ScoreOptions,
    Scratch, SearchOptions, UseIndex,
};
use xc_options::settings::search;
use xc_sparse::SparseRow;
use xc_sparse::rank::Scored;
use xc_sparse::rows::sort_row;
use xc_store::{ContainerWriter, OpenMode};
use xc_train::xc_hash::text::TextsTaken;

/// Rows that are answered one after the other: starting threads takes longer.
const FEW: usize = 8;
/// How long a block of rows should take: between two blocks signals are looked for.
const SLICE: Duration = Duration::from_millis(20);
/// Blocks are at most so large, so that little of the rows is copied at a time.
const MOST_ROWS: usize = 1 << 14;
const MOST_ENTRIES: usize = 1 << 20;

/// A trained model in a folder.
#[pyclass(frozen, module = "xc._native")]
pub(crate) struct Model {
    pub(crate) inner: xc_model::Model,
    dictionary: OnceLock<Option<LabelNames>>,
    spare: Mutex<Vec<Spare>>,
}

/// Memory of one query, reused.
#[derive(Default)]
struct Spare {
    scratch: Scratch,
    answer: Answer,
    ids: Vec<u32>,
    values: Vec<f32>,
    order: Vec<(u32, f32)>,
}

/// What a query is told, as Python's keywords say it.
struct Asked {
    top_k: usize,
    min_score: Option<f32>,
    candidates: Option<Lists>,
    exclude: Option<Lists>,
    scores: ScoreOptions,
    search: SearchOptions,
}

impl Asked {
    fn options(&self, first: usize) -> QueryOptions<'_> {
        let candidates = match &self.candidates {
            None => Candidates::All,
            Some(Lists::Shared(labels)) => Candidates::Labels(labels),
            Some(Lists::Own(rows)) => Candidates::ByQuery { rows, first },
        };
        let exclude = match &self.exclude {
            None => Excluded::None,
            Some(Lists::Shared(labels)) => Excluded::Labels(labels),
            Some(Lists::Own(rows)) => Excluded::ByQuery { rows, first },
        };
        let &Self { top_k, min_score, scores, search, .. } = self;
        QueryOptions { made: false, top_k, min_score, candidates, exclude, scores, search }
    }
}

/// Options of a search as they are typed, by their names.
fn search_options(py: Python<'_>, search: Option<&[(String, String)]>) -> PyResult<SearchOptions> {
    let Some(given) = search else { return Ok(SearchOptions::default()) };
    let made = search::params(&chosen(py, &search::OF_QUERY, given)?);
    made.map(|made| made.options).map_err(|e| error::option(py, &e.to_string()))
}

impl Model {
    fn of(inner: xc_model::Model) -> Self {
        Self { inner, dictionary: OnceLock::new(), spare: Mutex::default() }
    }

    /// Ids of label names; read when it is first asked for.
    pub(crate) fn dictionary(&self, py: Python<'_>) -> PyResult<Option<&LabelNames>> {
        if self.dictionary.get().is_none() {
            let read = self.inner.dictionary().map_err(|e| error::model(py, &e))?;
            // Another thread may have been first: with the same names.
            let _ = self.dictionary.set(read);
        }
        Ok(self.dictionary.get().and_then(Option::as_ref))
    }

    /// Does something with memory that is kept. In a forked process the lock may be one that nobody will give up.
    fn with<T>(&self, work: impl FnOnce(&mut Spare) -> T) -> T {
        let mut spare = self.spare.try_lock().ok().and_then(|mut all| all.pop()).unwrap_or_default();
        let out = work(&mut spare);
        if let Ok(mut all) = self.spare.try_lock() {
            all.push(spare);
        }
        out
    }

    fn asked(
        &self,
        py: Python<'_>,
        top_k: usize,
        min_score: Option<f32>,
        candidates: Option<&Bound<'_, PyAny>>,
        exclude: Option<&Bound<'_, PyAny>>,
        raw_scores: bool,
        threshold: Option<&str>,
        search: Option<Vec<(String, String)>>,
    ) -> PyResult<Asked> {
        if top_k == 0 {
            return Err(error::option(py, "--top-k 0: at least 1 is expected"));
        }
        if let Some(score) = min_score.filter(|score| !score.is_finite()) {
            return Err(error::option(py, &format!("--min-score {score}: a number is expected")));
        }
        if let Some(score) = min_score.filter(|&score| score > 1.0 && self.inner.scores_at_most_one(raw_scores)) {
            return Err(error::option(py, &format!("--min-score {score}: scores of this model are at most 1")));
        }
        let n_labels = self.inner.describe().n_labels;
        let lists = |name: &str, object: Option<&Bound<'_, PyAny>>| -> PyResult<Option<Lists>> {
            let Some(object) = object else { return Ok(None) };
            Lists::of(py, name, object, self.dictionary(py)?, n_labels).map(Some)
        };
        let kinds = ThresholdKind::ALL;
        let threshold = threshold.map(|name| {
            let found = kinds.into_iter().find(|kind| kind.name() == name);
            found.ok_or_else(|| {
                error::option(
                    py,
                    &format!("--threshold {name:?}: micro, macro or label is expected; a number goes to --min-score"),
                )
            })
        });
        Ok(Asked {
            top_k,
            min_score,
            candidates: lists("candidates", candidates)?,
            exclude: lists("exclude", exclude)?,
            scores: ScoreOptions { raw: raw_scores, threshold: threshold.transpose()? },
            search: search_options(py, search.as_deref())?,
        })
    }

    /// What is wrong with query `row` of `name`.
    fn refused(py: Python<'_>, name: &str, row: Option<usize>, source: &QueryError) -> PyErr {
        let column = match source {
            QueryError::Feature { feature, .. } => Some(*feature as usize),
            _ => None,
        };
        match source {
            QueryError::Option { option, kind } => {
                error::option(py, &format!("--{option}: models of kind {kind:?} have no such option"))
            }
            QueryError::NoIndex { option } | QueryError::NoWidth { option } => {
                error::option(py, &format!("--{option}: {source}"))
            }
            QueryError::Beam => error::option(py, "--beam 0: at least 1 is expected"),
            QueryError::NoCells => error::option(py, &format!("--cells: {source}")),
            QueryError::SearchWidth { width } => {
                error::option(py, &format!("--search-width {width}: a number above -1 is expected"))
            }
            QueryError::NotCalibrated | QueryError::RawThreshold => {
                error::option(py, &format!("--threshold: {source}"))
            }
            QueryError::MinScore => error::option(py, "--min-score nan: a number is expected"),
            _ if source.is_of_query() => {
                let at = row.map_or_else(String::new, |row| format!("row {row}: "));
                error::data(py, &format!("{name}: {at}{}", chain(source)), row, column)
            }
            _ => error::data(py, &format!("{name}: {}", chain(source)), None, None),
        }
    }

    fn labels_of<'py>(&self, py: Python<'py>, labels: &[Scored]) -> PyResult<Bound<'py, PyList>> {
        let pairs = labels.iter().map(|s| {
            let label = match self.inner.name_of(s.label).map_err(|e| error::model(py, &e))? {
                Some(name) => PyString::new(py, name).into_any(),
                None => s.label.into_pyobject(py)?.into_any(),
            };
            (label, s.score).into_pyobject(py)
        });
        PyList::new(py, pairs.collect::<PyResult<Vec<_>>>()?)
    }

    /// Answers one query, with memory that is kept.
    fn one(&self, py: Python<'_>, query: &Bound<'_, PyAny>, asked: &Asked, spare: &mut Spare) -> PyResult<()> {
        let Spare { scratch, answer, ids, values, order } = spare;
        let options = asked.options(0);
        let mut answer_to = |row: &Row<'_>| {
            let answered = guarded(|| self.inner.predict(row, &options, scratch, answer));
            let answered = answered.map_err(|panic| defect(py, &panic))?;
            answered.map_err(|e| Self::refused(py, "query", None, &e))
        };
        if let Ok(text) = query.cast::<PyString>() {
            let half = |_| {
                let what = "query: a text with half of a surrogate pair; text that is UTF-8 is expected";
                error::data(py, what, None, None)
            };
            return answer_to(&Row::Text(&text.to_cow().map_err(half)?));
        }
        let is_vector = take_row(py, query, ids, values, order)?;
        let about = self.inner.describe();
        let (takes, width) = (about.takes, about.n_features);
        if is_vector && takes == InputKind::Sparse {
            if values.len() != width {
                return Err(error::data(py, &format!("query: {}", vector_of(values.len(), width)), None, None));
            }
            ids.extend((0u32..).zip(&**values).filter(|(_, value)| **value != 0.0).map(|(id, _)| id));
            values.retain(|&value| value != 0.0);
            return answer_to(&Row::Sparse(SparseRow::from_checked(ids, values)));
        }
        if !is_vector && takes == InputKind::Dense && ids.last().is_none_or(|&id| (id as usize) < width) {
            let mut vector = vec![0.0; width];
            ids.iter().zip(&**values).for_each(|(&id, &value)| vector[id as usize] = value);
            return answer_to(&Row::Dense(&vector));
        }
        match is_vector {
            true => answer_to(&Row::Dense(values)),
            false => answer_to(&Row::Sparse(SparseRow::from_checked(ids, values))),
        }
    }
}

/// The query as a sparse row, or as a vector; whether it is one.
fn take_row(
    py: Python<'_>,
    query: &Bound<'_, PyAny>,
    ids: &mut Vec<u32>,
    values: &mut Vec<f32>,
    order: &mut Vec<(u32, f32)>,
) -> PyResult<bool> {
    ids.clear();
    values.clear();
    let expected = "a str, {id: value}, (ids, values) or a vector is expected";
    let wrong = |what: String| error::data(py, &format!("query: {what}"), None, None);
    if let Ok(pair) = query.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>() {
        take_ids(&pair.0, ids).map_err(|e| wrong(format!("ids: {e}")))?;
        take_values(&pair.1, values).map_err(|e| wrong(format!("values: {e}")))?;
        if ids.len() != values.len() {
            return Err(wrong(format!("{} ids and {} values; as many are expected", ids.len(), values.len())));
        }
    } else if let Ok(entries) = query.cast::<PyDict>() {
        for (id, value) in entries.iter() {
            let id = id.extract().map_err(|_| wrong(format!("{id:?}: an id from 0 on is expected")))?;
            ids.push(id);
            values.push(value.extract().map_err(|_| wrong(format!("{value:?}: a number is expected")))?);
        }
    } else {
        take_values(query, values).map_err(|_| PyTypeError::new_err(format!("query: {expected}")))?;
        return finite(py, values, |at| at).map(|()| true);
    }
    sort_row(ids, values, order).map_err(|repeated| wrong(format!("id {} stands twice", repeated.id)))?;
    finite(py, values, |at| ids[at] as usize)?;
    if values.contains(&0.0) {
        let mut kept = values.iter().map(|&value| value != 0.0);
        ids.retain(|_| kept.next().unwrap_or(true));
        values.retain(|&value| value != 0.0);
    }
    Ok(false)
}

/// Refuses a value that no row of a matrix may have; `column_of` says where it stands.
fn finite(py: Python<'_>, values: &[f32], column_of: impl Fn(usize) -> usize) -> PyResult<()> {
    let Some(at) = values.iter().position(|value| !value.is_finite()) else { return Ok(()) };
    let (value, column) = (values[at], column_of(at));
    let what = format!("query: value {value} in column {column}; finite numbers are expected");
    Err(error::data(py, &what, None, Some(column)))
}

fn take_ids(object: &Bound<'_, PyAny>, out: &mut Vec<u32>) -> PyResult<()> {
    let narrow =
        |id: i64| u32::try_from(id).map_err(|_| PyTypeError::new_err(format!("{id}: an id from 0 on is expected")));
    if let Ok(array) = object.cast::<PyArray1<i32>>() {
        for &id in copied(array)?.iter() {
            out.push(narrow(i64::from(id))?);
        }
        return Ok(());
    }
    for id in object.try_iter()? {
        out.push(narrow(id?.extract()?)?);
    }
    Ok(())
}

fn take_values(object: &Bound<'_, PyAny>, out: &mut Vec<f32>) -> PyResult<()> {
    if let Ok(array) = object.cast::<PyArray1<f32>>() {
        out.extend_from_slice(&copied(array)?);
        return Ok(());
    }
    for value in object.try_iter()? {
        out.push(value?.extract::<f64>()? as f32);
    }
    Ok(())
}

fn copied<T: numpy::Element + Copy>(array: &Bound<'_, PyArray1<T>>) -> PyResult<Vec<T>> {
    let array: PyReadonlyArray1<'_, T> = array.readonly();
    Ok(match array.as_slice() {
        Ok(values) => values.to_vec(),
        Err(_) => array.as_array().iter().copied().collect(),
    })
}

#[pymethods]
impl Model {
    /// Opens a folder.
    #[staticmethod]
    #[pyo3(signature = (path, in_memory=false, use_index=true, post_processor=None, repetitions=None, verify=false))]
    fn open(
        py: Python<'_>,
        path: PathBuf,
        in_memory: bool,
        use_index: bool,
        post_processor: Option<String>,
        repetitions: Option<Vec<u32>>,
        verify: bool,
    ) -> PyResult<(Self, Vec<String>)> {
        let options = OpenOptions {
            mode: if in_memory { OpenMode::Read } else { OpenMode::Map },
            index: if use_index { UseIndex::Fresh } else { UseIndex::Never },
            post_processor,
            repetitions,
            verify,
            ..OpenOptions::default()
        };
        let opened = py.detach(|| guarded(|| xc_model::Model::open_with(&path, &options)));
        let inner = opened.map_err(|panic| defect(py, &panic))?.map_err(|e| error::model(py, &e))?;
        let warnings = inner.warnings().map(|warning| chain(warning)).collect();
        Ok((Self::of(inner), warnings))
    }

    /// What is known of it.
    fn describe<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let about = self.inner.describe();
        let dictionary = json!({
            "kind": about.kind, "takes": about.takes.to_string(), "n_labels": about.n_labels,
            "n_features": about.n_features, "n_bytes": about.n_bytes, "calibrated": about.calibrated,
            "folder": self.inner.folder().display().to_string(), "has_index": self.inner.index().is_some(),
        });
        to_python(py, &dictionary)
    }

    /// Whether another model stands in its folder now.
    fn was_replaced(&self) -> bool {
        self.inner.was_replaced()
    }

    /// Texts of which tokens were made since it was opened: of each member how many, how many were cut, and at how many tokens.
    fn texts_taken(&self) -> Vec<(u64, u64, usize)> {
        self.inner.texts_taken().iter().map(|taken| (taken.texts, taken.cut, taken.max_tokens)).collect()
    }

    /// What is to be said of texts that were cut since then.
    fn texts_cut(&self, before: Vec<(u64, u64, usize)>) -> Option<String> {
        let before = before.into_iter().map(|(texts, cut, max_tokens)| TextsTaken { texts, cut, max_tokens });
        self.inner.texts_cut_since(&before.collect::<Vec<_>>())
    }

    /// Names of the labels, or none.
    fn label_names(&self, py: Python<'_>) -> PyResult<Option<Vec<String>>> {
        self.inner.label_names().map_err(|e| error::model(py, &e))
    }

    /// Ids of labels that are named.
    fn label_ids(&self, py: Python<'_>, labels: &Bound<'_, PyAny>) -> PyResult<Vec<u32>> {
        let n_labels = self.inner.describe().n_labels;
        match Lists::of(py, "labels", labels, self.dictionary(py)?, n_labels)? {
            Lists::Shared(ids) => Ok(ids),
            Lists::Own(_) => Err(PyTypeError::new_err("labels: a list of labels is expected")),
        }
    }

    /// Answers rows: arrays of ragged lists, and the number of known terms of each text.
    #[pyo3(signature = (rows, top_k=5, min_score=None, candidates=None, exclude=None, raw_scores=false, threshold=None,
        threads=None, search=None))]
    fn predict<'py>(
        &self,
        py: Python<'py>,
        rows: &Input,
        top_k: usize,
        min_score: Option<f32>,
        candidates: Option<&Bound<'py, PyAny>>,
        exclude: Option<&Bound<'py, PyAny>>,
        raw_scores: bool,
        threshold: Option<&str>,
        threads: Option<usize>,
        search: Option<Vec<(String, String)>>,
    ) -> PyResult<(Arrays<'py>, Option<Bound<'py, PyArray1<i64>>>)> {
        let asked = self.asked(py, top_k, min_score, candidates, exclude, raw_scores, threshold, search)?;
        let threads = threads.unwrap_or_else(default_threads);
        if threads == 0 || threads > 4096 {
            return Err(error::option(py, &format!("--threads {threads}: between 1 and 4096 are expected")));
        }
        let (n, name) = (rows.rows(), rows.name());
        for (what, lists) in [("candidates", &asked.candidates), ("exclude", &asked.exclude)] {
            if let Some(Lists::Own(lists)) = lists
                && lists.len() != n
            {
                let got = lists.len();
                return Err(error::data(
                    py,
                    &format!("{what}: {got} lists for {n} rows; as many are expected"),
                    None,
                    None,
                ));
            }
        }
        let pool = match n > FEW {
            true => Some(pool(threads).map_err(|e| error::option(py, &format!("--threads {threads}: {e}")))?),
            false => None,
        };
        let about = self.inner.describe();
        let (takes, width) = (about.takes, about.n_features);
        let made = if takes == InputKind::Dense { width } else { 0 };
        let entries = MOST_ENTRIES / rows.width_hint().max(made).max(1);
        let most = MOST_ROWS.min(entries.max(1));
        let mut found = Found::new(n, top_k.min(self.inner.describe().n_labels));
        let (mut at, mut size, mut known) = (0, most.min(FEW.max(64)), Vec::new());
        while at < n {
            let end = n.min(at + size);
            let begin = Instant::now();
            let work = || {
                let block = rows.block_for(at..end, takes, width).map_err(Ok)?;
                let options = asked.options(at);
                let answered = match &pool {
                    Some(pool) => pool.install(|| self.inner.predict_batch(block.view(), &options)),
                    None => self.with(|spare| self.inner.predict_each(block.view(), &options, &mut spare.scratch)),
                };
                answered.map(|answers| (answers.ranked, answers.known_terms)).map_err(Err)
            };
            let outcome = py.detach(|| guarded(work)).map_err(|panic| defect(py, &panic))?;
            let (ranked, terms) = outcome.map_err(|wrong| match wrong {
                Ok(fault) => fault.raised(py, name),
                Err(error) => Self::refused(py, name, Some(at + error.query), &error.source),
            })?;
            found.add(&ranked);
            known.extend(terms.into_iter().map(|terms| terms as i64));
            py.check_signals()?;
            match begin.elapsed() {
                took if took < SLICE / 2 => size = (size * 2).min(most),
                took if took > SLICE * 2 => size = (size / 2).max(1),
                _ => {}
            }
            at = end;
        }
        let known = (!known.is_empty() && known.len() == n).then(|| known.into_pyarray(py));
        Ok((found.into_arrays(py), known))
    }

    /// Answers one query: pairs of a name, or an id where labels have no names, and a score.
    #[pyo3(signature = (query, top_k=5, min_score=None, candidates=None, exclude=None, raw_scores=false, threshold=None,
        search=None))]
    fn predict_one<'py>(
        &self,
        py: Python<'py>,
        query: &Bound<'py, PyAny>,
        top_k: usize,
        min_score: Option<f32>,
        candidates: Option<&Bound<'py, PyAny>>,
        exclude: Option<&Bound<'py, PyAny>>,
        raw_scores: bool,
        threshold: Option<&str>,
        search: Option<Vec<(String, String)>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let asked = self.asked(py, top_k, min_score, candidates, exclude, raw_scores, threshold, search)?;
        self.with(|spare| {
            self.one(py, query, &asked, spare)?;
            self.labels_of(py, &spare.answer.labels)
        })
    }

    /// Why a label has its score.
    #[pyo3(signature = (rows, label, n_features, raw_scores))]
    fn explain<'py>(
        &self,
        py: Python<'py>,
        rows: &Input,
        label: u32,
        n_features: usize,
        raw_scores: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        if rows.rows() != 1 {
            let what = format!("{}: {} rows; one is expected", rows.name(), rows.rows());
            return Err(error::data(py, &what, None, None));
        }
        let options = ExplainOptions { made: false, n_features, raw: raw_scores };
        let work = || {
            let about = self.inner.describe();
            let block = rows.block_for(0..1, about.takes, about.n_features).map_err(Ok)?;
            self.inner.explain(&block.view().row(0), label, &options).map_err(Err)
        };
        let outcome = py.detach(|| guarded(work)).map_err(|panic| defect(py, &panic))?;
        let found = outcome.map_err(|wrong| match wrong {
            Ok(fault) => fault.raised(py, rows.name()),
            Err(source) => Self::refused(py, rows.name(), Some(0), &source),
        })?;
        let mut out = found.json(&self.inner, usize::MAX);
        let name = self.inner.name_of(found.label).map_err(|e| error::model(py, &e))?;
        name.into_iter().for_each(|name| out["name"] = name.into());
        to_python(py, &out)
    }

    /// Saves a copy in another folder.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let saved = py.detach(|| {
            guarded(|| {
                ContainerWriter::check(&path).map_err(|e| chain(&e))?;
                self.inner.save(&path).map_err(|e| chain(&e))
            })
        });
        saved.map_err(|panic| defect(py, &panic))?.map_err(|line| error::model_line(py, &line))
    }
}

/// A copy of a model with other names or weights, saved in a folder.
pub(crate) fn changed(model: &xc_model::Model, changes: &Changes, path: &PathBuf) -> Result<Vec<String>, String> {
    ContainerWriter::check(path).map_err(|e| chain(&e))?;
    let changed = model.change(changes).map_err(|e| chain(&e))?;
    let mut notes = Vec::new();
    if changed.drops_index() {
        notes.push("the index of its labels is of other weights and is left out".to_owned());
    }
    if changed.drops_calibration() {
        notes.push("its calibration is of other scores and is left out".to_owned());
    }
    changed.save(path).map_err(|e| chain(&e))?;
    Ok(notes)
}
