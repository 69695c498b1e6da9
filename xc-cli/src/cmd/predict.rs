//! `xc predict`: the best labels of each instance.

use crate::answer::{Only, SearchArgs, query_error};
use crate::context::Context;
use crate::data::{InputArgs, Queries, label_format, read_label_set};
use crate::error::CliError;
use crate::interrupt;
use crate::model::{OpenArgs, dictionary, open_error};
use crate::output::Output;
use clap::ValueEnum;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use xc_sparse::LabelRows;
use xc_sparse::io::{
    LabelNames, ReadOptions, UnknownLabels, push_prediction_json, push_prediction_line, push_prediction_names,
    read_labels, write_prediction_npz,
};
use xc_sparse::rank::{RankedBatch, Scored};
use xc_train::Model;
use xc_train::model::{Answer, BatchError, QueryOptions, Scratch};

/// Predict the best labels of each instance
///
/// The model knows what it is and how its features are made: give it the kind of
/// input it was trained on. Labels in the input are not looked at. Answers come
/// in input order, one line an instance, best label first:
///
///   lines   17:0.93 4:0.51              label ids; an empty line where there is nothing to say
///           red fox:0.93<TAB>dog:0.51   with --names
///   jsonl   {"labels":[17,4],"scores":[0.93,0.51],"names":["red fox","dog"]}
///   npz     a scipy csr matrix of instances x labels; entries of a row stand best first
///
/// With `--input -` every line of stdin is answered, and the answer sent, before
/// the next is read.
///
/// Examples:
///   xc predict --model my.model --input test.txt --top-k 5 --output predictions.txt
///   xc predict --model my.model --input test.jsonl --names --output -
///   echo "lorem ipsum" | xc predict --model text.model --input - --top-k 3
///   xc predict --model my.model --input test.txt --only-labels wanted.txt --min-score 0.1 --output out.txt
///   xc predict --model my.model --input test.txt --candidates shown.txt --top-k 20 --output reranked.txt
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// The model folder
    #[arg(long, value_name = "DIR")]
    model: PathBuf,
    /// Instances; - reads stdin line by line
    #[arg(long, value_name = "FILE")]
    input: PathBuf,
    /// Labels for each instance, at most
    #[arg(long, value_name = "K", default_value_t = 5)]
    top_k: usize,
    /// Where the answers go; - is stdout
    #[arg(long, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    /// Score these labels and no others, whether a search would reach them or not; ids or names,
    /// one a line
    #[arg(long, value_name = "FILE", conflicts_with_all = ["beam", "max_labels"])]
    only_labels: Option<PathBuf>,
    /// Score for each instance the labels that this file gives for it and no others: one row an
    /// instance, ids separated by commas, or the labels of any input format
    #[arg(long, value_name = "FILE", conflicts_with_all = ["beam", "max_labels", "only_labels"])]
    candidates: Option<PathBuf>,
    /// Leave out labels with a smaller score
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    min_score: Option<f32>,
    /// Form of the answers
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Form::Lines)]
    output_format: Form,
    /// Write names of labels rather than ids (lines)
    #[arg(long)]
    names: bool,
    #[command(flatten)]
    search: SearchArgs,
    #[command(flatten)]
    open: OpenArgs,
    #[command(flatten)]
    format: InputArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    Lines,
    Jsonl,
    Npz,
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<(), CliError> {
    if args.top_k == 0 {
        return Err(CliError::usage("--top-k 0: at least 1 is expected"));
    }
    if args.min_score.is_some_and(f32::is_nan) {
        return Err(CliError::usage("--min-score NaN: a number is expected"));
    }
    if args.names && args.output_format == Form::Npz {
        return Err(CliError::usage("--names: an npz matrix has no names; lines or jsonl is expected"));
    }
    let model = args.open.open(&args.model, &args.search, context)?;
    let by_name = args.only_labels.is_some() || args.candidates.is_some();
    let with_names = args.names || args.output_format == Form::Jsonl || by_name;
    let names = if with_names { model.label_names().map_err(|e| open_error(&e))? } else { None };
    let names = dictionary(names, &args.model)?;
    if args.names && names.is_none() {
        return Err(CliError::usage(format_args!("--names: {} has no label names", args.model.display())));
    }
    let n_labels = model.describe().n_labels;
    let only = match (&args.only_labels, &args.candidates) {
        (Some(path), _) => Only::Labels(read_label_set(path, n_labels, names.as_ref())?),
        (None, Some(path)) => Only::Candidates(read_candidates(path, n_labels, names.as_ref())?),
        (None, None) => Only::All,
    };
    let from_stdin = args.input == Path::new("-");
    let mut queries = if from_stdin {
        Queries::stdin(&args.format, &model)?
    } else {
        Queries::open(&args.input, &args.format, &model)?
    };
    let input = if from_stdin { "standard input".to_owned() } else { args.input.display().to_string() };
    let writer = Writer {
        form: args.output_format,
        names: names.as_ref().filter(|_| args.names || args.output_format == Form::Jsonl),
        out: Output::create(&args.output)?,
        kept: RankedBatch::new(),
        n_labels,
        buffer: Vec::new(),
    };
    let mut run = Run { model: &model, only, args, input, proven: 0, unproven: 0, unknown: 0 };
    if from_stdin {
        run.lines(&mut queries, writer, context)?;
    } else {
        run.file(&mut queries, writer, context)?;
    }
    if run.unknown > 0 {
        let (input, n) = (&run.input, run.unknown);
        context.warn(format_args!("{input}: texts without a word that the model knows: {n}; their answers are empty"));
    }
    if run.unproven > 0 {
        let all = run.proven + run.unproven;
        context.note(format_args!("{} of {all} answers are proven to be those of a full scan", run.proven));
    }
    Ok(())
}

/// Labels to choose from, a row an instance.
fn read_candidates(path: &Path, n_labels: usize, names: Option<&LabelNames>) -> Result<LabelRows, CliError> {
    let (format, header) = label_format(path)?;
    let options = ReadOptions {
        format: Some(format),
        header,
        n_labels: Some(n_labels),
        label_names: names.cloned().map(Arc::new),
        unknown_labels: UnknownLabels::Refuse,
        ..ReadOptions::default()
    };
    Ok(read_labels(path, &options)?.labels)
}

/// Queries that are being answered.
struct Run<'a> {
    model: &'a Model,
    only: Only,
    args: &'a Args,
    /// Where they come from.
    input: String,
    /// Answers that are proven to be those of a full scan, and others that are not.
    proven: u64,
    unproven: u64,
    /// Texts of which the model knows no term, and has nothing to say.
    unknown: usize,
}

impl Run<'_> {
    /// What the queries from number `first` on are told.
    fn options(&self, first: usize) -> QueryOptions<'_> {
        QueryOptions {
            top_k: self.args.top_k,
            min_score: self.args.min_score,
            candidates: self.only.from(first),
            exclude: &[],
            search: self.args.search.options(),
        }
    }

    fn count(&mut self, exact: bool) {
        if exact { self.proven += 1 } else { self.unproven += 1 }
    }

    /// Line by line: each answer is on its way before the next line is read.
    fn lines(&mut self, queries: &mut Queries, mut writer: Writer<'_>, context: &Context) -> Result<(), CliError> {
        let (mut scratch, mut answer) = (Scratch::default(), Answer::default());
        let mut number = 0;
        while let Some(query) = queries.next_one()? {
            if interrupt::interrupted() && !interrupt::stopped() {
                return Err(CliError::interrupted());
            }
            self.check_candidates(number + 1, false)?;
            let (model, options) = (self.model, self.options(number));
            let outcome = context.on_threads(|| model.predict(&query, &options, &mut scratch, &mut answer));
            outcome.map_err(|source| query_error(&BatchError { query: 0, source }, number, &self.input))?;
            writer.row(&answer.labels)?;
            writer.out.send()?;
            self.unknown += usize::from(answer.known_terms == Some(0) && answer.labels.is_empty());
            answer.certificate.iter().for_each(|certificate| self.count(certificate.exact));
            number += 1;
        }
        self.check_candidates(number, !interrupt::stopped())?;
        writer.finish()
    }

    fn file(&mut self, queries: &mut Queries, mut writer: Writer<'_>, context: &Context) -> Result<(), CliError> {
        let task = context.progress.count("instances answered");
        let mut done = 0;
        while let Some(batch) = queries.next_batch(self.model.describe().batch_size)? {
            context.check_interrupt()?;
            self.check_candidates(done + batch.len(), false)?;
            let (model, options) = (self.model, self.options(done));
            let answers = context.on_threads(|| batch.ask(|queries| model.predict_batch(queries, &options)));
            let answers = answers.map_err(|e| query_error(&e, done, &self.input))?;
            for row in answers.ranked.iter() {
                writer.row(row)?;
            }
            let known = answers.known_terms.iter().zip(answers.ranked.iter());
            self.unknown += known.filter(|(known, row)| **known == 0 && row.is_empty()).count();
            answers.certificates.iter().for_each(|certificate| self.count(certificate.exact));
            done += batch.len();
            task.advance(batch.len() as u64);
        }
        drop(task);
        self.check_candidates(done, true)?;
        writer.finish()
    }

    /// There is a row of candidates for each instance, and no row more.
    fn check_candidates(&self, instances: usize, is_end: bool) -> Result<(), CliError> {
        match (&self.only, &self.args.candidates) {
            (Only::Candidates(rows), Some(path)) if instances > rows.len() || (is_end && instances < rows.len()) => {
                let at_least = if is_end { "" } else { "at least " };
                Err(CliError::usage(format_args!(
                    "{}: {} rows of candidates for {at_least}{instances} instances; one a row is expected",
                    path.display(),
                    rows.len()
                )))
            }
            _ => Ok(()),
        }
    }
}

struct Writer<'n> {
    form: Form,
    names: Option<&'n LabelNames>,
    out: Output,
    /// An npz file needs all rows before its first byte.
    kept: RankedBatch,
    n_labels: usize,
    buffer: Vec<u8>,
}

impl Writer<'_> {
    fn row(&mut self, row: &[Scored]) -> Result<(), CliError> {
        self.buffer.clear();
        match (self.form, self.names) {
            (Form::Lines, None) => push_prediction_line(&mut self.buffer, row),
            (Form::Lines, Some(names)) => push_prediction_names(&mut self.buffer, row, names.names()),
            (Form::Jsonl, names) => push_prediction_json(&mut self.buffer, row, names.map(LabelNames::names)),
            (Form::Npz, _) => {
                self.kept.push_row(row);
                return Ok(());
            }
        }
        self.out.put(&self.buffer)
    }

    fn finish(mut self) -> Result<(), CliError> {
        if self.form == Form::Npz {
            let mut bytes = Cursor::new(Vec::new());
            write_prediction_npz(&mut bytes, &self.kept, self.n_labels)
                .map_err(|e| CliError::write(self.out.name(), &e))?;
            self.out.put(bytes.get_ref())?;
        }
        self.out.commit()
    }
}
