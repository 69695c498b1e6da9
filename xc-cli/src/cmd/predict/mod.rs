//! `xc predict`: the best labels of each instance.

mod stream;

use crate::answer::{EXCLUDED, LabelLists, Only, SearchArgs, query_error};
use crate::answer_file::{Form, Style, Writer};
use crate::cmd::explain::TEXT_AS_IT_STANDS;
use crate::context::Context;
use crate::data::{InputArgs, NamesArgs, Queries, label_format, of_labels, of_tables, read_label_set};
use crate::device::DeviceArgs;
use crate::error::CliError;
use crate::model::{OpenArgs, refuse_inside};
use crate::output::{self, Output};
use crate::stdin;
use crate::written::is_same;
use clap::ValueEnum;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use xc_buffer::Part;
use xc_data::{AnswerNotes, FileForm, Format, LabelNames, ReadOptions, UnknownLabels};
use xc_model::Model;
use xc_model::calibrate::ThresholdKind;
use xc_model::{Excluded, InputKind, QueryOptions, ScoreOptions, SearchOptions};
use xc_sparse::rank::Scored;
use xc_store::PART_FOLDER;
use xc_train::calibrate::CalibrateParams;

/// Predict the best labels of each instance
///
/// The model stores its kind, how its features are made, and which fields of a file they
/// are made from: give it the kind of input it was trained on. Labels in the input are
/// ignored. Answers are in input order, one line per instance, best label first:
///
///   lines   17:0.93 4:0.51              label ids; an empty line if there is no answer
///           red fox:0.93<TAB>dog:0.51   with --names
///   jsonl   {"labels":[17,4],"scores":[0.93,0.51],"names":["red fox","dog"]}, and "id" if the
///           input has that field or column (--id-field)
///   npz     a scipy csr matrix of instances x labels; entries of a row are best first
///   csv     the columns id,rank,label,name,score, with a row for each label
///
/// The format follows the name of --output: p.npz, p.jsonl, p.csv; any other name gets lines.
/// With --names, a name that is a number is in quotes ("2019":0.93), as no label id is.
///
/// With `--input -` each line of stdin is answered by one line, in order and at once.
/// A line that begins with { is a request, whatever the model was trained on:
///
///   {"id": 7, "text": "lorem ipsum", "top_k": 3, "candidates": [4, 17], "min_score": 0.1}
///   {"features": {"3": 0.5, "17": 1}, "exclude": [4]}      or   {"vector": [0.1, 0.7, ...]}
///
/// Any other line is a text or a row of features. If a line cannot be answered, stderr
/// says why, and its answer is an empty line, or {"id":7,"error":"..."} in jsonl.
///
/// Examples:
///   xc predict --model my.model --input test.txt --top-k 5 --output predictions.txt
///   xc predict --model my.model --input test.jsonl --names --output -
///   xc predict --model text.model --text "lorem ipsum" --names
///   echo "lorem ipsum" | xc predict --model text.model --input - --top-k 3
///   xc predict --model text.model --input - --output-format jsonl < requests.jsonl
///   xc predict --model my.model --input test.txt --only-labels some.txt --min-score 0.1
///     --output out.txt
///   xc predict --model my.model --input test.txt --candidates shown.txt --top-k 20
///     --output reranked.txt
///   xc predict --model my.model --input users.txt --exclude seen.txt --output new.txt
///   xc predict --model my.model --input users.jsonl --exclude-field seen --output new.csv
///   xc predict --model calibrated.model --input test.txt --threshold micro --output decided.txt
///   xc predict --model my.model --input users.jsonl --part 3/8 --output part-3.txt
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment, group = clap::ArgGroup::new("of").required(true).args(["input", "text"]))]
pub(crate) struct Args {
    /// The model folder
    #[arg(long, value_name = "DIR")]
    model: PathBuf,
    /// File of instances; - answers each line of stdin
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
    /// Answer this text; may be given several times
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["part", "exclude_field"])]
    text: Vec<String>,
    /// Answer part I of N of --input, from 0/N on: the answers of all parts, joined in order (cat), are those of the
    /// whole. Of npz and npy a part has the rows I n/N to (I+1) n/N; of other formats the rows that begin in its share
    /// of the bytes. A line number of a message counts from the byte that stands with it. Not with stdin, compressed
    /// files, JSON that is not one object a line, or npz answers
    #[arg(long, value_name = "I/N")]
    part: Option<Part>,
    /// Labels per instance, at most [default: 5; with --threshold as many as the calibration used, or 50]
    #[arg(long, value_name = "K")]
    top_k: Option<usize>,
    /// File for the answers; - is stdout
    #[arg(long, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    /// Score only these labels, whether or not a search would reach them; ids or names, one per line. They have the
    /// scores that they have among all labels, with the exceptions of --candidates
    #[arg(long, value_name = "FILE", conflicts_with_all = ["beam", "max-labels"])]
    only_labels: Option<PathBuf>,
    /// Score for each instance only the labels that this file lists for it: one row per instance, ids separated by
    /// commas, or the labels of any input format. They have the scores that they have among all labels, with three
    /// exceptions. Several trees: in a search, trees whose beam does not reach a label count 0 for it. A blend: scores
    /// follow from ranks among its members' answers. A sparse output layer: labels that its loss scores alike are set
    /// one step apart, and labels that are not listed take no steps
    #[arg(long, value_name = "FILE", conflicts_with_all = ["beam", "max-labels", "only_labels"])]
    candidates: Option<PathBuf>,
    /// Leave out the labels that this file lists for each instance, such as those that a user has seen; others take
    /// their places. One row per instance, in the formats of --candidates
    #[arg(long, value_name = "FILE")]
    exclude: Option<PathBuf>,
    /// Leave out the labels that this field or column of --input lists for each instance (JSONL, CSV, TSV)
    #[arg(long, value_name = "NAME", conflicts_with = "exclude")]
    exclude_field: Option<String>,
    /// What to do about labels of --candidates and --only-labels that the model does not have: refuse the file, or leave
    /// them out and count them, as those of --exclude always are
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = Unknown::Refuse)]
    unknown_labels: Unknown,
    /// Let --exclude and --exclude-field leave out the labels of --input in the model's own label field, which are the
    /// true labels wherever there are some
    #[arg(long)]
    exclude_own_labels: bool,
    /// Leave out labels that score less than S
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    min_score: Option<f32>,
    /// Return every label that scores at least T; or use the thresholds that `xc calibrate` found: micro (or
    /// calibrated), macro or label
    #[arg(long, value_name = "T", allow_negative_numbers = true, conflicts_with = "min_score", value_parser = parse_threshold)]
    threshold: Option<Threshold>,
    /// Return the raw scores of a calibrated model instead of probabilities
    #[arg(long)]
    raw_scores: bool,
    /// Format of the answers [default: npz, jsonl or csv if the name of --output ends so, else lines]
    #[arg(long, value_name = "FORMAT", value_enum)]
    output_format: Option<Form>,
    /// What to do about a line of stdin that cannot be answered: write an answer that says so, write no line, or stop
    /// with exit code 2
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = OnError::Answer)]
    on_error: OnError,
    /// Write label names instead of ids (lines; jsonl and csv always have them)
    #[arg(long)]
    names: bool,
    #[command(flatten)]
    known: NamesArgs,
    #[command(flatten)]
    open: OpenArgs,
    #[command(flatten)]
    search: SearchArgs,
    #[command(flatten)]
    device: DeviceArgs,
    #[command(flatten)]
    format: InputArgs,
}

/// Which labels are returned.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Threshold {
    /// Those with at least this score.
    Score(f32),
    /// Those that reach thresholds of the model's calibration.
    Calibrated(ThresholdKind),
}

fn parse_threshold(text: &str) -> Result<Threshold, String> {
    if let Some(kind) = ThresholdKind::ALL.into_iter().find(|kind| kind.name() == text) {
        return Ok(Threshold::Calibrated(kind));
    }
    match text.parse::<f32>() {
        _ if text == "calibrated" => Ok(Threshold::Calibrated(ThresholdKind::Micro)),
        Ok(score) if score.is_finite() => Ok(Threshold::Score(score)),
        _ => Err(format!("got {text:?}, expected a number, micro, macro, label or calibrated")),
    }
}

/// What becomes of a line that cannot be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OnError {
    Answer,
    Skip,
    Stop,
}

/// What becomes of labels that the model does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Unknown {
    Refuse,
    Skip,
}

impl From<Unknown> for UnknownLabels {
    fn from(unknown: Unknown) -> Self {
        match unknown {
            Unknown::Refuse => Self::Refuse,
            Unknown::Skip => Self::Drop,
        }
    }
}

/// Reads labels; where those that the model does not have are why they are refused, says what leaves them out.
fn known_or_skipped<T>(unknown: Unknown, read: impl Fn(UnknownLabels) -> Result<T, CliError>) -> Result<T, CliError> {
    read(unknown.into()).map_err(|error| match error.line() {
        Some(line) if unknown == Unknown::Refuse && read(UnknownLabels::Drop).is_ok() => CliError::usage(format_args!(
            "{line}; --unknown-labels skip leaves out labels that the model does not have"
        )),
        _ => error,
    })
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<(), CliError> {
    if args.top_k == Some(0) {
        return Err(CliError::usage("--top-k 0: at least 1 is expected"));
    }
    if let Some(score) = args.min_score.filter(|score| !score.is_finite()) {
        return Err(CliError::usage(format_args!("--min-score {score}: a number is expected")));
    }
    refuse_inside("--output", &args.output, &args.model)?;
    let form = Form::choose(args.output_format, &args.output)?;
    if args.names && form == Form::Npz {
        return Err(CliError::usage("--names: an npz matrix has no names; lines, jsonl or csv is expected"));
    }
    let from_stdin = args.is_from_stdin();
    if let Some(part) = args.part {
        let why = match form {
            _ if from_stdin => "a stream has no parts that could be read apart; --input FILE is expected",
            Form::Npz => "an npz file is no part of another; lines, jsonl or csv is expected",
            _ => "",
        };
        if !why.is_empty() {
            return Err(CliError::usage(format_args!("--part {part}: {why}")));
        }
    }
    output::check(&args.output)?;
    let search = args.search.params()?;
    let mut model = args.open.open(&args.model, &search, context)?;
    let excludes = args.exclude.is_some() || args.exclude_field.is_some();
    if args.exclude_own_labels && !excludes {
        return Err(CliError::usage("--exclude-own-labels: --exclude FILE or --exclude-field NAME is expected"));
    }
    let by_name = args.only_labels.is_some() || args.candidates.is_some() || excludes;
    let with_names = args.names || form.has_names() || by_name;
    let given = args.known.read()?;
    args.known.check(given.as_ref(), model.describe().n_labels)?;
    let names: Option<Arc<LabelNames>> = match given.map(Arc::new) {
        Some(names) => Some(names),
        None if with_names => model.dictionary()?.map(Arc::new),
        None => None,
    };
    if args.names && names.is_none() {
        return Err(CliError::usage(format_args!(
            "--names: {} has no label names; --label-names FILE gives some",
            args.model.display()
        )));
    }
    if let Some(Threshold::Calibrated(kind)) = args.threshold {
        let kind = kind.name();
        if let Some(post) = &search.post_processor {
            return Err(CliError::usage(format_args!(
                "--threshold {kind}: thresholds are of calibrated scores, which --post-processor {post} replaces"
            )));
        }
        if model.calibration().is_none() {
            return Err(CliError::usage(format_args!(
                "--threshold {kind}: {} is not calibrated; `xc calibrate` finds thresholds",
                args.model.display()
            )));
        }
        if args.raw_scores {
            return Err(CliError::usage(format_args!("--threshold {kind} cuts probabilities, not --raw-scores")));
        }
    }
    args.refuse_idle(&model, form, by_name, context)?;
    args.check_bounds(&model)?;
    let n_labels = model.describe().n_labels;
    let input = args.format.or(model.input());
    let read =
        |path: &Path, what, unknown| LabelLists::read(path, what, unknown, n_labels, names.as_ref(), &input, context);
    let only = match (&args.only_labels, &args.candidates) {
        (Some(path), _) => {
            let set = |unknown| Ok(read_label_set(path, n_labels, names.as_deref(), unknown)?);
            let (labels, unknown) = known_or_skipped(args.unknown_labels, set)?;
            if unknown > 0 {
                let path = path.display();
                context.note(format_args!("{path}: {unknown} labels that the model does not have are left out"));
            }
            Only::Labels(labels)
        }
        (None, Some(path)) => Only::Candidates(Box::new(known_or_skipped(args.unknown_labels, |unknown| {
            read(path, "candidates", unknown)
        })?)),
        (None, None) => Only::All,
    };
    refuse_true_labels(args, &model, &input)?;
    let exclude = match (&args.exclude, &args.exclude_field) {
        (Some(path), _) => Some(read(path, EXCLUDED, UnknownLabels::Drop)?),
        (None, Some(field)) => {
            let path = args.input.as_deref().unwrap_or(Path::new(""));
            Some(LabelLists::read_field(path, field, n_labels, names.as_ref(), &input, context)?)
        }
        (None, None) => None,
    };
    let labels = args.only_labels.as_ref().map(|_| "only-labels").or(args.candidates.as_ref().map(|_| "candidates"));
    args.device.put(&mut model, &search.options, labels, context)?;
    let part = args.part.unwrap_or(Part::WHOLE);
    // Lists follow the row, and rows without an id are numbered.
    let counts = args.candidates.is_some() || excludes || form == Form::Csv;
    if !args.names && !form.has_names() && model.has_names_like_ids()? {
        context.warn(
            "labels have names that are whole numbers, and answers have the model's own ids: --names writes names",
        );
    }
    let queries = match &args.input {
        None => Some(Queries::given(args.text.clone(), "--text", &model)?),
        Some(_) if from_stdin => None,
        Some(path) => Some(Queries::open_part(path, &args.format.settings(), &model, part, counts)?),
    };
    let input = queries.as_ref().map_or(stdin::NAME, Queries::name).to_owned();
    let style = Style { form, names: names.as_deref().filter(|_| args.names || form.has_names()) };
    let top_k = args.top_k.unwrap_or_else(|| match args.threshold {
        None => 5,
        Some(_) => model.calibration().map_or(CalibrateParams::default().top_k, |of| of.top_k),
    });
    let names = names.as_ref();
    let search = search.options;
    let mut run =
        Run { model: &model, only, exclude, args, search, names, top_k, input, proven: 0, unproven: 0, unknown: 0 };
    if let Some(queries) = &queries {
        run.lists_mut().for_each(|lists| lists.begin_at(queries.before()));
        // Instances of files that say how many they are have no ids.
        if let Some(n) = queries.known_len() {
            run.lists().try_for_each(|lists| lists.check(n, true))?;
        }
    }
    let out = Output::create(&args.output)?;
    let writer = match &queries {
        Some(queries) if !part.is_first() => Writer::behind(style, out, n_labels, queries.before()),
        _ => Writer::new(style, out, n_labels)?,
    };
    match queries {
        Some(mut queries) => {
            run.file(&mut queries, writer, context)?;
            queries.report_unseen(&context.fit());
        }
        None => stream::answer(&mut run, writer, context)?,
    }
    args.device.report(&model, context);
    if let Some(line) = model.texts_cut() {
        context.note(format_args!("{}: {line}", run.input));
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

impl Args {
    fn is_from_stdin(&self) -> bool {
        self.input.as_deref() == Some(Path::new("-"))
    }

    /// Refuses a bound that no score reaches.
    fn check_bounds(&self, model: &Model) -> Result<(), CliError> {
        let threshold = match self.threshold {
            Some(Threshold::Score(score)) => Some(("threshold", score)),
            _ => None,
        };
        let bounds = [threshold, self.min_score.map(|score| ("min-score", score))];
        match bounds.into_iter().flatten().find(|(_, score)| *score > 1.0) {
            Some((option, score)) if model.scores_at_most_one(self.raw_scores) => {
                Err(CliError::usage(format_args!("--{option} {score}: scores of this model are at most 1")))
            }
            _ => Ok(()),
        }
    }

    /// Refuses options that were given and that nothing reads here.
    fn refuse_idle(&self, model: &Model, form: Form, by_name: bool, context: &Context) -> Result<(), CliError> {
        let from_stdin = self.is_from_stdin();
        if !from_stdin {
            context.options.refuse_idle(&["on-error"], "--input -", "a file is answered whole or refused")?;
        }
        if self.candidates.is_none() && self.only_labels.is_none() {
            context.options.refuse_idle(&["unknown-labels"], "--candidates or --only-labels", "")?;
        }
        let has_index = self.model.join(PART_FOLDER).exists();
        if !has_index {
            context.options.refuse_idle(&["max-age"], "a model with an index of its labels", "")?;
        }
        if model.calibration().is_none() {
            let why = "the model is not calibrated: its scores are those without it";
            context.options.refuse(&["raw-scores"], why)?;
        }
        if !form.has_names() {
            context.options.refuse_idle(&["id-field"], "--output-format jsonl or csv", "")?;
        }
        if self.input.is_none() {
            let (needs, since) = ("--input FILE", TEXT_AS_IT_STANDS);
            context.options.refuse_idle(&["text-fields", "id-field"], needs, since)?;
            if self.candidates.is_none() && self.exclude.is_none() {
                context.options.refuse_idle(&["format", "svmlight-base"], needs, since)?;
            }
        }
        let input = self.format.or(model.input());
        let files = || [&self.candidates, &self.exclude].into_iter().flatten().map(PathBuf::as_path);
        if files().next().is_some() {
            // Of another field of the input only the separator is asked for beside.
            let with_field = self.exclude_field.as_ref().and(self.input.as_deref());
            self.format.refuse_idle_of_labels(&input.of_any_format(), files().chain(with_field))?;
        } else {
            let is_read = |option: &&str| *option == "label-separator" && self.exclude_field.is_some();
            let unread: Vec<_> = of_labels().into_iter().filter(|option| !is_read(option)).collect();
            context.options.refuse_idle(&unread, "--candidates or --exclude", "labels of the input are ignored")?;
        }
        if !from_stdin {
            self.format.refuse_idle_of_instances(&input, self.input.as_deref())?;
            self.format.refuse_idle(&input, self.input.as_deref().into_iter().chain(files()))?;
        } else if model.describe().takes != InputKind::Text {
            context.options.refuse_idle(&["text-fields"], "a model of text", "")?;
        }
        if from_stdin {
            context.options.refuse_idle(&of_tables(), "a csv or tsv file", "")?;
        }
        if from_stdin && !input.is_svmlight() {
            context.options.refuse_idle(&["svmlight-base"], "--format svmlight", "")?;
        }
        let shows_names = self.names || form.has_names();
        if !shows_names && !by_name && !from_stdin {
            context.options.refuse_idle(&["label-names"], "--names, or --output-format jsonl or csv", "")?;
        }
        Ok(())
    }
}

/// Refuses to leave out the labels of the instances themselves, unless that is said to be wanted.
fn refuse_true_labels(args: &Args, model: &Model, input: &FileForm) -> Result<(), CliError> {
    let own = model.input().labels();
    if args.exclude_field.is_some() && args.is_from_stdin() {
        return Err(CliError::usage(
            "--exclude-field: the lines of stdin have a field \"exclude\" of their own; --input FILE is expected",
        ));
    }
    let (option, advice) = match (&args.exclude, &args.exclude_field) {
        _ if args.exclude_own_labels => return Ok(()),
        (Some(path), _) if args.input.as_ref().is_some_and(|input| is_same(path, input)) => {
            let (format, _) = label_format(path, &ReadOptions::from(input.clone()))?;
            let has_fields = matches!(format, Format::Jsonl | Format::Csv | Format::Tsv);
            if has_fields && input.labels() != own {
                return Ok(());
            }
            let advice = if has_fields { "--exclude-field NAME reads another field, " } else { "" };
            (format!("--exclude {}: the file is also --input", path.display()), advice)
        }
        (None, Some(field)) if field == own => (format!("--exclude-field {field}"), ""),
        _ => return Ok(()),
    };
    Err(CliError::usage(format_args!(
        "{option}: these are the instances' own labels, in the field that the model was trained on ({own:?}), and no \
         true label would be answered; {advice}--exclude-own-labels leaves them out all the same"
    )))
}

/// Queries that are being answered.
struct Run<'a> {
    model: &'a Model,
    only: Only,
    exclude: Option<LabelLists>,
    args: &'a Args,
    search: SearchOptions,
    /// Of the labels, where they are known.
    names: Option<&'a Arc<LabelNames>>,
    top_k: usize,
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
        let (min_score, threshold) = match self.args.threshold {
            Some(Threshold::Score(score)) => (Some(score), None),
            Some(Threshold::Calibrated(kind)) => (None, Some(kind)),
            None => (self.args.min_score, None),
        };
        QueryOptions {
            made: false,
            top_k: self.top_k,
            min_score,
            scores: ScoreOptions { raw: self.args.raw_scores, threshold },
            candidates: self.only.from(first),
            exclude: self.exclude.as_ref().map_or(Excluded::None, |lists| {
                let (rows, first) = lists.rows(first);
                Excluded::ByQuery { rows, first }
            }),
            search: self.search,
        }
    }

    /// Files that hold a row for each instance.
    fn lists(&self) -> impl Iterator<Item = &LabelLists> {
        let candidates = match &self.only {
            Only::Candidates(lists) => Some(&**lists),
            _ => None,
        };
        candidates.into_iter().chain(&self.exclude)
    }

    fn lists_mut(&mut self) -> impl Iterator<Item = &mut LabelLists> {
        let candidates = match &mut self.only {
            Only::Candidates(lists) => Some(&mut **lists),
            _ => None,
        };
        candidates.into_iter().chain(&mut self.exclude)
    }

    fn count(&mut self, known_terms: Option<usize>, is_exact: Option<bool>, labels: &[Scored]) {
        self.unknown += usize::from(known_terms == Some(0) && labels.is_empty());
        match is_exact {
            Some(true) => self.proven += 1,
            Some(false) => self.unproven += 1,
            None => {}
        }
    }

    fn file(&mut self, queries: &mut Queries, mut writer: Writer<'_>, context: &Context) -> Result<(), CliError> {
        let task = context.progress.count("instances answered");
        let mut done = queries.before();
        while let Some(batch) = queries.next_batch(self.model.describe().batch_size)? {
            context.check_interrupt()?;
            self.lists_mut().try_for_each(|lists| {
                lists.turn(batch.len(), |at| queries.ids().get(at).and_then(Option::as_ref))?;
                lists.check(done + batch.len(), false)
            })?;
            let (model, options) = (self.model, self.options(done));
            let answers = context.on_threads(|| model.predict_batch(batch.view(), &options));
            let answers = answers.map_err(|e| query_error(&e, done, &self.input))?;
            for (at, row) in answers.ranked.iter().enumerate() {
                let known_terms = answers.known_terms.get(at).copied();
                self.count(known_terms, answers.certificates.get(at).map(|c| c.exact), row);
                writer.row(row, &AnswerNotes { id: queries.id(at), known_terms, warnings: &[] })?;
            }
            done += batch.len();
            task.advance(batch.len() as u64);
        }
        drop(task);
        let part = self.args.part;
        self.lists_mut().try_for_each(|lists| lists.finish(done, part, context))?;
        writer.finish()
    }
}
