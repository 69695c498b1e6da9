//! `xc index search`.

use super::{Asked, Opened, ScopeArgs, rows, say_without_direction, zeros};
use crate::answer_file::{Form, Style, Writer};
use crate::context::Context;
use crate::device::DeviceArgs;
use crate::error::CliError;
use crate::output::Output;
use std::path::PathBuf;
use xc_ann::{Filter, SearchParams};
use xc_data::AnswerNotes;
use xc_sparse::rank::RankedBatch;

/// Find the best vectors of an index for each query
///
/// A line of the answers holds `row:score` for each of the best, best first; rows count from 0.
/// The score is the cosine, the inner product, or the negative squared distance, computed in
/// double precision. Under the cosine a query of zeros has an empty line. A file whose name
/// ends in .npz gets a scipy csr matrix of queries x rows, whose entries are best first in each
/// row; one that ends in .jsonl gets an object per query; one that ends in .csv the columns
/// id,rank,label,name,score, where id is the number of the query and label the row of the index.
///
/// Examples:
///   xc index search --index my.index --queries queries.npy --top-k 10 --output answers.txt
///   xc index search --index my.index --queries queries.npy --top-k 10 --output answers.npz
///   xc index search --index my.index --queries queries.npy --exact --output -
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    #[command(flatten)]
    scope: ScopeArgs,
    /// Compare all vectors (an index of sparse rows always answers exactly)
    #[arg(long, conflicts_with_all = ["search-width", "cells"])]
    exact: bool,
    /// Prove answers of inner products by the lengths of vectors: if at most N vectors are long enough to be among
    /// them, all of these are compared and the answers are exact; the number of such queries is printed
    #[arg(long, value_name = "N", conflicts_with_all = ["exact", "filter"])]
    prove: Option<u32>,
    /// File for the answers, or - for stdout
    #[arg(long, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    /// Format of the answers [default: npz, jsonl or csv if the name of --output ends so, else lines]
    #[arg(long, value_name = "FORMAT", value_enum)]
    output_format: Option<Form>,
    #[command(flatten)]
    device: DeviceArgs,
    #[command(flatten)]
    asked: Asked,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<(), CliError> {
    if args.asked.top_k == 0 {
        return Err(CliError::usage("--top-k 0: at least 1 is expected"));
    }
    let form = Form::choose(args.output_format, &args.output)?;
    let output = Output::create(&args.output)?;
    let (found, n_rows) = search(args, context)?;
    context.check_interrupt()?;
    let mut writer = Writer::new(Style { form, names: None }, output, n_rows)?;
    found.iter().try_for_each(|row| writer.row(row, &AnswerNotes::default()))?;
    writer.finish()
}

/// Answers, and how many rows they are of.
fn search(args: &Args, context: &Context) -> Result<(RankedBatch, usize), CliError> {
    let (index, asked, bits) = match args.asked.open(context)? {
        Opened::Vectors(index, asked, bits) => (index, asked, bits),
        Opened::Sparse(opened) => {
            if let Some(option) = args.scope.given().or(args.prove.map(|_| "--prove".to_owned())) {
                return Err(CliError::usage(format_args!("{option}: an index of sparse rows answers exactly")));
            }
            args.device.stay("the search of an index of sparse rows stays on the CPU", context)?;
            return opened.search(&args.asked, context);
        }
    };
    let filter = bits.as_deref().map(Filter::Bits);
    let params = SearchParams { top_k: args.asked.top_k, scope: args.scope.scope(&index)? };
    let lengths = match args.prove {
        Some(_) => Some(index.lengths().ok_or_else(|| {
            let metric = index.metric().name();
            CliError::usage(format_args!("--prove: needs an index of inner products, and this is one of {metric}"))
        })?),
        None => None,
    };
    let mut found = if args.exact {
        args.device.exact(&index, rows(&asked), params.top_k, filter.as_ref(), context)?.found
    } else {
        let (path, queries) = (&args.asked.queries, rows(&asked));
        let is_in_cells = filter.is_none() && params.scope.unwrap_or(index.default_scope()).n_cells() > 0;
        let found = if is_in_cells {
            args.device.cells(&index, path, queries, params, context)?
        } else {
            let why = match filter {
                Some(_) => "--filter: a search among some rows stays on the CPU, unless it is --exact",
                None => "a search of the graph stays on the CPU, other than --exact and --cells",
            };
            args.device.stay(why, context)?;
            None
        };
        match found {
            Some(found) => found,
            None => {
                let found = context.on_threads(|| index.search_batch(queries, params, filter.as_ref()));
                found.map_err(|e| CliError::input(path, &e))?.0
            }
        }
    };
    say_without_direction(index.metric(), zeros(rows(&asked)), context);
    if let (Some(lengths), Some(most)) = (lengths, args.prove) {
        let prove = || lengths.complete(index.rows(), rows(&asked), (params.top_k, most as usize), &found);
        let (proven, n) = context.on_threads(prove);
        context.note(format_args!("the answers of {n} of {} queries are proven to be exact", found.len()));
        found = proven;
    }
    Ok((found, index.rows().len()))
}
