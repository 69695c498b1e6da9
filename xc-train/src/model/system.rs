//! What a kind of model has to be able to do to stand behind [`super::Model`].

use super::query::{Answers, Candidates, QueryError, SearchOptions};
use super::{OpenModelError, OpenOptions};
use std::any::Any;
use std::error::Error;
use xc_mach::Certificate;
use xc_sparse::SparseRow;
use xc_sparse::chunked::Touched;
use xc_sparse::rank::Scored;
use xc_sparse::rows::{InputKind, Row, Rows};
use xc_store::Container;

/// A kind of model on disk.
#[derive(Clone, Copy)]
pub(super) struct Kind {
    /// As `config.json` names it.
    pub(super) name: &'static str,
    /// Names of the search options that it has.
    pub(super) options: &'static [&'static str],
    /// Whether it answers when some of its array files are lost.
    pub(super) answers_in_part: bool,
    /// Whether its scores are made of margins, by what [`OpenOptions::post_processor`] names.
    pub(super) has_margins: bool,
    /// Opens the arrays of a container of this kind.
    pub(super) open: fn(Container, &OpenOptions, Check) -> Result<Opened, OpenModelError>,
    /// Tables of what a container of this kind consists of.
    pub(super) tables: fn(&Container) -> Result<Vec<InfoTable>, OpenModelError>,
}

/// Whether the arrays of a model are looked at when it is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Check {
    /// Everything that answers rely on.
    Structure,
    /// Sizes alone: [`super::Model::open_trusted`].
    None,
}

/// What opening a kind of model gives.
pub(super) struct Opened {
    pub(super) system: Box<dyn System>,
    pub(super) shape: Shape,
    /// The container, to be kept for the pipeline, the label names and the sizes.
    pub(super) container: Container,
    /// What was left out, and why.
    pub(super) warnings: Vec<Box<dyn Error + Send + Sync>>,
}

/// One question, checked: options are the kind's, labels and features in range, values finite.
#[derive(Clone, Copy)]
pub(super) struct Ask<'a> {
    pub(super) top_k: usize,
    pub(super) candidates: Candidates<'a>,
    pub(super) search: SearchOptions,
}

/// What a model looks like from outside.
pub(super) struct Shape {
    /// Number of features of a query, or of values of a vector.
    pub(super) n_features: usize,
    pub(super) n_labels: usize,
    /// Features of the words that stand beside the tokens of a query, where it needs them.
    pub(super) words: Option<usize>,
    /// What a query is once the model's pipeline, if it has one, is done with it.
    pub(super) takes: InputKind,
    /// Whether all threads work on one query.
    pub(super) shares_queries: bool,
    /// Queries of a batch beyond which nothing is gained.
    pub(super) batch_size: usize,
    /// Makes the memory of one thread's queries, which is handed back to `one` and `batch`.
    pub(super) scratch: fn() -> Box<dyn Any + Send>,
}

impl Shape {
    /// Of a model of sparse features whose queries need a scratch of type `S`.
    pub(super) fn new<S: Default + Any + Send>(n_features: usize, n_labels: usize) -> Self {
        let scratch = || -> Box<dyn Any + Send> { Box::<S>::default() };
        let (takes, words) = (InputKind::Sparse, None);
        Self { n_features, n_labels, words, takes, shares_queries: true, batch_size: 1024, scratch }
    }
}

/// What a system says about the answer to a query.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Told {
    /// Where the kind can tell whether the labels are the best.
    pub(super) certificate: Option<Certificate>,
    /// Where the system made features of a text itself.
    pub(super) known_terms: Option<usize>,
}

/// A model that answers. Scores of labels with different logits differ, and lists are ranked. What
/// only its kind can do is asked of the type itself.
pub(super) trait System: Any + Send + Sync {
    /// Ranks labels of one query into `out`, without allocation once the scratch has grown.
    fn one(
        &self,
        row: Row<'_>,
        ask: &Ask<'_>,
        scratch: &mut dyn Any,
        out: &mut Vec<Scored>,
    ) -> Result<Told, QueryError>;

    /// Answers queries.
    fn batch(&self, rows: Rows<'_>, ask: &Ask<'_>, scratch: &mut dyn Any) -> Result<Answers, (usize, QueryError)>;

    /// Whether scores are at most 1: probabilities, products of them, cosines.
    fn scores_at_most_one(&self) -> bool {
        true
    }

    /// Adds the memory that a query touches, where the kind can tell; else gives false.
    fn touched(&self, _row: SparseRow<'_>, _ask: &Ask<'_>, _scratch: &mut dyn Any, _touched: &mut Touched) -> bool {
        false
    }
}

/// The scratch of a system. Scratches are made by [`Shape::scratch`] and kept with the model's
/// number.
///
/// # Panics
/// If it is of another type, which the number rules out.
pub(super) fn scratch_of<T: Any>(scratch: &mut dyn Any) -> &mut T {
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
