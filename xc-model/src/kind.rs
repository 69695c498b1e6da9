//! Kinds of models: how each opens, answers and describes itself.
//!
//! A custom kind is a type that implements [`Answering`], and a [`Kind`] that is passed to
//! [`OpenOptions::kinds`](crate::OpenOptions::kinds). Its folders are then opened, asked, explained, blended and
//! calibrated like those of the standard kinds.

use crate::open_error::OpenModelError;
use crate::query::{Answers, BatchError, Candidates, QueryError, SearchOptions, WrongAnswer};
use crate::{InputKind, Row, Rows};
use rayon::prelude::*;
use std::any::Any;
use std::cmp::Ordering;
use std::error::Error;
use std::fmt;
use xc_mach::Certificate;
use xc_sparse::SparseRow;
use xc_sparse::chunked::Touched;
use xc_sparse::rank::{LabelId, Scored, rank_order};
use xc_store::{Container, ContainerWriter, OpenMode, WriteError};

/// The part of a model that ranks labels. Everything else belongs to [`Model`](crate::Model): the text pipeline, label
/// names, calibration, excluded labels, thresholds.
///
/// Queries are checked before they reach these methods: they have the kind and width that [`Answering::shape`] states,
/// their values are finite, and candidates are labels of the model in ascending order, each once. The answers of a
/// custom kind are checked in turn: one that breaks the rules of [`Answering::one`] or [`Answering::batch`] is refused
/// with [`QueryError::Answer`].
///
/// Explanations and blends score given labels: they ask with [`Candidates::Labels`]. A kind that takes
/// [`InputKind::Text`] reads texts itself, without a pipeline; explanations of its scores have no effects of features.
pub trait Answering: Send + Sync + 'static {
    /// Buffers for the queries of one thread, kept from query to query.
    type Scratch: Default + Send + 'static;

    /// The input that it takes and its number of labels. It is called when the model is opened; the result is kept.
    fn shape(&self) -> ModelShape;

    /// Ranks the labels of one query and writes them to `out`, whose old content is replaced.
    ///
    /// The answer has at most `ask.top_k` labels, each once, in the order of [`rank_order`], with finite scores; it may
    /// be shorter, or empty. Where `ask.candidates.of(0)` is a list, only its labels are ranked, including those that a
    /// search would not find.
    ///
    /// *Determinism*: the same query has the same answer, whatever `scratch` was used for before.
    ///
    /// # Errors
    /// The query has no answer; [`QueryError::Own`] holds a message of a custom kind.
    fn one(
        &self,
        row: Row<'_>,
        ask: &Ask<'_>,
        scratch: &mut Self::Scratch,
        out: &mut Vec<Scored>,
    ) -> Result<Told, QueryError>;

    /// Answers several queries with the same bits as [`Answering::one`]: one list for each query, in their order, and
    /// certificates and numbers of known terms for all queries or for none. The candidates of query `i` are
    /// `ask.candidates.of(i)`.
    ///
    /// The default calls [`Answering::one`] for each query, in parallel on the threads of the current rayon pool. A
    /// kind that reads its weights once for several queries overrides it.
    ///
    /// # Errors
    /// The first query that has no answer.
    fn batch(&self, rows: Rows<'_>, ask: &Ask<'_>, scratch: &mut Self::Scratch) -> Result<Answers, BatchError> {
        let _ = scratch;
        let each = (0..rows.len()).into_par_iter().map_init(Self::Scratch::default, |scratch, query| {
            let mut out = Vec::new();
            let ask = Ask { candidates: ask.candidates.at(query), ..*ask };
            let told = self.one(rows.row(query), &ask, scratch, &mut out);
            told.map(|told| (out, told)).map_err(|source| BatchError { query, source })
        });
        let mut answers = Answers::default();
        for answer in each.collect::<Vec<_>>() {
            let (labels, told) = answer?;
            answers.ranked.push_row(&labels);
            answers.certificates.extend(told.certificate);
            answers.known_terms.extend(told.known_terms);
        }
        Ok(answers)
    }

    /// Adds the parameters and arrays of the model to a container, from which the function in [`Kind::new`] opens it.
    ///
    /// These names are taken: parameters `training`, `input`, `calibration` and `changed`; arrays that begin with
    /// `training.`, `calibration.` or [`PIPELINE_PREFIX`](crate::PIPELINE_PREFIX).
    ///
    /// # Errors
    /// The container refuses a name or cannot be written.
    fn write(&self, writer: &mut ContainerWriter) -> Result<(), WriteError>;

    /// Whether no score exceeds 1, as with probabilities, products of them, and cosines. Default: false.
    fn scores_at_most_one(&self) -> bool {
        false
    }

    /// Adds the memory that a query touches to `touched`. Default: false, as the kind cannot tell.
    fn touched(&self, row: SparseRow<'_>, ask: &Ask<'_>, scratch: &mut Self::Scratch, touched: &mut Touched) -> bool {
        let _ = (row, ask, scratch, touched);
        false
    }
}

/// What is asked of a kind: the options of a query, or of a batch, after they were checked.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// Maximum number of labels of an answer; at most the number of labels of the model.
    pub top_k: usize,
    /// The labels to choose from, in ascending order.
    pub candidates: Candidates<'a>,
    /// How the model searches. A custom kind has no search options: it gets the default.
    pub search: SearchOptions,
}

/// What a kind says about an answer besides its labels. A kind gives each of these for every query of a
/// batch, or for none.
#[derive(Clone, Copy, Debug, Default)]
pub struct Told {
    /// Whether the labels are proven to be the best.
    pub certificate: Option<Certificate>,
    /// For a kind that makes features of a text itself: the number of terms that it knows.
    pub known_terms: Option<usize>,
}

/// What a model takes and how many labels it has. [`ModelShape::new`] makes one, whose other fields can then be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelShape {
    /// What a query is after the model's pipeline, if it has one. [`InputKind::Tokens`] needs a pipeline that makes
    /// them.
    pub takes: InputKind,
    /// Number of features or tokens, or of the values of a vector. A pipeline has to make as many.
    pub n_features: usize,
    /// Number of labels; their ids are `0..n_labels`.
    pub n_labels: usize,
    /// Number of features of the words that stand beside the tokens of a query, for a model that needs them.
    pub words: Option<usize>,
    /// Whether a single query is divided among threads. If so, even a few queries are answered as a batch.
    pub shares_queries: bool,
    /// Number of queries beyond which larger batches are not faster; at least 1.
    pub batch_size: usize,
}

impl ModelShape {
    /// The shape of a model, with `shares_queries` false, a `batch_size` of 1024, and no words beside tokens.
    pub fn new(takes: InputKind, n_features: usize, n_labels: usize) -> Self {
        Self { takes, n_features, n_labels, words: None, shares_queries: false, batch_size: 1024 }
    }
}

/// A kind of model: the name in its folders, and how they are opened.
///
/// ```
/// use std::error::Error;
/// use xc_model::{
///     Answering, Ask, InputKind, Kind, Model, ModelShape, OpenOptions, Opened, QueryError, QueryOptions, Row, Rows,
///     Told,
/// };
/// use xc_sparse::rank::Scored;
/// use xc_sparse::CsrMatrix;
/// use xc_store::{Container, ContainerWriter, WriteError};
///
/// /// The same labels for every query.
/// struct Popular(Vec<f32>);
///
/// impl Answering for Popular {
///     type Scratch = ();
///     fn shape(&self) -> ModelShape {
///         ModelShape::new(InputKind::Sparse, 100, self.0.len())
///     }
///     fn one(&self, _: Row<'_>, ask: &Ask<'_>, _: &mut (), out: &mut Vec<Scored>) -> Result<Told, QueryError> {
///         out.clear();
///         out.extend(self.0.iter().enumerate().map(|(label, &score)| Scored { label: label as u32, score }));
///         out.retain(|s| ask.candidates.of(0).is_none_or(|only| only.contains(&s.label)));
///         out.sort_by(|&a, &b| xc_sparse::rank::rank_order(a, b));
///         out.truncate(ask.top_k);
///         Ok(Told::default())
///     }
///     fn write(&self, writer: &mut ContainerWriter) -> Result<(), WriteError> {
///         writer.add_slice("scores", &self.0)
///     }
/// }
///
/// fn open(container: &Container) -> Result<Opened, Box<dyn Error + Send + Sync>> {
///     Ok(Opened::new(Popular(container.array::<f32>("scores")?.to_vec())))
/// }
/// const POPULAR: Kind = Kind::new("popular", open);
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("my.model");
/// Model::of(&POPULAR, &Popular(vec![0.5, 0.75, 0.25]), &Default::default())?.save(&path)?;
///
/// let options = OpenOptions { kinds: &[&POPULAR], ..OpenOptions::default() };
/// let model = Model::open_with(&path, &options)?;
/// let query = CsrMatrix::try_new((1, 100), vec![0, 1], vec![7], vec![1.0])?;
/// let answers = model.predict_batch(Rows::Sparse(query.view()), &QueryOptions::top(2))?;
/// assert_eq!(answers.ranked.row(0).iter().map(|s| s.label).collect::<Vec<_>>(), [1, 0]);
/// # Ok::<(), Box<dyn Error>>(())
/// ```
#[derive(Clone, Copy)]
pub struct Kind {
    /// As `config.json` names it.
    pub(crate) name: &'static str,
    /// Names of the search options that it has.
    pub(crate) options: &'static [&'static str],
    /// Whether it answers when some of its array files are lost.
    pub(crate) answers_in_part: bool,
    /// Whether its scores are made of margins, by what [`OpenOptions::post_processor`] names.
    pub(crate) has_margins: bool,
    pub(crate) open: Open,
    /// Tables of what a container of this kind consists of.
    pub(crate) tables: Tables,
}

/// Opens the arrays of a container of a standard kind, which it gives back: the pipeline, the names of labels and the
/// sizes are in it.
type OpenStandard = fn(Container, &OpenOptions, Check) -> Result<(Opened, Container), OpenModelError>;

/// Opens the model in a container of a custom kind. It checks all that answers rely on, since a file may hold anything.
pub type OpenKind = fn(&Container) -> Result<Opened, Box<dyn Error + Send + Sync>>;

/// Tables of what a container of a kind consists of.
type Tables = fn(&Container) -> Result<Vec<InfoTable>, OpenModelError>;

/// How a kind opens.
#[derive(Clone, Copy)]
pub(crate) enum Open {
    /// One of this library.
    Standard(OpenStandard),
    /// A custom one: its answers are checked.
    Own(OpenKind),
}

impl Kind {
    /// A custom kind. Its folders state `name`, which is neither that of a standard kind nor that of another container
    /// of this library, such as `checkpoint`. `open` opens the model in a folder and refuses arrays that answers cannot
    /// rely on.
    pub const fn new(name: &'static str, open: OpenKind) -> Self {
        Self::plain(name, Open::Own(open), no_tables)
    }

    /// A kind of this library without search options.
    pub(crate) const fn standard(name: &'static str, open: OpenStandard, tables: Tables) -> Self {
        Self::plain(name, Open::Standard(open), tables)
    }

    const fn plain(name: &'static str, open: Open, tables: Tables) -> Self {
        Self { name, options: &[], answers_in_part: false, has_margins: false, open, tables }
    }

    /// The name that its folders state.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    pub(crate) fn is_own(&self) -> bool {
        matches!(self.open, Open::Own(_))
    }

    /// Refuses an invalid answer of a custom kind: what follows relies on the order and the labels. `seen` is a buffer.
    pub(crate) fn check(
        &self,
        list: &[Scored],
        ask: &Ask<'_>,
        query: usize,
        n_labels: usize,
        seen: &mut Vec<LabelId>,
    ) -> Result<(), QueryError> {
        if !self.is_own() {
            return Ok(());
        }
        let is_label = |s: &Scored| (s.label as usize) < n_labels;
        let only = ask.candidates.of(query);
        let is_asked_for = |s: &Scored| only.is_none_or(|only| only.binary_search(&s.label).is_ok());
        seen.clear();
        seen.extend(list.iter().map(|s| s.label));
        seen.sort_unstable();
        let wrong = match () {
            () if list.len() > ask.top_k => WrongAnswer::Length,
            () if !list.iter().all(is_label) => WrongAnswer::Label,
            () if !list.iter().all(|s| s.score.is_finite()) => WrongAnswer::Score,
            () if seen.windows(2).any(|pair| pair[0] == pair[1]) => WrongAnswer::Twice,
            () if list.windows(2).any(|pair| rank_order(pair[0], pair[1]) != Ordering::Less) => WrongAnswer::Order,
            () if !list.iter().all(is_asked_for) => WrongAnswer::Candidate,
            () => return Ok(()),
        };
        Err(QueryError::Answer { kind: self.name, wrong })
    }
}

fn no_tables(_: &Container) -> Result<Vec<InfoTable>, OpenModelError> {
    Ok(Vec::new())
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Kind").field(&self.name).finish()
    }
}

/// A model that was opened, of any kind.
pub struct Opened {
    pub(crate) system: Box<dyn System>,
    /// What was left out, and why.
    pub(crate) warnings: Vec<Box<dyn Error + Send + Sync>>,
}

impl Opened {
    /// An opened model, of which no part was left out.
    pub fn new(model: impl Answering) -> Self {
        Self { system: Box::new(model), warnings: Vec::new() }
    }
}

impl fmt::Debug for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opened").field("shape", &self.system.shape()).finish_non_exhaustive()
    }
}

/// How a model is opened.
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    /// How its files are brought into memory.
    pub mode: OpenMode,
    /// For a MACH model, the repetitions to use. Default: all that are intact.
    pub repetitions: Option<Vec<u32>>,
    /// Whether an index of the labels is used.
    pub index: UseIndex,
    /// Maps margins to scores, by name: for trees one of [`xc_tree::PostProcessor`], for networks one of
    /// [`crate::classifier::ScoreScale`]; such scores are not calibrated. Default: the model's.
    pub post_processor: Option<String>,
    /// Read every byte and compare it with the hashes that were stored when the model was saved: it takes the time of
    /// reading all files, whose pages do not stay. A model whose files are below 8 MiB is always compared.
    pub verify: bool,
    /// Custom kinds, in addition to the standard ones; members of blends may be of these, too. Folders of custom kinds
    /// cannot be opened by [`Model::open_trusted`](crate::Model::open_trusted).
    pub kinds: &'static [&'static Kind],
}

/// Which index of a model's labels is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UseIndex {
    /// One that was built for the current weights.
    #[default]
    Fresh,
    /// One that was built up to this many training steps earlier.
    UpTo(u64),
    /// None: it is not opened.
    Never,
}

/// Whether the arrays of a model are looked at when it is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Check {
    /// Everything that answers rely on.
    Structure,
    /// Sizes alone: [`Model::open_trusted`](crate::Model::open_trusted).
    None,
}

/// [`Answering`], whatever its scratch is.
pub(crate) trait System: Any + Send + Sync {
    fn shape(&self) -> ModelShape;

    /// The memory of one thread's queries, which is handed back to the methods below.
    fn scratch(&self) -> Box<dyn Any + Send>;

    fn one(
        &self,
        row: Row<'_>,
        ask: &Ask<'_>,
        scratch: &mut dyn Any,
        out: &mut Vec<Scored>,
    ) -> Result<Told, QueryError>;

    fn batch(&self, rows: Rows<'_>, ask: &Ask<'_>, scratch: &mut dyn Any) -> Result<Answers, BatchError>;

    fn scores_at_most_one(&self) -> bool;

    fn touched(&self, row: SparseRow<'_>, ask: &Ask<'_>, scratch: &mut dyn Any, touched: &mut Touched) -> bool;
}

impl<A: Answering> System for A {
    fn shape(&self) -> ModelShape {
        Answering::shape(self)
    }

    fn scratch(&self) -> Box<dyn Any + Send> {
        Box::<A::Scratch>::default()
    }

    fn one(
        &self,
        row: Row<'_>,
        ask: &Ask<'_>,
        scratch: &mut dyn Any,
        out: &mut Vec<Scored>,
    ) -> Result<Told, QueryError> {
        Answering::one(self, row, ask, scratch_of(scratch), out)
    }

    fn batch(&self, rows: Rows<'_>, ask: &Ask<'_>, scratch: &mut dyn Any) -> Result<Answers, BatchError> {
        Answering::batch(self, rows, ask, scratch_of(scratch))
    }

    fn scores_at_most_one(&self) -> bool {
        Answering::scores_at_most_one(self)
    }

    fn touched(&self, row: SparseRow<'_>, ask: &Ask<'_>, scratch: &mut dyn Any, touched: &mut Touched) -> bool {
        Answering::touched(self, row, ask, scratch_of(scratch), touched)
    }
}

/// The scratch of a system. Scratches are made by [`System::scratch`] and kept with the model's
/// number.
///
/// # Panics
/// If it is of another type, which the number rules out.
pub(crate) fn scratch_of<T: Any>(scratch: &mut dyn Any) -> &mut T {
    scratch.downcast_mut().unwrap_or_else(|| panic!("a scratch is of the type that its model made"))
}

/// What a model is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Description {
    /// The kind as `config.json` names it.
    pub kind: &'static str,
    /// What a query consists of.
    pub takes: InputKind,
    /// Number of features of a query (behind the text pipeline), or of values of a vector.
    pub n_features: usize,
    /// Number of labels.
    pub n_labels: usize,
    /// Bytes of the array files.
    pub n_bytes: u64,
    /// Queries of a batch beyond which nothing is gained.
    pub batch_size: usize,
    /// Whether all threads work on one query.
    pub shares_queries: bool,
    /// Whether scores are probabilities by a calibration.
    pub calibrated: bool,
}

/// A table of the parts of a model: sizes that the configuration states.
#[derive(Clone, Debug, PartialEq)]
pub struct InfoTable {
    /// What the rows are: `levels`.
    pub name: &'static str,
    /// What a reader has to know about the columns; may be empty.
    pub note: &'static str,
    /// Names of the columns.
    pub columns: Vec<&'static str>,
    /// One row a part, as many cells as columns.
    pub rows: Vec<Vec<Cell>>,
}

/// One entry of a [`InfoTable`].
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// A count, or a number that names something.
    Count(u64),
    /// Bytes.
    Bytes(u64),
    /// A mean.
    Mean(f64),
    /// A word.
    Text(&'static str),
}
