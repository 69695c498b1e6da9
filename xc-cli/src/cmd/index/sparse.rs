//! Indexes of sparse rows: lists of rows by column, which answer exactly.

use super::{Asked, VECTOR_FILES, build_error, log, open_error, percentiles, say_without_direction, unknown_format};
use crate::bytes::format_bytes;
use crate::context::Context;
use crate::data::InputArgs;
use crate::error::CliError;
use crate::output;
use serde_json::json;
use std::path::Path;
use std::time::Instant;
use xc_ann::{Filter, InvertedIndex, InvertedScratch, Metric};
use xc_data::{Format, ReadErrorKind, ReadOptions, Vectors, read_dataset_until};
use xc_sparse::CsrMatrix;
use xc_sparse::rank::RankedBatch;
use xc_store::{Container, ContainerWriter};

/// Whether a file holds sparse rows.
pub(super) fn holds_rows(path: &Path, options: &ReadOptions) -> Result<bool, CliError> {
    if Vectors::has_name(path) {
        return Ok(false);
    }
    let format = Format::detect(path, options).map_err(|error| match error.kind() {
        ReadErrorKind::UnknownFormat => unknown_format(path),
        _ => error.into(),
    })?;
    if format.may_hold_text() {
        let path = path.display();
        return Err(CliError::usage(format_args!(
            "{path}: {format}, expected vectors ({VECTOR_FILES}) or sparse rows (xc, svmlight, npz)"
        )));
    }
    Ok(format != Format::Npy)
}

fn read(path: &Path, options: &ReadOptions, context: &Context) -> Result<CsrMatrix, CliError> {
    let features = read_dataset_until(path, options, context)?.features;
    if features.rows() == 0 {
        return Err(CliError::usage(format_args!("{}: no rows", path.display())));
    }
    Ok(features)
}

pub(super) fn build(
    path: &Path,
    output: &Path,
    metric: Metric,
    format: &InputArgs,
    context: &Context,
) -> Result<(), CliError> {
    ContainerWriter::check(output)?;
    let rows = read(path, &format.options(), context)?;
    context.foresee_memory("the index", InvertedIndex::bytes(rows.rows(), rows.cols(), rows.nnz()) as u64)?;
    let begin = Instant::now();
    let index = context.on_threads(|| InvertedIndex::build(rows.view(), metric)).map_err(|e| build_error(path, &e))?;
    let build_s = begin.elapsed().as_secs_f64();
    context.check_interrupt()?;
    index.save(output)?;
    log::write(output, build_s, context);
    say(&index, "rows", build_s, output, context)
}

/// Says what was built.
pub(super) fn say(
    index: &InvertedIndex,
    what: &str,
    build_s: f64,
    output: &Path,
    context: &Context,
) -> Result<(), CliError> {
    let metric = index.metric();
    let (n, n_columns, nnz) = (index.len(), index.n_columns(), index.nnz());
    if context.json {
        let report = json!({
            what: n, "columns": n_columns, "values": nnz, "metric": metric, "build_s": build_s, "bytes": index.n_bytes(),
        });
        return output::print(&report.to_string());
    }
    context.note(format_args!(
        "index: {n} sparse {what} of {n_columns} columns ({metric}), {:.1} values each, in {build_s:.1} s; {}",
        nnz as f64 / n.max(1) as f64,
        format_bytes(index.n_bytes() as u64)
    ));
    context.note(format_args!("index: saved {}", output.display()));
    Ok(())
}

/// An index, queries as wide as it, and a bit for each row that may be an answer.
pub(super) struct Opened {
    index: InvertedIndex,
    queries: CsrMatrix,
    bits: Option<Vec<u64>>,
}

impl Opened {
    pub(super) fn new(asked: &Asked, container: &Container, context: &Context) -> Result<Self, CliError> {
        let index = InvertedIndex::read(container).map_err(|e| open_error(&e))?;
        if !holds_rows(&asked.queries, &asked.format.options())? {
            let path = asked.queries.display();
            return Err(CliError::usage(format_args!(
                "{path}: vectors; the index has sparse rows, and wants such queries"
            )));
        }
        let options = ReadOptions { n_features: Some(index.n_columns()), ..asked.format.options() };
        if asked.queries.is_file() && Format::detect(&asked.queries, &options)? != Format::Svmlight {
            context.options.refuse_idle(&["svmlight-base"], "an svmlight file", "")?;
        }
        let queries = read(&asked.queries, &options, context)?;
        let bits = asked.row_bits(index.len())?;
        Ok(Self { index, queries, bits })
    }

    /// Says how many queries have no direction.
    fn say_without_direction(&self, context: &Context) {
        let zeros = |row: &usize| self.queries.row(*row).values().iter().all(|v| *v == 0.0);
        let n = (0..self.queries.rows()).filter(zeros).count();
        say_without_direction(self.index.metric(), n, context);
    }

    /// Answers, and how many rows they are of.
    pub(super) fn search(&self, asked: &Asked, context: &Context) -> Result<(RankedBatch, usize), CliError> {
        let (filter, queries) = (self.bits.as_deref().map(Filter::Bits), self.queries.view());
        let found = context.on_threads(|| self.index.search_batch(queries, asked.top_k, filter.as_ref()));
        self.say_without_direction(context);
        Ok((found.map_err(|e| CliError::input(&asked.queries, &e))?.0, self.index.len()))
    }

    /// Measures queries per second.
    pub(super) fn evaluate(&self, asked: &Asked, runs: usize, context: &Context) -> Result<(), CliError> {
        let Self { index, queries, bits } = self;
        let (filter, queries) = (bits.as_deref().map(Filter::Bits), queries.view());
        let failed = |e| CliError::input(&asked.queries, &e);
        self.say_without_direction(context);
        let (mut best, mut effort) = (f64::INFINITY, Default::default());
        for _ in 0..runs {
            let begin = Instant::now();
            effort =
                context.on_threads(|| index.search_batch(queries, asked.top_k, filter.as_ref())).map_err(failed)?.1;
            best = best.min(begin.elapsed().as_secs_f64());
            context.check_interrupt()?;
        }
        let (mut scratch, mut out) = (InvertedScratch::default(), Vec::new());
        let [p50_us, p99_us] = percentiles(queries.rows(), |query| {
            index.search(queries.row(query), asked.top_k, filter.as_ref(), &mut scratch, &mut out).map(|_| ())
        })
        .map_err(failed)?;
        let n = queries.rows() as f64;
        let per_query = |count: u64| count as f64 / n;
        let (qps, added) = (n / best, per_query(effort.added));
        let (left, scored) = (per_query(effort.left), per_query(effort.exact));
        if context.json {
            let report = json!({
                "queries": queries.rows(), "k": asked.top_k, "threads": context.threads, "recall": 1.0, "qps": qps,
                "p50_us": p50_us, "p99_us": p99_us, "weights_added": added, "weights_left": left, "rows_scored": scored,
                "bytes": index.n_bytes(), "build_s": log::build_s(&asked.index),
            });
            return output::print(&report.to_string());
        }
        output::print(&format!(
            "{:>12} {:>8} {:>8} {:>14} {:>13} {:>12}\n{qps:>12.0} {p50_us:>8.1} {p99_us:>8.1} {added:>14.0} {left:>13.0} \
         {scored:>12.1}\n{} queries, {} best, {} threads; answers are exact; {}",
            "queries/s",
            "p50 us",
            "p99 us",
            "weights added",
            "weights left",
            "rows scored",
            queries.rows(),
            asked.top_k,
            context.threads,
            format_bytes(index.n_bytes() as u64)
        ))
    }
}
