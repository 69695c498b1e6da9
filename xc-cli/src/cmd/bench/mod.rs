//! `xc bench`: how fast a model answers, and how training runs compare.

mod curves;

use crate::answer::{SearchArgs, query_error};
use crate::bytes::format_bytes;
use crate::context::Context;
use crate::data::{InputArgs, Queries, of_labels};
use crate::described::Described;
use crate::device::DeviceArgs;
use crate::error::CliError;
use crate::measure::Meter;
use crate::model::OpenArgs;
use crate::output;
use clap::ValueEnum;
use serde_json::json;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Instant;
use xc_hash::text::Featurizer;
use xc_model::Model;
use xc_model::{Answer, BatchError, OwnedRows, QueryOptions, Rows, Scratch};
use xc_sparse::chunked::{IteratorChoice, IteratorKind, Touched};
use xc_store::PART_FOLDER;

/// Measure speed and compare training runs
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand, Debug)]
enum What {
    Predict(Described<PredictArgs>),
    Curves(Described<curves::Args>),
}

/// Measure how fast a model answers
///
/// The input is read, and text turned into features, before timing begins. One warm-up
/// pass is followed by --repeat timed passes; with --cold only the first pass is timed,
/// for a model that is not in the page cache.
///
///   online   one query after the other, on one thread (a uniform model: all threads on each
///            query); mean and percentiles over all queries of all passes
///   batch    all queries together on all threads; mean_ms is the fastest pass divided by the
///            number of queries
///
/// Examples:
///   xc bench predict --model my.model --input test.txt --mode online --top-k 10
///   xc bench predict --model my.model --input test.txt --mode batch --threads 1 --json
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
#[command(mut_arg("label-field", |arg| arg.hide(true)))]
#[command(mut_arg("label-separator", |arg| arg.hide(true)))]
#[command(mut_arg("id-field", |arg| arg.hide(true)))]
#[command(mut_arg("svmlight-label-base", |arg| arg.hide(true)))]
pub(crate) struct PredictArgs {
    /// The model folder
    #[arg(long, value_name = "DIR")]
    model: PathBuf,
    /// Queries
    #[arg(long, value_name = "FILE")]
    input: PathBuf,
    /// One query after the other, or all together
    #[arg(long, value_name = "MODE", value_enum, default_value_t = Mode::Online)]
    mode: Mode,
    /// Labels per query
    #[arg(long, value_name = "K", default_value_t = 10)]
    top_k: usize,
    /// Number of timed passes
    #[arg(long, value_name = "N", default_value_t = 5)]
    repeat: usize,
    /// Number of queries to use, from the first on [default: all]
    #[arg(long, value_name = "N")]
    queries: Option<usize>,
    #[command(flatten)]
    open: OpenArgs,
    /// Time only the first pass, without a warm-up
    #[arg(long, conflicts_with = "repeat")]
    cold: bool,
    /// How a query's features are intersected with a chunk's rows (trees)
    #[arg(long, value_name = "NAME", value_enum, default_value_t = Iterator::Auto)]
    iterator: Iterator,
    /// Count the memory that the queries touch, and report the least time that reading it takes (trees)
    #[arg(long)]
    floor: bool,
    #[command(flatten)]
    search: SearchArgs,
    #[command(flatten)]
    device: DeviceArgs,
    #[command(flatten)]
    format: InputArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Mode {
    Online,
    Batch,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Iterator {
    /// The one that fits each query and chunk
    Auto,
    /// Two pointers
    Marching,
    /// Galloping binary search
    Galloping,
    /// A rank directory
    Hashed,
    /// A dense array that the chunk is scattered into
    Lookup,
}

impl Iterator {
    fn choice(self) -> IteratorChoice {
        match self {
            Self::Auto => IteratorChoice::Auto,
            Self::Marching => IteratorChoice::Fixed(IteratorKind::Marching),
            Self::Galloping => IteratorChoice::Fixed(IteratorKind::Galloping),
            Self::Hashed => IteratorChoice::Fixed(IteratorKind::Hashed),
            Self::Lookup => IteratorChoice::Fixed(IteratorKind::Lookup),
        }
    }
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<(), CliError> {
    match &args.what {
        What::Predict(args) => bench_predict(args, context),
        What::Curves(args) => curves::run(args, context),
    }
}

fn bench_predict(args: &PredictArgs, context: &Context) -> Result<(), CliError> {
    for (option, value) in [("top-k", args.top_k), ("repeat", args.repeat)] {
        if value == 0 {
            return Err(CliError::usage(format_args!("--{option} 0: at least 1 is expected")));
        }
    }
    let meter = Meter::start();
    let start = Instant::now();
    let search = args.search.params()?;
    let mut model = args.open.open(&args.model, &search, context)?;
    match args.mode {
        Mode::Online => args.device.stay(
            "--mode online asks one query after the other, which stays on the CPU; --mode batch is expected",
            context,
        )?,
        Mode::Batch if args.floor => args.device.stay("--floor is about memory of the CPU", context)?,
        Mode::Batch => args.device.put(&mut model, &search.options, None, context)?,
    }
    let load_ms = start.elapsed().as_secs_f64() * 1e3;
    args.format.refuse_idle(&args.format.or(model.input()), [&*args.input])?;
    let why = "queries alone are read, without labels and ids";
    context.options.refuse_if(|option| option == "id-field" || of_labels().contains(&option), why)?;
    if !args.model.join(PART_FOLDER).exists() {
        context.options.refuse_idle(&["max-age"], "a model with an index of its labels", "")?;
    }
    let mut queries = Queries::open(&args.input, &args.format.settings(), &model)?;
    let rows = queries
        .next_batch(args.queries.unwrap_or(usize::MAX - 1))?
        .ok_or_else(|| CliError::usage(format_args!("{}: no query; at least one is expected", args.input.display())))?;
    queries.report_unseen(&context.fit());
    let mut search = search.options;
    search.matching = (args.iterator != Iterator::Auto).then(|| args.iterator.choice());
    let options = QueryOptions { made: makes_before(&model), search, ..QueryOptions::top(args.top_k) };
    let input = args.input.display().to_string();
    let made = made(rows, &model, &input, context)?;
    let asked = Asked { rows: made.view(), model: &model, options, input };
    let passes = if args.cold { 0..1 } else { 1..args.repeat.saturating_add(1) };
    // What every query took is kept.
    let n_times = if args.mode == Mode::Online { asked.len() } else { 1 };
    let needed = (n_times as u64).saturating_mul(passes.len() as u64).saturating_mul(size_of::<f64>() as u64);
    context.foresee_memory(&format!("--repeat {}", args.repeat), needed)?;

    let first = Instant::now();
    asked.one(0, &mut Scratch::default(), &mut Answer::default())?;
    let first_answer_ms = load_ms + first.elapsed().as_secs_f64() * 1e3;

    let (n_passes, about) = (passes.len(), model.describe());
    let times = match args.mode {
        Mode::Online => context.on_threads(|| online(&asked, passes, context))?,
        Mode::Batch => context.on_threads(|| batch(&asked, passes, context))?,
    };
    args.device.report(&model, context);
    let usage = meter.usage();
    let floor = if args.floor { Some(Floor::measure(&asked, args.mode)?) } else { None };
    let n_queries = asked.len();
    if context.json {
        let mut report = json!({
            "mean_ms": times.mean_ms,
            "load_ms": load_ms,
            "first_answer_ms": first_answer_ms,
            "queries": n_queries,
            "repeat": n_passes,
            "model_bytes": about.n_bytes,
            "peak_rss_bytes": usage.peak_rss_bytes,
            "peak_anon_bytes": usage.peak_anon_bytes,
            "threads": if args.mode == Mode::Online && !about.shares_queries { 1 } else { context.threads },
        });
        // In batch the times of a few passes are known, none of a query.
        if args.mode == Mode::Online {
            for (name, share) in [("p50_ms", 0.5), ("p95_ms", 0.95), ("p99_ms", 0.99)] {
                report[name] = times.percentile(share).into();
            }
        }
        if let Some(floor) = floor {
            report["touched"] = floor.report();
        }
        return output::print(&report.to_string());
    }
    let mut text =
        format!("queries   {} x {} passes\nmean      {:.4} ms a query\n", n_queries, n_passes, times.mean_ms);
    if args.mode == Mode::Online {
        let [p50, p95, p99] = [0.5, 0.95, 0.99].map(|share| times.percentile(share));
        text += &format!("p50       {p50:.4} ms\np95       {p95:.4} ms\np99       {p99:.4} ms\n");
    }
    text += &format!(
        "load      {load_ms:.1} ms (first answer after {first_answer_ms:.1} ms)\nmodel     {}\n",
        format_bytes(about.n_bytes)
    );
    if let Some(bytes) = usage.peak_rss_bytes {
        text += &format!("memory    {} at the peak\n", format_bytes(bytes));
    }
    if let Some(floor) = floor {
        text += &floor.text();
    }
    output::print(&text)
}

/// Milliseconds: of each query online, a query's share of each pass in batch.
struct Times {
    mean_ms: f64,
    sorted_ms: Vec<f64>,
}

impl Times {
    /// The smallest time that at least `share` of all do not exceed.
    fn percentile(&self, share: f64) -> f64 {
        let rank = (share * self.sorted_ms.len() as f64).ceil() as usize;
        self.sorted_ms[rank.clamp(1, self.sorted_ms.len()) - 1]
    }
}

/// Whether rows are made of queries before anything is timed: all that a transformer does is timed.
fn makes_before(model: &Model) -> bool {
    model.pipeline().is_some_and(|made| !matches!(made, Featurizer::Vectors(_)))
}

/// Features or tokens of all queries, made before anything is timed. A model whose members make features each for
/// itself is asked with texts: that is timed too.
fn made(rows: OwnedRows, model: &Model, input: &str, context: &Context) -> Result<OwnedRows, CliError> {
    if !makes_before(model) || matches!(rows, OwnedRows::Dense(_)) {
        return Ok(rows);
    }
    let made = context.on_threads(|| model.features(rows.view()));
    made.map_err(|e| query_error(&e, 0, input))
}

/// Queries of one model.
struct Asked<'a> {
    rows: Rows<'a>,
    model: &'a Model,
    options: QueryOptions<'a>,
    /// Where they come from.
    input: String,
}

impl Asked<'_> {
    fn len(&self) -> usize {
        self.rows.len()
    }

    fn one(&self, number: usize, scratch: &mut Scratch, answer: &mut Answer) -> Result<(), CliError> {
        let outcome = self.model.predict(&self.rows.row(number), &self.options, scratch, answer);
        outcome.map_err(|source| query_error(&BatchError { query: 0, source }, number, &self.input))
    }
}

fn online(asked: &Asked<'_>, timed: Range<usize>, context: &Context) -> Result<Times, CliError> {
    let (mut scratch, mut answer) = (Scratch::default(), Answer::default());
    let mut times = Vec::new();
    for pass in 0..timed.end {
        context.check_interrupt()?;
        for i in 0..asked.len() {
            let start = Instant::now();
            asked.one(i, &mut scratch, &mut answer)?;
            let elapsed = start.elapsed();
            std::hint::black_box(&answer);
            // What comes before only warms up.
            if timed.contains(&pass) {
                times.push(elapsed.as_secs_f64() * 1e3);
            }
        }
    }
    let mean_ms = times.iter().sum::<f64>() / times.len() as f64;
    times.sort_unstable_by(f64::total_cmp);
    Ok(Times { mean_ms, sorted_ms: times })
}

fn batch(asked: &Asked<'_>, timed: Range<usize>, context: &Context) -> Result<Times, CliError> {
    let mut times = Vec::new();
    for pass in 0..timed.end {
        context.check_interrupt()?;
        let start = Instant::now();
        let answers = asked.model.predict_batch(asked.rows, &asked.options);
        std::hint::black_box(answers.map_err(|e| query_error(&e, 0, &asked.input))?);
        if timed.contains(&pass) {
            times.push(start.elapsed().as_secs_f64() * 1e3 / asked.len() as f64);
        }
    }
    times.sort_unstable_by(f64::total_cmp);
    Ok(Times { mean_ms: times[0], sorted_ms: times })
}

/// The memory that queries touch, and what it costs to read.
struct Floor {
    queries: usize,
    touched: Touched,
    lines: usize,
    ns_a_line: f64,
}

impl Floor {
    /// Online a line counts for every query that touches it, in batch once.
    ///
    /// # Errors
    /// The kind of model cannot tell what it touches.
    fn measure(asked: &Asked<'_>, mode: Mode) -> Result<Self, CliError> {
        let (mut scratch, mut all, mut lines) = (Scratch::default(), Touched::default(), 0);
        let mut touch = |i: usize, touched: &mut Touched| {
            let outcome = asked.model.touched(&asked.rows.row(i), &asked.options, &mut scratch, touched);
            match outcome.map_err(|source| query_error(&BatchError { query: 0, source }, i, &asked.input))? {
                true => Ok(()),
                false => {
                    let kind = asked.model.describe().kind;
                    Err(CliError::usage(format_args!(
                        "--floor: a model of kind {kind:?} cannot tell what memory a query touches"
                    )))
                }
            }
        };
        for i in 0..asked.len() {
            if mode == Mode::Batch {
                touch(i, &mut all)?;
                continue;
            }
            let mut one = Touched::default();
            touch(i, &mut one)?;
            lines += one.lines();
            all.probes += one.probes;
            all.rows += one.rows;
            all.weights += one.weights;
        }
        if mode == Mode::Batch {
            lines = all.lines();
        }
        let ns_a_line = line_ns(asked.model.describe().n_bytes as usize);
        Ok(Self { queries: asked.len(), lines, touched: all, ns_a_line })
    }

    fn per_query(&self, count: f64) -> f64 {
        count / self.queries as f64
    }

    fn ms(&self) -> f64 {
        self.per_query(self.lines as f64) * self.ns_a_line / 1e6
    }

    fn report(&self) -> serde_json::Value {
        json!({
            "probes": self.per_query(self.touched.probes as f64),
            "rows": self.per_query(self.touched.rows as f64),
            "weights": self.per_query(self.touched.weights as f64),
            "lines": self.per_query(self.lines as f64),
            "line_ns": self.ns_a_line,
            "floor_ms": self.ms(),
        })
    }

    fn text(&self) -> String {
        format!(
            "touched   {:.0} probes, {:.0} rows, {:.0} weights, {:.0} cache lines a query\n\
             floor     {:.4} ms a query: {:.2} ns a line, read at random from a buffer as large as the model\n",
            self.per_query(self.touched.probes as f64),
            self.per_query(self.touched.rows as f64),
            self.per_query(self.touched.weights as f64),
            self.per_query(self.lines as f64),
            self.ms(),
            self.ns_a_line
        )
    }
}

/// Largest buffer that [`line_ns`] takes: beyond it every access misses all caches anyway.
const LARGEST_BUFFER: usize = 1 << 30;

/// Nanoseconds for one of many independent reads of random cache lines of a buffer, the best of
/// three passes.
fn line_ns(bytes: usize) -> f64 {
    let lines = (bytes.min(LARGEST_BUFFER) / 64).max(64);
    let buffer = vec![[1u64; 8]; lines];
    let reads = lines.clamp(1 << 20, 1 << 22);
    let mut best = f64::INFINITY;
    let mut sum = 0;
    for pass in 0..4u64 {
        let start = Instant::now();
        let mut state = pass;
        for _ in 0..reads {
            // The multiplier of a linear congruential generator; its high bits choose a line.
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            sum += buffer[((u128::from(state) * lines as u128) >> 64) as usize][0];
        }
        if pass > 0 {
            best = best.min(start.elapsed().as_secs_f64() * 1e9 / reads as f64);
        }
    }
    std::hint::black_box(sum);
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_times_that_were_measured() {
        let times = Times { mean_ms: 0.0, sorted_ms: (1..=200).map(f64::from).collect() };
        assert_eq!([0.5, 0.95, 0.99, 1.0].map(|s| times.percentile(s)), [100.0, 190.0, 198.0, 200.0]);
        assert_eq!(Times { mean_ms: 0.0, sorted_ms: vec![7.0] }.percentile(0.5), 7.0);
    }
}
