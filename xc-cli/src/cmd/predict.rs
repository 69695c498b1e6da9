//! `xc predict`: the best labels of each instance.

use crate::context::Context;
use crate::data::{InputArgs, Queries, read_label_set};
use crate::error::CliError;
use crate::model::{Model, OpenArgs};
use crate::output::Output;
use clap::ValueEnum;
use rayon::prelude::*;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use xc_sparse::io::{
    LabelNames, push_prediction_json, push_prediction_line, push_prediction_names, write_prediction_npz,
};
use xc_sparse::rank::{RankedBatch, Scored};
use xc_sparse::{CsrMatrix, Rows, SparseRow};
use xc_tree::{PredictParams, PredictScratch, Restriction};

/// Instances that are answered together.
const BATCH: usize = 8192;

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
    /// Clusters kept per level: wider is slower and finds more [default: the model's]
    #[arg(long, value_name = "B")]
    beam: Option<usize>,
    /// Score these labels and no others, whether a beam would reach them or not; ids or names, one a line
    #[arg(long, value_name = "FILE", conflicts_with = "beam")]
    only_labels: Option<PathBuf>,
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
        return Err(CliError::usage("--top-k 0: at least 1 is wanted"));
    }
    if args.beam == Some(0) {
        return Err(CliError::usage("--beam 0: at least 1 is wanted"));
    }
    if args.min_score.is_some_and(f32::is_nan) {
        return Err(CliError::usage("--min-score NaN: a number is wanted"));
    }
    if args.names && args.output_format == Form::Npz {
        return Err(CliError::usage("--names: an npz matrix has no names; lines or jsonl is wanted"));
    }
    let model = Model::open(&args.model, args.open)?;
    let with_names = args.names || args.output_format == Form::Jsonl || args.only_labels.is_some();
    let names = if with_names { model.label_names()? } else { None };
    if args.names && names.is_none() {
        return Err(CliError::usage(format_args!("--names: {} has no label names", args.model.display())));
    }
    let n_labels = model.tree.info().n_labels;
    let restriction = match &args.only_labels {
        Some(path) => {
            let labels = read_label_set(path, n_labels, names.as_ref())?;
            Some(model.tree.restrict(&labels).map_err(|e| CliError::input(path, &e))?)
        }
        None => None,
    };
    let from_stdin = args.input == Path::new("-");
    let mut queries = if from_stdin {
        Queries::stdin(&args.format, &model)?
    } else {
        Queries::open(&args.input, &args.format, &model)?
    };
    let params = PredictParams::new(&model.tree, args.top_k);
    let params = args.beam.map_or(params, |beam| params.with_beam(beam));
    let asker = Asker { model: &model, params, restriction, min_score: args.min_score };
    let writer = Writer {
        form: args.output_format,
        names: names.as_ref().filter(|_| args.names || args.output_format == Form::Jsonl),
        out: Output::create(&args.output)?,
        kept: RankedBatch::new(),
        n_labels,
        buffer: Vec::new(),
    };
    if from_stdin {
        answer_lines(&mut queries, &asker, writer)
    } else {
        answer_file(&mut queries, &asker, writer, context)
    }
}

/// Line by line: each answer is on its way before the next line is read.
fn answer_lines(queries: &mut Queries<'_>, asker: &Asker<'_>, mut writer: Writer<'_>) -> Result<(), CliError> {
    let (mut scratch, mut answer) = (PredictScratch::default(), Vec::new());
    while let Some(row) = queries.next_one()? {
        asker.one(row, &mut scratch, &mut answer);
        writer.row(&answer)?;
        writer.out.send()?;
    }
    writer.finish()
}

fn answer_file(
    queries: &mut Queries<'_>,
    asker: &Asker<'_>,
    mut writer: Writer<'_>,
    context: &Context,
) -> Result<(), CliError> {
    let task = context.progress.count("instances answered");
    while let Some(batch) = queries.next_batch(BATCH)? {
        context.check_interrupt()?;
        for row in asker.batch(&batch).iter() {
            writer.row(row)?;
        }
        task.advance(batch.rows() as u64);
    }
    drop(task);
    writer.finish()
}

/// A model with everything a query has to be told.
struct Asker<'m> {
    model: &'m Model,
    params: PredictParams,
    restriction: Option<Restriction>,
    min_score: Option<f32>,
}

impl Asker<'_> {
    fn one(&self, row: SparseRow<'_>, scratch: &mut PredictScratch, answer: &mut Vec<Scored>) {
        match &self.restriction {
            Some(only) => self.model.tree.predict_restricted(row, only, self.params.top_k, scratch, answer),
            None => self.model.tree.predict_one(row, &self.params, scratch, answer),
        }
        self.cut(answer);
    }

    fn batch(&self, queries: &CsrMatrix) -> RankedBatch {
        if self.restriction.is_none() && self.min_score.is_none() {
            return self.model.tree.predict_batch(queries.view(), &self.params);
        }
        let rows = Rows::new(queries.view());
        let answers: Vec<Vec<Scored>> = (0..rows.len())
            .into_par_iter()
            .map_init(PredictScratch::default, |scratch, i| {
                let mut answer = Vec::new();
                self.one(rows.row(i), scratch, &mut answer);
                answer
            })
            .collect();
        let mut batch = RankedBatch::new();
        answers.iter().for_each(|answer| batch.push_row(answer));
        batch
    }

    /// Answers stand best first, so what is too small stands at the end.
    fn cut(&self, answer: &mut Vec<Scored>) {
        if let Some(min) = self.min_score {
            answer.truncate(answer.partition_point(|s| s.score >= min));
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
