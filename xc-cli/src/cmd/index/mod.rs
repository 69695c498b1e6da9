//! `xc index`: nearest neighbours among vectors.

mod build;
mod evaluate;
mod log;
mod refresh;
mod search;
mod sparse;

use crate::context::Context;
use crate::data::{InputArgs, Queries, RowArgs, read_rows, strings_for};
use crate::described::Described;
use crate::error::{CliError, chain};
use crate::interrupt::interrupted;
use crate::progress::Task;
use crate::settings::{Chosen, OfTable};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use xc_ann::{BuildError, BuildEvent, INVERTED_KIND, Index, KIND, Metric, OpenGraphError, Scope};
use xc_buffer::{Cancel, Observer};
use xc_data::{Format, ReadError, ReadErrorKind, ReadOptions, UnknownLabels, Vectors, read_labels};
use xc_dense::DenseRows;
use xc_model::Model;
use xc_model::classifier::{LabelIndex, LabelIndexError, LostPrecision};
use xc_model::{IndexError, IndexFit, OwnedRows};
use xc_options::settings::{Table, search as settings};
use xc_sparse::LabelRows;
use xc_store::{Container, OpenMode};

/// Search vectors for nearest neighbours or largest inner products
///
/// Vectors are the rows of an .npy, .fvecs, .bvecs, .ivecs, .fbin or .u8bin file. An index is
/// a folder: a graph over 8-bit codes of the rows, and the rows, which rank the answers.
/// Sparse rows (XC text, svmlight, npz) get lists of rows by column instead, which answer
/// exactly. The same rows and options give the same bytes and answers at any number of
/// threads.
///
/// Examples:
///   xc index build --vectors rows.npy --metric l2 --output my.index
///   xc index search --index my.index --queries queries.npy --top-k 10 --output answers.txt
///   xc index evaluate --index my.index --queries queries.npy --top-k 10 --target-recall 0.95
///   xc index refresh --index my.index --vectors moved.npy
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment, subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand, Debug)]
enum Command {
    Build(Described<build::Args>),
    Search(Described<search::Args>),
    Refresh(Described<refresh::Args>),
    Evaluate(Described<evaluate::Args>),
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<(), CliError> {
    match &args.command {
        Command::Build(args) => build::run(args, context),
        Command::Search(args) => search::run(args, context),
        Command::Refresh(args) => refresh::run(args, context),
        Command::Evaluate(args) => evaluate::run(args, context),
    }
}

/// Queries of an index.
#[derive(clap::Args, Debug)]
struct Asked {
    /// Folder of the index
    #[arg(long, value_name = "DIR")]
    index: PathBuf,
    /// The queries
    #[arg(long, value_name = "FILE")]
    queries: PathBuf,
    /// Answers per query
    #[arg(long, value_name = "K", default_value_t = 10)]
    top_k: usize,
    /// Rows that may be answers: their numbers, one per line
    #[arg(long, value_name = "FILE")]
    filter: Option<PathBuf>,
    /// Read the index into memory, in large pages, instead of mapping its file: opening is slower, answers are faster
    #[arg(long)]
    in_memory: bool,
    #[command(flatten)]
    format: RowArgs,
}

/// How far an index is searched.
#[derive(Clone, Copy, Debug)]
struct OfScope;

impl OfTable for OfScope {
    const TABLE: Table = settings::SCOPE;
}

/// The same.
type ScopeArgs = Chosen<OfScope>;

impl ScopeArgs {
    /// The option that is given, if one is.
    fn given(&self) -> Option<String> {
        self.choices.iter().next().map(|(row, _)| format!("--{}", row.name))
    }

    /// What is to be looked at; nothing where no option is given.
    fn scope(&self, index: &Index) -> Result<Option<Scope>, CliError> {
        let scope = settings::scope(&self.choices)?;
        if scope.is_some_and(|scope| scope.n_cells() > 0) && index.graph().n_cells() == 0 {
            return Err(CliError::usage("--cells: this index has none; xc index build --cells N makes some"));
        }
        Ok(scope)
    }
}

/// An index, its queries, and a bit for each row that may be an answer.
#[expect(clippy::large_enum_variant, reason = "a command has one of them")]
enum Opened {
    Vectors(Index, Vectors, Option<Vec<u64>>),
    Sparse(sparse::Opened),
}

impl Asked {
    fn open(&self, context: &Context) -> Result<Opened, CliError> {
        let container = Container::open(&self.index, mode(self.in_memory)).map_err(|e| open_error(&e.into()))?;
        if container.kind() == INVERTED_KIND {
            return Ok(Opened::Sparse(sparse::Opened::new(self, &container, context)?));
        }
        container.expect_kind(KIND).map_err(|e| open_error(&e.into()))?;
        context.options.refuse_idle(&RowArgs::NAMES, "an index of sparse rows", "this one has vectors")?;
        let index = Index::read(&container).map_err(|e| open_error(&e))?;
        let queries = vectors_of_width(&self.queries, index.graph().dim())?;
        if queries.rows() == 0 {
            return Err(CliError::usage(format_args!("{}: no queries", self.queries.display())));
        }
        let filter = self.row_bits(index.rows().len())?;
        Ok(Opened::Vectors(index, queries, filter))
    }

    /// The bits of the rows that may be answers, one number a line of the file.
    fn row_bits(&self, n_rows: usize) -> Result<Option<Vec<u64>>, CliError> {
        let Some(path) = &self.filter else { return Ok(None) };
        let mut bits = vec![0u64; n_rows.div_ceil(64)];
        read_rows(path, n_rows)?.into_iter().for_each(|row| bits[row as usize / 64] |= 1 << (row % 64));
        Ok(Some(bits))
    }
}

/// Microseconds that 50 and 99 of 100 queries take at most, one after the other; there is at least one.
fn percentiles<E>(n: usize, mut answer: impl FnMut(usize) -> Result<(), E>) -> Result<[f64; 2], E> {
    let mut took = Vec::with_capacity(n);
    for query in 0..n {
        let begin = Instant::now();
        answer(query)?;
        took.push(1e6 * begin.elapsed().as_secs_f64());
    }
    took.sort_by(f64::total_cmp);
    Ok([50, 99].map(|percent| took[(took.len() * percent / 100).min(took.len() - 1)]))
}

/// What an index is fitted to, and edges are made for.
#[derive(clap::Args, Debug)]
struct Instances {
    /// Queries like those that will be asked (for a model, instances in the form that it takes): the width is fitted to
    /// them; with inner products it is fitted to the first half, at most 1,000, and the others make edges
    #[arg(long, value_name = "FILE")]
    fit_queries: Option<PathBuf>,
    /// Number of instances of a file to use for a model's index
    #[arg(long, value_name = "N", default_value_t = 10_000, requires_all = ["model", "fit_queries"])]
    fit_instances: usize,
    /// Points that P@1, P@3 and P@5 may lose against scoring all labels, of instances of --fit-queries that have labels
    /// [default: 0.1]
    #[arg(id = "max-loss", long, value_name = "POINTS", requires_all = ["model", "fit_queries"])]
    max_loss: Option<f64>,
    #[command(flatten)]
    format: InputArgs,
}

impl Instances {
    /// Refuses a loss that is none.
    fn check(&self) -> Result<(), CliError> {
        match self.max_loss.filter(|loss| !(0.0..=100.0).contains(loss)) {
            Some(loss) => Err(CliError::usage(format_args!("--max-loss {loss}: points from 0 to 100 are expected"))),
            None => Ok(()),
        }
    }

    /// Refuses options about the form of --fit-queries where there is no such file, or vectors are in it.
    fn refuse_idle(&self, is_of_model: bool, context: &Context) -> Result<(), CliError> {
        if let (true, Some(path)) = (is_of_model, &self.fit_queries) {
            context.options.refuse(&["id-field"], "ids of queries are not read")?;
            return self.format.refuse_idle(&self.format.settings(), [&**path]);
        }
        let needs = match is_of_model {
            true => "--fit-queries",
            false => "sparse rows, or --model with --fit-queries",
        };
        context.options.refuse_idle(&InputArgs::NAMES, needs, "")
    }

    /// Labels of the instances that were read, if the file has some.
    fn labels(&self, model: &Model, n: usize, context: &Context) -> Result<Option<LabelRows>, CliError> {
        let Some(path) = &self.fit_queries else { return Ok(None) };
        let names = model.dictionary()?;
        let mut options = ReadOptions::from(self.format.or(model.input()));
        options.label_strings = strings_for(names.as_ref());
        options.label_names = names.map(Arc::new);
        options.unknown_labels = UnknownLabels::Drop;
        let n_labels = model.describe().n_labels;
        let why = match read_labels(path, &options) {
            Ok(lists) if lists.labels.len() < n => format!("{} rows of labels", lists.labels.len()),
            Ok(lists) => {
                let first: Vec<u32> = (0..n as u32).collect();
                let labels = lists.labels.select(&first).within(n_labels);
                if labels.nnz() > 0 {
                    return Ok(Some(labels));
                }
                "no labels of the model".to_owned()
            }
            Err(error) => chain(&error),
        };
        if self.max_loss.is_some() {
            let path = path.display();
            return Err(CliError::usage(format_args!("{path}: {why}; --max-loss needs the labels of instances")));
        }
        context.note(format_args!("index: {}: {why}; fitted to the best labels", path.display()));
        Ok(None)
    }

    /// Fits an index to what its answers lose, if it is known which labels are true; says what they lose.
    fn fit(
        &self,
        model: &Model,
        index: &mut LabelIndex,
        asked: Option<&OwnedRows>,
        usual: IndexFit,
        (folder, context): (&Path, &Context),
    ) -> Result<Option<LostPrecision>, CliError> {
        let Some(asked) = asked.filter(|_| index.graph().is_some()) else { return Ok(None) };
        let Some(labels) = self.labels(model, asked.len(), context)? else { return Ok(None) };
        let params = IndexFit { max_loss: self.max_loss.map_or(usual.max_loss, |points| points / 100.0), ..usual };
        let done = context.on_threads(|| model.fit_index(index, asked.view(), &labels, &params));
        Ok(done.map_err(|e| label_error(folder, &e))?.map(|done| done.1))
    }

    /// Instances for a model.
    fn read(&self, model: &Model, context: &Context) -> Result<Option<OwnedRows>, CliError> {
        let Some(path) = &self.fit_queries else { return Ok(None) };
        let mut queries = Queries::open(path, &self.format.settings(), model)?;
        let first = queries.next_batch(self.fit_instances)?;
        queries.report_unseen(&context.fit());
        first.map(Some).ok_or_else(|| CliError::usage(format_args!("{}: no instances", path.display())))
    }
}

/// Says what answers lose.
fn say_lost(lost: Option<LostPrecision>, context: &Context) {
    if let Some(lost) = lost {
        let LostPrecision { at_1, at_3, at_5 } = lost;
        let [at_1, at_3, at_5] = [at_1, at_3, at_5].map(|lost| 100.0 * lost);
        context.note(format_args!(
            "index: loses {at_1:.2} points of P@1, {at_3:.2} of P@3, {at_5:.2} of P@5 on --fit-queries"
        ));
    }
}

/// Says how many queries have no direction, and no answers.
fn say_without_direction(metric: Metric, n: usize, context: &Context) {
    if metric == Metric::Cosine && n > 0 {
        let what = if n == 1 { "1 query of zeros has" } else { &format!("{n} queries of zeros have") };
        context.note(format_args!("index: {what} no direction, and no answers"));
    }
}

/// How many queries are all zeros.
fn zeros(queries: DenseRows<'_>) -> usize {
    queries.iter().filter(|query| query.iter().all(|value| *value == 0.0)).count()
}

/// Files that hold vectors.
const VECTOR_FILES: &str = "npy, fvecs, bvecs, ivecs, fbin or u8bin";

/// Vectors of a file, all finite.
fn vectors(path: &Path) -> Result<Vectors, CliError> {
    let options = ReadOptions::default();
    let is_unknown = |error: &ReadError| matches!(error.kind(), ReadErrorKind::UnknownFormat);
    if !Vectors::has_name(path) && path.is_file() && Format::detect(path, &options).as_ref().is_err_and(is_unknown) {
        return Err(unknown_format(path));
    }
    let vectors = Vectors::open(path, &options)?;
    if vectors.columns() == 0 {
        return Err(CliError::usage(format_args!(
            "{}: rows without values; expected at least one column",
            path.display()
        )));
    }
    vectors.check(0..vectors.rows())?;
    Ok(vectors)
}

fn unknown_format(path: &Path) -> CliError {
    CliError::usage(format_args!(
        "{}: format not recognised; vectors ({VECTOR_FILES}, by the file's name) or sparse rows (xc, svmlight or npz) are \
         expected",
        path.display()
    ))
}

/// Queries of a file, as wide as the vectors of an index.
fn vectors_of_width(path: &Path, expected: usize) -> Result<Vectors, CliError> {
    let vectors = vectors(path)?;
    let found = vectors.columns();
    if found != expected {
        let path = path.display();
        return Err(CliError::usage(format_args!(
            "{path}: vectors of {found} values; those of the index have {expected}"
        )));
    }
    Ok(vectors)
}

fn rows(vectors: &Vectors) -> DenseRows<'_> {
    DenseRows::new(vectors.values(), vectors.columns())
}

fn open(path: &Path, in_memory: bool) -> Result<Index, CliError> {
    Index::open(path, mode(in_memory)).map_err(|e| open_error(&e))
}

fn mode(in_memory: bool) -> OpenMode {
    if in_memory { OpenMode::Read } else { OpenMode::Map }
}

fn open_error(error: &OpenGraphError) -> CliError {
    CliError::usage(chain(error))
}

fn build_error(path: &Path, error: &BuildError) -> CliError {
    match error {
        BuildError::Cancelled => CliError::interrupted(),
        BuildError::TooFewFound { recall, k, least } => CliError::usage(format_args!(
            "--min-recall {least}: {recall} of the {k} best are found; a larger --keep or --target-recall finds more"
        )),
        BuildError::Row { .. } | BuildError::Rows { .. } | BuildError::Width { .. } => CliError::input(path, error),
        _ => CliError::usage(chain(error)),
    }
}

/// What is wrong with an index of a model's labels.
fn label_error(folder: &Path, error: &IndexError) -> CliError {
    match error {
        IndexError::Index(LabelIndexError::Build(error)) => build_error(folder, error),
        IndexError::Write(error) => error.into(),
        error => CliError::usage(format_args!("{}: {}", folder.display(), chain(error))),
    }
}

/// Shows how vertices are linked, and stops after Ctrl-C.
struct Watch<'a> {
    context: &'a Context,
    task: Mutex<Option<Task>>,
}

impl<'a> Watch<'a> {
    fn new(context: &'a Context) -> Self {
        Self { context, task: Mutex::new(None) }
    }
}

impl Cancel for Watch<'_> {
    fn cancelled(&self) -> bool {
        interrupted()
    }
}

impl Observer<BuildEvent> for Watch<'_> {
    fn event(&self, event: BuildEvent) {
        let mut task = self.task.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        match (event, task.as_ref()) {
            (BuildEvent::Linking { n }, _) => *task = Some(self.context.task("vectors linked", n as u64)),
            (BuildEvent::Linked { done }, Some(task)) => task.advance(done as u64),
            _ => {}
        }
    }
}
